//! `cuebook explain`: where a text came from, on the command line, as JSON and as a page for the browser.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::{Value as Json, json};
use support::Project;

fn cuebook(project: &Project, args: &[&str]) -> (i32, String, String) {
    let output = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path()).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(project: &Project, args: &[&str]) -> Json {
    let (_, out, err) = cuebook(project, args);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"))
}

/// A prompt with an author's text, an include from a pack, a default and a value.
fn letter() -> Project {
    let project = Project::new();
    project
        .write("prompts/letter/template.md", "Dear {{ name }},\nGrüße!\n{% include \"letter/closing.md\" %}");
    project.write("prompts/letter/closing.md", "Yours, {{ sender|default(\"us\") }}");
    project
}

#[test]
fn a_place_is_asked_for_by_byte_or_by_line_and_column() {
    let project = letter();
    let by_byte = json(&project, &["explain", "letter", "--var", "name=Ada", "--at", "6", "--json"]);
    let by_line = json(&project, &["explain", "letter", "--var", "name=Ada", "--at", "1:7", "--json"]);
    assert_eq!(by_byte, by_line);
    let found = &by_byte["matches"][0];
    assert_eq!((&found["start"], &found["text"], &found["column"]), (&json!(6), &json!("d"), &json!(7)));
    let piece = &found["pieces"][0];
    assert_eq!(piece["origin"]["variables"], json!([{"path": "name", "layer": "caller"}]));
    assert_eq!(
        piece["source"],
        json!({"file": "prompts/letter/template.md", "line": 1, "column": 6, "excerpt": "Dear {{ name }},"})
    );
    let umlaut = json(&project, &["explain", "letter", "--var", "name=Ada", "--at", "2:3", "--json"]);
    assert_eq!((&umlaut["matches"][0]["text"], &umlaut["matches"][0]["end"]), (&json!("ü"), &json!(14)));
    assert_eq!(umlaut["matches"][0]["pieces"][0]["source"]["column"], 3);
}

#[test]
fn every_occurrence_is_found_with_all_its_origins() {
    let project = letter();
    let args = ["explain", "letter", "--var", "name=Dear", "--find", "Dear", "--json"];
    let found = json(&project, &args);
    let kinds: Vec<&Json> = found["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| &found["pieces"][0]["origin"]["kind"])
        .collect();
    assert_eq!(kinds, ["literal", "value"]);
    let across = json(&project, &["explain", "letter", "--var", "name=Ada", "--find", "da,\nG", "--json"]);
    let pieces = across["matches"][0]["pieces"].as_array().unwrap();
    let texts: Vec<&Json> = pieces.iter().map(|piece| &piece["text"]).collect();
    assert_eq!(texts, ["da", ",\nG"]);
    let (code, out, _) = cuebook(&project, &["explain", "letter", "--var", "name=Ada", "--find", "Yours"]);
    assert_eq!(code, 0);
    assert!(out.contains("an author's text: prompts/letter/closing.md:1"), "{out}");
    assert!(out.contains("1 │ Yours, {{ sender|default(\"us\") }}\n    │ ^^^^^\n"), "{out}");
}

#[test]
fn a_missing_target_is_an_error_with_a_fix() {
    let project = letter();
    for (args, code, message, hint) in [
        (["--at", "400"], 2, "the byte 400 is after the end: the text has 28 bytes", "use 0 to 27"),
        (["--at", "13"], 2, "'ü' spans the bytes 12 to 13", "use 12"),
        (["--at", "9:1"], 2, "line 9 does not exist: the text has 3 lines", "use 1:1"),
        (["--at", "1:99"], 2, "line 1 has no column 99: it has 10 characters", "use 1:1 to 1:10"),
        (["--at", "0:1"], 2, "invalid position `0:1`", "as in 3:14"),
        (["--at", "x"], 2, "invalid position `x`", "as in 3:14"),
        (["--find", "dear"], 1, "the rendered text does not contain \"dear\"", "did you mean \"Dear\"?"),
        (["--find", "Dear  Ada"], 1, "does not contain \"Dear  Ada\"", "differs only in whitespace"),
        (["--find", "Bob"], 1, "does not contain \"Bob\"", "cuebook render"),
        (["--find", ""], 2, "the text to find is empty", "--find TEXT"),
    ] {
        let (found, out, err) =
            cuebook(&project, &[&["explain", "letter", "--var", "name=Ada"], &args[..]].concat());
        assert!(
            err.contains("error[CB407]") && err.contains(message) && err.contains(hint),
            "{args:?}: {err}"
        );
        assert_eq!((found, out.as_str()), (code, ""), "{args:?}");
        let error =
            json(&project, &[&["explain", "letter", "--var", "name=Ada", "--json"], &args[..]].concat());
        assert_eq!(error["error"]["code"], "CB407", "{args:?}");
    }
    project.write("prompts/empty/template.md", "{{ nothing }}");
    let (code, _, err) = cuebook(&project, &["explain", "empty", "--at", "0"]);
    assert!(code == 2 && err.contains("renders to an empty text"), "{err}");
}

#[test]
fn explain_names_packs_and_signatures() {
    let project = Project::new();
    project.write("user_data/packs/polite/pack.json", r#"{"pack_id": "polite", "prompts": ["greeting"]}"#);
    project.write("user_data/packs/polite/prompts/greeting/template.md", "Good day, {{ name }}.");
    let found = json(&project, &["explain", "greeting", "--var", "name=Ada", "--find", "Good", "--json"]);
    assert_eq!(found["matches"][0]["pieces"][0]["pack_id"], "polite");
    let (_, out, _) = cuebook(&project, &["explain", "greeting", "--var", "name=Ada", "--at", "0"]);
    assert!(out.contains("pack polite"), "{out}");
    project.write(
        ".ai/directives/demo/greet.md",
        "# Greet\n\n```xml\n<directive name=\"greet\" version=\"1.0.0\"><metadata><description>Greets</description>\
         <category>demo</category><author>me</author></metadata></directive>\n```\n\nSay hello.\n",
    );
    let found = json(&project, &["explain", "demo/greet", "--find", "Say hello", "--json"]);
    assert_eq!(found["matches"][0]["pieces"][0]["signature"], "not signed", "{found}");
}

#[test]
fn tokens_are_counted_by_file_variable_and_section_and_add_up() {
    let project = letter();
    let explained =
        json(&project, &["explain", "letter", "--var", "name=Ada", "--model", "gpt-4o", "--json"]);
    let tokens = &explained["tokens"];
    assert_eq!((&tokens["exact"], &tokens["model"]), (&json!(true), &json!("gpt-4o")));
    let sum: u64 = tokens["contributors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["tokens"].as_u64().unwrap())
        .sum();
    assert_eq!(tokens["total"], sum);
    let labels: Vec<&str> = tokens["contributors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["label"].as_str().unwrap())
        .collect();
    for label in
        ["prompts/letter/template.md", "prompts/letter/closing.md", "name (caller)", "sender (absent)"]
    {
        assert!(labels.contains(&label), "{labels:?}");
    }
    let guessed =
        json(&project, &["explain", "letter", "--var", "name=Ada", "--model", "claude-sonnet-4-5", "--json"]);
    assert_eq!(guessed["tokens"]["exact"], false);
    assert!(
        guessed["tokens"]["estimates"][0].as_str().unwrap().starts_with("Anthropic publishes no vocabulary")
    );
    project.write("prompts/guide.sections.md", "# Task\nDo it, $name.\n\n# Style\nBe kind.\n");
    let tree = json(&project, &["explain", "guide", "--var", "name=Ada", "--model", "gpt-4o", "--json"]);
    let sections = tree["tokens"]["sections"].as_array().unwrap();
    let paths: Vec<&Json> = sections.iter().map(|section| &section["path"]).collect();
    assert_eq!(paths, ["task", "style"]);
    let sum: u64 = sections.iter().map(|section| section["tokens"].as_u64().unwrap()).sum();
    assert_eq!(tree["tokens"]["total"], sum);
}

#[test]
fn values_cannot_control_the_terminal() {
    let project = letter();
    let args = ["explain", "letter", "--var", "name=\u{1b}[31mred\u{202e}", "--color", "always"];
    let (_, out, _) = cuebook(&project, &args);
    assert!(out.contains("\u{1b}[36m\\u{1b}[31mred\\u{202e}\u{1b}[0m"), "{out:?}");
    assert!(!out.contains("\u{1b}[31m") && !out.contains('\u{202e}'), "{out:?}");
    let (_, plain, _) = cuebook(&project, &["explain", "letter", "--var", "name=Ada"]);
    assert!(!plain.contains('\u{1b}'));
}

/// Values that try to leave the place where they are shown.
const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\" onmouseover=\"alert(3) ' & \u{1}\u{202e}evil\u{2066} <!-- ]]> </pre></span>\u{e0041}";

#[test]
fn the_page_is_whole_and_whatever_values_hold_is_text_in_it() {
    let project = letter();
    project.write("inputs.json", json!({"name": format!("{HOSTILE}\0")}).to_string());
    let (code, out, err) =
        cuebook(&project, &["explain", "letter", "--vars", "inputs.json", "--html", "page.html"]);
    assert_eq!((code, out.as_str()), (0, "page.html\n"), "{err}");
    let page = std::fs::read_to_string(project.path().join("page.html")).unwrap();
    let (_, printed, _) = cuebook(&project, &["explain", "letter", "--vars", "inputs.json", "--html"]);
    assert_eq!(page, printed, "alone it prints the same page");
    // Tags of the page itself are all that there are.
    assert_eq!((page.matches("<script").count(), page.matches("</script>").count()), (1, 1));
    assert_eq!(
        (page.matches("<img").count(), page.matches("<pre").count(), page.matches("</pre>").count()),
        (0, 1, 1)
    );
    assert!(!page.contains("\" onmouseover=\""), "a value ends no attribute");
    for unseen in ['\0', '\u{1}', '\u{202e}', '\u{2066}', '\u{e0041}'] {
        assert!(!page.contains(unseen), "{unseen:?}");
    }
    assert!(page.contains("<i class=\"c\">U+202E</i>"));
    assert!(page.contains("<i class=\"c\">U+0000</i>"));
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
    for elsewhere in ["http://", "https://", "src=\"", "@import", "url("] {
        assert!(!page.contains(elsewhere), "the page needs nothing besides: {elsewhere}");
    }
    assert!(page.contains("default-src 'none'; style-src 'sha256-"));
    assert!(page.contains("prefers-color-scheme: dark"));
    let reported =
        json(&project, &["explain", "letter", "--vars", "inputs.json", "--html", "p.html", "--json"]);
    assert_eq!(reported["html"], "p.html");
}

#[test]
fn a_page_takes_the_place_of_a_page_and_of_nothing_else_unasked() {
    let project = letter();
    project.write("inputs.json", "{\"name\": \"Ann\"}");
    project.write("work.txt", "Somebody's work.");
    project.write("empty.html", "");
    let explain = |more: &[&str]| {
        cuebook(&project, &[&["explain", "letter", "--vars", "inputs.json", "--html"], more].concat())
    };
    let read = |path: &str| std::fs::read_to_string(project.path().join(path)).unwrap();
    let (code, _, err) = explain(&["work.txt"]);
    assert!(code == 1 && err.contains("CB518") && err.contains("--force"), "{err}");
    assert_eq!(read("work.txt"), "Somebody's work.");
    for page in ["page.html", "page.html", "empty.html"] {
        assert_eq!(explain(&[page]).0, 0, "{page}");
    }
    assert_eq!(explain(&["work.txt", "--force"]).0, 0);
    assert!(read("work.txt").starts_with("<!doctype html>"));
    let template = read("prompts/letter/template.md");
    project.write("cuebook.toml", "");
    for own in [
        "prompts/letter/template.md",
        "./prompts/../prompts/letter/template.md",
        "inputs.json",
        "cuebook.toml",
    ] {
        for force in [&[][..], &["--force"]] {
            let before = read(own);
            let (code, _, err) = explain(&[&[own], force].concat());
            assert!(code == 1 && err.contains("the prompt uses this file"), "{own}: {err}");
            assert_eq!(read(own), before);
        }
    }
    assert_eq!(read("prompts/letter/template.md"), template);
}

#[test]
fn unwritable_pages_and_conflicting_options_are_errors() {
    let project = letter();
    project.write("file", "");
    let (code, _, err) =
        cuebook(&project, &["explain", "letter", "--var", "name=A", "--html", "file/page.html"]);
    assert!(code == 1 && err.contains("error[CB"), "{err}");
    let (code, _, err) = cuebook(&project, &["explain", "letter", "--at", "1", "--find", "x"]);
    assert!(code == 2 && err.contains("cannot be used with"), "{err}");
    for args in [
        &["explain", "letter", "--json", "--html"][..],
        &["--json", "explain", "letter", "--html", "-"],
        &["--json", "explain", "letter", "--svg"],
    ] {
        let (code, out, err) = cuebook(&project, args);
        assert_eq!(code, 2, "{out}{err}");
        let reported: Json = serde_json::from_str(&out).unwrap();
        assert!(
            reported["error"]["message"].as_str().unwrap().contains("without a file print to stdout"),
            "{out}"
        );
    }
}

#[test]
fn a_picture_replaces_a_picture_and_escapes_its_text() {
    let project = letter();
    project.write("mine.svg", "<svg/>");
    let draw = |file: &str| {
        cuebook(&project, &["explain", "letter", "--var", "name=<b>&\u{1b}\u{202e}", "--svg", file])
    };
    assert_eq!(draw("new.svg").0, 0);
    assert_eq!(draw("new.svg").0, 0, "a picture may be drawn again");
    let (code, _, err) = draw("mine.svg");
    assert!(code == 1 && err.contains("CB518"), "{err}");
    let picture = std::fs::read_to_string(project.path().join("new.svg")).unwrap();
    assert!(picture.contains("&lt;b&gt;&amp;U+001BU+202E"), "{picture}");
    assert!(!picture.contains(['\u{1b}', '\u{202e}']));
}

#[test]
fn a_match_shows_its_own_line() {
    let project = Project::new();
    project.write("prompts/long/template.md", "one\r\ntwo\r\nthe third\r\n");
    let (code, out, err) = cuebook(&project, &["explain", "long", "--find", "third"]);
    assert!(code == 0 && out.contains("an author's text: prompts/long/template.md:3\n"), "{out}{err}");
    for args in [["--find", "third"], ["--at", "3:5"]] {
        let found = json(&project, &[&["explain", "long", "--json"], &args[..]].concat());
        let piece = &found["matches"][0]["pieces"][0];
        assert_eq!(piece["label"], "prompts/long/template.md:3");
        let origin = &piece["origin"];
        assert_eq!(
            (&origin["line"], &origin["column"], &origin["start"]),
            (&json!(3), &json!(5), &json!(14))
        );
        assert_eq!((&piece["source"]["line"], &piece["source"]["column"]), (&json!(3), &json!(5)));
    }
}

#[test]
fn the_page_distinguishes_included_files() {
    let project = Project::new();
    project.write("prompts/a/template.md", "One. {% include 'b/x.md' %} Two. {% include 'b/y.md' %}\n");
    project.write("prompts/b/x.md", "From x.");
    project.write("prompts/b/y.md", "From y.");
    let (code, page, stderr) = cuebook(&project, &["explain", "a", "--html"]);
    assert_eq!(code, 0, "{stderr}");
    for (number, name, text) in [(1, "prompts/b/x.md", "From x."), (2, "prompts/b/y.md", "From y.")] {
        assert!(page.contains(&format!("<li class=\"f{number}\"><b>{number}</b> {name}</li>")), "{page}");
        let start = page.find(&format!("class=\"p literal f{number}\" data-f=\"{number}\"")).unwrap();
        assert!(page[start..].split("</span>").next().unwrap().ends_with(text), "{page}");
    }
    assert!(page.contains("<span class=\"p literal\" tabindex"), "the prompt's own text has no colour");
}

#[test]
fn a_conversation_is_named_where_it_is_shown() {
    let project = Project::new();
    let file =
        "---\nname: talk\ninputs:\n  - {name: history, kind: thread}\n---\nsystem:\nHi.\n\n{{ history }}\n";
    project.write("prompts/talk.prompty", file);
    let history =
        r#"history:=[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Yes?"}]"#;
    for more in [&["--html"][..], &["--svg"], &[]] {
        let (code, shown, stderr) =
            cuebook(&project, &[&["explain", "talk", "--var", history], more].concat());
        assert_eq!(code, 0, "{stderr}");
        assert!(shown.replace('\u{a0}', " ").contains("[history:"), "{more:?}: {shown}");
        assert!(!shown.contains("__PROMPTY_THREAD_"), "{more:?}: {shown}");
    }
}

#[test]
fn changed_text_of_an_author_keeps_its_place() {
    let project = Project::new();
    let text = "{% filter upper %}abc{% endfilter %}\n{% set t %}def {{ name }}{% endset %}{{ t|title }}";
    project.write("prompts/p/template.md", text);
    for (find, written, line) in [("ABC", "abc", 1), ("Def ", "def ", 2)] {
        let found = json(&project, &["explain", "p", "--var", "name=ada", "--find", find, "--json"]);
        let piece = &found["matches"][0]["pieces"][0];
        let start = text.find(written).unwrap();
        let origin = &piece["origin"];
        let facts = ["kind", "file", "start", "end", "line", "changed"].map(|name| &origin[name]);
        let file = json!("prompts/p/template.md");
        let end = json!(start + written.len());
        assert_eq!(facts, [&json!("literal"), &file, &json!(start), &end, &json!(line), &json!(true)]);
        assert_eq!(piece["label"], format!("prompts/p/template.md:{line}, changed by a filter"));
    }
    let rendered = json(&project, &["render", "p", "--var", "name=ada", "--json"]);
    let spans = rendered["spans"].as_array().unwrap();
    let name = spans.iter().find(|span| span["origin"]["kind"] == "value").unwrap();
    assert_eq!(name["origin"]["variables"][0]["path"], "name");
    assert_eq!(spans.iter().filter(|span| span["origin"]["changed"] == true).count(), 2, "{spans:?}");
}
