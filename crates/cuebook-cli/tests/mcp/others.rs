//! Tools of other MCP servers as items: `mcp/stdio` and `mcp/http`, with our own server and the protocol's package for Python.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;

use serde_json::{Value as Json, json};

use crate::http::Listening;
use crate::support::Project;
use crate::{answer, call, converse, cuebook, hello, python};

const TOKEN: &str = "mcp-token-1f2e3d4c5b6a79880716253443526170";

static PYTHON: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../cuebook-serve/tests/client"));
    python::environment("mcp-server", &folder.join("requirements.txt"))
});

/// A project with a key, and signed tools of these names and configurations.
fn project(tools: &[(&str, &str, Json)]) -> Project {
    let project = Project::new();
    cuebook(&project, &["keys", "generate"]);
    for (name, runtime, config) in tools {
        let text = format!(
            "version: 1.0.0\ncategory: other\ntool_type: mcp\ndescription: Of another server\n\
             executor_id: rye/core/runtimes/mcp/{runtime}\nconfig: {config}\n"
        );
        project.write(&format!(".ai/tools/other/{name}.yaml"), text);
    }
    cuebook(&project, &["sign", "tool", "other/*"]);
    project
}

fn execute(project: &Project, tool: &str, parameters: &[&str], more: &[&str]) -> (Output, Json) {
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    command
        .args(["execute", "tool", &format!("other/{tool}"), "--json"])
        .args(more)
        .env("OTHER_TOKEN", TOKEN);
    for parameter in parameters {
        command.args(["--param", parameter]);
    }
    let output = command.output().unwrap();
    let answer = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output, answer)
}

/// The configuration of a tool of our own server.
fn own(tool: &str) -> Json {
    json!({"command": env!("CARGO_BIN_EXE_cuebook"), "args": ["mcp", "--root", "{project_path}"], "tool": tool})
}

#[test]
fn a_tool_of_our_own_server_is_an_item() {
    let project = project(&[("find", "stdio", own("rye_search"))]);
    let parameters = ["scope=tool", "query=grep"];
    for more in [&[][..], &["--fenced"]] {
        let (_, answer) = execute(&project, "find", &parameters, more);
        assert_eq!(answer["status"], "success", "{answer:#}");
        assert_eq!(answer["data"]["structuredContent"]["query"], "grep", "{answer:#}");
        assert!(answer["data"]["content"][0]["text"].as_str().unwrap().contains("rye/file-system/grep"));
        let chain = ["other/find", "rye/core/runtimes/mcp/stdio", "rye/core/primitives/subprocess"];
        assert_eq!(answer["chain"], json!(chain));
    }
    assert!(project.path().join(".ai/lockfiles/other/find@1.0.0.lock.json").exists());
}

#[test]
fn wrong_names_programs_and_keys_have_clear_errors() {
    let silent = json!({"command": "sh", "args": ["-c", "echo not a server >&2"], "tool": "x"});
    let deaf = json!({"command": "sleep", "args": ["60"], "tool": "x", "timeout": 0.3, "kill_grace": 0.1});
    let tools = [
        ("near", "stdio", own("rye_serch")),
        ("silent", "stdio", silent),
        ("deaf", "stdio", deaf),
        ("nameless", "stdio", json!({"command": "true"})),
        ("strange", "stdio", json!({"command": "true", "tool": "x", "protocol": "acp"})),
    ];
    let project = project(&tools);
    for (tool, code, message, hint) in [
        ("near", "CB708", "the server has no tool `rye_serch`", "did you mean `rye_search`"),
        ("silent", "CB708", "the MCP server ended before it answered: not a server", "must start a server"),
        ("deaf", "CB707", "took longer than 0.3 seconds", "timeout"),
        ("nameless", "CB705", "`tool` is missing", "tool: search"),
        ("strange", "CB705", "`protocol` is \"acp\"", "write mcp"),
    ] {
        let (output, answer) = execute(&project, tool, &[], &[]);
        assert_eq!(output.status.code(), Some(1), "{answer:#}");
        let error = &answer["metadata"]["error"];
        assert_eq!(error["code"], code, "{tool}: {answer:#}");
        assert!(error["message"].as_str().unwrap().contains(message), "{tool}: {answer:#}");
        assert!(error["hint"].as_str().unwrap().contains(hint), "{tool}: {answer:#}");
    }
}

#[test]
fn a_server_at_a_url_needs_its_token_and_a_grant() {
    let served = Project::new();
    let mut command = served.command(env!("CARGO_BIN_EXE_cuebook"), served.path());
    command.args(["mcp", "--http", "127.0.0.1:0", "--token-env", "OTHER_TOKEN"]).env("OTHER_TOKEN", TOKEN);
    let server = Listening::start(command);
    let url = format!("http://{}/mcp", server.address());
    let auth = json!({"type": "bearer", "token": "${OTHER_TOKEN}"});
    let find = json!({"url": url, "tool": "rye_search", "auth": auth});
    let project = project(&[
        ("find", "http", find.clone()),
        ("anonymous", "http", json!({"url": url, "tool": "rye_search"})),
        (
            "lost",
            "http",
            json!({"url": url.replace("/mcp", "/elsewhere"), "tool": "rye_search", "auth": auth}),
        ),
    ]);
    let parameters = ["scope=tool", "query=grep"];
    let (_, found) = execute(&project, "find", &parameters, &[]);
    assert_eq!(found["data"]["structuredContent"]["query"], "grep", "{found:#}");
    assert!(!found.to_string().contains(TOKEN));
    let (_, refused) = execute(&project, "anonymous", &parameters, &[]);
    assert!(refused["error"].as_str().unwrap().contains("HTTP 401"), "{refused:#}");
    assert!(refused["metadata"]["error"]["hint"].as_str().unwrap().contains("auth"), "{refused:#}");
    let (_, lost) = execute(&project, "lost", &parameters, &[]);
    assert!(lost["error"].as_str().unwrap().contains("HTTP 404"), "{lost:#}");
    // A model reaches the server only if the user granted its host.
    let (_, fenced) = execute(&project, "find", &parameters, &["--fenced"]);
    let asks = fenced["metadata"]["error"].to_string();
    assert!(fenced["status"] == "error" && asks.contains("cuebook allow"), "{fenced:#}");
    project.allow();
    let (_, granted) = execute(&project, "find", &parameters, &["--fenced"]);
    assert_eq!(granted["data"]["structuredContent"]["query"], "grep", "{granted:#}");
}

/// The protocol's own server at a port of its own.
struct Other(Child, String);

impl Other {
    fn start(python: &Path) -> Other {
        let mut command = Command::new(python);
        let mut child = command.args([SERVER, "http", "/"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let address = format!("127.0.0.1:{}", port.trim());
        let listens = || std::net::TcpStream::connect(&address).is_ok();
        for _ in 0..600 {
            if listens() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        Other(child, address)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");

#[test]
fn tools_of_the_official_server_are_items_over_both_transports() {
    let Some(python) = python::or_skip(&PYTHON, "the protocol's Python package") else { return };
    let other = Other::start(python);
    let url = format!("http://{}/mcp", other.1);
    let home = Project::new();
    let stdio = |tool: &str| json!({"command": python, "args": [SERVER, "stdio", home.home()], "tool": tool});
    let http = |tool: &str| json!({"url": url, "tool": tool});
    let project = project(&[
        ("add", "stdio", stdio("add")),
        ("fail", "stdio", stdio("fail")),
        ("add_there", "http", http("add")),
        ("look_there", "http", http("look")),
        ("fail_there", "http", http("fail")),
        ("none_there", "http", http("loook")),
    ]);
    for tool in ["add", "add_there"] {
        let (_, sum) = execute(&project, tool, &["a:=2", "b:=40"], &[]);
        assert_eq!(sum["data"]["structuredContent"], json!({"result": 42}), "{sum:#}");
        let (_, wrong) = execute(&project, tool, &["a:=2", "b=x"], &[]);
        assert!(wrong["error"].as_str().unwrap().contains("valid integer"), "{wrong:#}");
    }
    let (_, look) = execute(&project, "look_there", &[], &[]);
    assert_eq!(look["data"]["content"][0]["mimeType"], "image/png", "{look:#}");
    for tool in ["fail", "fail_there"] {
        let (_, failed) = execute(&project, tool, &[], &[]);
        assert!(failed["error"].as_str().unwrap().contains("Error executing tool fail"), "{failed:#}");
    }
    let (_, none) = execute(&project, "none_there", &[], &[]);
    assert_eq!(none["metadata"]["error"]["hint"], "did you mean `look`?", "{none:#}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_started_server_is_fenced_and_returns_pictures() {
    let Some(python) = python::or_skip(&PYTHON, "the protocol's Python package") else { return };
    let home = Project::new();
    home.write("home/secret", "x");
    let stdio =
        |tool: &str| json!({"command": python, "args": ["server.py", "stdio", home.home()], "tool": tool});
    let project = project(&[("look", "stdio", stdio("look")), ("peek", "stdio", stdio("peek"))]);
    project.write("server.py", std::fs::read(SERVER).unwrap());
    // The package lies outside of the project, so the user lets tools read it.
    let venv = python.parent().and_then(Path::parent).unwrap();
    project.write("home/.ai/config/cuebook.toml", format!("[tools]\nreadable = [{:?}]\n", venv));
    let ask = |id: u32, tool: &str| {
        call(id, "rye_execute", json!({"item_type": "tool", "item_id": format!("other/{tool}")}))
    };
    let messages = [hello(), ask(1, "look"), ask(2, "peek")];
    let (answers, _) = converse(&project, &["--allow", "other/*"], &messages);
    let look = &answer(&answers, 1)["result"];
    assert_eq!(look["isError"], false, "{look:#}");
    let picture = &look["content"][1];
    assert_eq!((&picture["type"], &picture["mimeType"]), (&json!("image"), &json!("image/png")), "{look:#}");
    assert_eq!(picture["data"], "iVBORy1hbmQtc28tb24=");
    assert_eq!(look["structuredContent"]["data"]["content"][0]["bytes"], 14, "{look:#}");
    let peek = &answer(&answers, 2)["result"];
    assert!(peek.to_string().contains("/tmp False"), "{peek:#}");
}
