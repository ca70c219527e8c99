//! The short way against the engine's own, in both styles.

use std::sync::Arc;

use minijinja::value::Serde;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::source::Source;
use crate::template::jinja::{Loader, Settings, Style, Template};
use crate::template::sink::Sink;

struct Nothing;

impl Loader for Nothing {
    fn load(&self, _name: &str, _parent: &str) -> crate::Result<Option<Arc<Source>>> {
        Ok(None)
    }
}

fn compile(template: &str, style: Style) -> Template {
    let settings = match style {
        Style::Python => Settings::default(),
        Style::Portable => Settings::default().portable(),
    };
    Template::compile(Source::new("t", template), Arc::new(Nothing), &settings).unwrap()
}

const STYLES: [Style; 2] = [Style::Python, Style::Portable];

/// Renders both ways. `None` if the short way ended; else the texts and pieces of both were the same.
fn both(template: &str, scope: &Json, style: Style) -> Option<()> {
    let program = compile(template, style).program();
    assert!(program.plain.is_some(), "not plain: {template}");
    let scope = Value::from(Serde(scope));
    let sink = || match style {
        Style::Python => Sink::new(100_000, 0, 0),
        Style::Portable => Sink::new(100_000, 0, 0).keeping_empty(),
    };
    let mut short = sink();
    program.run_plain(Values::Value(&scope), &mut short)?;
    let mut engine = sink();
    program
        .run(scope, &mut engine, None)
        .unwrap_or_else(|error| panic!("{template}: only the engine fails: {error}"));
    assert_eq!(short.finish(), engine.finish(), "{template}");
    Some(())
}

#[test]
fn what_is_more_than_plain_is_left_to_the_engine() {
    for template in [
        "{% set x = 1 %}",
        "{% macro m() %}{% endmacro %}",
        "{{ a ~ b }}",
        "{{ f(x) }}",
        "{{ x.upper() }}",
        "{% for a, b in xs %}{% endfor %}",
        "{% for x in xs if x %}{% endfor %}",
        "{% for x in xs recursive %}{% endfor %}",
        "{% for x in xs %}{{ loop.previtem }}{% endfor %}",
        "{{ range }}",
        "{{ self }}",
        "{{ x|join(d=',') }}",
        "{% block b %}{% endblock %}",
    ] {
        for style in STYLES {
            assert!(compile(template, style).program().plain.is_none(), "{template}");
        }
    }
}

const TEMPLATES: &[&str] = &[
    "{{ a }}",
    "x {{ a.b }} y {{ a.b.c }}",
    "{{ a['b'] }}{{ a[0] }}{{ a[-1] }}",
    "{% if a %}yes{% elif b %}b{% else %}no{% endif %}",
    "{% if not a and b or a %}1{% endif %}",
    "{% if a is defined %}1{% endif %}{% if b == 'x' %}2{% endif %}{% if b != 1 %}3{% endif %}",
    "{% for i in a %}{{ loop.index }}/{{ loop.length }} {{ i }}{{ loop.first }}{{ loop.last }};{% else %}none{% endfor %}",
    "{% for i in a %}{% for j in i %}{{ i }}{{ j }}{{ loop.index0 }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{{ a|upper }}{{ b|default('d') }}{{ a|join(', ') }}{{ b|length }}",
    "  {{- a -}}  {%- if b %} x {%- endif %}",
    "{% for a in a %}{{ a }}{% endfor %}{{ a }}",
    "{% if a == b %}1{% endif %}{% if a != b %}2{% endif %}{% if a < b %}3{% endif %}{% if 1 >= a %}4{% endif %}",
    "{% if a == none %}1{% endif %}{% if 'x' in a %}2{% endif %}{% if a not in b %}3{% endif %}{% if a == true %}4{% endif %}",
    "{% for k in a %}{{ k }}={{ a[k] }},{{ b[k].c }};{% endfor %}",
    "{{ a|default('d', true)|trim }}{{ a|replace('a', 'b') }}{{ a|first }}",
    "{{ a.b.c.d }}{{ a[0][1] }}{% for i in a.b.c %}{{ i.x }}{% endfor %}",
    "{% if a.b > 2 and not (b <= 1 or a.c in [1, 2]) %}1{% endif %}",
];

fn any_value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        (-1e6..1e6f64).prop_map(Json::from),
        Just(json!(1e300)),
        "[a-zX<{}%\\n]{0,6}".prop_map(Json::from),
        Just(json!("x")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            proptest::collection::vec(("[abc]", inner), 0..3)
                .prop_map(|entries| Json::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_short_way_gives_what_the_engine_gives_or_ends(
        template in proptest::sample::select(TEMPLATES),
        scope in proptest::collection::vec(("[ab]", any_value()), 0..3),
    ) {
        let scope = Json::Object(scope.into_iter().collect());
        for style in STYLES {
            both(template, &scope, style);
        }
    }
}

#[test]
fn ordinary_values_go_the_short_way_to_its_end() {
    let scope = json!({"a": {"b": {"c": "deep"}}, "b": "x"});
    for template in [TEMPLATES[1], TEMPLATES[3], TEMPLATES[4], TEMPLATES[5]] {
        for style in STYLES {
            assert!(both(template, &scope, style).is_some(), "{template}");
        }
    }
    let scope = json!({"a": ["one", 2, null, 1.5, [1]], "b": true});
    for template in [TEMPLATES[0], TEMPLATES[2], TEMPLATES[6], TEMPLATES[9], TEMPLATES[10]] {
        for style in STYLES {
            assert!(both(template, &scope, style).is_some(), "{template}");
        }
    }
}

/// What prompts are mostly made of; its speed is measured.
#[test]
fn a_small_prompt_and_a_loop_over_objects_go_the_short_way_to_its_end() {
    let small = "system:\nYou help {{ company }}.\n\nuser:\nI am {{ name }}.\n{{ question }}\n";
    let scope = json!({"company": "Contoso", "name": "Jane", "question": "When?\nWhere?"});
    let items: Vec<Json> = (0..50)
        .map(|index| json!({"name": format!("n{index}"), "text": "t", "price": f64::from(index) / 2.0}))
        .collect();
    let each = "{% for item in items %}{{ loop.index }}. {{ item.name }}: {{ item.text }}\
                {% if item.price > 9 and not loop.last %} ({{ item.price }}){% endif %}\n{% endfor %}";
    for style in STYLES {
        assert!(both(small, &scope, style).is_some());
        assert!(both(each, &json!({"items": items}), style).is_some());
    }
    // What is missing or null is nothing out of the ordinary in the portable style.
    let absent = "{{ gone }}{{ gone.a.b }}{{ null_one }}{{ xs[9].y }}{% for x in gone.a %}{% endfor %}\
                  {% for x in null_one %}{% endfor %}{% if gone.a == 'x' %}{% endif %}{{ gone|default('d') }}";
    assert!(both(absent, &json!({"null_one": null, "xs": [1]}), Style::Portable).is_some());
}

#[test]
fn a_loop_without_end_is_left_to_the_engine_which_says_so() {
    let many: Vec<Json> = (0..3_000).map(Json::from).collect();
    let nested = "{% for i in a %}{% for j in a %}{% endfor %}{% endfor %}";
    for style in STYLES {
        assert!(both(nested, &json!({"a": many}), style).is_none());
    }
}
