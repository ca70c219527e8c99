//! What the comparison with Jinja2 cannot show: limits, errors and their hints, strictness, and the operators.

use std::error::Error as _;
use std::time::{Duration, Instant};

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value, context};

use super::limits::cap;
use super::printing::format_value;
use super::{Style, ValueLimits, ValueTooLarge, operator_edits, too_long_chain};

fn environment(limits: ValueLimits) -> Environment<'static> {
    let mut env = super::environment(limits);
    env.set_undefined_behavior(UndefinedBehavior::Lenient);
    env.set_fuel(Some(1_000_000));
    env
}

fn render(template: &str) -> Result<String, Error> {
    environment(ValueLimits::default()).render_str(template, context! { s => "ab", xs => vec![1, 2, 3] })
}

fn render_small(template: &str) -> Result<String, Error> {
    let limits = ValueLimits { string_bytes: 1000, items: 100, style: Style::Python };
    environment(limits).render_str(template, context! { s => "ab", xs => (0..60).collect::<Vec<_>>() })
}

/// A source with Python's operators.
fn rewritten(source: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    for edit in operator_edits(source, SyntaxConfig::default(), Style::Python) {
        out.push_str(&source[at..edit.range.start]);
        out.push_str(&edit.text);
        at = edit.range.end;
    }
    out + &source[at..]
}

/// The limit that an error is about, looked for as the engine does.
fn limit_of(error: &Error) -> Option<ValueTooLarge> {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(limit) = cause.downcast_ref::<ValueTooLarge>() {
            return Some(*limit);
        }
        source = cause.source();
    }
    None
}

#[track_caller]
fn assert_refused(template: &str, result: Result<String, Error>) {
    let error = result.expect_err(template);
    assert_eq!(error.kind(), ErrorKind::InvalidOperation, "{template}: {error}");
    assert!(limit_of(&error).is_some(), "{template}: {error}");
}

#[test]
fn a_format_with_a_width_of_two_thousand_million_is_refused_at_once() {
    let begin = Instant::now();
    for template in [
        "{{ '%2000000000d'|format(1) }}",
        "{{ '%.2000000000f'|format(1.0) }}",
        "{{ '%*d'|format(2000000000, 1) }}",
        "{{ '{:2000000000}'.format(1) }}",
        "{{ '{:.2000000000f}'.format(1.5) }}",
        "{{ '{:{w}}'.format('a', w=2000000000) }}",
        "{{ '{:99999999999999999999999999}'.format(1) }}",
        "{{ '{x:>2000000000}'.format_map({'x': 1}) }}",
        "{{ 'a'|center(2000000000) }}",
        "{{ 'a'.center(2000000000) }}",
        "{{ 'a'.ljust(2000000000) }}",
        "{{ 'a'.rjust(2000000000, '語') }}",
        "{{ 'a'.zfill(2000000000) }}",
        "{{ '\t'.expandtabs(2000000000) }}",
        "{{ 'a\nb'|indent(2000000000) }}",
        "{{ [1]|tojson(2000000000) }}",
        "{{ [1]|batch(2000000000, 0) }}",
        "{{ [1]|slice(2000000000, 0) }}",
        "{{ 'a'|__cue_mul(2000000000) }}",
        "{{ [1]|__cue_mul(2000000000) }}",
        "{{ '%2000000000s'|__cue_mod('a') }}",
    ] {
        assert_refused(template, render(template));
    }
    assert!(begin.elapsed() < Duration::from_secs(2), "a refusal must not build what it refuses");
}

#[test]
fn what_multiplies_a_text_is_refused_beyond_the_limit() {
    for template in [
        "{{ ('a' * 900)|replace('a', 'bb') }}",
        "{{ ('a' * 900).replace('a', 'bb') }}",
        "{{ ('a' * 900)|replace('', 'b') }}",
        "{{ xs|join('x' * 20) }}",
        "{{ ('x' * 20).join(['a'] * 60) }}",
        "{{ ('a\n' * 60)|indent(20) }}",
        "{{ ('a ' * 60)|wordwrap(1, wrapstring='x' * 20) }}",
        "{{ ('<' * 900)|e }}",
        "{{ ('<' * 900)|forceescape }}",
        "{{ ('é' * 300)|urlencode }}",
        "{{ ('é' * 300)|tojson }}",
        "{{ ('www.example.com ' * 30)|urlize }}",
        "{{ {'a': '<' * 900}|xmlattr }}",
        "{{ ('a' * 900)|__cue_concat('b' * 900) }}",
        "{{ ('a' * 900)|__cue_add('b' * 900) }}",
        "{% autoescape true %}{{ '<' * 900 }}{% endautoescape %}",
        "{{ ['a' * 900, 'b' * 900] }}",
        "{{ ['a' * 900, 'b' * 900]|pprint }}",
        "{{ '%s%s'|format('a' * 900, 'b' * 900) }}",
        "{{ '{0}{0}'.format('a' * 900) }}",
        "{{ 'a,' * 450 }}{{ ('a,' * 450).split(',') }}",
    ] {
        assert_refused(template, render_small(template));
    }
}

#[test]
fn what_multiplies_a_sequence_is_refused_beyond_the_limit() {
    for template in [
        "{{ xs|__cue_add(xs) }}",
        "{{ [xs, xs]|sum(start=[]) }}",
        "{{ ('a' * 200)|list }}",
        "{{ xs|slice(80)|list }}",
    ] {
        assert_refused(template, render_small(template));
    }
}

#[test]
fn a_list_that_holds_itself_twice_and_again_is_not_printed() {
    let nest = "{% set ns = namespace(x=['some text']) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}";
    let begin = Instant::now();
    for print in [
        "{{ ns.x }}",
        "{{ ns.x|tojson }}",
        "{{ ns.x|string }}",
        "{{ ns.x|pprint }}",
        "{{ ns.x|join }}",
        "{{ '%s'|format(ns.x) }}",
    ] {
        let template = format!("{nest}{print}");
        assert_refused(&template, render_small(&template));
    }
    assert!(begin.elapsed() < Duration::from_secs(5));
}

#[test]
fn tojson_doubled_in_a_loop_is_refused() {
    let template = "{% set ns = namespace(x='\"') %}{% for i in range(60) %}{% set ns.x = ns.x|tojson %}{% endfor %}{{ ns.x }}";
    assert_refused(template, render(template));
}

#[test]
fn values_that_nest_too_deeply_are_refused() {
    let template =
        "{% set ns = namespace(x=[]) %}{% for i in range(500) %}{% set ns.x = [ns.x] %}{% endfor %}";
    for print in ["{{ ns.x }}", "{{ ns.x|tojson }}", "{{ ns.x|pprint }}", "{{ [ns.x, ns.x]|sort }}"] {
        let template = format!("{template}{print}");
        let result = render(&template);
        // Comparing two references to one value ends before it goes deep.
        if !print.contains("sort") {
            assert_refused(&template, result);
        }
    }
}

#[test]
fn cap_lets_small_values_pass_and_says_what_was_too_large() {
    let limits = ValueLimits { string_bytes: 3, items: 2, style: Style::Python };
    for value in
        [Value::from("abc"), Value::from(vec![1, 2]), Value::from(5), Value::UNDEFINED, Value::from(())]
    {
        assert_eq!(cap(value.clone(), limits).unwrap(), value);
    }
    let text = limit_of(&cap(Value::from("abcd"), limits).unwrap_err()).unwrap();
    assert_eq!(text, ValueTooLarge { what: "bytes of a string", limit: 3 });
    let items = limit_of(&cap(Value::from(vec![1, 2, 3]), limits).unwrap_err()).unwrap();
    assert_eq!(items, ValueTooLarge { what: "items of a sequence", limit: 2 });
}

#[test]
fn long_texts_are_cut_and_looked_into_without_making_a_value_of_each_character() {
    let template =
        "{% set s = 'ab'|__cue_mul(1500000) %}{{ s|last }}{{ s|first }}{{ s|__cue_slice(-2) }}{{ s|length }}";
    assert_eq!(render(template).unwrap(), "baab3000000");
}

#[test]
fn small_uses_of_everything_that_is_limited_still_work() {
    assert_eq!(
        render_small("{{ '%5d'|format(1) }}{{ 'a'|center(3) }}{{ s|replace('a', 'b') }}").unwrap(),
        "    1 a bb"
    );
    assert_eq!(render_small("{{ xs[:3]|join('-') }} {{ xs[:2]|tojson }}").unwrap(), "0-1-2 [0, 1]");
}

#[test]
fn methods_that_would_change_a_value_say_what_to_write_instead() {
    for (template, hint) in [
        ("{{ xs.append(4) }}", "{% set xs = xs + [x] %}"),
        ("{{ xs.pop() }}", "values are immutable"),
        ("{{ xs.sort() }}", "`|sort`"),
        ("{{ xs.reverse() }}", "`|reverse`"),
        ("{{ {}.update(a=1) }}", "dict(d, key=value)"),
        ("{{ {}.setdefault('a', 1) }}", "namespace"),
    ] {
        let error = render(template).unwrap_err().to_string();
        assert!(error.contains(hint), "{template}: {error}");
    }
}

#[test]
fn what_would_make_renders_differ_is_refused_with_a_reason() {
    for template in ["{{ xs|random }}", "{{ lipsum() }}"] {
        let error = render(template).unwrap_err().to_string();
        assert!(error.contains("same text every time"), "{error}");
    }
}

#[test]
fn filters_and_globals_that_jinja2_does_not_have_are_gone() {
    for template in [
        "{{ 'a b'|split }}",
        "{{ xs|chain(xs)|list }}",
        "{{ xs|zip(xs)|list }}",
        "{{ 1|pluralize }}",
        "{{ debug() }}",
    ] {
        assert!(render(template).is_err(), "{template}");
    }
}

#[test]
fn every_filter_test_and_global_of_jinja2_is_there() {
    let filters = "abs attr batch capitalize center count d default dictsort e escape filesizeformat first float \
        forceescape format groupby indent int items join last length list lower map max min pprint random reject \
        rejectattr replace reverse round safe select selectattr slice sort string striptags sum title tojson trim \
        truncate unique upper urlencode urlize wordcount wordwrap xmlattr";
    let tests = "!= < <= == > >= boolean callable defined divisibleby eq equalto escaped even false filter float ge \
        greaterthan gt in integer iterable le lessthan lower lt mapping ne none number odd sameas sequence string test \
        true undefined upper";
    for (kind, names) in [("filter", filters), ("test", tests)] {
        for name in names.split_whitespace() {
            let template = format!("{{{{ '{name}' is {kind} }}}}");
            assert_eq!(render(&template).unwrap(), "True", "the {kind} {name}");
        }
    }
    let env = environment(ValueLimits::default());
    let mut globals: Vec<&str> = env.globals().map(|(name, _)| name).collect();
    globals.sort_unstable();
    assert_eq!(globals, ["cycler", "dict", "joiner", "lipsum", "namespace", "range", "self"]);
}

#[test]
fn strict_environments_refuse_undefined_values_in_filters_and_output() {
    for behavior in [UndefinedBehavior::Strict, UndefinedBehavior::SemiStrict] {
        let mut env = environment(ValueLimits::default());
        env.set_undefined_behavior(behavior);
        for template in [
            "{{ missing }}",
            "{{ missing|upper }}",
            "{{ missing|string }}",
            "{{ missing|join }}",
            "{{ missing|list }}",
            "{{ missing|trim }}",
            "{{ missing|length }}",
            "{{ missing|first }}",
            "{{ missing|truncate(4) }}",
            "{{ '%s'|format(missing) }}",
            "{{ 'a'|__cue_concat(missing) }}",
        ] {
            let error = env.render_str(template, ()).expect_err(template);
            assert_eq!(error.kind(), ErrorKind::UndefinedError, "{template}: {error}");
        }
        assert_eq!(
            env.render_str("{{ missing|default('x') }}{{ missing is defined }}", ()).unwrap(),
            "xFalse"
        );
        assert_eq!(env.render_str("[{{ 'x' if false }}]", ()).unwrap(), "[]");
    }
}

#[test]
fn a_formatter_of_the_engine_can_print_through_ours() {
    let mut env = environment(ValueLimits::default());
    env.set_formatter(|out, state, value| {
        out.write_str("<")?;
        format_value(ValueLimits::default(), out, state, value)?;
        out.write_str(">").map_err(Error::from)
    });
    assert_eq!(
        env.render_str("{{ 'a' }}{{ 1e20 }}{{ [1e-7, 'a', none] }}", ()).unwrap(),
        "<a><1e+20><[1e-07, 'a', None]>"
    );
}

#[test]
fn operators_as_filters_give_what_python_gives() {
    for (template, wanted) in [
        ("{{ 'x'|__cue_concat(1e20, [1e-7], none) }}", "x1e+20[1e-07]None"),
        ("{{ ('<'|e)|__cue_concat('<') }}", "&lt;<"),
        ("{% autoescape true %}{{ ('<'|e)|__cue_concat('<') }}{% endautoescape %}", "&lt;&lt;"),
        ("{{ ('<'|e)|__cue_add('<') }}", "&lt;&lt;"),
        (
            "{{ 1|__cue_add(2) }} {{ 'a'|__cue_add('b') }} {{ [1]|__cue_add([2]) }} {{ (1,)|__cue_add((2,)) }}",
            "3 ab [1, 2] (1, 2)",
        ),
        (
            "[{{ 'ab'|__cue_mul(-1) }}] {{ 2|__cue_mul('x') }} {{ [1]|__cue_mul(2) }} {{ 2|__cue_mul(1.5) }}",
            "[] xx [1, 1] 3.0",
        ),
        (
            "{{ '%s has %d'|__cue_mod(('Ada', 3)) }} {{ '%05d'|__cue_mod(42) }} {{ '%(a)s'|__cue_mod({'a': 1}) }}",
            "Ada has 3 00042 1",
        ),
        ("{{ 7|__cue_mod(-3) }} {{ -7|__cue_mod(3) }} {{ 7.5|__cue_mod(2) }}", "-2 2 1.5"),
        ("{{ [1,2,3,4,5]|__cue_slice(3, 0, -1) }} [{{ 'goal'|__cue_slice(0, 2, -1) }}]", "[4, 3, 2] []"),
        (
            "{{ 'goal'|__cue_slice(none, none, -1) }} {{ 'goal'|__cue_slice(-2) }} {{ (1,2,3)|__cue_slice(1, 9) }}",
            "laog al (2, 3)",
        ),
        (
            "{{ 1|__cue_lt(2) }} {{ 'a'|__cue_ge('b') }} {{ 'a'|__cue_in('abc') }} {{ 5|__cue_in([1]) }}",
            "True False True False",
        ),
    ] {
        assert_eq!(render(template).unwrap(), wanted, "{template}");
    }
    for template in [
        "{{ 'a'|__cue_lt(1) }}",
        "{{ none|__cue_lt(1) }}",
        "{{ missing|__cue_lt(1) }}",
        "{{ 1|__cue_in('a1') }}",
        "{{ 'a'|__cue_add(1) }}",
        "{{ [1]|__cue_add((1,)) }}",
        "{{ missing|__cue_add(1) }}",
        "{{ 1|__cue_mod(0) }}",
        "{{ xs|__cue_slice(0, 1, 0) }}",
    ] {
        assert!(render(template).is_err(), "{template}");
    }
}

#[test]
fn hostile_arguments_are_errors_and_never_panics() {
    for template in [
        "{{ 1 is divisibleby 0 }}",
        "{{ 5|round(400) }}{{ 1.5|round(-400) }}{{ 1e308|round(-308) }}",
        "{{ 'a'|center(-5) }}{{ 'a'.zfill(-5) }}{{ 'a'|truncate(3, true, '...') }}",
        "{{ '語'|truncate(0, true, '', 0) }}{{ '日本語'|wordwrap(1) }}",
        "{{ range(9223372036854775807, -9223372036854775807, -9223372036854775807)|list }}",
        "{{ range(-9000000000000000000, 9000000000000000000, 6000000000000000000)|list }}",
        "{{ '{'.format() }}",
        "{{ '{0[}'.format(1) }}",
        "{{ '{:'.format(1) }}",
        "{{ '%'|format(1) }}",
        "{{ '%('|format(a=1) }}",
        "{{ '%c'|format(-1) }}",
        "{{ '-'|int }}{{ ''|int }}{{ '_1'|int }}{{ '9' * 60 }}{{ ('9' * 60)|int }}",
        "{{ 'a'.find('', 5, 2) }}{{ 'a'.count('', 9) }}{{ '日'.index('日', -99, 99) }}",
        "{{ [1, 'nan'|float, 0]|sort }}{{ ['nan'|float, 1]|max }}",
        "{{ ''|wordwrap(0) }}",
        "{{ '語語'.rsplit() }}{{ '語\u{3000}語'.rsplit(none, 1) }}",
        "{{ ''|first }}{{ []|last }}{{ ''|title }}{{ ''|capitalize }}",
        "{{ 'a'|trim('') }}{{ 'x'.strip('') }}",
        "{{ '(((((http://a.b)))'|urlize }}{{ '&lt;&gt;@.'|urlize }}{{ 'http://[::1]:80/'|urlize }}{{ '://'|urlize }}",
        "{{ 170141183460469231731687303715884105727|abs }}{{ '{:010_x}|{:,}'.format(255, -1234567) }}",
    ] {
        // Only that it comes back matters.
        let _ = render(template);
    }
}

#[test]
fn operators_are_rewritten_where_they_stand_and_nothing_else_is() {
    for (source, wanted) in [
        ("a ~ b {{ a ~ b }}", "a ~ b {{ ((a )|__cue_concat( b)) }}"),
        ("{{ (a)+b|f(1) }}", "{{ (((a))|__cue_add(b|f(1))) }}"),
        ("{{ n + 1 }}{{ 7 % n }}{{ a == 1 }}", "{{ n + 1 }}{{ 7 % n }}{{ a == 1 }}"),
        ("{{ a ~ b + c }}", "{{ ((a )|__cue_concat( b) |__cue_add( c)) }}"),
        ("{{ (a ~ b) ~ c }}", "{{ (((((a )|__cue_concat( b))) )|__cue_concat( c)) }}"),
        ("{{ a < b not in c }}", "{{ ((a )|__cue_chain('<',  b , 'not in',  c)) }}"),
        ("{{ a not in b }}", "{{ (not (a )|__cue_in( b)) }}"),
        ("{{ x.y[1:][::2] }}", "{{ ((x.y|__cue_slice(1, none))|__cue_slice(none, none, 2)) }}"),
        (
            "{% for x in (xs) if x < 3 %}{% endfor %}",
            "{% for x in ((xs))|__cue_iter if ((x )|__cue_lt( 3)) %}{% endfor %}",
        ),
        (
            "{{ 'a ~ b' }}{# c ~ d #}{% raw %}{{ e ~ f }}{% endraw %}",
            "{{ 'a ~ b' }}{# c ~ d #}{% raw %}{{ e ~ f }}{% endraw %}",
        ),
        ("{{ broken ~ ", "{{ broken ~ "),
    ] {
        assert_eq!(rewritten(source), wanted);
    }
}

#[test]
fn chains_that_would_use_up_the_stack_are_found_before_they_are_compiled() {
    let long = [
        format!("{{{{ a{} }}}}", " ~ a".repeat(5000)),
        format!("{{{{ a{} }}}}", "|f(1, 2)".repeat(5000)),
        format!("{{{{ a{} }}}}", ".b".repeat(5000)),
        format!("{{{{ a{} }}}}", "[0]".repeat(5000)),
        format!("{{{{ a{} }}}}", "()".repeat(5000)),
        format!("{{{{ {}a }}}}", "not ".repeat(5000)),
        format!("{{{{ {}a }}}}", "-".repeat(5000)),
        format!("{{{{ a{} }}}}", " if a else a".repeat(5000)),
        format!("x {{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(5000)),
        format!("{{{{ {}a{} }}}}", "a|g|g|g|g|g|g(".repeat(100), ")".repeat(100)),
    ];
    for source in &long {
        assert!(too_long_chain(source, SyntaxConfig::default()).is_some(), "{}", &source[..40]);
    }
    let wide = [
        format!("{{{{ [{}] }}}}", "[1, 'a'|f, b.c], ".repeat(5000)),
        format!("{{{{ {{{}}} }}}}", "'k': [1, 2], ".repeat(5000)),
        "{{ a ~ b }}".repeat(5000),
        "{% if a %}{% elif b %}{% endif %}".repeat(5000),
        format!("{{{{ a{} }}}}", " ~ a".repeat(250)),
        "| ~ . ".repeat(5000),
    ];
    for source in &wide {
        assert_eq!(too_long_chain(source, SyntaxConfig::default()), None, "{}", &source[..20]);
    }
}

#[test]
fn a_long_chain_of_operators_still_compiles_when_it_is_rewritten() {
    let env = environment(ValueLimits::default());
    let source = format!("{{{{ a{} ~ (a ~ a) }}}}", " ~ a".repeat(280));
    let text = env.render_str(&rewritten(&source), context! { a => "x" }).unwrap();
    assert_eq!(text, "x".repeat(283));
}

#[test]
fn many_large_values_together_are_refused_as_one_would_be() {
    let begin = Instant::now();
    for template in [
        // One step that makes many strings.
        "{{ range(1000)|map('center', 1000)|list|length }}",
        // Many steps that each keep one.
        "{% set ns = namespace(x=[]) %}{% for i in range(90) %}{% set ns.x = ns.x|__cue_add(['a'|center(1000)]) %}{% endfor %}",
        // Much that is printed into a block and not into the output.
        "{% set big = 'a'|center(1000) %}{% set x %}{% for i in range(1000) %}{{ big }}{% endfor %}{% endset %}",
        "{% set big = 'a'|center(1000) %}{% macro m() %}{% for i in range(1000) %}{{ big }}{% endfor %}{% endmacro %}{% set x = m() %}",
    ] {
        assert_refused(template, render_small(template));
    }
    assert!(begin.elapsed() < Duration::from_secs(5));
}

#[test]
fn comparing_lists_that_hold_themselves_twice_and_again_is_refused() {
    let twins = "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}\
                 {% set ns.y = [ns.y, ns.y] %}{% endfor %}";
    for compared in [
        "{{ ns.x|__cue_eq(ns.y) }}",
        "{{ ns.x is eq ns.y }}",
        "{{ ns.x|__cue_in([ns.y]) }}",
        "{{ [ns.x].index(ns.y) }}",
        "{{ [ns.x].count(ns.y) }}",
        "{{ [ns.x, ns.y]|sort }}",
        "{{ ns.x|__cue_lt(ns.y) }}",
    ] {
        let template = format!("{twins}{compared}");
        assert_refused(&template, render(&template));
    }
    let small = "{{ [1, [2]]|__cue_eq([1, [2]]) }} {{ {'a': 1}|__cue_ne({'a': 2}) }} {{ xs|__cue_eq(none) }}";
    assert_eq!(render(small).unwrap(), "True True False");
}
