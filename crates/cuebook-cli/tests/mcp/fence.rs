//! Tools that an MCP client calls run in the sandbox.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value as Json, json};

use crate::http::Listening;
use crate::support::{Project, decoded, python_or_skip};
use crate::{answer, call, converse, cuebook, hello};

const TOKEN: &str = "mcp-token-7d1f0b9e5c3a48216f0e8d7c6b5a4938";
const KEY: &str = "sk-test-5f0e8d7c6b5a4938271605f4e3d2c1b0";
const LOG_KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// Looks everywhere for secrets, and changes their form so that nothing can hide them.
const SEARCH: &str = "{ (env; cat /proc/*/environ /proc/*/task/*/environ log.key home/.ai/config/keys/* \
                      home/.ai/config/keys/*/* 2>/dev/null) | tr '\\0' '\\n' | grep -aoE 'HOME=/tmp|mcp-token[a-z0-9-]*|\
                      sk-test[a-z0-9-]*|OPENAI_API_KEY|MY_TOKEN|00112233[a-f0-9]*|PRIVATE KEY' | sort -u; \
                      echo this-is-all-that-there-was-to-be-found; } | base64 -w0";

fn shell(command: &str) -> Json {
    let parameters = json!({"command": command});
    call(1, "rye_execute", json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": parameters}))
}

/// A project with a log key in it and one in the user's space.
fn secrets() -> Project {
    let project = Project::new();
    cuebook(&project, &["keys", "generate"]);
    for path in ["log.key", "home/.ai/config/keys/log.key"] {
        project.write(path, LOG_KEY);
        let file = project.path().join(path);
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    project
}

#[test]
fn a_tool_that_a_client_calls_is_fenced() {
    let Some(()) = python_or_skip() else { return };
    let project = Project::new();
    project.write("home/secret", "in-the-home-folder");
    let command =
        "cat home/secret; echo x > .env; echo x > cuebook.toml; echo x > fine.txt; ls /proc | head -40";
    let ask = |more: &[&str]| {
        let args = [&["--allow", "rye/bash/bash"], more].concat();
        let (answers, _) = converse(&project, &args, &[hello(), shell(command)]);
        let answer = answer(&answers, 1);
        assert_eq!(answer["result"]["isError"], false, "{answer:#}");
        answer.to_string()
    };
    let said = ask(&[]);
    assert!(!said.contains("in-the-home-folder"), "{said}");
    let there = |name: &str| project.path().join(name).exists();
    assert!(!there(".env") && !there("cuebook.toml") && there("fine.txt"), "{said}");
    let said = ask(&["--unfenced"]);
    assert!(said.contains("in-the-home-folder") && there(".env"), "{said}");
}

#[test]
fn a_tool_that_a_client_calls_finds_no_token_and_no_key() {
    let Some(()) = python_or_skip() else { return };
    let project = secrets();
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    command.args(["mcp", "--http", "127.0.0.1:0", "--token-env", "MY_TOKEN", "--allow", "rye/bash/bash"]);
    command.env("MY_TOKEN", TOKEN).env("OPENAI_API_KEY", KEY).env("CUEBOOK_LOG_KEY", "log.key");
    let server = Listening::start(command);
    let session = server.session(TOKEN);
    let headers = session.each_ref().map(|(name, value)| (*name, value.as_str()));
    let (status, said) = server.post(&shell(SEARCH), &headers);
    assert_eq!(status, 200, "{said}");
    let found = decoded(&said);
    // It did look.
    assert!(found.contains("HOME=/tmp") && found.contains("this-is-all"), "{found}: {said}");
    for secret in [TOKEN, KEY, LOG_KEY, "mcp-token", "OPENAI_API_KEY", "MY_TOKEN", "00112233", "PRIVATE KEY"]
    {
        assert!(!found.contains(secret), "{secret}: {found}");
    }
}

#[test]
fn a_tool_without_the_sandbox_gets_no_token_and_no_key_either() {
    let Some(()) = python_or_skip() else { return };
    let project = secrets();
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    command.args(["mcp", "--http", "127.0.0.1:0", "--token-env", "MY_TOKEN", "--allow", "rye/bash/bash"]);
    command.arg("--unfenced").env("MY_TOKEN", TOKEN).env("OPENAI_API_KEY", KEY);
    let server = Listening::start(command);
    let session = server.session(TOKEN);
    let headers = session.each_ref().map(|(name, value)| (*name, value.as_str()));
    let (_, said) = server.post(&shell("(env; echo LOOKED=everywhere) | base64 -w0"), &headers);
    let found = decoded(&said);
    assert!(found.contains("LOOKED=everywhere"), "{said}");
    assert!(!found.contains(TOKEN) && !found.contains(KEY), "{found}");
}
