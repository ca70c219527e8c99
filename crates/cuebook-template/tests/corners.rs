//! Corner cases with the text that Jinja2 3.1.6 gives. Random templates rarely reach them.

use cuebook_template::{Environment, ErrorKind};
use serde_json::json;

fn environment() -> Environment {
    Environment::new().loader(|name| {
        let text = match name {
            "module" => "{% macro plain(a) %}<{{ a }}>{% endmacro %}text {{ html }}",
            "parent" => {
                "{% autoescape true %}{% block a %}{{ html }}{% endblock %}{{ html }}{% endautoescape %}"
            }
            _ => return None,
        };
        Some(text.to_owned())
    })
}

fn render(env: &Environment, text: &str) -> Result<String, cuebook_template::Error> {
    let variables =
        json!({"html": "<", "users": [{"a": 1}, {"a": 2}], "t": true, "d": {"a": 1}, "e": {"b": 1}});
    let template = env.compile("main", text)?;
    Ok(env.render(&template, variables.as_object().expect("an object"))?.text().to_owned())
}

#[test]
fn a_macro_escapes_as_where_it_is_defined() {
    for (text, wanted) in [
        (
            "{% from 'module' import plain %}{{ plain(html) }}{% autoescape true %}{{ plain(html) }}{% endautoescape %}",
            "<<><<>",
        ),
        (
            "{% autoescape true %}{% macro m(a) %}{{ a }}{% endmacro %}{{ m(html) }}{% endautoescape %}",
            "&lt;",
        ),
        ("{% extends 'parent' %}{% block a %}{{ html }}{% endblock %}", "<&lt;"),
        (
            "{% autoescape true %}{{ '<' ~ ('<'|safe) }} {{ html ~ ('<'|safe) }}{% endautoescape %}",
            "&lt;&lt; &lt;<",
        ),
        ("{% autoescape true %}{{ '<a'|safe|reverse }}{% endautoescape %}", "a<"),
        ("{% import 'module' as m %}[{{ m }}]", "[text ]"),
        ("{% import 'module' as m with context %}[{{ m }}]", "[text <]"),
    ] {
        assert_eq!(render(&environment(), text).unwrap_or_else(|error| error.to_string()), wanted, "{text}");
    }
}

#[test]
fn strict_templates_are_as_strict_as_those_of_jinja2() {
    let mut env = environment();
    env.strict = true;
    for (text, wanted) in [
        ("[{{ 1 if false }}]", "[]"),
        ("{% set x = 1 if false %}[{{ x }}]{% for y in x %}{% endfor %}", "[]"),
        ("{{ users|sort(attribute='a')|length }}{{ [{}]|sort(attribute='b')|length }}", "21"),
    ] {
        assert_eq!(render(&env, text).unwrap_or_else(|error| error.to_string()), wanted, "{text}");
    }
    for text in ["{{ users|sort(attribute='b') }}", "{{ 1 if nothing }}", "{{ (1 if false).name }}"] {
        let error = render(&env, text).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Undefined, "{text}");
    }
}

#[test]
fn constants_end_where_an_operand_decides() {
    for (text, wanted) in [
        ("[{{ (True or t)[-99:99] }}]", "[]"),
        ("[{{ (0 and t)[1:] }}]", "[]"),
        (
            "{{ t.as_integer_ratio() }}{{ 0.1.as_integer_ratio() }}",
            "(1, 1)(3602879701896397, 36028797018963968)",
        ),
        (
            "{{ (-0.0).hex() }} {{ 5e-324.hex() }} {{ 3.5.hex() }}",
            "-0x0.0p+0 0x0.0000000000001p-1022 0x1.c000000000000p+1",
        ),
        ("{{ {}.fromkeys([1, 2]) }}{{ range(2, 9, 3).stop }}", "{1: None, 2: None}9"),
        ("[{{ nothing.__class__ }}]", "[]"),
    ] {
        assert_eq!(render(&environment(), text).unwrap_or_else(|error| error.to_string()), wanted, "{text}");
    }
    for text in ["{{ (False or t)[1:] }}", "{% for x, in [(1,)] %}{% endfor %}", "{{ nothing.name }}"] {
        render(&environment(), text).expect_err(text);
    }
}

#[test]
fn sets_and_bytes_are_refused() {
    for text in ["{{ d.keys() - e.keys() }}", "{{ (5).to_bytes(2, 'big') }}", "{{ 'a'.encode() }}"] {
        render(&environment(), text).expect_err(text);
    }
    let text = "{% autoescape t %}{{ html ~ ('<'|safe) }}{% endautoescape %}";
    assert_eq!(render(&environment(), text).expect("renders"), "&lt;<");
}

#[test]
fn the_indent_of_json_is_read_only_where_lines_can_begin() {
    for (text, expected) in [("{{ ''|tojson(nothing) }}", "\"\""), ("{{ 'a'|tojson([]) }}", "\"a\"")] {
        assert_eq!(
            render(&environment(), text).unwrap_or_else(|error| error.to_string()),
            expected,
            "{text}"
        );
    }
    for text in ["{{ 1|tojson(nothing) }}", "{{ {}|tojson(nothing) }}", "{{ [1]|tojson([]) }}"] {
        assert!(render(&environment(), text).is_err(), "{text}");
    }
}

#[test]
fn equal_items_need_no_order_to_be_sorted() {
    for (text, wanted) in [
        ("{{ [range(3), range(3)]|sort }}", "[range(0, 3), range(0, 3)]"),
        ("{{ [{'a': 1}, {'a': 1}]|sort }}", "[{'a': 1}, {'a': 1}]"),
        ("{{ users|sort(attribute='x')|length }}{{ [none, none]|sort }}", "2[None, None]"),
    ] {
        assert_eq!(render(&environment(), text).unwrap_or_else(|error| error.to_string()), wanted, "{text}");
    }
    for text in ["{{ users|sort }}", "{{ [none, 1]|sort }}", "{{ {'a': {}, 'b': {}}|dictsort(by='value') }}"]
    {
        assert!(render(&environment(), text).is_err(), "{text}");
    }
}
