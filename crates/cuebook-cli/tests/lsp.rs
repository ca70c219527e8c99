//! `cuebook lsp`, as an editor uses it: a raw client over stdin and stdout.

#![allow(clippy::unwrap_used, reason = "these are tests")]

#[path = "lsp/extension.rs"]
mod extension;
#[path = "lsp/names.rs"]
mod names;
#[path = "../../skip.rs"]
mod skip;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value as Json, json};

struct Editor {
    folder: tempfile::TempDir,
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
    /// Findings by file, as they were last published.
    findings: std::collections::BTreeMap<String, Vec<Json>>,
}

impl Editor {
    fn open(files: &[(&str, &str)]) -> Editor {
        Editor::at_folder(written(files))
    }

    fn at_folder(folder: tempfile::TempDir) -> Editor {
        let edit = json!({"documentChanges": true, "resourceOperations": ["create", "rename", "delete"]});
        Editor::start(folder, json!({"workspace": {"workspaceEdit": edit}}))
    }

    /// An editor that can change files and cannot create or move them.
    fn without_files(files: &[(&str, &str)]) -> Editor {
        Editor::start(written(files), json!({}))
    }

    /// An editor of a user whose own files lie elsewhere.
    fn of_other_user(files: &[(&str, &str)]) -> Editor {
        let folder = written(files);
        std::fs::create_dir(folder.path().join("home")).unwrap();
        let home = folder.path().join("home");
        Editor::with_home(folder, &home, json!({}))
    }

    fn start(folder: tempfile::TempDir, capabilities: Json) -> Editor {
        let home = folder.path().to_owned();
        Editor::with_home(folder, &home, capabilities)
    }

    fn with_home(folder: tempfile::TempDir, home: &Path, capabilities: Json) -> Editor {
        let mut server = Command::new(env!("CARGO_BIN_EXE_cuebook"))
            .arg("lsp")
            .current_dir(folder.path())
            .env("HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (server.stdin.take(), BufReader::new(server.stdout.take().unwrap()));
        let mut editor = Editor { folder, server, input, output, next: 0, findings: Default::default() };
        let root = editor.uri("");
        let answer = editor.ask("initialize", json!({"rootUri": root, "capabilities": capabilities}));
        assert_eq!(answer["result"]["serverInfo"]["name"], "cuebook");
        editor.say("initialized", json!({}));
        editor
    }

    fn uri(&self, file: &str) -> String {
        let path: PathBuf = self.folder.path().join(file);
        format!("file://{}", path.display())
    }

    fn send(&mut self, message: &Json) {
        let text = message.to_string();
        let input = self.input.as_mut().unwrap();
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        input.flush().unwrap();
    }

    /// Sends bytes that need not be a message.
    fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    fn say(&mut self, method: &str, params: Json) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// The next message; findings are noted.
    fn hear(&mut self) -> Json {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server has left");
            match line.trim_end().strip_prefix("Content-Length: ") {
                Some(number) => length = number.parse().unwrap(),
                None if line == "\r\n" => break,
                None => {}
            }
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes).unwrap();
        let message: Json = serde_json::from_slice(&bytes).unwrap();
        if message["method"] == "textDocument/publishDiagnostics" {
            let uri = message["params"]["uri"].as_str().unwrap().to_owned();
            let findings = message["params"]["diagnostics"].as_array().unwrap().clone();
            self.findings.insert(uri, findings);
        }
        message
    }

    fn ask(&mut self, method: &str, params: Json) -> Json {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.hear();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    fn did_open(&mut self, file: &str, text: &str) {
        let document = json!({"uri": self.uri(file), "languageId": "markdown", "version": 1, "text": text});
        self.say("textDocument/didOpen", json!({"textDocument": document}));
    }

    fn did_change(&mut self, file: &str, text: &str) {
        let document = json!({"uri": self.uri(file), "version": 2});
        self.say(
            "textDocument/didChange",
            json!({"textDocument": document, "contentChanges": [{"text": text}]}),
        );
    }

    /// Asks about a position; everything that was published before is known afterwards.
    fn at(&mut self, method: &str, file: &str, line: u64, character: u64, more: Json) -> Json {
        let mut params = json!({
            "textDocument": {"uri": self.uri(file)},
            "position": {"line": line, "character": character},
        });
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        self.ask(&format!("textDocument/{method}"), params)
    }

    /// Waits until everything has been looked at.
    fn settle(&mut self) {
        assert_eq!(self.ask("cuebook/settled", json!({}))["result"], Json::Null);
    }

    fn of(&mut self, method: &str, file: &str, more: Json) -> Json {
        let mut params = json!({"textDocument": {"uri": self.uri(file)}});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        self.ask(&format!("textDocument/{method}"), params)["result"].clone()
    }

    fn codes(&self, file: &str) -> Vec<&str> {
        let findings = self.findings.get(&self.uri(file)).map(Vec::as_slice).unwrap_or_default();
        findings.iter().map(|finding| finding["code"].as_str().unwrap()).collect()
    }

    fn leave(mut self) {
        let answer = self.ask("shutdown", Json::Null);
        assert_eq!(answer["result"], Json::Null);
        self.say("exit", Json::Null);
        self.input = None;
        assert!(self.server.wait().unwrap().success());
    }
}

/// A project with these files.
fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in files {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

const TEMPLATE: &str = "prompts/greet/template.md";
const FILES: &[(&str, &str)] = &[
    (TEMPLATE, "Hello {{ name }}!\n{% include \"parts/end.md\" %}\n"),
    ("prompts/greet/prompt.py", "VARIABLES = {\"required\": [{\"name\": \"name\", \"type\": \"string\"}]}\n"),
    ("prompts/parts/end.md", "Yours\n"),
    ("prompts/broken/template.md", "{{ x|uper }}\n"),
    ("notes.md", "{% if %}\n"),
];

#[test]
fn an_editor_gets_findings_completions_definitions_and_edits() {
    let mut editor = Editor::open(FILES);
    editor.did_open(TEMPLATE, "Hello {{ name }} 😀 {{ name|uper }}!\n{% include \"parts/end.md\" %}\n");
    // The emoji is two units of UTF-16: the column counts them.
    let hover = editor.at("hover", TEMPLATE, 0, 23, json!({}));
    assert!(hover["result"]["contents"]["value"].as_str().unwrap().contains("required string"), "{hover}");
    editor.settle();
    assert_eq!(editor.codes(TEMPLATE).len(), 1);
    let range = editor.findings[&editor.uri(TEMPLATE)][0]["range"].clone();
    assert_eq!(
        (&range["start"]["character"], &range["end"]["character"]),
        (&json!(28), &json!(32)),
        "{range}"
    );

    let document = json!({"uri": editor.uri(TEMPLATE)});
    let params = json!({"textDocument": document, "range": range, "context": {"diagnostics": []}});
    let actions = editor.ask("textDocument/codeAction", params);
    assert_eq!(actions["result"][0]["title"], "Replace `uper` with `upper`");
    let edits = &actions["result"][0]["edit"]["changes"][editor.uri(TEMPLATE)];
    assert_eq!((&edits[0]["newText"], &edits[0]["range"]), (&json!("upper"), &range));

    let offered = editor.at("completion", TEMPLATE, 0, 30, json!({}));
    assert!(offered["result"].as_array().unwrap().iter().any(|one| one["label"] == "upper"), "{offered}");
    let declared = editor.at("definition", TEMPLATE, 0, 10, json!({}));
    assert_eq!(declared["result"]["uri"], editor.uri("prompts/greet/prompt.py"));
    let part = editor.at("definition", TEMPLATE, 1, 14, json!({}));
    assert_eq!(part["result"]["uri"], editor.uri("prompts/parts/end.md"));
    let renamed = editor.at("rename", TEMPLATE, 0, 10, json!({"newName": "person"}));
    let changes = renamed["result"]["changes"].as_object().unwrap();
    assert_eq!(changes[&editor.uri(TEMPLATE)].as_array().unwrap().len(), 2, "{renamed}");
    assert_eq!(changes[&editor.uri("prompts/greet/prompt.py")].as_array().unwrap().len(), 1);
    let symbols =
        editor.ask("textDocument/documentSymbol", json!({"textDocument": {"uri": editor.uri(TEMPLATE)}}));
    assert_eq!(symbols["result"][0]["name"], "include parts/end.md");

    editor.did_change(TEMPLATE, "Hello {{ name");
    editor.settle();
    assert_eq!(editor.codes(TEMPLATE), ["CB304"]);
    editor.did_change(TEMPLATE, "Hello {{ name }}");
    editor.settle();
    assert_eq!(editor.codes(TEMPLATE), [""; 0]);
    editor.leave();
}

#[test]
fn closed_prompts_are_checked_and_other_markdown_is_ignored() {
    let mut editor = Editor::open(FILES);
    editor.did_open("notes.md", "{% if %}\n");
    editor.settle();
    assert_eq!(editor.codes("prompts/broken/template.md").len(), 1);
    assert!(!editor.findings.contains_key(&editor.uri("notes.md")));
    editor.leave();
}

#[test]
fn wrong_messages_are_answered_and_do_not_end_the_server() {
    let mut editor = Editor::open(FILES);
    let unknown = editor.ask("textDocument/nothing", json!({"textDocument": {"uri": editor.uri(TEMPLATE)}}));
    assert_eq!(unknown["error"]["code"], -32601);
    assert_eq!(editor.ask("nothing/atAll", Json::Null)["error"]["code"], -32601);
    let untitled = json!({"textDocument": {"uri": "untitled:1"}, "position": {"line": 0, "character": 0}});
    assert_eq!(editor.ask("textDocument/hover", untitled)["result"], Json::Null);
    editor.say("textDocument/didOpen", json!({"textDocument": {"uri": 7}}));
    editor.say(
        "textDocument/didChange",
        json!({"textDocument": {"uri": editor.uri(TEMPLATE)}, "contentChanges": []}),
    );
    editor.say("textDocument/didClose", json!({"textDocument": {"uri": "file:///nowhere/at/all.md"}}));
    let far = editor.at("completion", TEMPLATE, 9_999_999, 9_999_999, json!({}));
    assert!(far["result"].is_array(), "{far}");
    let refused = editor.at("rename", TEMPLATE, 0, 10, json!({"newName": "two words"}));
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("not the name of a variable"),
        "{refused}"
    );
    std::fs::remove_dir_all(editor.folder.path().join("prompts")).unwrap();
    editor.did_open(TEMPLATE, "Hello {{ name }}");
    editor.at("hover", TEMPLATE, 0, 10, json!({}));
    editor.leave();
}

#[test]
fn an_unreadable_message_is_answered_and_the_next_one_read() {
    let mut editor = Editor::open(FILES);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let framed = |text: &str| format!("Content-Length: {}\r\n\r\n{text}", text.len()).into_bytes();
    let frames: [(i64, Vec<u8>); 9] = [
        (-32700, framed("{nope")),
        (-32700, b"Content-Length: 4\r\n\r\n\xff\xfe{}".to_vec()),
        (-32700, framed(&deep)),
        (-32700, b"Content-Length: x\r\n\r\n{}".to_vec()),
        (-32700, b"X: 1\r\n\r\n".to_vec()),
        (-32600, framed("[]")),
        (-32600, framed("7")),
        (-32600, framed("{}")),
        (-32600, framed("{\"jsonrpc\": \"2.0\", \"id\": {}, \"method\": \"workspace/symbol\"}")),
    ];
    editor.settle();
    for (code, bytes) in frames {
        editor.send_bytes(&bytes);
        let mut answer = editor.hear();
        while answer.get("method").is_some() {
            answer = editor.hear();
        }
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Json::Null, &json!(code)), "{shown}");
        assert!(editor.ask("workspace/symbol", json!({"query": "gr"}))["result"].is_array(), "{shown}");
    }
    editor.leave();
}

#[test]
fn an_editor_that_leaves_early_is_no_error() {
    for input in [&b""[..], b"Content-Length: 3\r\n\r\n{", b"nonsense"] {
        let mut server = Command::new(env!("CARGO_BIN_EXE_cuebook"))
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        server.stdin.take().unwrap().write_all(input).unwrap();
        let output = server.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stderr.is_empty());
    }
}

#[test]
fn no_code_of_the_project_runs() {
    let mark = "open('ran', 'w').close()\n";
    let mut editor = Editor::open(&[
        ("prompts/p/template.md", "{{ x }}\n"),
        ("prompts/p/prompt.py", &format!("{mark}def pre_render(context):\n    {mark}    return context\n")),
    ]);
    editor.did_open("prompts/p/template.md", "{{ x }} {{ y }}\n");
    editor.at("hover", "prompts/p/template.md", 0, 4, json!({}));
    let ran = |folder: &Path| folder.join("ran").exists() || folder.join("prompts/p/ran").exists();
    assert!(!ran(editor.folder.path()));
    editor.leave();
}

#[test]
fn every_feature_answers() {
    let mut editor = Editor::open(&[
        (
            TEMPLATE,
            "Hello {{ name|replace(\"a\", \"b\") }}!\n{% if name %}\n{% include \"parts/end.md\" %}\n{% endif %}\n",
        ),
        (
            "prompts/greet/prompt.py",
            "VARIABLES = {\"required\": [{\"name\": \"name\", \"type\": \"string\"}]}\n",
        ),
        (
            "prompts/greet/tests.md",
            "## greets\n\n```yaml inputs\nname: Ada\n```\n\n```text contains\nHello\n```\n",
        ),
        ("prompts/parts/end.md", "Yours, {{ name }}\n"),
        (
            "prompts/p.prompty",
            "---\nname:   p\ninputs:\n  - name: x\n    kind: string\n---\nsystem:\n{{ x }} {{ y }}\n",
        ),
    ]);
    editor.settle();
    let tokens = editor.of("semanticTokens/full", TEMPLATE, json!({}));
    assert_eq!(
        tokens["data"].as_array().unwrap()[..5],
        [json!(0), json!(9), json!(4), json!(1), json!(0)],
        "{tokens}"
    );
    let folds = editor.of("foldingRange", TEMPLATE, json!({}));
    assert_eq!(folds, json!([{"startLine": 1, "endLine": 2}]));
    let hints = editor.of("inlayHint", TEMPLATE, json!({"range": {}}));
    assert_eq!(hints[0]["label"], "6 tokens", "{hints}");
    let lenses = editor.of("codeLens", TEMPLATE, json!({}));
    assert_eq!(
        (&lenses[0]["command"]["command"], &lenses[1]["command"]["command"]),
        (&json!("cuebook.preview"), &json!("cuebook.explain"))
    );
    let cases = editor.of("codeLens", "prompts/greet/tests.md", json!({}));
    assert_eq!(cases[0]["command"]["arguments"][1], "greets", "{cases}");
    let help = editor.at("signatureHelp", TEMPLATE, 0, 24, json!({}));
    assert_eq!(help["result"]["activeParameter"], 0, "{help}");
    assert!(help["result"]["signatures"][0]["label"].as_str().unwrap().starts_with("replace("), "{help}");
    let found = editor.ask("workspace/symbol", json!({"query": "gr"}));
    assert_eq!(found["result"][0]["name"], "greet", "{found}");
    let edits = editor.of("formatting", "prompts/p.prompty", json!({"options": {}}));
    assert_eq!(edits[0]["newText"], "name: p\ninputs:\n  - name: x\n    kind: string\n", "{edits}");
    let page = editor.ask("cuebook/page", json!({"uri": "cuebook:/CB402.md"}));
    assert!(page["result"].as_str().unwrap().starts_with("# CB402"), "{page}");
    // A variable that is not declared can be declared, and a selection can become a partial.
    let range = json!({"start": {"line": 7, "character": 8}, "end": {"line": 7, "character": 15}});
    let actions = editor.of("codeAction", "prompts/p.prompty", json!({"range": range, "context": {}}));
    let titles: Vec<&str> =
        actions.as_array().unwrap().iter().map(|one| one["title"].as_str().unwrap()).collect();
    assert!(titles.contains(&"Declare the variable `y`"), "{actions}");
    assert!(titles.contains(&"Extract the selection to a partial"), "{actions}");
    let codes = &editor.findings[&editor.uri("prompts/p.prompty")][0];
    assert_eq!(codes["codeDescription"]["href"], "cuebook:/CB402.md", "{codes}");
    // The rename of a variable is one edit of the template, the partial, the definition and the cases.
    let renamed = editor.at("rename", TEMPLATE, 0, 11, json!({"newName": "person"}));
    let files: Vec<&String> = renamed["result"]["changes"].as_object().unwrap().keys().collect();
    let wanted = ["prompts/greet/prompt.py", TEMPLATE, "prompts/greet/tests.md", "prompts/parts/end.md"];
    assert_eq!(files, wanted.map(|file| editor.uri(file)).iter().collect::<Vec<_>>(), "{renamed}");
    // What the preview shows leads back to the file, byte for byte.
    let preview = editor.ask("cuebook/preview", json!({"textDocument": {"uri": editor.uri(TEMPLATE)}}));
    let parts = preview["result"]["parts"].as_array().unwrap();
    assert_eq!(
        (&parts[0]["text"], &parts[0]["location"]["uri"]),
        (&json!("Hello "), &json!(editor.uri(TEMPLATE)))
    );
    let values: Vec<(&Json, &Json)> = parts[1..4].iter().map(|part| (&part["text"], &part["kind"])).collect();
    let (value, literal) = (json!("value"), json!("literal"));
    // The `b` is a literal of the template's `replace`.
    let wanted = [(&json!("‹n"), &value), (&json!("b"), &literal), (&json!("me›"), &value)];
    assert_eq!(values, wanted, "{preview}");
    editor.leave();
}

#[test]
fn half_typed_text_has_symbols_and_completions() {
    let text = "{% block a %}{{ name|uper }}{% endblock %}\n{% macro m(x) %}{{ x }}{% endmacro %}\n{{ na";
    let mut editor = Editor::open(FILES);
    editor.did_open(TEMPLATE, text);
    editor.settle();
    let mut codes = editor.codes(TEMPLATE);
    codes.sort_unstable();
    // The name that is half typed is not declared by the prompt.
    assert_eq!(codes, ["CB304", "CB316", "CB402"]);
    let symbols = editor.of("documentSymbol", TEMPLATE, json!({}));
    let names: Vec<&str> =
        symbols.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "m"]);
    let offered = editor.at("completion", TEMPLATE, 2, 5, json!({}));
    assert!(offered["result"].as_array().unwrap().iter().any(|one| one["label"] == "name"), "{offered}");
    // Front matter that cannot be read yet has completions, too.
    let front = "---\nname: p\ninputs:\n  - name: x\n    ki";
    editor.did_open("prompts/new.prompty", front);
    let offered = editor.at("completion", "prompts/new.prompty", 4, 6, json!({}));
    assert_eq!(offered["result"][0]["label"], "kind", "{offered}");
    editor.leave();
}

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

/// Numbers that look like chance and are the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

#[test]
fn nonsense_neither_ends_nor_confuses_the_server() {
    let mut editor = Editor::open(FILES);
    let mut chance = Chance(26);
    let methods = [
        "hover",
        "definition",
        "references",
        "rename",
        "completion",
        "signatureHelp",
        "documentSymbol",
        "documentLink",
        "foldingRange",
        "semanticTokens/full",
        "inlayHint",
        "codeLens",
        "formatting",
        "codeAction",
        "prepareRename",
        "documentHighlight",
    ];
    let pieces = [
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "name",
        "|",
        "(",
        ")",
        "\"",
        "'",
        "\n",
        "é",
        "😀",
        "---\n",
        "if",
        "for x in",
        "endif",
        "block a",
        "include",
        "$x",
        "${",
        "{input:",
        "<input ",
        "```xml\n",
        "\r\n",
        "system:\n",
        "\u{feff}",
    ];
    let files = [
        TEMPLATE,
        "prompts/greet/prompt.py",
        "prompts/new.prompty",
        "prompts/s.sections.md",
        "prompts/greet/tests.md",
    ];
    // Of no length that is longer than what follows: a message that is announced is waited for.
    let frame_starts = [
        "",
        "Content-Length: x\r\n",
        "Content-Length: 0\r\n\r\n",
        "Content-Length: 2\r\n\r\n[]",
        "X: 1\r\n\r\n",
        "\r\n{\"id\":",
    ];
    let odd = [json!(null), json!(-1), json!("x"), json!([]), json!({}), json!(1e300), json!(u64::MAX)];
    for _ in 0..400 {
        let file = files[chance.below(files.len() as u64) as usize];
        let count = chance.below(12);
        let text: String = (0..count).map(|_| pieces[chance.below(pieces.len() as u64) as usize]).collect();
        match chance.below(9) {
            8 => {
                // Bytes that may be a header, a message or neither; what follows is read.
                let mut bytes =
                    frame_starts[chance.below(frame_starts.len() as u64) as usize].as_bytes().to_vec();
                bytes.extend((0..chance.below(20)).map(|_| chance.below(256) as u8));
                editor.send_bytes(&bytes);
            }
            0 => editor.did_open(file, &text),
            1 => editor.did_change(file, &text),
            2 => {
                let position =
                    |chance: &mut Chance| json!({"line": chance.below(4), "character": chance.below(20)});
                let range = json!({"start": position(&mut chance), "end": position(&mut chance)});
                let change = json!({"range": range, "text": text});
                let params = json!({"textDocument": {"uri": editor.uri(file), "version": 3}, "contentChanges": [change]});
                editor.say("textDocument/didChange", params);
            }
            3 => editor.say("textDocument/didClose", json!({"textDocument": {"uri": editor.uri(file)}})),
            4 => {
                // Anything in the place of what the protocol wants.
                let mut any = || odd[chance.below(odd.len() as u64) as usize].clone();
                let params = json!({"textDocument": any(), "position": any(), "range": any(), "contentChanges": any()});
                editor.say("textDocument/didChange", params.clone());
                editor.say("workspace/didChangeWatchedFiles", json!({"changes": any()}));
                editor.ask("textDocument/hover", params);
            }
            _ => {
                let method = methods[chance.below(methods.len() as u64) as usize];
                let position = json!({"line": chance.below(4), "character": chance.below(30)});
                let range = json!({"start": position, "end": {"line": 9, "character": 0}});
                let params = json!({
                    "textDocument": {"uri": editor.uri(file)},
                    "position": position,
                    "range": range,
                    "newName": "other",
                    "context": {"diagnostics": []},
                });
                let answer = editor.ask(&format!("textDocument/{method}"), params);
                assert!(answer.get("result").is_some() || answer["error"]["code"] == -32803, "{answer}");
            }
        }
    }
    // After all that it is right about what is there now.
    for file in files {
        editor.say("textDocument/didClose", json!({"textDocument": {"uri": editor.uri(file)}}));
    }
    editor.did_open(TEMPLATE, "Hello {{ name|uper }}");
    editor.settle();
    assert_eq!(editor.codes(TEMPLATE), ["CB316"]);
    editor.leave();
}

#[test]
fn many_open_files_a_huge_file_and_a_deleted_folder_work() {
    let names: Vec<String> = (0..1_000).map(|number| format!("prompts/p{number:04}/template.md")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "Hello {{ name }}\n")).collect();
    let mut editor = Editor::open(&files);
    // An editor reads while it writes; this one reads now and then, so that the pipes stay open.
    for (number, name) in names.iter().enumerate() {
        editor.did_open(name, "Hello {{ name|uper }}\n");
        if number % 50 == 0 {
            editor.settle();
        }
    }
    editor.settle();
    assert_eq!(editor.codes(&names[999]), ["CB316"]);
    let huge = "x {{ name }}\n".repeat(2_000_000);
    editor.did_open(&names[0], &huge);
    editor.settle();
    for number in 0..300 {
        editor.did_change(&names[1], "Hello {{ name|uper }} {{");
        editor.did_change(&names[1], "Hello {{ name|upper }}");
        if number % 25 == 0 {
            editor.settle();
        }
    }
    editor.settle();
    assert_eq!(editor.codes(&names[1]), [""; 0]);
    std::fs::remove_dir_all(editor.folder.path().join("prompts")).unwrap();
    for (number, name) in names.iter().enumerate() {
        editor.say("textDocument/didClose", json!({"textDocument": {"uri": editor.uri(name)}}));
        if number % 50 == 0 {
            editor.settle();
        }
    }
    let gone = json!({"uri": editor.uri(&names[2]), "type": 3});
    editor.say("workspace/didChangeWatchedFiles", json!({"changes": [gone]}));
    editor.settle();
    editor.at("hover", &names[3], 0, 10, json!({}));
    editor.leave();
}

#[test]
fn an_open_file_has_findings_however_many_other_files_have_some() {
    let names: Vec<String> = (0..2_050).map(|number| format!("prompts/p{number:04}/template.md")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "{{ name|uper }}\n")).collect();
    let mut editor = Editor::open(&files);
    editor.settle();
    let silent: Vec<&String> = names.iter().filter(|name| editor.codes(name).is_empty()).collect();
    let name = silent.first().unwrap().to_string();
    editor.did_open(&name, "{{ name|uper }} {{ name|lowr }}\n");
    editor.settle();
    assert_eq!(editor.codes(&name), ["CB316", "CB316"]);
    editor.leave();
}

/// The version of the client that the test below installs.
const CLIENT: &str = "1.0.1";

/// A Python that has the client, in an environment below the build folder.
fn client() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pytest-lsp-{CLIENT}"));
    let (python, done) = (folder.join("bin/python"), folder.join("installed"));
    if done.exists() {
        return Ok(python);
    }
    let run = |command: &mut Command| match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(error.to_string()),
    };
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let package = format!("pytest-lsp=={CLIENT}");
    run(Command::new(&python).args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        &package,
    ]))?;
    std::fs::write(done, "").map_err(|error| error.to_string())?;
    Ok(python)
}

#[test]
fn a_real_client_gets_typed_answers_and_no_memory_leaks() {
    let python = match client() {
        Ok(python) => python,
        Err(why) => return skip::missing_peer(format!("pytest-lsp {CLIENT}: {why}")),
    };
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in FILES {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lsp/soak.py");
    let output = Command::new(python)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(script)
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .env("CUEBOOK_PROJECT", folder.path())
        .env("CUEBOOK_PROGRAM", env!("CARGO_BIN_EXE_cuebook"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
#[cfg(unix)]
fn pipes_and_devices_of_a_project_do_not_stop_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let prompts = folder.path().join("prompts");
    for name in ["pipe", "device", "plain"] {
        std::fs::create_dir_all(prompts.join(name)).unwrap();
    }
    let pipe = prompts.join("pipe/template.md");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", prompts.join("device/template.md")).unwrap();
    std::fs::write(prompts.join("plain/template.md"), "{{ name|uper }}\n").unwrap();
    let mut editor = Editor::at_folder(folder);
    editor.settle();
    for file in ["prompts/pipe/template.md", "prompts/device/template.md"] {
        assert!(editor.findings.contains_key(&editor.uri(file)), "{file}");
        let answer = editor.at("hover", file, 0, 0, json!({}));
        assert!(answer["result"].is_null(), "{answer}");
    }
    let device =
        json!({"textDocument": {"uri": "file:///dev/zero"}, "position": {"line": 0, "character": 0}});
    assert_eq!(editor.ask("textDocument/hover", device)["result"], Json::Null);
    editor.leave();
}
