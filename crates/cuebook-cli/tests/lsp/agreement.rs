//! `check` and the server say the same, of what is saved and of what is not.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value as Json, json};

use super::{Editor, FILES};

/// What `check` says of a folder, as the server says it: by file, and in the order of the text.
fn checked(folder: &Path) -> std::collections::BTreeMap<String, Vec<(String, String)>> {
    let output = Command::new(env!("CARGO_BIN_EXE_cuebook"))
        .args(["check", "--json"])
        .current_dir(folder)
        .env("HOME", folder)
        .output()
        .unwrap();
    let findings: Json = serde_json::from_slice(&output.stdout).unwrap();
    // Without settings that can be read, there is one error.
    let findings = findings.as_array().cloned().unwrap_or_else(|| vec![findings["error"].clone()]);
    let mut by_file: std::collections::BTreeMap<String, Vec<(String, String)>> = Default::default();
    for finding in findings {
        // An editor needs a file: what `check` says of an item as a whole is shown in the item.
        let message = finding["message"].as_str().unwrap();
        let named = message.rsplit(' ').next().filter(|name| folder.join(name).is_file());
        let file = folder.join(finding["file"].as_str().or(named).unwrap_or("cuebook.toml"));
        let message = match finding["hint"].as_str() {
            Some(hint) => format!("{}\nhelp: {hint}", finding["message"].as_str().unwrap()),
            None => finding["message"].as_str().unwrap().to_owned(),
        };
        let code = finding["code"].as_str().unwrap().to_owned();
        by_file.entry(format!("file://{}", file.display())).or_default().push((code, message));
    }
    by_file.values_mut().for_each(|findings| findings.sort());
    by_file
}

#[test]
fn check_and_the_server_never_disagree() {
    let mut compared = 0;
    for (name, files) in projects() {
        let files: Vec<(&str, &str)> =
            files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
        let mut editor = Editor::open(&files);
        editor.settle();
        let wanted = checked(editor.folder.path());
        let shown = |editor: &Editor| -> std::collections::BTreeMap<String, Vec<(String, String)>> {
            let pair = |one: &Json| {
                (one["code"].as_str().unwrap().to_owned(), one["message"].as_str().unwrap().to_owned())
            };
            let files = editor.findings.iter().filter(|(_, findings)| !findings.is_empty());
            let sorted = |findings: &[Json]| {
                let mut pairs: Vec<(String, String)> = findings.iter().map(pair).collect();
                pairs.sort();
                pairs
            };
            files.map(|(uri, findings)| (uri.clone(), sorted(findings))).collect()
        };
        assert_eq!(shown(&editor), wanted, "{name}");
        // The same once an editor has opened every file, changed it and changed it back.
        for (file, text) in &files {
            editor.did_open(file, text);
            editor.did_change(file, &format!("{text}{{{{ other"));
            editor.settle();
            editor.did_change(file, text);
        }
        editor.settle();
        assert_eq!(shown(&editor), wanted, "{name}, open");
        compared += wanted.values().map(Vec::len).sum::<usize>();
        editor.leave();
    }
    assert!(compared >= 20, "only {compared} findings were compared");
}

#[test]
fn unsaved_settings_manifests_and_providers_are_checked() {
    let (toml, pack, provider) =
        ("cuebook.toml", "user_data/packs/one/pack.json", ".ai/config/providers/acme.yaml");
    let manifest = "{\"pack_id\": \"one\", \"prompts\": [\"q\"]}";
    let acme = "name: acme\napi: openai-chat\nbase_url: https://api.acme.example\n";
    let mut editor = Editor::open(&[
        (toml, "[limits]\nfuel = 3000\n"),
        (pack, manifest),
        (provider, acme),
        ("user_data/packs/one/prompts/q/template.md", "Hi\n"),
        ("prompts/p/template.md", "{{ x|uper }}\n"),
    ]);
    editor.settle();
    for file in [toml, pack, provider] {
        assert_eq!(editor.codes(file), [""; 0], "{file}");
    }
    for (file, wrong, right, code) in [
        (pack, "{\"pack_id\": \"one\", \"prompts\": [\"q\"], \"tagz\": []}", manifest, "CB315"),
        (provider, "name: acme\napi: openai-chatt\n", acme, "CB719"),
        (toml, "[limits]\nfuell = 3\n", "[limits]\nfuel = 3000\n", "CB105"),
    ] {
        editor.did_open(file, wrong);
        editor.settle();
        assert_eq!(editor.codes(file), [code], "{file}");
        // Without settings that can be read, nothing else is looked at.
        let expected: &[&str] = if file == toml { &[] } else { &["CB316"] };
        assert_eq!(editor.codes("prompts/p/template.md"), expected, "{file}");
        editor.did_change(file, right);
        editor.settle();
        assert_eq!(editor.codes(file), [""; 0], "{file}");
        assert_eq!(editor.codes("prompts/p/template.md"), ["CB316"], "{file}");
    }
    editor.leave();
}

#[test]
fn an_unsigned_provider_is_reported_in_its_file() {
    let mut editor =
        Editor::of_other_user(&[(".ai/config/providers/acme.yaml", "name: acme\napi: openai-chat\n")]);
    editor.settle();
    assert_eq!(editor.codes(".ai/config/providers/acme.yaml"), ["CB220"]);
    assert_eq!(editor.codes("cuebook.toml"), [""; 0]);
    editor.leave();
}

#[test]
fn a_prompt_that_was_never_saved_is_checked() {
    let mut editor = Editor::open(FILES);
    editor.settle();
    let files = [
        ("prompts/new/template.md", "{{ q|uper }}", "CB316"),
        ("prompts/new.prompty", "---\nname: new\n---\nuser:\n{{ q|uper }}\n", "CB316"),
        ("prompts/new.sections.md", "---\nns: a\nkey: [\n---\n# One\n", "CB318"),
        ("prompts/new.prompt", "---\nmodel: [\n---\nHi\n", "CB318"),
        ("prompts/skill/SKILL.md", "---\nname: PDF\n---\nUse it.\n", "CB318"),
        (".ai/directives/team/new.md", "# New\n", "CB326"),
    ];
    for (file, text, code) in files {
        editor.did_open(file, text);
        editor.settle();
        assert!(editor.codes(file).contains(&code), "{file}: {:?}", editor.codes(file));
        // A survey of the library does not forget it.
        editor.say(
            "workspace/didChangeWatchedFiles",
            json!({"changes": [{"uri": editor.uri("prompts/x.md")}]}),
        );
        editor.settle();
        assert!(editor.codes(file).contains(&code), "{file}: {:?}", editor.codes(file));
        editor.say("textDocument/didClose", json!({"textDocument": {"uri": editor.uri(file)}}));
        editor.settle();
        assert_eq!(editor.codes(file), [""; 0], "{file}");
    }
    editor.leave();
}

/// Projects with something wrong: the files of the examples, and one for each rule.
fn projects() -> Vec<(String, Vec<(String, String)>)> {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    vec![
        (
            "circle".to_owned(),
            vec![
                file("prompts/a/template.md", "{% include \"b/template.md\" %}"),
                file("prompts/b/template.md", "{% include \"a/template.md\" %}"),
                file("prompts/c/template.md", "{% include \"a/template.md\" %}"),
            ],
        ),
        (
            "inheritance".to_owned(),
            vec![
                file("prompts/base/template.md", "{% block a %}{% endblock %}{{ x|uper }}"),
                file(
                    "prompts/child/template.md",
                    "{% extends \"base/template.md\" %}{% block b %}{% endblock %}",
                ),
                file("prompts/lost/template.md", "{% extends \"gone.md\" %}{% include \"lost.md\" %}"),
                file("prompts/partials/p.md", "{% if %}"),
            ],
        ),
        (
            "python".to_owned(),
            vec![
                file("prompts/p/template.md", "{{ b }}\r\n{{ system }}"),
                file("prompts/p/prompt.py", "VARIABLES = {\"optional\": [{\"name\": \"a\", \"typ\": 1}]}\n"),
                file("prompts/q/prompt.py", "VARIABLES = {\n"),
                file("prompts/r/prompt.py", "import os\nMETADATA = {\"id\": os.name}\n"),
            ],
        ),
        (
            "prompty".to_owned(),
            vec![
                file(
                    "prompts/a.prompty",
                    "---\nnam: a\ninputs:\n  - name: x\n    kind: strin\n---\nuser :\n{{ y }}\n",
                ),
                file("prompts/b.prompty", "---\nname: [\n---\n{{ y\n"),
                file(
                    "prompts/c.prompty",
                    "---\nmodel:\n  api: chat\n  configuration:\n    type: openai\n---\nsystem:\nHi\n",
                ),
            ],
        ),
        (
            "sections".to_owned(),
            vec![
                file("prompts/s.sections.md", "---\nns: a\nkey: s\n---\n# One\n\nCosts $ 5 and $name.\n"),
                file("prompts/t.sections.md", "---\nkey: [\n---\n# One\n"),
            ],
        ),
        (
            "directives".to_owned(),
            vec![file(
                ".ai/directives/team/d.md",
                "# D\n\n```xml\n<directive name=\"d\" version=\"1.0.0\">\n<metadata>\n<description>d</description>\n\
             <category>team</category>\n<permissions><execute><tool>no.such</tool></execute></permissions>\n\
             </metadata>\n</directive>\n```\n\nSay {input:nothing}.\n",
            )],
        ),
        (
            "packs".to_owned(),
            vec![
                file(
                    "user_data/packs/one/pack.json",
                    "{\"pack_id\": \"one\", \"prompts\": [\"a\", \"gone\"], \"tagz\": []}",
                ),
                file("user_data/packs/one/prompts/a/template.md", "{{ x|uper }}"),
                file("user_data/packs/two/prompts/a/template.md", "two"),
                file("user_data/shared/vocab.json", "{\"prompt.nothing\": [\"prompt.b\"]}"),
            ],
        ),
        (
            "settings".to_owned(),
            vec![
                file("cuebook.toml", "[limits]\nfuell = 3\n"),
                file("prompts/p/template.md", "{{ x|uper }}\n"),
            ],
        ),
        (
            "others".to_owned(),
            vec![
                file("cuebook.toml", "[limits]\nfuel = 3000\n"),
                file("prompts/a.prompt", "---\nmodel: [\n---\nHi {{who}}\n"),
                file("prompts/b.prompt", "---\nmodel: openai/gpt-4o\n---\n{{#if who}}Hello {{whoo}}.\n"),
                file("skills/pdf/SKILL.md", "---\nname: PDF\n---\nUse it.\n"),
            ],
        ),
        (
            "providers".to_owned(),
            vec![file(".ai/config/providers/acme.yaml", "name: acme\napi: openai-chatt\n")],
        ),
    ]
}

/// The files that a page of the book shows in blocks `file NAME`, each as it is shown first.
fn shown_files(page: &str) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let fence: String = line.chars().take_while(|letter| *letter == '`').collect();
        let Some(name) = line[fence.len()..].strip_prefix("file ").filter(|_| fence.len() >= 3) else {
            continue;
        };
        let mut text = String::new();
        for line in lines.by_ref().take_while(|line| *line != fence) {
            text += line;
            text.push('\n');
        }
        let is_inside = !name.contains(['~', ' ', '\\']) && !name.starts_with('/') && !name.contains("..");
        if is_inside && files.iter().all(|(known, _)| known != name) {
            files.push((name.to_owned(), text));
        }
    }
    files
}

#[test]
fn check_and_the_service_agree_on_every_page_of_the_book() {
    use cuebook_lab::BookExt;
    use cuebook_lab::service::{Service, Survey};
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders =
        ["../cuebook-text/src/error/pages", "topics", "../../docs/src/guide", "../../docs/src/reference"];
    let pages = folders.iter().flat_map(|folder| std::fs::read_dir(here.join(folder)).unwrap());
    let mut pages: Vec<PathBuf> = pages.map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    let (mut projects, mut compared) = (0, 0);
    for page in pages.iter().filter(|page| page.extension().is_some_and(|end| end == "md")) {
        let files = shown_files(&std::fs::read_to_string(page).unwrap());
        if files.is_empty() {
            continue;
        }
        projects += 1;
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in &files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let open = || {
            let spaces = cuebook::items::Spaces::new(folder.path(), None);
            cuebook::Book::open(folder.path()).with_spaces(spaces).with_paths(true)
        };
        // A project whose settings are wrong has an error, and nothing else is looked at.
        let findings = match open().check(&[], |_| {}) {
            Ok(report) => report.findings,
            Err(error) => error.into_diagnostics(),
        };
        let said = |one: &cuebook::Diagnostic| {
            format!(
                "{} {} {:?} {}",
                one.code,
                one.severity,
                one.place.as_ref().map(|place| place.range()),
                one.message
            )
        };
        let mut wanted: Vec<String> = findings.iter().map(said).collect();
        wanted.sort();
        let mut service = Service::new(open());
        service.install(Survey::of(service.book(), service.buffers(), &[]));
        let reported = |service: &Service| {
            let files = service.files_with_findings();
            let mut reported: Vec<String> =
                files.iter().flat_map(|file| service.findings(file)).map(|one| said(&one)).collect();
            reported.sort();
            reported
        };
        assert_eq!(reported(&service), wanted, "{}", page.display());
        for (name, text) in &files {
            let path = folder.path().join(name);
            service.change(&path, format!("{text}{{{{ other").as_str());
            while service.work(4).is_some() {}
            service.change(&path, text.as_str());
        }
        while service.work(4).is_some() {}
        // Settings may have changed, so the whole library is looked at again.
        if service.take_stale() {
            service.install(Survey::of(service.book(), service.buffers(), &[]));
        }
        while service.work(4).is_some() {}
        assert_eq!(reported(&service), wanted, "{}, after changes", page.display());
        compared += wanted.len();
    }
    assert!(projects >= 150 && compared >= 60, "{projects} projects with {compared} findings");
}
