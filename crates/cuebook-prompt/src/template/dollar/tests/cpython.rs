//! The real Python says the same.

#[path = "../../../../../skip.rs"]
#[allow(clippy::duplicate_mod, reason = "the tests of Python's notation include it too")]
mod skip;

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};

use super::{Fault, Missing, object, run, template};

/// Fills in every body, strictly and safely, and says what came out on standard output, as one JSON list. From 3.14 on a line
/// of any white space is blank for `dedent`, so that version is asked about margins of spaces and tabs only.
const SCRIPT: &str = r#"
import json, string, sys, textwrap
def fill(body, values, how):
    try: return ["text", getattr(string.Template(body), how)(values).strip()]
    except KeyError as error: return ["missing", error.args[0]]
    except ValueError as error: return ["invalid", str(error)]
def answer(case):
    text, values = case
    if sys.version_info >= (3, 14) and any(l.isspace() and l.strip(" \t") for l in text.split("\n")): return None
    body = textwrap.dedent(text).strip()
    return [fill(body, values, "substitute"), fill(body, values, "safe_substitute"), string.Template(body).get_identifiers()]
json.dump([answer(case) for case in json.load(sys.stdin)], sys.stdout)
"#;

/// What the real Python says; `None`, with a word about it, where it is missing.
fn ask_python(cases: &Json) -> Option<Json> {
    let command = Command::new("python3")
        .args(["-I", "-X", "utf8", "-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = command else {
        skip::missing_peer("python3 is missing");
        return None;
    };
    child.stdin.take().unwrap().write_all(cases.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "python3 failed");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// What bodies are put together from.
const PARTS: &[&str] = &[
    "\n",
    "\n  ",
    "\n    ",
    "\n\t",
    "\n \t ",
    "  \n",
    "\n\n",
    " ",
    "\t",
    "a",
    "b c",
    "é",
    "$",
    "$$",
    "$$$",
    "$a",
    "${a}",
    "$b",
    "${b}",
    "$missing",
    "${missing}",
    "${a",
    "${ a}",
    "${a }",
    "${}",
    "$1",
    "$_",
    "$A",
    "$aB_1",
    "$a.b",
    "$é",
    "$aé",
    "$ı",
    "$K",
    "$ſ",
    "$aſ",
    "${aK}",
    "$\n",
    "{",
    "}",
    "\r\n",
    "\r",
    "\u{b}",
    "\u{c}",
    "\u{1c}",
    "\u{1d}",
    "\u{1e}",
    "\u{1f}",
    "\u{85}",
    "\u{a0}",
    "\u{2028}",
    "\u{2029}",
    "\u{3000}",
    "\u{200b}",
    "\u{feff}",
    "\u{1680}",
    "\u{180e}",
    "\u{202f}",
    "\u{205f}",
    "\u{0}",
];

const VALUES: &[&str] = &[
    "x",
    "",
    " ",
    "\n",
    " x ",
    "\n  x\n  y\n",
    "$a",
    "$$",
    "\u{3000}x\u{1f}",
    "\u{200b}",
    "\u{85}",
    "x\u{2029}",
];

/// The same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn one_of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }
}

fn cases() -> Vec<(String, Json)> {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut case = |_| {
        // Half of the bodies keep to what is right, so that they get past their first `$`.
        let careful = numbers.below(2) == 0;
        let length = numbers.below(12);
        let mut body = String::new();
        while body.chars().count() < length {
            let part = numbers.one_of(PARTS);
            let wrong = part.starts_with('$') && !["$$", "$a", "${a}", "$b", "${b}", "$_"].contains(&part);
            if !(careful && wrong) {
                body.push_str(part);
            }
        }
        let value =
            json!({"a": numbers.one_of(VALUES), "b": numbers.one_of(VALUES), "_": numbers.one_of(VALUES)});
        (body, value)
    };
    (0..2_000).map(&mut case).collect()
}

fn answer(body: &str, values: &Json, missing: Missing) -> Json {
    match run(body, Json::Object(object(values.clone())), missing) {
        Ok(output) => json!(["text", output.text]),
        Err(Fault::Missing { name, .. }) => json!(["missing", name]),
        Err(Fault::Invalid { line, column, .. }) => {
            json!(["invalid", format!("Invalid placeholder in string: line {line}, col {column}")])
        }
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn the_real_python_agrees_about_every_body() {
    let cases = cases();
    let Some(answers) = ask_python(&json!(cases)) else { return };
    let mut differences = Vec::new();
    let mut texts = 0;
    for ((body, values), python) in cases.iter().zip(answers.as_array().unwrap()) {
        if python.is_null() {
            continue;
        }
        let strict = answer(body, values, Missing::Error);
        texts += usize::from(strict[0] == "text");
        let ours = json!([strict, answer(body, values, Missing::Keep), template(body).placeholders()]);
        if ours != *python {
            differences.push(format!("{body:?} with {values}:\n  {ours} here\n  {python} there"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(texts > 500, "only {texts} bodies have no fault");
}
