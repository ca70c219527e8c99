//! `cuebook lsp`, as an editor uses it: a raw client over stdin and stdout.

#![allow(clippy::unwrap_used, reason = "these are tests")]

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
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Editor::at_folder(folder)
    }

    fn at_folder(folder: tempfile::TempDir) -> Editor {
        let mut server = Command::new(env!("CARGO_BIN_EXE_cuebook"))
            .arg("lsp")
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (server.stdin.take(), BufReader::new(server.stdout.take().unwrap()));
        let mut editor = Editor { folder, server, input, output, next: 0, findings: Default::default() };
        let root = editor.uri("");
        let answer = editor.ask("initialize", json!({"rootUri": root, "capabilities": {}}));
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
    editor.at("hover", TEMPLATE, 0, 1, json!({}));
    assert_eq!(editor.codes(TEMPLATE), ["CB304"]);
    editor.did_change(TEMPLATE, "Hello {{ name }}");
    editor.at("hover", TEMPLATE, 0, 1, json!({}));
    assert_eq!(editor.codes(TEMPLATE), [""; 0]);
    editor.leave();
}

#[test]
fn files_that_are_not_open_are_surveyed_and_other_markdown_is_left_alone() {
    let mut editor = Editor::open(FILES);
    editor.did_open("notes.md", "{% if %}\n");
    while !editor.findings.contains_key(&editor.uri("prompts/broken/template.md")) {
        editor.hear();
    }
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
    for file in ["prompts/pipe/template.md", "prompts/device/template.md"] {
        while !editor.findings.contains_key(&editor.uri(file)) {
            editor.hear();
        }
        let answer = editor.at("hover", file, 0, 0, json!({}));
        assert!(answer["result"].is_null(), "{answer}");
    }
    let device =
        json!({"textDocument": {"uri": "file:///dev/zero"}, "position": {"line": 0, "character": 0}});
    assert_eq!(editor.ask("textDocument/hover", device)["result"], Json::Null);
    editor.leave();
}
