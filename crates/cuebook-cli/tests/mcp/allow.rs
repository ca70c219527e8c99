//! What an MCP client may do: no more than the user allowed.

use serde_json::{Value as Json, json};

use crate::support::{Project, python_or_skip};
use crate::{answer, ask, call, code, converse, cuebook, hello};

const ORDER: &str = r#"# Looks an order up.
__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/script"
__category__ = "desk"
__tool_description__ = "Looks an order up"

open("ran", "w")
print('{"found": true}')
"#;

const SHELL: &str = "name: sweep
version: 1.0.0
tool_type: shell
category: desk
executor_id: rye/core/runtimes/bash/bash
description: Sweeps
config:
  command: touch swept
";

/// A project with a tool and a tool for a shell, both signed.
fn desk() -> Project {
    let project = Project::new();
    project.write(".ai/tools/desk/order.py", ORDER);
    project.write(".ai/tools/desk/sweep.yaml", SHELL);
    cuebook(&project, &["keys", "generate"]);
    cuebook(&project, &["sign", "tool", "desk/*"]);
    project
}

fn execute(item_id: &str, parameters: Json) -> Json {
    call(1, "rye_execute", json!({"item_type": "tool", "item_id": item_id, "parameters": parameters}))
}

/// The answer to one request.
fn one(project: &Project, args: &[&str], request: Json) -> Json {
    let (answers, _) = converse(project, args, &[hello(), request]);
    answer(&answers, 1).clone()
}

fn is_done(answer: &Json) -> bool {
    assert!(answer["result"]["isError"].is_boolean(), "{answer:#}");
    answer["result"]["isError"] == false
}

#[test]
fn a_tool_runs_only_if_the_user_allowed_it() {
    let Some(()) = python_or_skip() else { return };
    let project = desk();
    let ran = || project.path().join("ran").exists();
    for args in [&[][..], &["--allow", "other/*"], &["--allow", "desk/orders"]] {
        let refused = one(&project, args, execute("desk/order", json!({})));
        assert_eq!(code(&refused), "CB805");
        let text = refused["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("desk/order") && text.contains("[mcp]") && !text.contains("--"), "{text}");
        assert!(!ran(), "{args:?}");
    }
    for pattern in ["desk/order", "desk/*", "tool:desk/*", "*"] {
        let done = one(&project, &["--allow", pattern], execute("desk/order", json!({})));
        assert!(is_done(&done), "{pattern}: {done:#}");
        assert!(ran());
        std::fs::remove_file(project.path().join("ran")).unwrap();
    }
}

#[test]
fn a_shell_and_writing_need_to_be_allowed_by_name() {
    let Some(()) = python_or_skip() else { return };
    let project = desk();
    let write = json!({"path": "written", "content": "x"});
    for (tool, parameters, file) in [
        ("rye/bash/bash", json!({"command": "touch ran"}), "ran"),
        ("rye/file-system/write", write, "written"),
        ("desk/sweep", json!({}), "swept"),
    ] {
        let call = execute(tool, parameters);
        for args in [&[][..], &["--allow", "*"], &["--allow", "rye/*", "--allow", "desk/*"]] {
            let refused = one(&project, args, call.clone());
            assert_eq!(code(&refused), "CB805", "{tool} {args:?}");
            assert!(!project.path().join(file).exists());
        }
        let done = one(&project, &["--allow", tool], call);
        assert!(is_done(&done), "{tool}: {done:#}");
        assert!(project.path().join(file).exists());
    }
    // What runs any program is reached through no wildcard either.
    for tool in ["rye/core/primitives/subprocess", "rye/core/runtimes/bash/bash"] {
        let refused = one(&project, &["--allow", "*"], execute(tool, json!({"command": "touch ran2"})));
        assert_eq!(code(&refused), "CB805", "{tool}");
    }
}

#[test]
fn a_client_signs_and_copies_only_if_the_user_allowed_it() {
    let project = desk();
    project.write(".ai/tools/desk/evil.py", ORDER);
    let sign = call(1, "rye_sign", json!({"item_type": "tool", "item_id": "desk/evil"}));
    let copy = json!({"item_type": "tool", "item_id": "desk/order", "destination": "user"});
    let copy = call(1, "rye_load", copy);
    let evil = || std::fs::read_to_string(project.path().join(".ai/tools/desk/evil.py")).unwrap();
    let copied = project.path().join("home/.ai/tools/desk/order.py");
    for args in [&[][..], &["--allow", "*"]] {
        assert_eq!(code(&one(&project, args, sign.clone())), "CB805");
        assert_eq!(evil(), ORDER);
        assert_eq!(code(&one(&project, args, copy.clone())), "CB805");
        assert!(!copied.exists());
    }
    assert!(is_done(&one(&project, &["--allow", "rye_sign"], sign)));
    assert_ne!(evil(), ORDER);
    assert!(is_done(&one(&project, &["--allow", "rye_load"], copy)));
    assert!(copied.exists());
    let read = call(1, "rye_load", json!({"item_type": "tool", "item_id": "desk/order"}));
    assert!(is_done(&one(&project, &[], read)));
}

fn names(list: &Json) -> Vec<&str> {
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list:#}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn only_what_clients_may_use_is_listed() {
    let project = desk();
    let list = ask(1, "tools/list", json!({}));
    let listed = one(&project, &[], list.clone());
    assert_eq!(names(&listed), ["rye_execute", "rye_search", "rye_load"]);
    let types = &listed["result"]["tools"][0]["inputSchema"]["properties"]["item_type"]["enum"];
    assert_eq!(*types, json!(["directive", "knowledge"]));
    let listed = one(&project, &["--allow", "rye_sign"], list.clone());
    assert_eq!(names(&listed), ["rye_execute", "rye_search", "rye_load", "rye_sign"]);
    let listed = one(&project, &["--read-only"], list);
    assert!(names(&listed).is_empty());
}

#[test]
fn a_read_only_server_has_prompts_and_resources_only() {
    let project = desk();
    project.write("prompts/hi/template.md", "Hi {{ name }}\n");
    let messages = [
        hello(),
        call(1, "rye_search", json!({"scope": "tool", "query": ""})),
        call(2, "rye_execute", json!({"item_type": "directive", "item_id": "rye/core/create_directive"})),
        ask(3, "prompts/get", json!({"name": "hi", "arguments": {"name": "Ada"}})),
        ask(4, "resources/list", json!({})),
    ];
    let (answers, _) = converse(&project, &["--read-only"], &messages);
    assert_eq!(answer(&answers, 0)["result"]["capabilities"]["tools"], Json::Null);
    assert_eq!((code(answer(&answers, 1)), code(answer(&answers, 2))), ("CB805", "CB805"));
    assert_eq!(answer(&answers, 3)["result"]["messages"][0]["content"]["text"], "Hi Ada");
    assert!(answer(&answers, 4)["result"]["resources"].is_array());
}

#[test]
fn the_user_s_settings_count_and_a_project_s_do_not() {
    let Some(()) = python_or_skip() else { return };
    let project = desk();
    let order = execute("desk/order", json!({}));
    // Settings of a project that would allow something are refused as unknown, and allow nothing.
    project.write("cuebook.toml", "[mcp]\nallow = [\"desk/*\"]\n");
    let (answers, _) = converse(&project, &[], &[hello(), order.clone()]);
    assert_eq!(code(answer(&answers, 1)), "CB805");
    std::fs::remove_file(project.path().join("cuebook.toml")).unwrap();
    project.write("home/.ai/config/cuebook.toml", "[mcp]\nallow = [\"desk/*\"]\n");
    assert!(is_done(&one(&project, &[], order.clone())));
    project.write("home/.ai/config/cuebook.toml", "[mcp]\nread_only = true\n");
    let (answers, said) = converse(&project, &["--allow", "desk/*"], &[hello(), order]);
    assert_eq!(code(answer(&answers, 1)), "CB805");
    assert!(said.contains("read_only"), "{said}");
    project.write("home/.ai/config/cuebook.toml", "[mcp]\nallow = [\"../x\"]\n");
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    let output = command.arg("mcp").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("CB808"));
}

#[test]
fn a_client_reaches_no_project_that_the_user_did_not_grant() {
    let project = desk();
    let other = Project::new();
    other.write(".ai/knowledge/secret.md", "Secret.\n");
    let path = other.path().to_string_lossy().into_owned();
    let search =
        |path: &str| call(1, "rye_search", json!({"scope": "knowledge", "query": "", "project_path": path}));
    let load = json!({"item_type": "knowledge", "item_id": "secret", "project_path": path});
    let run = json!({"item_type": "tool", "item_id": "desk/order", "project_path": path});
    let sign = json!({"item_type": "knowledge", "item_id": "secret", "project_path": path});
    let args = ["--allow", "*", "--allow", "rye_sign"];
    let around = other.path().parent().unwrap().file_name().unwrap().display();
    let roundabout = format!("{}/../../{around}/project", project.path().display());
    for request in [
        search(&path),
        call(1, "rye_load", load.clone()),
        call(1, "rye_execute", run),
        call(1, "rye_sign", sign),
        search("/nowhere/at/all"),
        search(&roundabout),
    ] {
        let refused = one(&project, &args, request);
        assert_eq!(code(&refused), "CB806", "{refused:#}");
    }
    #[cfg(unix)]
    {
        project.link("link", &path);
        let linked = project.path().join("link").to_string_lossy().into_owned();
        assert_eq!(code(&one(&project, &args, search(&linked))), "CB806");
    }
    let own = project.path().to_string_lossy().into_owned();
    assert!(is_done(&one(&project, &[], search(&own))));
    // The user grants it.
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), other.path());
    assert!(command.args(["allow", "--serve", "--yes", "--root", &path]).output().unwrap().status.success());
    assert!(is_done(&one(&project, &[], search(&path))));
}

const GREET: &str = r#"# Greet

```xml
<directive name="greet" version="1.0.0">
  <metadata>
    <description>SECRET WORDS</description>
    <category>demo</category>
    <author>tests</author>
    <model tier="fast" />
  </metadata>
  <inputs><input name="user" type="string" required="true">SECRET WORDS</input></inputs>
</directive>
```

SECRET WORDS for {input:user}.
"#;

#[test]
fn a_directive_is_served_only_if_its_signature_is_valid() {
    let project = Project::new();
    project.write(".ai/directives/demo/greet.md", GREET);
    cuebook(&project, &["keys", "generate"]);
    let complete = json!({"ref": {"type": "ref/prompt", "name": "demo/greet"}, "argument": {"name": "user", "value": ""}});
    let messages = [
        hello(),
        ask(1, "prompts/get", json!({"name": "demo/greet", "arguments": {"user": "Ann"}})),
        ask(2, "prompts/list", json!({})),
        ask(3, "completion/complete", complete),
    ];
    let refused = |wanted: &str| {
        let (answers, _) = converse(&project, &[], &messages);
        let got = answer(&answers, 1);
        assert_eq!(code(got), wanted, "{got:#}");
        assert!(got["error"]["data"]["hint"].as_str().unwrap().contains("sign it"), "{got:#}");
        assert_eq!(code(answer(&answers, 3)), wanted);
        let text = answers.iter().map(Json::to_string).collect::<String>();
        assert!(!text.contains("SECRET WORDS"), "{text}");
        assert!(answer(&answers, 2).to_string().contains("demo/greet"));
    };
    refused("CB220");
    cuebook(&project, &["sign", "directive", "demo/greet"]);
    let (answers, _) = converse(&project, &[], &messages);
    assert!(answer(&answers, 1)["result"].to_string().contains("SECRET WORDS for Ann"), "{answers:?}");
    let path = project.path().join(".ai/directives/demo/greet.md");
    let signed = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, signed.replace(" for {input", " about {input")).unwrap();
    refused("CB221");
}
