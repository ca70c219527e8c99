//! Nothing that a template does takes more stack, time or memory than its limits allow.

use std::time::Duration;

use cuebook_template::{Environment, Error, ErrorKind, Output};
use serde_json::{Value as Json, json};

fn render_with(env: &Environment, text: &str, variables: &Json) -> Result<Output, Error> {
    let template = env.compile("main", text)?;
    env.render(&template, variables.as_object().expect("an object"))
}

fn render(text: &str) -> Result<String, Error> {
    render_with(&Environment::new(), text, &json!({"x": 1})).map(|output| output.text().to_owned())
}

/// Runs something on a stack of 1 MB, half of what a thread of Rust has.
fn on_a_small_stack<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run).expect("the thread starts");
    thread.join().expect("the stack is large enough")
}

fn is_refused(text: String) {
    let error = on_a_small_stack(move || render(&text)).expect_err("too deep");
    assert!(matches!(error.kind(), ErrorKind::Syntax | ErrorKind::Limit), "{error}");
}

#[test]
fn deep_expressions_are_refused_on_a_small_stack() {
    let n = 20_000;
    is_refused(format!("{{{{ {}x{} }}}}", "(".repeat(n), ")".repeat(n)));
    is_refused(format!("{{{{ {}x{} }}}}", "[".repeat(n), "]".repeat(n)));
    is_refused(format!("{{{{ {}x }}}}", "not ".repeat(n)));
    is_refused(format!("{{{{ {}x }}}}", "- ".repeat(n)));
    is_refused(format!("{{{{ x{} }}}}", "|string".repeat(n)));
    is_refused(format!("{{{{ x{} }}}}", ".a".repeat(n)));
    is_refused(format!("{{{{ x{} }}}}", "()".repeat(n)));
    is_refused(format!("{{{{ x{} }}}}", " + x".repeat(n)));
    is_refused(format!("{{{{ x{} }}}}", " ** x".repeat(n)));
    is_refused(format!("{{{{ x{} }}}}", " if x else x".repeat(n)));
    is_refused(format!("{{{{ x{} }}}}", " is string".repeat(n)));
    is_refused(format!("{}{}", "{% if x %}".repeat(n), "{% endif %}".repeat(n)));
    is_refused(format!("{}{}", "{% for a in [1] %}".repeat(n), "{% endfor %}".repeat(n)));
    is_refused(format!("{{% filter upper{} %}}{{% endfilter %}}", "|upper".repeat(n)));
    // Chains whose first arguments hold chains.
    let mut text = "x".to_owned();
    for _ in 0..80 {
        text = format!("({text}){}", "|default(1)".repeat(80));
    }
    is_refused(format!("{{{{ {text} }}}}"));
}

#[test]
fn long_chains_of_one_operator_render() {
    for (operator, expected) in [(" and ", "1"), (" or ", "1"), (" ~ ", "1".repeat(5_000).as_str())] {
        let text = format!("{{{{ {} }}}}", vec!["x"; 5_000].join(operator));
        let expected = expected.to_owned();
        assert_eq!(on_a_small_stack(move || render(&text)).expect("a flat chain"), expected);
    }
    let text = format!("{{{{ {} }}}}", vec!["x"; 100].join(" + "));
    assert_eq!(on_a_small_stack(move || render(&text)).expect("a short sum"), "100");
    let text = format!("{{% if no %}}{}{{% endif %}}", "{% elif no %}".repeat(5_000));
    assert_eq!(on_a_small_stack(move || render(&text)).expect("a flat if"), "");
}

#[test]
fn recursion_ends_on_a_small_stack() {
    is_refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}".to_owned());
    let open = "{% if x %}".repeat(80);
    let close = "{% endif %}".repeat(80);
    is_refused(format!("{{% macro m() %}}{open}{{{{ m() }}}}{close}{{% endmacro %}}{{{{ m() }}}}"));
    is_refused("{% macro m() %}{{ [[[[[[[[m()]]]]]]]] }}{% endmacro %}{{ m() }}".to_owned());
    is_refused(
        "{% macro m() %}{{ caller() }}{% call m() %}{% endcall %}{% endmacro %}{% call m() %}{% endcall %}"
            .to_owned(),
    );
    is_refused("{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}".to_owned());
    is_refused("{% block b %}{{ self.b() }}{% endblock %}".to_owned());
    let error = on_a_small_stack(|| {
        let env =
            Environment::new().loader(|name| (name == "main").then(|| "{% include 'main' %}".to_owned()));
        render_with(&env, "{% include 'main' %}", &json!({})).map(|output| output.text().to_owned())
    });
    assert_eq!(error.expect_err("endless").kind(), ErrorKind::Limit);
}

/// A value that nests so many levels deep.
fn deep(levels: usize, wrap: &str) -> String {
    format!(
        "{{% set ns = namespace(v=1) %}}{{% for i in range({levels}) %}}{{% set ns.v = {wrap} %}}{{% endfor %}}"
    )
}

#[test]
fn deep_values_are_made_and_dropped_on_a_small_stack() {
    for wrap in
        ["[ns.v]", "(ns.v,)", "{'a': ns.v}", "namespace(a=ns.v)", "cycler(ns.v)", "[ns.v]|map('string')"]
    {
        let text = deep(50_000, wrap) + "done";
        assert_eq!(on_a_small_stack(move || render(&text)).expect("nothing walks it"), "done");
    }
    for walk in
        ["{{ ns.v }}", "{{ ns.v|tojson }}", "{{ ns.v|pprint }}", "{{ {ns.v: 1} }}", "{{ ns.v|string }}"]
    {
        is_refused(deep(50_000, "(ns.v,)") + walk);
    }
    let two = deep(50_000, "[ns.v]") + "{% set a = ns.v %}" + &deep(50_000, "[ns.v]");
    is_refused(two.clone() + "{{ a == ns.v }}");
    is_refused(two + "{{ a < ns.v }}");
}

#[test]
fn values_that_hold_each_other_many_times_do_not_explode() {
    let twice = |wrap: &str| format!("{{% set a = (1,) %}}{}", format!("{{% set a = {wrap} %}}").repeat(80));
    assert_eq!(render(&(twice("[a, a]") + "{{ a|length }}{{ a == a }}")).expect("shared parts"), "2True");
    for walk in
        ["{{ a }}", "{{ a|tojson }}", "{{ a|pprint }}", "{{ a|string }}", "{{ {a: 1} }}", "{{ a|upper }}"]
    {
        let error = render(&(twice("(a, a)") + walk)).expect_err("too much");
        assert_eq!(error.kind(), ErrorKind::Limit, "{walk}: {error}");
    }
    let error = render(&(twice("[a, a]") + "{% set b = a %}" + &twice("[a, a]") + "{{ a == b }}"));
    assert_eq!(error.expect_err("too much").kind(), ErrorKind::Limit);
    let env = Environment::new().filter("keep", |args, _| Ok(args[0].clone()));
    let error = render_with(&env, &(twice("[a, a]") + "{{ a|keep }}"), &json!({}));
    assert_eq!(error.expect_err("too much").kind(), ErrorKind::Limit);
}

fn fuel_of(text: &str, variables: &Json) -> u64 {
    let enough = |fuel: u64| {
        let mut env = Environment::new();
        env.limits.fuel = fuel;
        match render_with(&env, text, variables) {
            Ok(_) => true,
            Err(error) if error.message().contains("steps") => false,
            Err(error) => panic!("{text}: {error}"),
        }
    };
    let (mut low, mut high) = (0, 10_000_000);
    assert!(enough(high), "{text} takes too much");
    while low < high {
        let middle = (low + high) / 2;
        if enough(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

#[test]
fn work_on_items_and_bytes_is_paid_for_in_proportion() {
    let size = |n: usize| json!({"xs": (0..n).map(|i| format!("{i:06}")).collect::<Vec<_>>(), "ns": (0..n).collect::<Vec<_>>(), "t": "word ".repeat(n), "one": "x"});
    let (small, large) = (size(1_000), size(4_000));
    for text in [
        "{{ xs|join(', ')|length }}",
        "{{ xs|sort|length }}",
        "{{ ns|sum }}",
        "{{ 'no' in xs }}",
        "{{ xs == xs + [] }}",
        "{{ xs[1:]|length }}",
        "{{ xs|unique|list|length }}",
        "{{ xs }}",
        "{{ xs|tojson }}",
        "{{ xs|map('upper')|list|length }}",
        "{{ t|upper|length }}",
        "{{ t|replace('o', '0')|length }}",
        "{{ t|wordwrap(20)|length }}",
        "{{ t|indent|length }}",
        "{{ t.split()|length }}",
        "{{ t == t ~ '' }}",
        "{{ one in t }}",
        "{{ ', '.join(xs)|length }}",
        "{{ ('{} ' * 200).format(*xs)|length }}",
        "{% for x in xs %}{{ x }}{% endfor %}",
    ] {
        let (few, many) = (fuel_of(text, &small), fuel_of(text, &large));
        assert!(many > few || text.contains("200"), "{text}: {few} for 1,000 and {many} for 4,000 items");
        assert!(many <= few * 6 + 100, "{text}: {few} for 1,000 and {many} for 4,000 items");
    }
}

#[test]
fn every_limit_is_an_error_of_its_own() {
    let refused = |change: fn(&mut Environment), text: &str, part: &str| {
        let mut env = Environment::new();
        change(&mut env);
        let error = render_with(&env, text, &json!({})).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(error.message().contains(part), "{error}");
    };
    refused(|env| env.limits.fuel = 100, "{% for i in range(1000) %}{% endfor %}", "100 steps");
    refused(|env| env.limits.output_bytes = 10, "0123456789a", "longer than the limit of 10 bytes");
    refused(|env| env.limits.string_bytes = 10, "{{ 'abc' * 5 }}", "longer than 10 bytes");
    refused(|env| env.limits.string_bytes = 10, "{{ 'abc'|replace('', '1234567') }}", "longer than 10 bytes");
    refused(|env| env.limits.items = 10, "{{ [1] * 11 }}", "more than 10 items");
    refused(|env| env.limits.range = 10, "{{ range(11) }}", "more than 10 items");
    refused(
        |env| env.limits.depth = 5,
        "{% macro m(n) %}{{ m(n) if n }}{% endmacro %}{{ m(1) }}",
        "5 levels",
    );
    refused(
        |env| env.limits.time = Some(Duration::from_millis(20)),
        "{% for i in range(100000) %}{% for j in range(1000) %}{{ [1, 2, 3]|sort|length }}{% endfor %}{% endfor %}",
        "time limit",
    );
    // One call that would make 1 TB is refused before it is made.
    let text = "{% set a = 'a' * 1000000 %}{{ a.replace('a', a)|length }}{{ a|replace('a', a)|length }}";
    assert_eq!(render(text).expect_err("too long").kind(), ErrorKind::Limit);
}

/// The error of a template under small limits: 50,000 steps, and strings of 100,000 bytes.
fn refused_when_small(text: &str) -> Error {
    let mut env = Environment::new();
    env.limits.fuel = 50_000;
    env.limits.string_bytes = 100_000;
    let error = render_with(&env, text, &json!({})).map(|output| output.text().len());
    error.expect_err(text)
}

#[test]
fn every_call_pays_for_the_text_that_it_reads() {
    for call in [
        "t|length",
        "t is sameas(u)",
        "t is lower",
        "d[t]",
        "d.get(t)",
        "{t: 1}",
        "t in d",
        "dict([(t, 1)])",
        "t|truncate(90000, true)",
        "t[1:2]",
        "t|default('')",
        "t.startswith((u, u, u))",
        "[t]|sort",
        "[t]|unique|list",
        "[t]|max",
        "[{'a': t}]|groupby('a')",
        "{'a': t}|dictsort(false, 'value')",
        "[{'a': 1}]|map(attribute=t)|list",
        "'{0!s:.1}'.format(t)",
        "'{0!r:.1}'.format([t])",
        "'%.1s' % t",
        "t|int",
        "t|float",
        "t|urlize",
        "t|striptags",
        "{'a': t}|xmlattr",
        "t|custom",
    ] {
        let text = format!(
            "{{% set t = 'é' * 49000 %}}{{% set u = t ~ '' %}}{{% set d = {{'a': 1}} %}}\
             {{% for i in range(200) %}}{{% set x = {call} %}}{{% endfor %}}"
        );
        let mut env = Environment::new().filter("custom", |_, _| Ok(json!(1)));
        env.limits.fuel = 50_000;
        env.limits.string_bytes = 100_000;
        let error = render_with(&env, &text, &json!({})).map(|output| output.text().len());
        assert!(error.expect_err(call).message().contains("steps"), "{call}");
    }
}

#[test]
fn a_text_is_refused_before_it_grows_too_long() {
    for text in [
        "{{ ('ab ' * 30000)|wordwrap(1, true, 'x' * 99000) }}",
        "{{ {'a' * 90000: [range(100)|list, range(200)|list]}|pprint }}",
        "{{ ('ab.com ' * 10000)|urlize(target='x' * 90000) }}",
        "{{ {'a': '\"' * 90000, 'b': '\"' * 90000}|xmlattr }}",
        "{{ {'a': '\"' * 90000, 'b': '\"' * 90000}|urlencode }}",
        "{{ [[[[[[[[1]]]]]]]]|tojson(90000) }}",
        "{{ ('\"' * 90000)|e }}",
        "{{ 'a'.center(90000, 'é') }}",
        "{{ {('a' * 90000, 'a' * 90000): 1} }}",
    ] {
        assert_eq!(refused_when_small(text).kind(), ErrorKind::Limit, "{text}");
    }
    let lines = "{% set n = namespace(a=[]) %}{% for i in range(99) %}{% set n.a = [n.a, ('\n' * 90000).splitlines()] %}{% endfor %}";
    assert!(refused_when_small(lines).message().contains("steps"));
    let pieces = "{% set t %}{% for i in range(3000) %}{{ i % 10 }}{% endfor %}{% endset %}{% for i in range(40) %}{% set x = t * 30 %}{% endfor %}";
    assert!(refused_when_small(pieces).message().contains("steps"));
    let names = "{% macro m() %}{{ kwargs|length }}{% endmacro %}{% set n = namespace(d=[]) %}{% for i in range(3000) %}{% set n.d = [('a' ~ i, 1)] %}{% endfor %}{{ m(**dict(a)) }}";
    let mut env = Environment::new();
    env.limits.fuel = 300_000;
    let pairs: Vec<Json> = (0..10_000).map(|at| json!([format!("a{at}"), 1])).collect();
    let error = render_with(&env, names, &json!({"a": pairs})).map(|output| output.text().len());
    assert!(error.expect_err("each name is compared with all others").message().contains("steps"));
}

#[test]
fn long_texts_are_cut_in_one_pass() {
    assert_eq!(render("{{ '' * 10**18 }}{{ [] * 10**18 }}").expect("nothing, many times"), "[]");
    let text = "{{ (' ' * 1000000 ~ 'a ' * 400000).rsplit()|length }}{{ '  a  b '.rsplit(none, 1) }}{{ ' a  b '.split(none, 1) }}";
    assert_eq!(render(text).expect("words"), "400000['  a', 'b']['a', 'b ']");
    let text = "{{ ('a@' * 1000000)|urlize|length }}{{ 'a@b@c.de'|urlize }}";
    assert_eq!(render(text).expect("mail"), "2000000<a href=\"mailto:a@b@c.de\">a@b@c.de</a>");
}

#[test]
fn numbers_at_their_ends_are_errors_or_right() {
    let smallest = "(-2)**127";
    for text in [format!("{{{{ -({smallest}) }}}}"), format!("{{{{ ({smallest}) // -1 }}}}")] {
        assert_eq!(render(&text).expect_err(&text).kind(), ErrorKind::Limit, "{text}");
    }
    for (text, expected) in [
        (format!("{{{{ ({smallest}) % -1 }}}}"), "0"),
        (format!("{{{{ 'abc'[::{smallest}] }}}}"), "c"),
        ("{{ [1, 2, 3][::2**126 + (2**126 - 1)] }}".to_owned(), "[1]"),
        ("{{ (9 * 10**37)|round(-38) }}".to_owned(), "100000000000000000000000000000000000000"),
        (
            "{{ range(-9223372036854775808, 9223372036854775807, 9223372036854775807)|list }}".to_owned(),
            "[-9223372036854775808, -1, 9223372036854775806]",
        ),
        ("{{ range(1, 10)[9223372036854775807:]|list }}".to_owned(), "[]"),
    ] {
        assert_eq!(render(&text).expect(&text), expected, "{text}");
    }
    let text = "{{ 'abc'|truncate(-9223372036854775808) }}";
    assert_eq!(render(text).expect_err(text).kind(), ErrorKind::Type);
}
