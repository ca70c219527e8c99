//! Random templates from a fixed seed, compared with the real Jinja2.

#[path = "support/generator.rs"]
mod generator;
mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use cuebook_template::{Environment, ErrorKind};
use serde_json::{Value as Json, json};

use generator::Generator;

const PEER: &str = r#"
import json, sys
from jinja2.sandbox import SandboxedEnvironment
env = SandboxedEnvironment(extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do"])
data = json.load(sys.stdin)
out = []
for text in data["templates"]:
    try:
        out.append({"text": env.from_string(text).render(json.loads(json.dumps(data["context"])))})
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
    })
}

/// What the real Jinja2 gives for each template.
fn peer(python: &std::path::Path, templates: &[String]) -> Vec<Json> {
    let input = json!({"templates": templates, "context": context()}).to_string();
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

/// Python prints addresses for these, and a generator is printed as one.
fn is_volatile(text: &str) -> bool {
    [
        "<generator",
        " object",
        " at 0x",
        "<built-in",
        "<bound method",
        "<function",
        "<class",
        "<method",
        "<Macro",
        "<Cycler",
    ]
    .iter()
    .any(|part| text.contains(part))
}

#[test]
fn random_templates_render_as_jinja2_renders_them() {
    let Some(python) = support::jinja2() else { return };
    let count = std::env::var("CUEBOOK_RANDOM").ok().and_then(|count| count.parse().ok()).unwrap_or(20_000);
    let mut generator = Generator::new(7);
    let templates: Vec<String> = (0..count).map(|_| generator.template()).collect();
    let expected = peer(&python, &templates);
    let context = context();
    let variables = context.as_object().expect("an object");
    let env = Environment::new();
    let (mut same, mut decided, mut volatile, mut wrong) = (0, 0, 0, Vec::new());
    for (text, expected) in templates.iter().zip(&expected) {
        let got = env.compile("main", text).and_then(|template| env.render(&template, variables));
        match (&got, expected["text"].as_str()) {
            (_, Some(text)) if is_volatile(text) => volatile += 1,
            (Ok(output), Some(text)) if output.text() == text => same += 1,
            (Err(error), Some(_))
                if error.kind() == ErrorKind::Limit || error.message().contains("values cannot change") =>
            {
                decided += 1;
            }
            (Err(_), None) => same += 1,
            (got, _) => {
                let got = got.as_ref().map(|output| output.text().to_owned()).map_err(ToString::to_string);
                wrong.push(format!("{text}\n  jinja2 {expected}\n  ours   {got:?}"));
            }
        }
    }
    println!("{same} same, {decided} decided, {volatile} volatile, {} wrong", wrong.len());
    for case in wrong.iter().take(40) {
        println!("{case}");
    }
    assert!(wrong.is_empty());
}
