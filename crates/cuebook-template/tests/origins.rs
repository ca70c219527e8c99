//! Where every byte of a text came from.

#[path = "support/spans.rs"]
mod spans;

use cuebook_template::{Environment, Mark, Output};
use serde_json::{Value as Json, json};

fn render(text: &str, variables: &Json) -> Output {
    let env = Environment::new().loader(|name| match name {
        "part" => Some("<{{ who }}>".to_owned()),
        "base" => Some("[{% block body %}base{% endblock %}]".to_owned()),
        _ => None,
    });
    let template = env.compile("main", text).expect("the template is valid");
    env.render(&template, variables.as_object().expect("an object")).expect("the template renders")
}

/// Every piece as text and its origin: `=` and the offset for the author, the variables for a value.
fn pieces(text: &str, variables: Json) -> Vec<(String, String)> {
    let output = render(text, &variables);
    let describe = |(at, piece): (usize, &cuebook_template::Piece)| {
        let origin = match piece.mark {
            Mark::Data { unit, offset } | Mark::Constant { unit, offset } => {
                format!("{}={offset}", output.units()[unit as usize].name)
            }
            Mark::Changed { unit, offset, length } => {
                format!("{}~{offset}+{length}", output.units()[unit as usize].name)
            }
            Mark::Frame => "frame".to_owned(),
            Mark::Value { origin, .. } | Mark::Foreign { origin, .. } => {
                let paths: Vec<String> = output.paths(origin).iter().map(ToString::to_string).collect();
                paths.join(" ")
            }
        };
        (output.piece_text(at).to_owned(), origin)
    };
    output.pieces().iter().enumerate().map(describe).collect()
}

fn expect(text: &str, variables: Json, expected: &[(&str, &str)]) {
    let found = pieces(text, variables);
    let found: Vec<(&str, &str)> =
        found.iter().map(|(text, origin)| (text.as_str(), origin.as_str())).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn a_printed_value_names_its_variable_with_the_path() {
    let items = json!({"items": [{"title": "tea"}, {"title": "jam"}], "d": {"a b": {"c": 1}}});
    expect(
        "{% for item in items %}- {{ item.title }}{% endfor %}",
        items.clone(),
        &[("- ", "main=23"), ("tea", "items[0].title"), ("- ", "main=23"), ("jam", "items[1].title")],
    );
    expect(
        "{{ items[-1]['title'] }}{{ d['a b'].c }}",
        items,
        &[("jam", "items[1].title"), ("1", "d[\"a b\"].c")],
    );
}

#[test]
fn changed_literals_keep_the_place_of_what_was_written() {
    let ada = json!({"name": "Ada"});
    let block = "{% filter FILTER %}abc {{ name }} def{% endfilter %}";
    for (filter, texts) in [
        ("upper", ["ABC ", "ADA", " DEF"]),
        ("title", ["Abc ", "Ada", " Def"]),
        ("capitalize", ["Abc ", "ada", " def"]),
    ] {
        let text = block.replace("FILTER", filter);
        let start = text.find("abc").unwrap();
        let last = text.find(" def").unwrap();
        let mark = |at: usize, same: bool, length| {
            if same { format!("main={at}") } else { format!("main~{at}+{length}") }
        };
        let (first, second) = (mark(start, false, 4), mark(last, texts[2] == " def", 4));
        expect(&text, ada.clone(), &[(texts[0], &first), (texts[1], "name"), (texts[2], &second)]);
    }
    expect("{% filter lower %}ABC{% endfilter %}", ada.clone(), &[("abc", "main~18+3")]);
    expect("{% set t %}abc{% endset %}{{ t|upper }}", ada.clone(), &[("ABC", "main~11+3")]);
    expect("{% set t %}stra\u{df}e{% endset %}{{ t|upper }}", ada.clone(), &[("STRASSE", "main~11+7")]);
    expect("{% set t %}\u{df}a{% endset %}{{ t|title }}", ada.clone(), &[("SSa", "main~11+3")]);
    expect("{{ 'abc'|upper }}{{ 'abc'.title() }}", ada.clone(), &[("ABC", "main~4+3"), ("Abc", "main~21+3")]);
    expect("{% macro m() %}abc{% endmacro %}{{ m().swapcase() }}", ada.clone(), &[("ABC", "main~15+3")]);
    expect("{% set t %}abc{% endset %}{{ (t|upper)[1:] }}", ada.clone(), &[("BC", "main~11+3")]);
    // A variable took part.
    expect("{{ (name if name else 'abc')|upper }}", ada, &[("ADA", "name")]);
}

#[test]
fn literals_in_macros_set_blocks_and_calls_keep_their_author() {
    let ada = json!({"name": "Ada"});
    expect(
        "{% macro m(x) %}user: {{ x }}!{% endmacro %}{{ m(name) }}",
        ada.clone(),
        &[("user: ", "main=16"), ("Ada", "name"), ("!", "main=29")],
    );
    expect("{% set t %}a {{ name }}{% endset %}{{ t }}", ada.clone(), &[("a ", "main=11"), ("Ada", "name")]);
    expect(
        "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}in {{ name }}{% endcall %}",
        ada.clone(),
        &[("<", "main=15"), ("in ", "main=59"), ("Ada", "name"), (">", "main=30")],
    );
    expect("{% filter trim %}  a {{ name }} {% endfilter %}", ada, &[("a ", "main=19"), ("Ada", "name")]);
}

#[test]
fn operators_and_filters_combine_the_origins_of_their_inputs() {
    let values = json!({"a": "x", "b": "y", "n": 2, "m": 3, "list": ["p", "q"]});
    expect("{{ a ~ '-' ~ b }}", values.clone(), &[("x", "a"), ("-", "main=8"), ("y", "b")]);
    expect("{{ n + m }}", values.clone(), &[("5", "n m")]);
    expect("{{ list|join(', ') }}", values.clone(), &[("p", "list[0]"), (", ", "main=14"), ("q", "list[1]")]);
    expect("{{ (a ~ b)|upper }}", values.clone(), &[("X", "a"), ("Y", "b")]);
    expect("{{ [a, b]|tojson }}", values.clone(), &[("[\"x\", \"y\"]", "a b")]);
    expect("{{ 'a-a'|replace('a', b) }}", values, &[("y", "b"), ("-", "main=5"), ("y", "b")]);
}

#[test]
fn text_that_a_filter_leaves_in_place_keeps_its_spans() {
    let values = json!({"a": "one", "b": "two"});
    expect("{{ (a ~ b)[1:5] }}", values.clone(), &[("ne", "a"), ("tw", "b")]);
    expect("{{ ('  ' ~ a ~ b ~ ' ')|trim }}", values.clone(), &[("one", "a"), ("two", "b")]);
    expect(
        "{{ (a ~ '\\n' ~ b)|indent(2) }}",
        values.clone(),
        &[("one", "a"), ("\n", ""), ("  ", ""), ("two", "b")],
    );
    expect("{{ (a ~ ' ' ~ b).split(' ')|last }}", values.clone(), &[("two", "b")]);
    expect("{{ '%s/%s' % (a, b) }}", values.clone(), &[("one", "a"), ("/", "main=6"), ("two", "b")]);
    expect("{{ '{}+{}'.format(a, b) }}", values, &[("one", "a"), ("+", "main=6"), ("two", "b")]);
}

#[test]
fn origins_cross_includes_and_blocks() {
    let values = json!({"who": "Ada"});
    expect("{% include 'part' %}", values.clone(), &[("<", "part=0"), ("Ada", "who"), (">", "part=10")]);
    expect(
        "{% extends 'base' %}{% block body %}{{ super() }}, {{ who }}{% endblock %}",
        values,
        &[("[", "base=0"), ("base", "base=17"), (", ", "main=49"), ("Ada", "who"), ("]", "base=35")],
    );
}

#[test]
fn pieces_cover_the_text() {
    let output =
        render("a{{ x }}b{% for i in x %}{{ i }},{% endfor %}{{ x|upper ~ 1 }}", &json!({"x": "äö"}));
    let joined: String = (0..output.pieces().len()).map(|at| output.piece_text(at)).collect();
    assert_eq!(joined, output.text());
}

#[test]
fn a_default_depends_on_the_variable_it_replaces() {
    expect("{{ name|default('you') }}", json!({}), &[("you", "name")]);
}

#[test]
fn a_string_inside_a_tag_keeps_its_place() {
    let values = json!({"x": "X", "yes": true});
    expect("{{ 'a' if yes else 'b' }}", values.clone(), &[("a", "main=4")]);
    expect("{% set t = 'tea' %}{{ t }}", values.clone(), &[("tea", "main=12")]);
    expect(
        "{% macro m(kind='plain') %}{{ kind }}{% endmacro %}{{ m() }}",
        values.clone(),
        &[("plain", "main=17")],
    );
    expect(
        "{% macro m(kind) %}{{ kind }}{% endmacro %}{{ m(kind='fancy') }}",
        values.clone(),
        &[("fancy", "main=54")],
    );
    expect(
        "{{ ['a', 'b']|join('-') }}",
        values.clone(),
        &[("a", "main=5"), ("-", "main=20"), ("b", "main=10")],
    );
    expect("{{ {'k': 'v'}.k }}{{ 'abcd'[1:3] }}", values.clone(), &[("v", "main=10"), ("bc", "main=23")]);
    // What is changed, or has an escape, is computed by the tag.
    expect("{{ 'a'|upper }}{{ '\\t' }}", values.clone(), &[("A", "main~4+1"), ("\t", "")]);
    // What replaces an undefined variable depends on it.
    expect("{{ nothing|default('d') }}", values, &[("d", "nothing")]);
}

#[test]
fn an_include_without_context_writes_its_text_in_place() {
    expect(
        "{% set t %}a{% include 'part' without context %}{% endset %}[{{ t }}]",
        json!({"who": "Ada"}),
        &[("[", "main=60"), ("a", "main=11"), ("<", "part=0"), (">", "part=10"), ("]", "main=68")],
    );
}
