//! What a program gives to a render, and gets back.
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use cuebook_template::{
    Cause, Environment, Error, Exceeded, Foreign, Found, Framed, Given, Host, HostResult, Including, Mark,
    Options, Output, Path, Result, Style, Template,
};
use serde_json::{Value as Json, json};

struct Program {
    variables: Json,
    parts: Vec<(&'static str, Arc<Template>)>,
}

impl Host for Program {
    fn variable(&self, name: &str) -> Option<Given<'_>> {
        match name {
            "gone" => Some(Given::Placeholder("<gone>")),
            "range" => Some(Given::Undefined),
            "made" => Some(Given::Owned(json!({"a": [1, 2]}))),
            _ => self.variables.get(name).map(Given::Borrowed),
        }
    }

    fn load(&self, name: &str, parent: &str) -> HostResult<Option<Found>> {
        let wanted = format!("{parent}/{name}");
        match name {
            "other:greeting" => Ok(Some(Found::Foreign(7))),
            "broken" => Err(Cause::new(std::fmt::Error)),
            _ => Ok(self
                .parts
                .iter()
                .find(|(known, _)| *known == wanted)
                .map(|(_, part)| Found::Template(part.clone()))),
        }
    }

    fn foreign(&self, number: usize, at: &Including<'_>) -> HostResult<Foreign> {
        assert_eq!(number, 7);
        let lent = at.set_value("who").expect("the template has set it");
        let who = lent.value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default();
        assert!(lent.whole);
        Ok(Foreign {
            number: 3,
            text: format!("Dear {who}"),
            parts: vec![(0, Vec::new()), (5, lent.paths)],
            fuel: at.fuel() - 10,
        })
    }
}

fn program(env: &Environment) -> Program {
    let part = |name: &str, text: &str| Arc::new(env.compile(name, text).expect("a valid part"));
    Program {
        variables: json!({"names": ["Ada", "Bo"], "n": null, "t": true}),
        parts: vec![
            ("main/part", part("part", "[{% include 'leaf' %}]")),
            ("part/leaf", part("leaf", "{{ names[0] }}")),
        ],
    }
}

fn render(env: &Environment, text: &str) -> Result<Output> {
    let template = env.compile("main", text)?;
    env.render_for(&template, &program(env), Options::default())
}

fn text(env: &Environment, source: &str) -> String {
    render(env, source).expect("it renders").text().to_owned()
}

#[test]
fn the_text_alone_is_the_text_of_a_render() {
    let env = Environment::new();
    let sources = [
        "a{{ names[0] }}b{{ n }}{{ '' }}{{ 'c' }}{{ names|join('-')|upper }}",
        "{% for name in names %}{{ loop.index }}{{ name }}{% endfor %}{{ 'ä' * 300 }}",
        "{% set x %}<{{ names[1] }}>{% endset %}{{ x }}{{ x[1:] ~ x }}",
        "{% macro m(a) %}({{ a }}){% endmacro %}{{ m(names[0]) }}{{ m(m('x')) }}",
        "{% include 'part' %}{% set who = names[0] %}{% include 'other:greeting' %}",
        "{% block b %}{% filter upper %}{{ t }}{% endfilter %}{% endblock %}{{ self.b() }}",
        "{{ names[0] }}{{ 1 // 0 }}",
    ];
    let mut memory = "the text of another render".to_owned();
    for source in sources {
        let template = env.compile("main", source).expect("it is valid");
        let taken = std::mem::take(&mut memory);
        let alone = env.render_text_for(&template, &program(&env), Options::default(), taken);
        match (alone, render(&env, source)) {
            (Ok((text, fuel)), Ok(whole)) => {
                assert_eq!((text.as_str(), fuel), (whole.text(), whole.fuel()), "{source}");
                memory = text;
            }
            (alone, whole) => {
                let message = |error: Error| error.to_string();
                assert_eq!(alone.map_err(message).err(), whole.map_err(message).err(), "{source}");
            }
        }
    }
}

#[test]
fn variables_come_from_the_program() {
    let env = Environment::new();
    assert_eq!(
        text(&env, "{{ made.a[1] }}{{ gone }}{{ 1 if gone else 0 }}{{ range is defined }}"),
        "2<gone>0False"
    );
}

#[test]
fn silent_callables_are_undefined_unless_called() {
    let source =
        "[{{ dict }}{% if dict %}yes{% endif %}{{ dict ~ '!' }}] {{ dict(a=1).a }} {{ dict is callable }}";
    let mut env = Environment::new();
    assert_eq!(text(&env, source), "[<function 'dict'>yes<function 'dict'>!] 1 True");
    let keys =
        "{% set d = {'items': [1]} %}{{ d.items is callable }} {{ d.items()|length }} [{{ 'a'.upper }}]";
    assert_eq!(text(&env, keys).split('[').next(), Some("True 1 "));
    env.silent_callables = true;
    assert_eq!(text(&env, source), "[!] 1 True");
    assert_eq!(text(&env, keys), "False 1 []");
    (env.strict, env.testable) = (true, true);
    assert_eq!(text(&env, "{% if dict %}yes{% endif %}{{ dict(a=1).a }}"), "1");
    let error = render(&env, "{{ dict }}").expect_err("it is undefined");
    assert_eq!(error.undefined(), Some("dict"));
}

#[test]
fn template_names_are_relative_to_their_user() {
    assert_eq!(text(&Environment::new(), "{% include 'part' %}"), "[Ada]");
    let error = render(&Environment::new(), "{% include 'leaf' %}").expect_err("main has no leaf");
    assert!(error.message().contains("leaf"), "{error}");
    let error = render(&Environment::new(), "{% include 'broken' %}").expect_err("the program refuses");
    assert!(error.cause().is_some_and(|cause| cause.0.is::<std::fmt::Error>()));
}

#[test]
fn a_text_of_the_program_keeps_its_parts_through_a_macro() {
    let source =
        "{% set who = names[1] %}{% macro m() %}<{% include 'other:greeting' %}>{% endmacro %}{{ m() }}";
    let output = render(&Environment::new(), source).expect("it renders");
    assert_eq!(output.text(), "<Dear Bo>");
    let marks: Vec<Mark> = output.pieces().iter().map(|piece| piece.mark).collect();
    assert!(
        matches!(marks[1], Mark::Foreign { text: 3, offset: 0, origin } if origin.is_author()),
        "{marks:?}"
    );
    assert!(matches!(marks[2], Mark::Foreign { text: 3, offset: 5, .. }));
    let path = Path { variable: "names".to_owned(), inside: "[1]".to_owned() };
    assert_eq!(output.paths_at(7), [path]);
}

#[test]
fn a_frame_is_around_a_value_as_a_filter_and_as_a_block() {
    let env = Environment::new().frame("quoted", |value, given, _| {
        let mark = given.first().cloned().unwrap_or_else(|| "'".to_owned());
        assert!(!value.is_empty());
        Ok(vec![Framed::Frame(mark.clone()), Framed::Value, Framed::Frame(mark)])
    });
    for source in ["{{ names[0]|quoted('*') }}", "{% quoted '*' %}{{ names[0] }}{% endquoted %}"] {
        let output = render(&env, source).expect("it renders");
        assert_eq!(output.text(), "*Ada*", "{source}");
        assert_eq!(output.mark_at(0), Some(Mark::Frame));
        assert_eq!(output.paths_at(1)[0].to_string(), "names[0]");
    }
}

#[test]
fn the_portable_style_prints_and_compares_alike_everywhere() {
    let mut env = Environment::new();
    env.style = Style::Portable;
    let source = "{{ t }}|{{ n }}|{{ 1.0 }}|{{ names }}|{{ made }}|{{ x.y.z }}|{{ x == null }}|{{ true == 1 }}|{{ 'a' < 1 }}";
    assert_eq!(text(&env, source), "true||1|AdaBo|{\"a\":[1,2]}||true|false|false");
}

#[test]
fn limits_say_what_they_limit() {
    let exceeded = |source: &str, options: Options| {
        let env = Environment::new();
        let template = env.compile("main", source).expect("a valid template");
        let host = Program { variables: json!({}), parts: Vec::new() };
        env.render_for(&template, &host, options).expect_err(source).exceeded()
    };
    let small = Options { fuel: Some(100), characters: Some(3), ..Options::default() };
    assert_eq!(exceeded("{% for i in dict(a=1, b=2) %}ab{% endfor %}", small), Some(Exceeded::Output));
    assert_eq!(exceeded("{% set x = 'a' * 10000000 %}", Options::default()), Some(Exceeded::Size));
    assert_eq!(
        exceeded("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", Options::default()),
        Some(Exceeded::Depth)
    );
    let long = "{% set x = 1".to_owned() + &"+1".repeat(200) + " %}";
    assert_eq!(exceeded(&long, small), Some(Exceeded::Fuel));
    let chain = format!("{{{{ x{} }}}}", "|upper".repeat(10_000));
    let error = Environment::new().compile("main", &chain).expect_err("too tall");
    assert_eq!(error.exceeded(), Some(Exceeded::Depth));
}
