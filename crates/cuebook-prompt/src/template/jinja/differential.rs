//! The same templates through real Jinja2 and through ours: equal text, or an error from both.
//!
//! A case is a heading in a Markdown file under `tests/cases/jinja2`, with its context as a `json` block, its template as
//! a `jinja` block, further files as `jinja` blocks with a path, and what Jinja2 makes of it as a `text` or `error` block. What must
//! differ is listed below with its reason; a listed case that begins to agree is a failure, so that the list never says more than is
//! true. Another test asks the real Jinja2 whether the texts are right.

use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::{Loader, Settings, Template};
use crate::source::Source;
use crate::template::sink::Writer;

/// Cases that must differ from Jinja2, and why they do.
const KNOWN_DIFFERENCES: &[(&str, &str)] = &[
    ("arithmetic/integers beyond 128 bits", "integers have 127 bits here; a larger result is an error"),
    ("filters-lists/a generator printed", "Python prints the address of a generator"),
    ("methods/encode", "a template has no bytes"),
    ("methods/methods as values", "Python prints the address of a method"),
    ("methods/methods that change a value", "values are immutable; the error says what to write instead"),
    ("set-and-namespace/what depends on chance", "`random` and `lipsum` would make two renders differ"),
];

/// The Jinja2 that is compared with.
const VERSION: &str = "3.1.6";

/// Renders every case that comes as JSON on its input, and gives a list of texts and errors.
const RENDER_ALL: &str = r#"
import json, sys
from jinja2 import DictLoader
from jinja2.sandbox import SandboxedEnvironment

results = []
for case in json.load(sys.stdin):
    try:
        env = SandboxedEnvironment(
            loader=DictLoader(case["files"]),
            extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do"],
        )
        results.append({"text": env.get_template("main.md").render(case["context"])})
    except Exception as error:
        results.append({"error": f"{type(error).__name__}: {error}"})
json.dump(results, sys.stdout)
"#;

#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) files: BTreeMap<String, String>,
    pub(super) context: Json,
    /// The text, or what the error says.
    pub(super) expected: Option<Result<String, String>>,
}

/// The files of a case.
struct Files(BTreeMap<String, String>);

impl Loader for Files {
    fn load(&self, name: &str, _parent: &str) -> crate::error::Result<Option<Arc<Source>>> {
        Ok(self.0.get(name).map(|text| Source::new(name, text.as_str())))
    }
}

/// Renders `main.md` of the files with our engine, and makes sure of what every render must keep: the pieces cover the
/// text, and what is said to be an author's literal is in the author's file.
pub(super) fn render_ours(case: &Case, settings: &Settings) -> Result<String, String> {
    let Case { files, context, .. } = case;
    let main = Source::new("main.md", files["main.md"].as_str());
    let template = Template::compile(main, Arc::new(Files(files.clone())), settings)
        .map_err(|error| error.to_string())?;
    let output =
        template.render(context.as_object().unwrap(), 1_000_000).map_err(|error| error.to_string())?;
    assert_eq!(
        output.pieces.first().map_or(0, |piece| piece.start),
        0,
        "the first piece begins with the text"
    );
    for (index, piece) in output.pieces.iter().enumerate() {
        let end = output.pieces.get(index + 1).map_or(output.text.len(), |next| next.start as usize);
        let text = &output.text[piece.start as usize..end];
        let may_be_empty = settings.keep_empty && matches!(piece.writer, Writer::Value { .. });
        assert!(may_be_empty || !text.is_empty(), "a piece without text");
        match piece.writer {
            Writer::Literal { unit, offset } => {
                let unit = &output.units[unit as usize];
                let range = unit.source_range(offset as usize..offset as usize + text.len());
                assert_eq!(&unit.source().text()[range], text, "a literal that its file does not have");
            }
            Writer::Changed { unit, change } => {
                let unit = &output.units[unit as usize];
                let range = unit.source_range(unit.changed(change));
                assert!(!unit.source().text()[range].is_empty(), "changed text that its file does not have");
            }
            Writer::Value { unit, offset } => {
                assert!(
                    output.units[unit as usize].emission(offset).is_some(),
                    "a value that nothing emitted"
                );
            }
            Writer::Hook { .. } | Writer::Frame { .. } => panic!("templates have neither hooks nor frames"),
        }
    }
    Ok(output.text)
}

/// Whether two renders agree: the same text, or an error from both.
fn agrees(one: &Result<String, String>, other: &Result<String, String>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one == other,
        (Err(_), Err(_)) => true,
        _ => false,
    }
}

#[test]
fn templates_render_as_their_cases_say() {
    let cases = read_cases("jinja2");
    let settings = Settings { fuel: 1_000_000, ..Settings::default() };
    let mut failures = Vec::new();
    for case in &cases {
        let known = KNOWN_DIFFERENCES.iter().any(|(name, _)| *name == case.name);
        let ours = catch_unwind(AssertUnwindSafe(|| render_ours(case, &settings)))
            .unwrap_or_else(|_| Ok("(a panic)".to_owned()));
        match &case.expected {
            // What Jinja2 gives there differs from run to run.
            None if known => {}
            None => failures.push(format!("{}: has no text", case.name)),
            Some(expected) => match (agrees(&ours, expected), known) {
                (false, false) => {
                    failures.push(format!("{}\n  ours   {ours:?}\n  theirs {expected:?}", case.name));
                }
                (true, true) => failures.push(format!("{}: is listed as a difference and agrees", case.name)),
                _ => {}
            },
        }
    }
    for (name, _) in KNOWN_DIFFERENCES {
        if !cases.iter().any(|case| case.name == *name) {
            failures.push(format!("{name}: is listed as a difference and is no case"));
        }
    }
    assert!(cases.len() >= 500, "only {} cases", cases.len());
    assert!(failures.is_empty(), "{} of {} cases:\n\n{}", failures.len(), cases.len(), failures.join("\n\n"));
}

#[test]
fn the_texts_of_the_cases_are_those_of_jinja2() {
    let cases = read_cases("jinja2");
    let python = match python() {
        Ok(python) => python,
        Err(why) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "Jinja2 is needed where CI=true: {why}");
            say(format_args!(
                "skipped: {} cases were not compared with Jinja2 {VERSION}: {why}",
                cases.len()
            ));
            return;
        }
    };
    let theirs = render_theirs(&python, &cases);
    let differs = cases.iter().zip(&theirs).filter_map(|(case, theirs)| {
        let expected = case.expected.as_ref()?;
        let reported = || format!("{}\n  stored {expected:?}\n  theirs {theirs:?}", case.name);
        (!agrees(expected, theirs)).then(reported)
    });
    let failures: Vec<String> = differs.collect();
    say(format_args!("the texts of {} cases compared with Jinja2 {VERSION}", cases.len()));
    assert!(failures.is_empty(), "{} of {} cases:\n\n{}", failures.len(), cases.len(), failures.join("\n\n"));
}

/// Says something that is seen even when the test passes, which what is merely printed is not.
fn say(what: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// The cases of a folder under `tests/cases`.
pub(super) fn read_cases(folder: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(folder);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let topic = path.file_stem().unwrap().to_string_lossy().into_owned();
        cases.extend(parse_cases(&topic, &std::fs::read_to_string(&path).unwrap()));
    }
    let mut names: Vec<&str> = cases.iter().map(|case: &Case| case.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        panic!("two cases are named {}", twice[0]);
    }
    cases
}

fn parse_cases(topic: &str, text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("## ") {
            let name = format!("{topic}/{name}");
            cases.push(Case { name, files: BTreeMap::new(), context: json!({}), expected: None });
            continue;
        }
        let ticks = line.len() - line.trim_start_matches('`').len();
        if ticks < 3 {
            continue;
        }
        let (fence, info) = line.split_at(ticks);
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != fence).collect();
        let body = body.join("\n");
        let case = cases.last_mut().unwrap_or_else(|| panic!("{topic}: a block comes before the first case"));
        match info.split_once(' ').unwrap_or((info, "main.md")) {
            ("json", _) => {
                case.context =
                    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{}: {error}", case.name));
            }
            ("jinja", path) => {
                let twice = case.files.insert(path.to_owned(), body);
                assert!(twice.is_none(), "{}: {path} appears twice", case.name);
            }
            ("text", "json") => {
                let text = serde_json::from_str(&body);
                case.expected = Some(Ok(text.unwrap_or_else(|error| panic!("{}: {error}", case.name))));
            }
            ("text", _) => case.expected = Some(Ok(body)),
            ("error", _) => case.expected = Some(Err(body)),
            (other, _) => panic!("{}: a block of {other:?}", case.name),
        }
    }
    for case in &cases {
        assert!(case.files.contains_key("main.md"), "{} has no template", case.name);
    }
    cases
}

/// A Python that has the wanted Jinja2, in a virtual environment beside the test's own build.
fn python() -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = here.ancestors().nth(3).ok_or("the test does not lie in a build folder")?;
    let folder = target.join("tmp").join(format!("jinja2-{VERSION}"));
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let check = format!("import importlib.metadata as m; assert m.version('jinja2') == '{VERSION}'");
    if run(Command::new(&python).args(["-c", &check])).is_ok() {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let wanted = format!("jinja2=={VERSION}");
    run(Command::new(&python).args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        &wanted,
    ]))?;
    run(Command::new(&python).args(["-c", &check]))?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {}", said.lines().last().unwrap_or("failed")))
}

fn render_theirs(python: &Path, cases: &[Case]) -> Vec<Result<String, String>> {
    let input: Vec<Json> =
        cases.iter().map(|case| json!({"files": case.files, "context": case.context})).collect();
    let mut child = Command::new(python)
        .args(["-c", RENDER_ALL])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The script reads all before it writes, so neither side waits for the other.
    child.stdin.take().unwrap().write_all(serde_json::to_string(&input).unwrap().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the comparison with Jinja2 did not run to its end");
    let results: Vec<Json> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(results.len(), cases.len());
    results
        .iter()
        .map(|result| match result["text"].as_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(result["error"].as_str().unwrap().to_owned()),
        })
        .collect()
}
