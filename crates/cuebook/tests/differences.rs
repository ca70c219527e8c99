//! The pages of differences: every row has a reason and a test that exists. The tests at the end pin rows that no other test has.

#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cuebook::Code;
use cuebook_lab::BookExt;
use serde_json::json;
use support::Project;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below a folder whose names end like this.
fn files(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            files(&path, end, found);
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
}

/// The tests of all crates, by name, with the files that they are in. A test has an attribute `test`, or it is in the list of a
/// macro that runs it for every store.
fn tests() -> BTreeMap<String, Vec<String>> {
    let mut paths = Vec::new();
    files(&root().join("crates"), ".rs", &mut paths);
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let shown = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            let word = |text: &str| -> String {
                text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
            };
            if line.starts_with("#[") {
                is_test |= line.contains("test") && !line.contains("cfg(");
            } else if let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test) {
                found.entry(word(rest)).or_default().push(shown.clone());
                is_test = false;
            } else if let Some((module, test)) = line.split_once("::")
                && word(module) == module
                && word(test) == test
            {
                found.entry(test.to_owned()).or_default().push(format!("{shown}/{module}"));
            } else if !line.starts_with("//") {
                is_test = false;
            }
        }
    }
    found
}

/// Whether a file can hold a module: every part of its path, but for `tests`, names a folder or a file.
fn is_in(file: &str, module: &str) -> bool {
    let parts: Vec<&str> = file.split(['/', '.', '-']).collect();
    module.split("::").all(|part| part == "tests" || parts.contains(&part))
}

/// Whether a cell that says what Cuebook does says why, too.
fn has_reason(cell: &str) -> bool {
    ["because", "so that", ": ", "; ", ", as ", ", so "].iter().any(|sign| cell.contains(sign))
}

/// The words behind a mark, in all files below a folder.
fn words(folder: &str, end: &str, mark: &str, is_part: fn(char) -> bool) -> BTreeSet<String> {
    let mut paths = Vec::new();
    files(&root().join(folder), end, &mut paths);
    let mut found = BTreeSet::new();
    for path in paths {
        let text = std::fs::read_to_string(path).unwrap();
        for line in text.lines() {
            let behind = line.trim_start().split_once(mark).map(|(_, rest)| rest);
            found.extend(behind.map(|rest| rest.chars().take_while(|c| is_part(*c)).collect()));
        }
    }
    found
}

/// The cells of a row of a table.
fn cells(line: &str) -> Vec<String> {
    let hidden = line.replace("\\|", "\u{1}");
    let inner = hidden.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(|cell| cell.trim().replace('\u{1}', "\\|")).collect()
}

/// What stands in backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_difference_has_a_reason_and_a_test_that_exists() {
    let tests = tests();
    let cases = words("crates/cuebook-prompt/tests/cases", ".md", "## ", |_| true);
    let pages = root().join("crates/cuebook-text/src/error/pages");
    let exists = |name: &str| match (name.rsplit_once("::"), name.split_once('/')) {
        (Some((module, test)), _) => {
            tests.get(test).is_some_and(|files| files.iter().any(|file| is_in(file, module)))
        }
        (None, Some((_, case))) => cases.contains(case),
        // The name of a test, or a case of the file that the one before it names.
        (None, None) => {
            (name.contains('_') && tests.contains_key(name))
                || cases.contains(name)
                || (name.starts_with("CB") && pages.join(format!("{name}.md")).exists())
        }
    };
    let mut paths = Vec::new();
    files(&root().join("docs/src/reference"), ".md", &mut paths);
    paths.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with("differences-"));
    assert!(paths.len() >= 8, "{paths:?}");
    let (mut wrong, mut rows) = (Vec::new(), 0);
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut why = None;
        for line in text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---")) {
            let cells = cells(line);
            let last = cells.last().unwrap();
            if ["test", "case"].contains(&last.as_str()) {
                let is_reason = |cell: &String| cell.contains("why") || cell.contains("reason");
                why = cells.iter().position(is_reason).map(|at| (at, cells[at].contains(" and ")));
                continue;
            }
            match why {
                None => wrong.push(format!("{name}: the table has no column for reasons: {line}")),
                // A column of its own is not empty; one that also says what happens must say why.
                Some((at, true)) if !cells.get(at).is_some_and(|cell| has_reason(cell)) => {
                    wrong.push(format!("{name}: no reason: {line}"));
                }
                Some(_) => {}
            }
            rows += 1;
            if cells.len() < 3 || cells.iter().any(String::is_empty) {
                wrong.push(format!("{name}: a cell is empty: {line}"));
            }
            let named = quoted(last);
            let missing: Vec<&&str> = named.iter().filter(|name| !exists(name)).collect();
            if named.is_empty() || !missing.is_empty() {
                wrong.push(format!("{name}: `{}`: no such test {missing:?} in {last}", cells[0]));
            }
        }
    }
    assert!(wrong.is_empty() && rows > 150, "{rows} rows\n{}", wrong.join("\n"));
}

fn text(template: &str) -> String {
    Project::with_template(template).text("p", json!({}))
}

fn fails(template: &str) -> String {
    Project::with_template(template).error("p", json!({})).to_string()
}

#[test]
fn one_string_and_one_sequence_have_a_limit() {
    fails("{{ ('x' * 9000000)|length }}");
    fails("{{ range(2000000)|list|length }}");
    assert_eq!(text("{{ ('x' * 1000000)|length }}"), "1000000");
}

#[test]
fn digits_of_rare_scripts_are_unknown() {
    assert_eq!(
        text("{{ '٣'.isdigit() }} {{ '\u{1d7d8}3'.isdigit() or '\u{11f50}'.isdigit() }}"),
        "True False"
    );
}

#[test]
fn methods_that_prompts_do_not_need_are_absent() {
    for template in
        ["{{ 'a'.translate({}) }}", "{{ 'a'.maketrans('a', 'b') }}", "{{ 'ä'.encode('latin-1') }}"]
    {
        fails(template);
    }
}

#[test]
fn includes_stay_inside_the_library() {
    for path in ["../../outside.md", "/etc/hostname", ".hidden/x.md"] {
        let project = Project::with_template(&format!("{{% include '{path}' %}}"))
            .file("outside.md", "outside")
            .file("prompts/.hidden/x.md", "hidden");
        project.error("p", json!({}));
    }
}

#[test]
fn a_prompty_text_has_a_limit() {
    let prompt = "---\nname: p\ninputs:\n  x: {kind: string}\n---\nuser:\n{{ x }}";
    let project = Project::new().file("prompts/p.prompty", prompt);
    let error = project.error("p", json!({"x": "a".repeat(1_000_001)}));
    assert_eq!(error.code(), Code::OutputTooLarge, "{error}");
}

#[test]
fn a_conversation_that_no_tag_shows_is_noted() {
    let prompt = "---\nname: p\ninputs:\n  talk: {kind: thread}\n---\nuser:\nHi";
    let project = Project::new().file("prompts/p.prompty", prompt);
    let report = project.book().check(&["p".to_owned()], |_| {}).unwrap();
    let codes: Vec<&str> = report.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert!(codes.contains(&"CB403"), "{codes:?}");
}

#[test]
fn integers_beyond_64_bits_print_exactly() {
    let digits = "1".repeat(60);
    let files = [
        ("v.json", format!("{{\"n\": {digits}, \"xs\": [-{digits}]}}")),
        ("v.yaml", format!("n: {digits}\nxs: [-{digits}]\n")),
    ];
    let prompt = "---\nname: p\ninputs:\n  n: {kind: integer}\n  xs: {kind: array, items: {kind: integer}}\n---\nuser:\n{{ n }} {{ xs[0] }}";
    let sections = "---\nname: s\ninputs:\n  n: {kind: integer}\n---\n# Part\nSee $n.\n";
    let project = Project::with_template("{{ n }} {% for x in xs %}{{ x }}{% endfor %}")
        .file("prompts/q.prompty", prompt)
        .file("prompts/s.sections.md", sections);
    for (name, text) in files {
        let given = cuebook::Variables::read_object(&cuebook::source::Source::new(name, text)).unwrap();
        let given = serde_json::Value::Object(given);
        assert_eq!(project.text("p", given.clone()), format!("{digits} -{digits}"), "{name}");
        assert!(project.text("q", given.clone()).contains(&format!("{digits} -{digits}")), "{name}");
        let shown = project.text("s", json!({"n": given["n"]}));
        assert!(shown.contains(&format!("See {digits}.")), "{name}: {shown}");
    }
    assert_eq!(project.text("p", json!({"n": u64::MAX, "xs": []})), "18446744073709551615 ");
}

#[test]
fn a_mustache_file_with_crlf_renders_lf() {
    let file =
        "---\r\ntemplate: {format: mustache}\r\n---\r\nHello {{name}}\r\n{{#on}}\r\nyes\r\n{{/on}}\r\nend";
    let project = Project::new().file("prompts/p.prompty", file);
    let rendered = project.render("p", json!({"name": "Ada", "on": true})).unwrap();
    assert_eq!(rendered.text(), "Hello Ada\nyes\nend");
}

#[test]
fn functions_without_a_call_print_nothing() {
    let project = Project::with_template("<{{ dict }}{{ range }}{{ cycler }}>{{ range(2)|list }}");
    assert_eq!(project.render("p", json!({})).unwrap().text(), "<>[0, 1]");
}
