//! Wrong messages, nonsense, large files, many files and long sessions.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};

use super::{Editor, FILES, TEMPLATE, skip};

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
    // A debug build with a thousand texts and a file of 24 MB takes about 100 MB; what each change leaves behind would take more.
    #[cfg(target_os = "linux")]
    assert!(editor.memory() < 512 << 20, "{} bytes", editor.memory());
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
