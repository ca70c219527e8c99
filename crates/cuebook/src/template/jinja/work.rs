//! Tests: fuel pays for what filters, operators, methods and loops do, and a render ends at its deadline.

use std::sync::Arc;

use minijinja::Value;

use super::{Settings, Template};
use crate::error::{Code, Error};
use crate::source::Source;
use crate::template::engine::Loader;
use crate::template::meter;

struct Nothing;

impl Loader for Nothing {
    fn load(&self, _: &str, _: &str) -> crate::Result<Option<Arc<Source>>> {
        Ok(None)
    }
}

/// Turns of the loop that every case runs in.
const TURNS: usize = 50;
/// Enough for all turns with few items, and not for two turns with many.
const FUEL: u64 = 20_000;
const FEW: usize = 10;
const MANY: usize = 2_000;

/// Expressions whose work depends on `l`, a list, `s`, a text, `d`, a dict with a key for each item, or `n`, their size.
const EXPRESSIONS: &[&str] = &[
    "l|sum",
    "l|list",
    "l|sort",
    "l|sort(reverse=true)",
    "l|unique",
    "l|min",
    "l|max",
    "l|last",
    "l|reverse",
    "l|join",
    "l|join(',')",
    "l|map('string')",
    "l|map('abs')|list",
    "l|select('odd')",
    "l|reject('odd')",
    "l|batch(3)",
    "l|slice(3)",
    "l|groupby(0)",
    "l|tojson",
    "l|pprint",
    "l|string",
    "l + l",
    "l * 2",
    "[0] * n",
    "-1 in l",
    "-1 not in l",
    "l is in [l]",
    "l == m",
    "l != m",
    "l < m",
    "l <= m <= l",
    "l is eq(m)",
    "l[1:]",
    "l[::2]",
    "l.count(1)",
    "l.index(n - 1)",
    "dict(d)",
    "d.items()",
    "d.keys()",
    "d.values()",
    "d|items",
    "d|dictsort",
    "d|tojson",
    "d == e",
    "l is in d",
    "d.get(t)",
    "d[t]",
    "{t: 1}",
    "{'k': t}[t]",
    "loop.changed(l)",
    "f(*l)",
    "s|upper",
    "s|lower",
    "s|title",
    "s|capitalize",
    "s|trim",
    "s|trim(s)",
    "s|replace('x', 'y')",
    "s|length",
    "s|wordcount",
    "s|wordwrap(20)",
    "s|truncate(n)",
    "s|center(n * 400)",
    "s|indent(2)",
    "s|escape",
    "s|urlencode",
    "s|striptags",
    "s|urlize",
    "s|first",
    "s[:n]|list",
    "s|reverse",
    "s|tojson",
    "s|format(1)",
    "s ~ s",
    "s + s",
    "s * 2",
    "'x' * (n * 400)",
    "s % ()",
    "'z' in s",
    "s in (s ~ 'z')",
    "s == u",
    "s < u",
    "s[1:]",
    "s[-1]",
    "s[n]",
    "s.upper()",
    "s.split('z')",
    "s.count('z')",
    "s.find('z')",
    "s.strip(s)",
    "s.replace('x', 'z')",
    "s.join(['a', 'b'])",
    "s.format()",
    "s is upper",
    "s is iterable and s|first",
    "s in {'a': 1}",
];

/// Statements that begin a loop and leave it at once.
const STATEMENTS: &[&str] = &[
    "{% for x in s %}{% break %}{% endfor %}",
    "{% for x in d %}{% break %}{% endfor %}",
    "{% for x in v %}{% break %}{% endfor %}",
    "{% set x %}{{ s }}{% endset %}",
    "{% set x %}{{ l }}{% endset %}",
];

fn render(body: &str, size: usize, settings: &Settings) -> Result<(), Error> {
    let source = format!(
        "{{% macro f() %}}{{% endmacro %}}{{% set v = d.items() %}}{{% for i in range({TURNS}) %}}{body}{{% endfor %}}"
    );
    let numbers = || (0..size as i64).map(Value::from);
    let list = || Value::from_iter(numbers());
    let dict = || Value::from_pairs(numbers().map(|number| (number.to_string(), number)));
    // A step pays for 256 bytes.
    let text = || Value::from("xy ".repeat(size * 130));
    let tuple = Value::from(minijinja::value::Tuple::from(numbers().collect::<Vec<_>>()));
    let scope = Value::from_pairs([
        ("l", list()),
        ("m", list()),
        ("d", dict()),
        ("e", dict()),
        ("s", text()),
        ("u", text()),
        ("t", tuple),
        ("n", Value::from(size as i64)),
    ]);
    let template = Template::compile(Source::new("t.md", source.as_str()), Arc::new(Nothing), settings)?;
    template.render(|| scope.clone(), 1 << 20).map(drop)
}

fn bodies() -> impl Iterator<Item = String> {
    let expressions = EXPRESSIONS.iter().map(|expression| format!("{{% if {expression} %}}{{% endif %}}"));
    expressions.chain(STATEMENTS.iter().map(|statement| (*statement).to_owned()))
}

#[test]
fn fuel_pays_for_work_inside_of_one_step() {
    // Comparisons have a limit of their own, and sizes are limited before anything is made.
    let settings = Settings { fuel: FUEL, string_bytes: 1 << 30, ..Settings::default() };
    for settings in [settings.clone(), settings.portable()] {
        for body in bodies() {
            if let Err(error) = render(&body, FEW, &settings) {
                assert_ne!(error.code(), Code::OutOfFuel, "{body} with few items: {error}");
                // What the style does not have fails at once, and costs nothing.
                continue;
            }
            let code = render(&body, MANY, &settings).err().map(|error| error.code());
            assert_eq!(code, Some(Code::OutOfFuel), "{body}");
        }
    }
}

#[test]
fn a_sum_in_a_loop_ends_within_the_fuel() {
    let source =
        "{% set l = range(99999)|list %}{% for i in range(20000) %}{{ '' if l|sum == 0 }}{% endfor %}";
    let settings = Settings { fuel: 500_000, ..Settings::default() };
    let template = Template::compile(Source::new("t.md", source), Arc::new(Nothing), &settings).unwrap();
    let error = template.render(|| Value::UNDEFINED, 1 << 20).unwrap_err();
    assert_eq!(error.code(), Code::OutOfFuel);
}

#[test]
fn a_render_ends_at_its_deadline() {
    let settings = Settings { fuel: 1 << 40, seconds: 3, ..Settings::default() };
    let late = meter::tests::with_clock(2, || render("{{ '' if l|sum == 1 }}", MANY, &settings)).unwrap_err();
    let shown = crate::json::shown(late.diagnostics());
    assert!(shown.contains("the render took longer than 3 seconds [CB504]"), "{shown}");
    assert!(shown.contains("limits.render_seconds"), "{shown}");
}

#[test]
fn nested_lists_as_keys_end_within_the_fuel() {
    // Each list holds the one before twice: hashing or comparing the last one would take 2^60 steps.
    let doubled = "{% set ns = namespace(l=('a', 'b')) %}{% set ns2 = namespace(l=('a', 'b')) %}{% for i in range(60) %}{% set ns.l = (ns.l, ns.l) %}{% set ns2.l = (ns2.l, ns2.l) %}{% endfor %}";
    for body in [
        "{{ {'a': 1}[ns.l] }}",
        "{{ {ns.l: 1} }}",
        "{{ ns.l in {'a': 1} }}",
        "{{ {'a': 1}.get(ns.l) }}",
        "{{ [ns.l]|unique }}",
        "{% for i in [1, 2] %}{{ loop.changed(ns.l if i == 1 else ns2.l) }}{% endfor %}",
        "{{ ns.l == ns2.l }}",
        "{{ ns.l < ns2.l }}",
        "{{ dict([[ns.l, 1]]) }}",
    ] {
        let source = Source::new("t.md", format!("{doubled}{body}"));
        let settings = Settings { fuel: 50_000, ..Settings::default() };
        let template = Template::compile(source, Arc::new(Nothing), &settings).unwrap();
        let error = template.render(|| Value::UNDEFINED, 1 << 20).unwrap_err();
        assert!([Code::OutOfFuel, Code::ValueTooLarge].contains(&error.code()), "{body}: {error}");
    }
}

#[test]
fn a_cycle_without_items_is_an_error() {
    for body in ["{{ loop.cycle() }}", "{{ loop.cycle(*[]) }}", "{% set x = loop %}{{ x.cycle() }}"] {
        let error = render(body, FEW, &Settings::default()).unwrap_err();
        assert!(error.to_string().contains("`cycle` needs at least one item"), "{error}");
    }
    render("{{ loop.cycle(*l) }}{{ loop.cycle(1, 2) }}", FEW, &Settings::default()).unwrap();
}
