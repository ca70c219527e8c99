//! Random templates from a fixed seed, compared with the real Jinja2.
//!
//! `CUEBOOK_RANDOM` says how many templates, and `CUEBOOK_SEED` chooses others.

#[path = "support/generator.rs"]
mod generator;
mod support;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use cuebook_template::{Environment, Error, ErrorKind, Whitespace};
use serde_json::{Value as Json, json};

use generator::Generator;

const PEER: &str = r#"
import json, sys
from jinja2 import DictLoader
from jinja2.sandbox import SandboxedEnvironment
data = json.load(sys.stdin)
def environment(at):
    return SandboxedEnvironment(extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do"], loader=DictLoader(data["others"]),
        trim_blocks=at % 4 > 1, lstrip_blocks=at % 2 == 1)
environments = [environment(at) for at in range(4)]
out = []
for at, text in enumerate(data["templates"]):
    try:
        out.append({"text": environments[at % 4].from_string(text).render(json.loads(json.dumps(data["context"])))})
    except RecursionError:
        out.append({"skip": "recursion"})
    except Exception as error:
        out.append({"error": type(error).__name__ + ": " + str(error)})
print(json.dumps(out))
"#;

fn context() -> Json {
    json!({
        "n": 3, "m": -2, "z": 0, "f": 1.5, "t": true, "no": false, "nil": null, "s": "a b-c", "e": "", "w": "Hello World",
        "xs": [3, 1, 2], "ss": ["b", "A", "c"], "em": [], "d": {"a": 1, "b": "x"}, "nd": {},
        "us": [{"name": "Ada", "age": 36, "tags": ["x", "y"]}, {"name": "bob", "age": 7, "tags": []}],
        "tree": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 0, "c": [{"v": 4, "c": []}]}]}, {"v": 5, "c": []}],
        "u": "Äß\u{1F389} é\tx\r\ny", "big": 12345678901234567890_u64,
    })
}

/// The templates that random ones extend, include and import.
const OTHERS: [(&str, &str); 4] = [
    ("base", "[{% block one %}base{% endblock %}|{% block two %}{{ n }}{% endblock %}|{{ q }}]\n"),
    (
        "middle",
        "{% extends 'base' %}{% block one %}({{ super() }}{% block three %}3{% endblock %}){% endblock %}",
    ),
    ("part", "<{{ n }}{{ q }}{{ v }}{% set q = 1 %}{{ q }}>\n"),
    (
        "macros",
        "{% macro m(a='d') %}m{{ a }}{{ n }}{{ value }}{% endmacro %}{% set value = 7 %}\
         {% macro wrap(a) %}({{ caller() }}{{ a }}){% endmacro %}{% set _hidden = 1 %}",
    ),
];

/// What the real Jinja2 gives for each template.
fn peer(python: &std::path::Path, templates: &[String]) -> Vec<Json> {
    let others: BTreeMap<&str, &str> = OTHERS.into_iter().collect();
    let input = json!({"templates": templates, "context": context(), "others": others}).to_string();
    let mut child = Command::new(python)
        .args(["-W", "ignore", "-c", PEER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("python ends");
    writer.join().expect("the writer ends").expect("the templates are written");
    serde_json::from_slice(&output.stdout).expect("python writes JSON")
}

fn environment(at: usize) -> Environment {
    let load =
        |name: &str| OTHERS.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
    let mut env = Environment::new().loader(load);
    env.whitespace =
        Whitespace { trim_blocks: at % 4 > 1, lstrip_blocks: at % 2 == 1, keep_trailing_newline: false };
    env
}

/// Python prints addresses for these, and a generator is printed as one.
fn is_volatile(text: &str) -> bool {
    let named = [
        "<generator",
        " object",
        " at 0x",
        "<built-in",
        "<bound method",
        "<function",
        "<class",
        "<method",
        "<Macro",
    ];
    named.iter().chain(&["<Cycler"]).any(|part| text.contains(part))
}

/// What we decide against: limits, values that change, counts that are no integers, which Python allows where it never looks, and
/// sets, whose items have no order that every run repeats.
fn is_decided(error: &Error) -> bool {
    let named = ["values cannot change", "must be an integer", "a view of a dict"];
    error.kind() == ErrorKind::Limit || named.iter().any(|part| error.message().contains(part))
}

/// Errors that come from Jinja2's own code, and not from the template.
fn is_defect(error: &Json) -> bool {
    let named = ["Tried to resolve a name to a reference", "expected str instance, generator found"];
    error.as_str().is_some_and(|error| named.iter().any(|part| error.contains(part)))
}

/// The number that a variable of the environment gives.
fn chosen(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
}

#[test]
fn random_templates_render_as_jinja2_renders_them() {
    let Some(python) = support::jinja2() else { return };
    let mut generator = Generator::new(chosen("CUEBOOK_SEED", 7) as u64);
    let templates: Vec<String> =
        (0..chosen("CUEBOOK_RANDOM", 20_000)).map(|_| generator.template()).collect();
    // Two at once. The number of a template says how it treats white space, so a half has a multiple of four.
    let (first, second) = templates.split_at(templates.len() / 8 * 4);
    let expected: Vec<Json> = std::thread::scope(|scope| {
        let other = scope.spawn(|| peer(&python, second));
        let first = peer(&python, first);
        first.into_iter().chain(other.join().expect("the peer ends")).collect()
    });
    let context = context();
    let variables = context.as_object().expect("an object");
    let environments: Vec<Environment> = (0..4).map(environment).collect();
    let (mut same, mut errors, mut decided, mut volatile, mut wrong) = (0, 0, 0, 0, Vec::new());
    for (at, (text, expected)) in templates.iter().zip(&expected).enumerate() {
        let env = &environments[at % 4];
        let got = env.compile("main", text).and_then(|template| env.render(&template, variables));
        match (&got, expected["text"].as_str()) {
            (_, Some(text)) if is_volatile(text) => volatile += 1,
            (Ok(output), Some(text)) if output.text() == text => same += 1,
            (Err(error), Some(_)) if is_decided(error) => decided += 1,
            (Err(_), None) => errors += 1,
            (Ok(_), None) if is_defect(&expected["error"]) => decided += 1,
            (got, _) => {
                let got = got.as_ref().map(|output| output.text().to_owned()).map_err(ToString::to_string);
                wrong.push(format!("{text}\n  jinja2 {expected}\n  ours   {got:?}"));
            }
        }
    }
    println!(
        "{same} same, {errors} errors of both, {decided} decided, {volatile} volatile, {} wrong",
        wrong.len()
    );
    for case in wrong.iter().take(chosen("CUEBOOK_SHOWN", 40)) {
        println!("{case}");
    }
    assert!(wrong.is_empty());
}
