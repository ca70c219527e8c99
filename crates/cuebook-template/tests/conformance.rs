//! Cases of others: Jinja2's own suite, and real prompts and chat templates, as `CUEBOOK_CONFORMANCE` has them.

#[path = "../../skip.rs"]
mod skip;

use std::collections::BTreeMap;
use std::path::PathBuf;

use cuebook_template::{Environment, Whitespace};
use serde_json::{Map, Value as Json};

/// Why a case differs on purpose.
const MUTATION: &str = "it changes a list or a dict, and values never change";
const INTEGERS: &str = "an integer has at most 127 bits, so that one number cannot take all memory";

/// The cases that differ on purpose: the suite, the name of the case, and the reason.
const DECIDED: [(&str, &str, &str); 21] = [
    ("jinja2", "tests/test_ext.py::TestExtensions::test_do [render]", MUTATION),
    ("jinja2", "tests/test_security.py::TestSandbox::test_immutable_environment [render]", MUTATION),
    (
        "jinja2",
        "tests/test_tests.py::TestTestsCase::test_types[(10 ** 100) is integer-True] [render]",
        INTEGERS,
    ),
    (
        "jinja2",
        "tests/test_tests.py::TestTestsCase::test_types[(10 ** 100) is float-False] [render]",
        INTEGERS,
    ),
    ("prompts", "llama.cpp test-jinja: array.pop() with index", MUTATION),
    ("prompts", "llama.cpp test-jinja: array.append()", MUTATION),
    ("prompts", "minja test-syntax: #100", MUTATION),
    ("prompts", "minja test-syntax: #117", MUTATION),
    (
        "prompts",
        "bigscience-workshop+promptsource/promptsource/templates/ambig_qa/light/templates.yaml:.templates.09880e1a-0fcc-49dc-8462-b6603e15d691.jinja [full]",
        MUTATION,
    ),
    (
        "prompts",
        "bigscience-workshop+promptsource/promptsource/templates/docred/templates.yaml:.templates.412b482e-185b-48da-8aef-4a93a42e779d.jinja [full]",
        MUTATION,
    ),
    (
        "prompts",
        "bigscience-workshop+promptsource/promptsource/templates/craigslist_bargains/templates.yaml:.templates.b891bbe7-b3da-4118-b54f-4faa647e36f4.jinja [wild]",
        MUTATION,
    ),
    (
        "prompts",
        "bigscience-workshop+promptsource/promptsource/templates/ncbi_disease/templates.yaml:.templates.04458e59-37f1-48dc-bb20-823e836a8c44.jinja [full]",
        MUTATION,
    ),
    (
        "prompts",
        "bigscience-workshop+promptsource/promptsource/templates/ncbi_disease/templates.yaml:.templates.5a693a8f-07a2-4d88-ab3a-337b1029d9a2.jinja [full]",
        MUTATION,
    ),
    (
        "prompts",
        "bigscience-workshop+promptsource/promptsource/templates/scan/template_jump_around_right/templates.yaml:.templates.075c4507-06f2-41e0-a54e-151e54fa9c38.jinja [wild]",
        MUTATION,
    ),
    (
        "prompts",
        "bigscience-workshop+promptsource/promptsource/templates/scan/template_jump_around_right/templates.yaml:.templates.16364e84-6f36-4adf-8a4b-68301736b375.jinja [full]",
        MUTATION,
    ),
    (
        "prompts",
        "bigscience-workshop+promptsource/promptsource/templates/scan/template_jump_around_right/templates.yaml:.templates.8c3e1d93-5053-4601-bc14-21fee929297e.jinja [full]",
        MUTATION,
    ),
    (
        "prompts",
        "bigscience-workshop+promptsource/promptsource/templates/scan/template_jump_around_right/templates.yaml:.templates.dcd4ca7f-277a-4bef-8927-9816613ae2cb.jinja [sparse]",
        MUTATION,
    ),
    (
        "prompts",
        "bigscience-workshop+promptsource/promptsource/templates/scan/template_jump_around_right/templates.yaml:.templates.ef7bc2db-88d4-42cc-a1ac-d882acc908c5.jinja [sparse]",
        MUTATION,
    ),
    (
        "prompts",
        "bigscience-workshop+promptsource/promptsource/templates/scan/template_jump_around_right/templates.yaml:.templates.ef80b579-e10a-4c7d-819e-60926a765276.jinja [full]",
        MUTATION,
    ),
    (
        "prompts",
        "bigscience-workshop+promptsource/promptsource/templates/species_800/templates.yaml:.templates.28b2d2b9-e844-423b-a9e8-f87cc0fc5b9e.jinja [full]",
        MUTATION,
    ),
    (
        "prompts",
        "bigscience-workshop+promptsource/promptsource/templates/species_800/templates.yaml:.templates.dd0270f2-77e7-4d31-a806-85ba02934180.jinja [full]",
        MUTATION,
    ),
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
    let named = |case: &str| DECIDED.iter().find(|(suite, known, _)| *suite == name && *known == case);
    let (mut passed, mut failed, mut decided, mut open) = (0, Vec::new(), Vec::new(), 0);
    for (at, case) in cases.iter().enumerate() {
        let result = run(case);
        let right = match (&result, case["expected"].as_str()) {
            (Ok(text), Some(expected)) => text == expected,
            (Err(_), None) => true,
            _ => false,
        };
        let label = format!("{at}: {}", case["name"].as_str().unwrap_or_default());
        if case["expected"].is_null() && case["error"].is_null() {
            // A case such as `random`, for which the suite has no text.
            open += 1;
        } else if right {
            passed += 1;
        } else if let Some((_, known, reason)) = named(case["name"].as_str().unwrap_or_default()) {
            decided.push(*known);
            println!("{name}: decided: {known}: {reason}");
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
    println!("{name}: {passed} passed, {} failed, {} decided, {open} skipped", failed.len(), decided.len());
    if open > 0 {
        println!("{name}: {open} not run: the case has neither a text nor an error");
    }
    let is_stale = |entry: &&(&str, &str, &str)| entry.0 == name && !decided.contains(&entry.1);
    let stale: Vec<_> = DECIDED.iter().filter(is_stale).collect();
    assert!(stale.is_empty(), "these cases are gone, or no longer differ: {stale:#?}");
    let least = cases.len() as f64 * share;
    assert!((passed + decided.len() + open) as f64 >= least, "{name}: {passed} of {} pass", cases.len());
    assert!(decided.len() as f64 <= 0.015 * cases.len() as f64, "{name}: {} are decided", decided.len());
}

#[test]
fn jinja2_suite_passes() {
    check("jinja2", 0.99);
}

#[test]
fn real_prompts_render_as_jinja2_renders_them() {
    check("prompts", 0.995);
}
