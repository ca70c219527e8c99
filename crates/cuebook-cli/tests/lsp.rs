//! `cuebook lsp`, as an editor uses it: a raw client over stdin and stdout.

#![allow(clippy::unwrap_used, reason = "these are tests")]

#[path = "lsp/agreement.rs"]
mod agreement;
#[path = "lsp/careful.rs"]
mod careful;
#[path = "lsp/dialects.rs"]
mod dialects;
#[path = "lsp/editors.rs"]
mod editors;
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
        let mut params = json!({"rootUri": root, "capabilities": capabilities});
        let folders = capabilities["folders"].as_array().into_iter().flatten();
        let folders: Vec<Json> =
            folders.map(|name| json!({"uri": editor.uri(name.as_str().unwrap()), "name": name})).collect();
        if !folders.is_empty() {
            params["workspaceFolders"] = Json::from(folders);
        }
        let answer = editor.ask("initialize", params);
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

    /// The memory of the server in bytes.
    #[cfg(target_os = "linux")]
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().split(' ').next().unwrap().parse::<u64>().unwrap() << 10
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
fn each_folder_of_a_workspace_has_its_own_library() {
    let files = [
        ("a/cuebook.toml", ""),
        ("a/prompts/p/template.md", "{{ x|uper }}{% include \"parts/end.md\" %}\n"),
        ("a/prompts/parts/end.md", "A\n"),
        ("b/cuebook.toml", ""),
        ("b/prompts/p/template.md", "{{ x|lowr }}{% include \"parts/end.md\" %}\n"),
        ("b/prompts/parts/end.md", "B\n"),
        ("c/cuebook.toml", ""),
        ("c/prompts/q/template.md", "{{ x|titel }}\n"),
    ];
    let mut editor = Editor::start(written(&files), json!({"folders": ["a", "b"]}));
    editor.settle();
    for folder in ["a", "b"] {
        let file = format!("{folder}/prompts/p/template.md");
        assert_eq!(editor.codes(&file), ["CB316"]);
        let part = editor.at("definition", &file, 0, 26, json!({}));
        assert_eq!(part["result"]["uri"], editor.uri(&format!("{folder}/prompts/parts/end.md")));
    }
    let names = |editor: &mut Editor| {
        editor.ask("workspace/symbol", json!({"query": ""}))["result"].as_array().unwrap().len()
    };
    assert_eq!(names(&mut editor), 2);
    // A folder comes, with a text that is open already, and another one goes.
    editor.did_open("c/prompts/q/template.md", "{{ x|titel }}{{ x|uper }}\n");
    let folder = |editor: &Editor, name: &str| json!([{"uri": editor.uri(name), "name": name}]);
    let event = json!({"added": folder(&editor, "c"), "removed": folder(&editor, "a")});
    editor.say("workspace/didChangeWorkspaceFolders", json!({"event": event}));
    editor.settle();
    assert_eq!(editor.codes("c/prompts/q/template.md"), ["CB316", "CB316"]);
    assert_eq!(editor.codes("a/prompts/p/template.md"), [""; 0]);
    assert_eq!(editor.codes("b/prompts/p/template.md"), ["CB316"]);
    assert_eq!(names(&mut editor), 2);
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

#[test]
fn every_half_typed_tag_has_its_own_finding() {
    let mut editor = Editor::open(FILES);
    editor.did_open(
        TEMPLATE,
        "{{ name. }} {{ f( }} text
{{ name| }} {{ name }}",
    );
    editor.settle();
    let found = &editor.findings[&editor.uri(TEMPLATE)];
    let at = |one: &Json| {
        (one["range"]["start"]["line"].as_u64().unwrap(), one["code"].as_str().unwrap().to_owned())
    };
    let syntax: Vec<u64> =
        found.iter().map(at).filter(|(_, code)| code == "CB304").map(|(line, _)| line).collect();
    assert_eq!(syntax, [0, 0, 1], "{found:?}");
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
