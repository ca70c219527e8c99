//! Skills over the protocol: the list, the entries with their digests, and the files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod support;

use serde_json::{Value as Json, json};
use support::{Pipes, project};

const SKILL: &str = "---\nname: read-invoices\ndescription: Reads invoices.\nallowed-tools: Read Grep\nmetadata:\n  version: \"2.1\"\n---\n\nSum {{total}}.\n";

fn with_skills() -> tempfile::TempDir {
    let folder = project();
    let write = |path: &str, bytes: &[u8]| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    write("skills/read-invoices/SKILL.md", SKILL.as_bytes());
    write("skills/read-invoices/scripts/sum up.py", b"print(1)\n");
    write("skills/read-invoices/logo.png", b"\x89PNG\xff");
    write(".claude/skills/answer/SKILL.md", b"---\nname: answer\ndescription: Answers.\n---\nAnswer.\n");
    write("skills/misnamed/SKILL.md", b"---\nname: other\ndescription: Is not in its folder.\n---\nx\n");
    write("secret.txt", b"secret");
    folder
}

fn code(answer: &Json) -> &Json {
    assert!(answer["error"].is_object(), "{answer}");
    &answer["error"]["code"]
}

#[test]
fn skills_are_listed_with_all_their_files_and_digests() {
    let project = with_skills();
    let mut pipes = Pipes::desk(project.path());
    let answer = pipes.initialize();
    let capabilities = &answer["result"]["capabilities"];
    assert_eq!(capabilities["extensions"]["io.modelcontextprotocol/skills"], json!({}), "{answer}");
    let answer = pipes.ask(1, "skills/list", json!({}));
    let result = &answer["result"];
    assert_eq!(
        (&result["resultType"], &result["ttlMs"], &result["cacheScope"]),
        (&json!("complete"), &json!(0), &json!("private")),
        "{answer}"
    );
    let uris: Vec<&str> =
        result["skills"].as_array().unwrap().iter().map(|skill| skill["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["skill://answer/SKILL.md", "skill://read-invoices/SKILL.md"]);
    let entry = &result["skills"][1];
    assert_eq!(
        entry["frontmatter"],
        json!({"name": "read-invoices", "description": "Reads invoices.", "allowed-tools": "Read Grep", "metadata": {"version": "2.1"}})
    );
    let expected = json!([
        {"uri": "skill://read-invoices/SKILL.md", "digest": digest(SKILL.as_bytes()), "size": SKILL.len()},
        {"uri": "skill://read-invoices/logo.png", "digest": digest(b"\x89PNG\xff"), "size": 5},
        {"uri": "skill://read-invoices/scripts/sum%20up.py", "digest": digest(b"print(1)\n"), "size": 9},
    ]);
    assert_eq!(entry["resources"], expected);
    let got = pipes.ask(2, "skills/get", json!({"uri": "skill://read-invoices/SKILL.md"}));
    assert_eq!((&got["result"]["skill"], &got["result"]["resultType"]), (entry, &json!("complete")), "{got}");
    assert!(pipes.end().success());
}

#[test]
fn files_of_skills_are_read_as_resources() {
    let project = with_skills();
    let mut pipes = Pipes::desk(project.path());
    pipes.initialize();
    let listed = pipes.ask(1, "resources/list", json!({}));
    let found = listed["result"]["resources"].as_array().unwrap().iter();
    let found = found.filter(|resource| resource["uri"] == "skill://read-invoices/SKILL.md");
    let expected = json!({"uri": "skill://read-invoices/SKILL.md", "name": "read-invoices", "description": "Reads invoices.", "mimeType": "text/markdown"});
    assert_eq!(found.collect::<Vec<_>>(), [&expected], "{listed}");
    let mut read = |uri: &str| {
        let answer = pipes.ask(2, "resources/read", json!({"uri": uri}));
        answer["result"]["contents"][0].clone()
    };
    assert_eq!(
        read("skill://read-invoices/SKILL.md"),
        json!({"uri": "skill://read-invoices/SKILL.md", "mimeType": "text/markdown", "text": SKILL})
    );
    assert_eq!(read("skill://read-invoices/scripts/sum%20up.py")["text"], "print(1)\n");
    let logo = read("skill://read-invoices/logo.png");
    assert_eq!((&logo["blob"], &logo["mimeType"]), (&json!("iVBOR/8="), &json!("image/png")));
}

#[test]
fn an_address_reaches_nothing_but_files_of_skills() {
    let project = with_skills();
    let mut pipes = Pipes::desk(project.path());
    pipes.initialize();
    for uri in [
        "skill://read-invoices/../../secret.txt",
        "skill://read-invoices/..%2F..%2Fsecret.txt",
        "skill://..%2F..%2Fsecret.txt",
        "skill://read-invoices//etc/passwd",
        "skill://read-invoices/scripts",
        "skill://read-invoices",
        "skill://greet/template.md",
        "skill://general_system/SKILL.md",
        "skill://Read-Invoices/SKILL.md",
        "skill://nothing/SKILL.md",
        "skill:///SKILL.md",
    ] {
        let answer = pipes.ask(1, "resources/read", json!({"uri": uri}));
        assert_eq!(code(&answer), &json!(-32002), "{uri}: {answer}");
        assert!(answer["error"]["data"]["hint"].is_string(), "{uri}: {answer}");
        let answer = pipes.ask(1, "skills/get", json!({"uri": uri}));
        assert_eq!(code(&answer), &json!(-32602), "{uri}: {answer}");
    }
    let answer = pipes.ask(2, "skills/get", json!({"uri": "skill://misnamed/SKILL.md"}));
    assert_eq!(answer["error"]["data"]["code"], "CB318", "{answer}");
    let answer = pipes.ask(3, "skills/get", json!({"uri": "skill://read-invoices/logo.png"}));
    assert_eq!(code(&answer), &json!(-32602), "{answer}");
    for params in [json!({}), json!({"uri": 5})] {
        assert_eq!(code(&pipes.ask(4, "skills/get", params)), &json!(-32602));
    }
    assert_eq!(code(&pipes.ask(5, "skills/list", json!({"cursor": "42"}))), &json!(-32602));
}

#[cfg(unix)]
#[test]
fn a_skill_with_a_link_is_not_served() {
    let project = with_skills();
    std::os::unix::fs::symlink("../../secret.txt", project.path().join("skills/read-invoices/notes.txt"))
        .unwrap();
    let mut pipes = Pipes::desk(project.path());
    pipes.initialize();
    let listed = pipes.ask(1, "skills/list", json!({}));
    let uris: Vec<&Json> =
        listed["result"]["skills"].as_array().unwrap().iter().map(|skill| &skill["uri"]).collect();
    assert_eq!(uris, ["skill://answer/SKILL.md"], "{listed}");
    for file in ["notes.txt", "SKILL.md"] {
        let uri = format!("skill://read-invoices/{file}");
        let answer = pipes.ask(2, "resources/read", json!({"uri": uri}));
        assert_eq!(answer["error"]["data"]["code"], "CB110", "{answer}");
    }
}

#[test]
fn a_changed_skill_has_another_digest_at_once() {
    let project = with_skills();
    let mut pipes = Pipes::desk(project.path());
    pipes.initialize();
    let uri = json!({"uri": "skill://answer/SKILL.md"});
    let before = pipes.ask(1, "skills/get", uri.clone());
    std::fs::write(project.path().join(".claude/skills/answer/more.md"), "More.\n").unwrap();
    let after = pipes.ask(2, "skills/get", uri);
    let files = |answer: &Json| answer["result"]["skill"]["resources"].as_array().map(Vec::len);
    assert_eq!((files(&before), files(&after)), (Some(1), Some(2)), "{after}");
}

fn digest(bytes: &[u8]) -> String {
    use sha2::{Digest as _, Sha256};
    let hash = Sha256::digest(bytes);
    format!("sha256:{}", hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}
