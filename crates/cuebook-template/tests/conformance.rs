//! Cases of others: Jinja2's own suite, and real prompts and chat templates, as `CUEBOOK_CONFORMANCE` has them.

#[path = "../../skip.rs"]
mod skip;

use std::collections::BTreeMap;
use std::path::PathBuf;

use cuebook_template::{Environment, Whitespace};
use serde_json::{Map, Value as Json};

/// What we decide against, by the message of the error, with the reason.
const DECIDED: [(&str, &str); 2] = [
    ("values cannot change", "values are immutable: a template never changes what its caller passed"),
    ("integers have at most 127 bits", "one number cannot take all memory"),
];

fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("CUEBOOK_CONFORMANCE").map(PathBuf::from);
    let folder = named
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance"));
    folder.is_dir().then_some(folder)
}

fn environment(case: &Json) -> Environment {
    let option = |name: &str| case["options"][name].as_bool().unwrap_or(false);
    let templates: BTreeMap<String, String> = case["templates"]
        .as_object()
        .map(|all| {
            all.iter()
                .map(|(name, text)| (name.clone(), text.as_str().unwrap_or_default().to_owned()))
                .collect()
        })
        .unwrap_or_default();
    let mut env = Environment::new().loader(move |name| templates.get(name).cloned());
    env.whitespace = Whitespace {
        trim_blocks: option("trim_blocks"),
        lstrip_blocks: option("lstrip_blocks"),
        keep_trailing_newline: option("keep_trailing_newline"),
    };
    env.strict = case["strict"].as_bool().unwrap_or(false);
    env
}

fn run(case: &Json) -> Result<String, String> {
    let env = environment(case);
    let empty = Map::new();
    let context = case["context"].as_object().unwrap_or(&empty);
    let template =
        env.compile("main", case["main"].as_str().unwrap_or_default()).map_err(|error| error.to_string())?;
    env.render(&template, context).map(|output| output.text().to_owned()).map_err(|error| error.to_string())
}

fn check(name: &str, share: f64) {
    let Some(folder) = folder() else {
        return skip::missing_peer("the conformance cases are missing (CUEBOOK_CONFORMANCE)");
    };
    let text = std::fs::read_to_string(folder.join(name).join("cases.json")).expect("the cases can be read");
    let cases: Vec<Json> = serde_json::from_str(&text).expect("the cases are JSON");
    let (mut passed, mut failed, mut decided, mut open) = (0, Vec::new(), 0, 0);
    for (at, case) in cases.iter().enumerate() {
        let result = run(case);
        let right = match (&result, case["expected"].as_str()) {
            (Ok(text), Some(expected)) => text == expected,
            (Err(_), None) => true,
            _ => false,
        };
        let label = format!("{at}: {}", case["name"].as_str().unwrap_or_default());
        let message = result.as_ref().err().map_or("", String::as_str);
        if case["expected"].is_null() && case["error"].is_null() {
            // A case such as `random`, for which the suite has no text.
            open += 1;
        } else if right {
            passed += 1;
        } else if DECIDED.iter().any(|(known, _)| message.contains(known)) {
            decided += 1;
        } else {
            failed.push(format!(
                "{label}\n  main {:?}\n  expected {:?} {:?}\n  got {result:?}",
                case["main"], case["expected"], case["error"]
            ));
        }
    }
    if std::env::var_os("CUEBOOK_SHOW").is_some() {
        for failure in &failed {
            println!("{}", failure.chars().take(1500).collect::<String>());
        }
    }
    println!("{name}: {passed} passed, {} failed, {decided} decided, {open} skipped", failed.len());
    if open > 0 {
        println!("{name}: {open} not run: the case has neither a text nor an error");
    }
    let least = cases.len() as f64 * share;
    assert!((passed + decided + open) as f64 >= least, "{name}: {passed} of {} pass", cases.len());
}

#[test]
fn jinja2_suite_passes() {
    check("jinja2", 0.99);
}

#[test]
fn real_prompts_render_as_jinja2_renders_them() {
    check("prompts", 0.995);
}
