//! The calls of the page, and attacks on them.

use std::io::{Read, Write};
use std::process::Command;

use serde_json::{Value as Json, json};

use crate::server::{Studio, runs, write};
use crate::skip;

const GREETING: &[(&str, &str)] = &[
    ("prompts/greeting/template.md", "Hello {{ name }}.\n{% include \"partials/tone.md\" %}\n"),
    ("prompts/partials/tone.md", "Be kind.\n"),
];

#[test]
fn only_a_page_of_this_server_with_the_token_is_answered() {
    let studio = Studio::of(GREETING, &[]);
    let (port, token) = (studio.port, &studio.token);
    let status = |head: &str| studio.send(head, "{}").0;
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let post = "POST /api/prompts HTTP/1.1\r\n";
    assert_eq!(status(&format!("{post}{host}{bearer}")), 200);
    assert_eq!(
        status(&format!(
            "{post}{host}{bearer}Origin: http://127.0.0.1:{port}\r\nSec-Fetch-Site: same-origin\r\n"
        )),
        200
    );
    for (what, head, expected) in [
        ("no token", format!("{post}{host}"), 401),
        ("a wrong token", format!("{post}{host}Authorization: Bearer {}\r\n", "0".repeat(64)), 401),
        ("the token in the address", format!("POST /api/prompts?token={token} HTTP/1.1\r\n{host}"), 401),
        ("another name", format!("{post}Host: evil.example:{port}\r\n{bearer}"), 403),
        ("another origin", format!("{post}{host}{bearer}Origin: https://evil.example\r\n"), 403),
        ("a page of another port", format!("{post}{host}{bearer}Origin: http://127.0.0.1:1\r\n"), 403),
        ("no origin at all", format!("{post}{host}{bearer}Origin: null\r\n"), 403),
        ("a cross-site request", format!("{post}{host}{bearer}Sec-Fetch-Site: cross-site\r\n"), 403),
        ("a page of the same site", format!("{post}{host}{bearer}Sec-Fetch-Site: same-site\r\n"), 403),
        ("GET", format!("GET /api/prompts HTTP/1.1\r\n{host}{bearer}"), 405),
        ("an unknown call", format!("POST /api/sign HTTP/1.1\r\n{host}{bearer}"), 404),
        ("a file of the project", format!("GET /cuebook.toml HTTP/1.1\r\n{host}{bearer}"), 404),
        ("a path out of the page", format!("GET /../etc/passwd HTTP/1.1\r\n{host}"), 401),
        (
            "a preflight",
            format!(
                "OPTIONS /api/prompts HTTP/1.1\r\n{host}Origin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\n"
            ),
            403,
        ),
    ] {
        assert_eq!(status(&head), expected, "{what}");
    }
}

/// The head of a request for a web socket, with the key of RFC 6455.
fn socket_head(port: u16, protocols: &str) -> String {
    format!(
        "GET /api/live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: {protocols}\r\n"
    )
}

#[test]
fn the_live_line_needs_the_token_and_answers_calls() {
    let studio = Studio::of(GREETING, &[]);
    let (port, token) = (studio.port, &studio.token);
    let good = socket_head(port, &format!("cuebook, {token}"));
    let plain = format!(
        "GET /api/live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nContent-Length: 0\r\n"
    );
    for (what, head, expected) in [
        ("no token", socket_head(port, "cuebook"), 401),
        ("a wrong token", socket_head(port, &format!("cuebook, {}", "0".repeat(64))), 401),
        ("the token in another place", socket_head(port, &format!("{token}, cuebook")), 401),
        ("another name", good.replace("Host: 127.0.0.1", "Host: evil.example"), 403),
        ("another origin", format!("{good}Origin: https://evil.example\r\n"), 403),
        ("a page of another port", format!("{good}Origin: http://127.0.0.1:1\r\n"), 403),
        ("a cross-site request", format!("{good}Sec-Fetch-Site: cross-site\r\n"), 403),
        ("no web socket", plain, 426),
    ] {
        assert_eq!(studio.send(&head, "").0, expected, "{what}");
    }
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "{good}Origin: http://127.0.0.1:{port}\r\nSec-Fetch-Site: same-origin\r\n\r\n").unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.starts_with("http/1.1 101") && head.contains("s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
    // Frames of texts. A client masks what it sends; a mask of zeros changes nothing.
    let mut writer = stream.try_clone().unwrap();
    let mut send = |text: &str| {
        let length = u16::try_from(text.len()).unwrap().to_be_bytes();
        writer
            .write_all(&[&[0x81, 0x80 | 126, length[0], length[1], 0, 0, 0, 0], text.as_bytes()].concat())
            .unwrap();
    };
    let mut read = || {
        let mut head = [0; 2];
        stream.read_exact(&mut head).unwrap();
        let length = match head[1] {
            126 => {
                let mut long = [0; 2];
                stream.read_exact(&mut long).unwrap();
                usize::from(u16::from_be_bytes(long))
            }
            short => usize::from(short),
        };
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        (head[0], body)
    };
    let padding = " ".repeat(200);
    let mut call = |request: Json| {
        send(&format!("{request}{padding}"));
        let (kind, body) = read();
        assert_eq!(kind, 0x81);
        serde_json::from_slice::<Json>(&body).unwrap()
    };
    let arguments = json!({"id": "greeting", "values": {"name": "Ada"}, "texts": {"prompts/partials/tone.md": "Be brief.\n"}});
    let answer = call(json!({"id": 7, "call": "render", "arguments": arguments}));
    assert_eq!(answer["id"], 7);
    assert_eq!(answer["document"]["explanation"]["text"], "Hello Ada.\nBe brief.", "{answer}");
    let answer = call(json!({"id": 8, "call": "render", "arguments": {"id": "nothing"}}));
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(8), &json!("CB101")), "{answer}");
    let answer = call(json!({"id": 9, "call": "no/such/call"}));
    assert_eq!((&answer["id"], &answer["error"]["message"]), (&json!(9), &json!("there is no such call")));
    // A call that waits keeps no other waiting.
    let answer = call(json!({"id": 10, "call": "editor/open"}));
    let editor = &answer["document"]["editor"];
    send(&format!(
        "{}{padding}",
        json!({"id": 11, "call": "editor/receive", "arguments": {"editor": editor}})
    ));
    send(&format!("{}{padding}", json!({"id": 12, "call": "project"})));
    let first: Json = serde_json::from_slice(&read().1).unwrap();
    assert_eq!(first["id"], 12);
    // Other text than JSON ends the line.
    send(&format!("nonsense{padding}"));
    assert_eq!(read().0, 0x88);
}

#[test]
fn the_page_comes_with_a_strict_policy() {
    let studio = Studio::of(GREETING, &[]);
    for part in ["/", "/app.js", "/line.js", "/app.css"] {
        let (status, head, _) =
            studio.send(&format!("GET {part} HTTP/1.1\r\nHost: localhost:{}\r\n", studio.port), "");
        assert_eq!(status, 200, "{part}");
        for wanted in
            ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "no-referrer", "nosniff"]
        {
            assert!(head.contains(wanted), "{part}: {wanted} in {head}");
        }
        // Together they keep other pages away from the memory of this one.
        for name in
            ["opener-policy: same-origin", "embedder-policy: require-corp", "resource-policy: same-origin"]
        {
            assert!(head.contains(&format!("cross-origin-{name}")), "{part}: {name} in {head}");
        }
        assert!(!head.contains("unsafe") && !head.to_lowercase().contains("access-control"), "{head}");
    }
}

#[test]
fn unsaved_text_renders_with_origins() {
    let studio = Studio::of(GREETING, &[]);
    let (status, answer) = studio.call("render", &json!({
        "id": "greeting", "values": {"name": "Ada"}, "want": ["messages", "wire", "tokens"], "wire": "openai",
        "texts": {"prompts/partials/tone.md": "Be brief.\n"},
    }));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["explanation"]["text"], "Hello Ada.\nBe brief.", "{answer}");
    let spans = answer["explanation"]["spans"].as_array().unwrap();
    assert!(spans.iter().any(|span| span["origin"]["file"] == "prompts/partials/tone.md"));
    assert!(spans.iter().any(|span| span["origin"]["variables"][0]["path"] == "name"));
    assert_eq!(answer["messages"][0]["role"], "system");
    assert!(answer["tokens"]["total"].as_u64().unwrap() > 3);
    // A half-typed tag is an error inside the answer, with its place, and the definition stays.
    let (_, broken) = studio
        .call("render", &json!({"id": "greeting", "texts": {"prompts/greeting/template.md": "Hello {{ na"}}));
    assert_eq!(broken["error"]["file"], "prompts/greeting/template.md", "{broken}");
    // A variable without a value has a placeholder.
    let (_, open) = studio.call("render", &json!({"id": "greeting"}));
    assert!(open["explanation"]["text"].as_str().unwrap().starts_with("Hello "), "{open}");
}

#[test]
fn a_file_that_changed_meanwhile_is_not_overwritten() {
    let studio = Studio::of(GREETING, &[]);
    let file = "prompts/partials/tone.md";
    let (_, read) = studio.call("file", &json!({"file": file}));
    assert_eq!(read["text"], "Be kind.\n");
    write(studio.project.path(), file, "Be bold.\n");
    let (_, saved) = studio.call("save", &json!({"file": file, "text": "Be mine.\n", "hash": read["hash"]}));
    assert_eq!(saved["conflict"]["text"], "Be bold.\n", "{saved}");
    assert_eq!(std::fs::read_to_string(studio.project.path().join(file)).unwrap(), "Be bold.\n");
    let (_, saved) =
        studio.call("save", &json!({"file": file, "text": "Be mine.\n", "hash": saved["conflict"]["hash"]}));
    assert!(saved["hash"].is_string(), "{saved}");
    assert_eq!(std::fs::read_to_string(studio.project.path().join(file)).unwrap(), "Be mine.\n");
}

#[test]
fn calls_reach_only_files_of_prompts_in_the_project() {
    let studio = Studio::of(GREETING, &[]);
    let root = studio.project.path();
    write(studio.home.path(), "secret.md", "secret");
    std::os::unix::fs::symlink(studio.home.path().join("secret.md"), root.join("prompts/link.md")).unwrap();
    std::os::unix::fs::symlink(studio.home.path(), root.join("prompts/home")).unwrap();
    let secret = studio.home.path().join("secret.md");
    for file in [
        "/etc/passwd",
        "../secret.md",
        "prompts/../../secret.md",
        "prompts/link.md",
        "prompts/home/secret.md",
        "cuebook.toml",
        ".env",
        ".git/config.md",
        ".ai/config/keys/trusted/x.md",
        "prompts/x.toml",
        "",
        secret.to_str().unwrap(),
    ] {
        for call in ["file", "save"] {
            let (status, answer) = studio.call(call, &json!({"file": file, "text": "x", "hash": null}));
            assert_eq!(status, 422, "{call} {file}: {answer}");
        }
        let (status, _) = studio.call("render", &json!({"id": "greeting", "texts": {file: "x"}}));
        assert_eq!(status, 422, "render with a text of {file}");
    }
    let (status, answer) = studio.call("render", &json!({"id": "/etc/passwd"}));
    assert_eq!(status, 422, "{answer}");
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "secret");
}

#[test]
fn a_decision_is_recorded_as_the_command_line_records_it() {
    let studio = Studio::of(
        &[
            ("prompts/greeting/template.md", "Mine."),
            (
                "user_data/packs/pk/pack.json",
                r#"{"pack_id": "pk", "name": "Pk", "version": "1.0.0", "prompts": ["greeting"]}"#,
            ),
            ("user_data/packs/pk/prompts/greeting/template.md", "Theirs."),
        ],
        &[],
    );
    let (_, conflict) = studio.call("candidates", &json!({"id": "greeting"}));
    let texts: Vec<&str> =
        conflict["candidates"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["Mine.", "Theirs."], "{conflict}");
    let source = conflict["candidates"][1]["source"].as_str().unwrap();
    assert_eq!(studio.call("resolve", &json!({"id": "greeting", "source": source})).0, 200);
    let output = Command::new(env!("CARGO_BIN_EXE_cuebook"))
        .args(["render", "greeting", "--root"])
        .arg(studio.project.path())
        .env("HOME", studio.home.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "Theirs.");
}

#[test]
fn a_request_that_changed_since_it_was_shown_is_not_granted() {
    let studio = Studio::of(&[("cuebook.toml", "[hooks]\nsandbox = \"none\"\n")], &[]);
    let (_, asked) = studio.call("requests", &json!({}));
    let request = asked["requests"][0].clone();
    assert_eq!(request["state"], "new", "{asked}");
    let mut other = request.clone();
    other["shown"] = json!("something harmless");
    assert_eq!(studio.call("grant", &other).0, 422);
    assert_eq!(studio.call("requests", &json!({})).1["requests"][0]["state"], "new");
    let (status, granted) = studio.call("grant", &request);
    assert_eq!((status, &granted["requests"][0]["state"]), (200, &json!("granted")), "{granted}");
}

/// A project with a pack beside it that replaces a prompt.
fn with_pack() -> (Studio, tempfile::TempDir) {
    let pack = tempfile::tempdir().unwrap();
    write(
        pack.path(),
        "pack.json",
        r#"{"pack_id": "pk", "name": "Pk", "version": "1.0.0", "prompts": ["hello"], "replaces": {"prompts": {"greeting": "hello"}}}"#,
    );
    write(pack.path(), "prompts/hello/template.md", "Theirs.");
    (Studio::of(GREETING, &[]), pack)
}

#[test]
fn a_pack_is_installed_as_it_was_shown() {
    let (studio, pack) = with_pack();
    let path = pack.path().to_str().unwrap();
    let (_, shown) = studio.call("packs/install", &json!({"path": path}));
    assert_eq!(shown["proposals"][0]["target"], "greeting", "{shown}");
    assert_eq!(studio.call("packs", &json!({})).1, json!([]), "to look is not to install");
    // It would replace another prompt now.
    let manifest = std::fs::read_to_string(pack.path().join("pack.json")).unwrap();
    write(pack.path(), "pack.json", &manifest.replace("\"greeting\":", "\"general_system\":"));
    let accept = json!({"path": path, "digest": shown["digest"], "accept": [{"kind": "prompt", "target": "greeting"}]});
    let (status, answer) = studio.call("packs/install", &accept);
    assert_eq!(status, 422, "{answer}");
    assert_eq!(studio.call("packs", &json!({})).1, json!([]));
    write(pack.path(), "pack.json", &manifest);
    assert_eq!(studio.call("packs/install", &accept).0, 200);
}

#[test]
fn decisions_write_what_the_commands_write() {
    let command = |root: &std::path::Path, home: &std::path::Path, args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_cuebook"))
            .args(args)
            .arg("--root")
            .arg(root)
            .env("HOME", home)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    // One project gets its decisions from the page, the other from the command line.
    let (page, pack) = with_pack();
    let (typed, _unused) = with_pack();
    let path = pack.path().to_str().unwrap();
    let (_, shown) = page.call("packs/install", &json!({"path": path}));
    let accept = [json!({"kind": "prompt", "target": "greeting"})];
    let install = json!({"path": path, "digest": shown["digest"], "accept": accept});
    assert_eq!(page.call("packs/install", &install).0, 200);
    command(typed.project.path(), typed.home.path(), &["pack", "install", path, "--yes"]);
    assert_eq!(page.call("resolve", &json!({"id": "greeting", "source": "prompts/greeting"})).0, 200);
    command(typed.project.path(), typed.home.path(), &["resolve", "greeting", "prompts/greeting"]);
    let moment = regex::Regex::new(r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-][0-9:]+)?").unwrap();
    let recorded = |studio: &Studio| {
        let mut files = Vec::new();
        let mut open = vec![studio.project.path().join("user_data")];
        while let Some(next) = open.pop() {
            for entry in std::fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => open.push(path),
                    false => {
                        let text = std::fs::read_to_string(&path).unwrap();
                        let name = path.strip_prefix(studio.project.path()).unwrap().to_owned();
                        files.push((name, moment.replace_all(&text, "<MOMENT>").into_owned()));
                    }
                }
            }
        }
        files.sort();
        files
    };
    assert!(recorded(&page).len() > 2, "{:?}", recorded(&page));
    assert_eq!(recorded(&page), recorded(&typed));
}

#[test]
fn problems_and_tokens_know_the_unsaved_text() {
    let studio = Studio::of(GREETING, &[]);
    let texts = json!({"prompts/partials/tone.md": "{{ name|uper }}\n"});
    let (_, found) = studio.call("check", &json!({"id": "greeting", "texts": texts}));
    assert!(found.to_string().contains("uper"), "{found}");
    assert_eq!(studio.call("check", &json!({"id": "greeting"})).1, json!([]));
    let (_, answer) = studio.call(
        "render",
        &json!({"id": "greeting", "model": "gpt-5", "want": ["tokens"], "texts": {"prompts/partials/tone.md": "Be very kind.\n"}}),
    );
    let tokens = &answer["tokens"];
    assert_eq!(tokens["cost"]["currency"], "USD", "{tokens}");
    assert!(tokens["stability"]["share"].as_f64().unwrap() > 0.0 && tokens["caches"].is_array(), "{tokens}");
}

#[test]
fn a_thread_that_is_not_there_has_no_events() {
    let studio = Studio::of(GREETING, &[]);
    assert_eq!(studio.call("threads", &json!({})).1, json!([]));
    let (status, answer) = studio.call("threads/events", &json!({"thread": "x", "wait": true}));
    assert_eq!((status, &answer["thread"]), (200, &json!(null)), "{answer}");
}

/// A program that stands for the browser: it keeps the page that it was asked to open, and ends the studio.
const BROWSER: &str = r#"#!/bin/sh
cat "$1" > "$OPENED/page"
stat -c %a "$1" > "$OPENED/mode"
kill -INT $PPID
"#;

#[test]
fn on_a_desktop_the_browser_opens_with_a_private_page() {
    if !cfg!(target_os = "linux") || !runs("python3") {
        return skip::missing_peer("a terminal is made with python3");
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for name in ["bin", "opened", "tmp", "home"] {
        std::fs::create_dir(root.join(name)).unwrap();
    }
    GREETING.iter().for_each(|(name, text)| write(root, &format!("project/{name}"), text));
    write(root, "project/cuebook.toml", "");
    write(root, "bin/xdg-open", BROWSER);
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(root.join("bin/xdg-open"), executable).unwrap();
    let path = format!("{}:{}", root.join("bin").display(), std::env::var("PATH").unwrap());
    let studio = |display: &str, more: &[&str]| {
        let project = root.join("project");
        let output = Command::new("python3")
            .args(["-c", include_str!("../support/person.py"), "no question=", env!("CARGO_BIN_EXE_cuebook")])
            .args(["studio", "greeting", "--root", project.to_str().unwrap()])
            .args(more)
            .env_clear()
            .env("PATH", &path)
            .env("HOME", root.join("home"))
            .env("TMPDIR", root.join("tmp"))
            .env("OPENED", root.join("opened"))
            .env("TERM", "xterm")
            .env("DISPLAY", display)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let said = studio(":9", &[]);
    let page = std::fs::read_to_string(root.join("opened/page")).unwrap_or_else(|_| panic!("{said}"));
    let url = said.split_whitespace().find(|word| word.contains("#token=")).unwrap();
    assert!(
        page.contains(&format!("content=\"0;url={url}\"")) && url.ends_with("&prompt=greeting"),
        "{page}\n{said}"
    );
    assert_eq!(std::fs::read_to_string(root.join("opened/mode")).unwrap().trim(), "600");
    let left: Vec<_> =
        std::fs::read_dir(root.join("tmp")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "the page with the token is deleted: {left:?}");
}
