//! The settings for clients that the documentation shows: they are JSON, and their commands start a server.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value as Json;

use crate::hello;
use crate::support::Project;

/// The blocks of JSON on a page that configure servers.
fn settings(page: &str) -> Vec<Json> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("```json\n").skip(1).filter_map(|rest| rest.split_once("\n```"));
    let read = |block: &str| {
        serde_json::from_str::<Json>(block).unwrap_or_else(|error| panic!("{page}: {error}\n{block}"))
    };
    blocks.map(|(block, _)| read(block)).filter(|json| servers(json).is_some()).collect()
}

fn servers(settings: &Json) -> Option<&serde_json::Map<String, Json>> {
    settings.get("mcpServers").or_else(|| settings.get("servers"))?.as_object()
}

/// Starts a server as a client would, and gives its answer to the first message.
fn first_answer(project: &Project, server: &Json) -> Json {
    let args: Vec<String> =
        server["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap().to_owned()).collect();
    let here = project.path().to_string_lossy().into_owned();
    // The pages name a project of their reader.
    let args = args
        .into_iter()
        .map(|arg| if arg.starts_with('/') || arg.starts_with("${") { here.clone() } else { arg });
    let mut command = project.command(server["command"].as_str().unwrap(), project.path());
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", hello()).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{server}: {error}: {line}"))
}

#[test]
fn every_setting_for_clients_in_the_docs_works() {
    let project = Project::new();
    let (mut started, mut over_http) = (0, 0);
    for page in ["docs/src/guide/mcp.md", "crates/cuebook-cli/topics/mcp.md"] {
        for settings in settings(page) {
            for server in servers(&settings).unwrap().values() {
                if server.get("url").is_some() {
                    assert_eq!(server["url"], "http://127.0.0.1:8321/mcp", "{page}");
                    assert!(
                        server["headers"]["Authorization"].as_str().unwrap().starts_with("Bearer "),
                        "{page}"
                    );
                    over_http += 1;
                    continue;
                }
                let answer = first_answer(&project, server);
                assert_eq!(answer["result"]["serverInfo"]["name"], "cuebook", "{page}: {server}");
                let is_read_only = server["args"].as_array().unwrap().iter().any(|arg| arg == "--read-only");
                assert_eq!(
                    answer["result"]["capabilities"]["tools"].is_null(),
                    is_read_only,
                    "{page}: {server}"
                );
                started += 1;
            }
        }
    }
    assert!(started >= 5 && over_http >= 2, "{started} {over_http}");
}
