//! A project's files have no power that its user did not grant: every test here plays a hostile clone.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use serde_json::Value as Json;
use support::{Project, python_or_skip};

const CUEBOOK: &str = env!("CARGO_BIN_EXE_cuebook");
const HOOK: &str = "TEMPLATE = \"x\"\ndef pre_render(variables, context):\n    return variables\n";

fn run(project: &Project, args: &[&str]) -> Output {
    project.command(CUEBOOK, project.path()).args(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A program of the project that leaves a mark when it runs, and then answers as Python does.
fn program(project: &Project, path: &str) {
    let mark = project.path().join("pwned");
    project.write(path, format!("#!/bin/sh\nid > {}\nexec python3 \"$@\"\n", mark.display()));
    std::fs::set_permissions(project.path().join(path), std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn pwned(project: &Project) -> bool {
    project.path().join("pwned").exists()
}

#[test]
fn a_project_python_runs_nothing_without_a_grant() {
    for python in ["/proc/self/cwd/tools/py", "tools/py", "./tools/py", "perl", "sh"] {
        let project = Project::new();
        program(&project, "tools/py");
        project.write("cuebook.toml", format!("[hooks]\npython = \"{python}\"\n"));
        project.write("prompts/hi/prompt.py", HOOK);
        // A script named as the question itself, for an interpreter that takes names of scripts.
        let question =
            "import sys; print(sys.executable, sys.base_prefix, '%d.%d' % sys.version_info[:2], sep='\\n')";
        project.write(question, "BEGIN { open(F, '>pwned') }");
        for args in [&["render", "hi"][..], &["doctor"], &["doctor", "--json"]] {
            let output = run(&project, args);
            assert!(!output.status.success(), "{python} {args:?}");
            let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
            assert!(said.contains("CB231") && said.contains("cuebook allow"), "{python}: {said}");
        }
        assert!(!pwned(&project), "{python}");
    }
}

#[test]
fn a_granted_project_program_is_never_run_outside_the_sandbox() {
    let project = Project::new();
    program(&project, "tools/py");
    project.write("cuebook.toml", "[hooks]\npython = \"/proc/self/cwd/tools/py\"\n");
    project.write("prompts/hi/prompt.py", HOOK);
    project.allow();
    let output = run(&project, &["render", "hi"]);
    assert!(!output.status.success());
    assert!(!pwned(&project), "{}", stderr(&output));
}

#[test]
fn python_on_the_path_is_not_taken_from_the_project() {
    let Some(()) = python_or_skip() else { return };
    let project = Project::new();
    program(&project, "bin/python3");
    project.write("prompts/hi/prompt.py", HOOK);
    let mut command = project.command(CUEBOOK, project.path());
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:bin::{path}", project.path().join("bin").display()));
    let output = command.args(["render", "hi"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "x", "{}", stderr(&output));
    assert!(!pwned(&project));
}

#[test]
fn an_environment_cannot_open_other_folders_to_hooks() {
    let Some(()) = python_or_skip() else { return };
    let project = Project::new();
    project.write("home/.ssh/id", "secret");
    project.write(".venv/pyvenv.cfg", "home = /usr/bin\n");
    project.write(".venv/bin/x", "");
    project.link(".venv/lib", "../../home");
    let question = ["-c", "import sys; print(sys.executable)"];
    let python = std::process::Command::new("python3").args(question).output().unwrap();
    project.link(".venv/bin/python", String::from_utf8_lossy(&python.stdout).trim());
    project.write("cuebook.toml", "[hooks]\npython = \".venv/bin/python\"\n");
    let secret = project.home().join(".ssh/id");
    let code = format!(
        "TEMPLATE = \"{{{{ x }}}}\"\ndef pre_render(v, c):\n    return {{'x': open({secret:?}).read()}}\n"
    );
    project.write("prompts/hi/prompt.py", code);
    assert!(stderr(&run(&project, &["render", "hi"])).contains("CB231"));
    project.allow();
    let output = run(&project, &["render", "hi"]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("secret"));
    assert!(stderr(&output).contains("leads out of its environment"), "{}", stderr(&output));
}

#[test]
fn a_home_folder_is_never_a_workspace() {
    let Some(()) = python_or_skip() else { return };
    let project = Project::new();
    project.write("home/.ssh/id", "secret");
    let code = "TEMPLATE = \"{{ x }}\"\ndef pre_render(v, c):\n    import os\n    return {'x': open(os.path.join(c['workspace_path'], '.ssh/id')).read()}\n";
    project.write("home/downloads/x/prompt.py", code);
    for args in [
        &["render", "./downloads/x"][..],
        &["render", "./downloads/x", "--context", "workspace_path=."],
        &["render", "./downloads/x", "--context", "workspace_path=.."],
        &["render", "./downloads/x", "--context", "workspace_path=.ai"],
    ] {
        std::fs::create_dir_all(project.home().join(".ai/config")).unwrap();
        let output = project.command(CUEBOOK, &project.home()).args(args).output().unwrap();
        assert!(!String::from_utf8_lossy(&output.stdout).contains("secret"), "{args:?}");
        assert!(stderr(&output).contains("CB417"), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn approvals_inside_a_project_count_for_nothing() {
    let project = Project::new();
    project.write("user_data/packs/k/pack.json", r#"{"pack_id": "k", "prompts": ["p"]}"#);
    project.write("user_data/packs/k/prompts/p/prompt.py", HOOK);
    let approved = run(&project, &["pack", "approve", "k", "--yes"]);
    assert!(approved.status.success(), "{}", stderr(&approved));
    assert!(!project.path().join("user_data/packs/approvals.json").exists());
    // The clone of the project, with the approvals that its author has.
    let folder = project.home().join(".ai/config/approvals");
    let is_json = |entry: &std::fs::DirEntry| entry.path().extension().is_some_and(|end| end == "json");
    let file = std::fs::read_dir(&folder).unwrap().flatten().find(is_json).unwrap().path();
    let stored: Json = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    std::fs::remove_file(&file).unwrap();
    for content in [&stored, &stored["packs"]] {
        project.write("user_data/packs/approvals.json", content.to_string());
        let output = run(&project, &["render", "p"]);
        assert!(stderr(&output).contains("CB207"), "{}", stderr(&output));
    }
    let shown = run(&project, &["pack", "show", "k"]);
    assert!(stderr(&shown).contains("Cuebook ignores approvals in a project"), "{}", stderr(&shown));
    assert!(String::from_utf8_lossy(&shown.stdout).contains("not approved"));
}

#[test]
fn allow_shows_every_byte_and_a_changed_request_with_its_diff() {
    let project = Project::new();
    project.write("cuebook.toml", "[hooks]\npython = \"a\\u001b[2J\\u202Eb\"\nmemory = 600000000\n");
    let output = run(&project, &["allow"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("CB208") && said.contains("hooks.memory = 600000000"), "{said}");
    assert!(!said.contains(['\u{1b}', '\u{202e}']), "{said:?}");
    assert!(said.contains("001b[2J\\u{202e}b"), "{said}");
    project.allow();
    let list = run(&project, &["allow", "--list", "--json"]);
    let list: Json = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(list[0]["grants"].as_array().unwrap().len(), 2);
    project.write("cuebook.toml", "[hooks]\nmemory = 700000000\n");
    let said = stderr(&run(&project, &["allow"]));
    assert!(said.contains("CHANGED"), "{said}");
    assert!(
        said.contains("- hooks.memory = 600000000") && said.contains("+ hooks.memory = 700000000"),
        "{said}"
    );
    let json = run(&project, &["allow", "--json"]);
    assert_eq!(json.status.code(), Some(1));
    let json: Json = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["requests"][0]["state"], &json["granted"]), (&"changed".into(), &false.into()));
    assert!(run(&project, &["allow", "--revoke", "hooks.memory"]).status.success());
    let typo = run(&project, &["allow", "--revoke", "hooks.pyton"]);
    assert!(stderr(&typo).contains("did you mean `hooks.python`?"), "{}", stderr(&typo));
    assert!(run(&project, &["allow", "--revoke"]).status.success());
    assert!(stderr(&run(&project, &["allow", "--list"])).contains("nothing is granted"));
}

#[test]
fn a_grant_is_bound_to_the_project_folder() {
    let project = Project::new();
    project.write("a/cuebook.toml", "[limits]\nfuel = 99999999\n");
    project.write("b/cuebook.toml", "[limits]\nfuel = 99999999\n");
    let warned = |folder: &str, args: &[&str]| {
        let output = project.command(CUEBOOK, &project.path().join(folder)).args(args).output().unwrap();
        stderr(&output).contains("CB231")
    };
    assert!(!warned("a", &["allow", "--yes"]));
    assert!(!warned("a", &["list"]));
    assert!(warned("b", &["list"]));
}

#[test]
fn stored_grants_are_private_to_the_user() {
    let project = Project::new();
    project.write("cuebook.toml", "[limits]\nfuel = 99999999\n");
    project.allow();
    let folder = project.home().join(".ai/config/grants");
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().extension().is_some_and(|end| end == "json") {
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}

#[test]
fn no_link_of_a_project_shows_a_file_outside_of_it() {
    const SECRET: &str = "s3cret-of-the-user";
    let links = [
        "prompts/a/template.md",
        "prompts/a/prompt.py",
        "prompts/b.prompty",
        "prompts/c.sections.md",
        "prompts/partials/part.md",
        "prompts/p/tests.md",
        "user_data/shared/prompts/defaults.json",
        "user_data/shared/prompts/resolution.json",
        "user_data/shared/vocab.json",
        ".ai/directives/demo/d.md",
        ".ai/knowledge/demo/k.md",
        ".ai/tools/demo/t.py",
        ".ai/config/agent/agent.yaml",
        ".ai/config/agent/hooks.yaml",
        ".ai/config/providers/x.yaml",
        ".ai/config/keys/trusted/abc.toml",
        ".env",
        "cuebook.toml",
    ];
    let commands: [&[&str]; 19] = [
        &["providers"],
        &["trust", "list"],
        &["run", "p", "--model", "m"],
        &["render", "a"],
        &["render", "b"],
        &["render", "c"],
        &["render", "p"],
        &["render", "./prompts/a"],
        &["render", "./prompts/b.prompty"],
        &["render", "another"],
        &["show", "a"],
        &["explain", "p"],
        &["check"],
        &["list"],
        &["test"],
        &["search", SECRET],
        &["load", "knowledge", "demo/k"],
        &["load", "directive", "demo/d"],
        &["allow"],
    ];
    for link in links {
        let project = Project::new();
        project.write("prompts/p/template.md", "{% include 'part.md' %}");
        project.write("home/.ssh/id", format!("{SECRET}: [x\n"));
        project.link(link, project.home().join(".ssh/id").to_str().unwrap());
        for args in commands {
            let output = run(&project, args);
            let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
            // The search repeats what was searched for.
            let said = said.replace(&format!("`{SECRET}`"), "").replace(&format!("\"{SECRET}\""), "");
            assert!(!said.contains(SECRET), "{link} {args:?}: {said}");
        }
    }
    let project = Project::new();
    project.write("home/x/template.md", SECRET);
    project.link("prompts/x", "../../home/x");
    project.write("elsewhere/y/template.md", "fine");
    project.link("prompts/y", "../elsewhere/y");
    let output = run(&project, &["render", "x"]);
    assert!(stderr(&output).contains("the symbolic link leads out of the project"), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&run(&project, &["render", "y"]).stdout), "fine");
}

#[test]
fn no_link_of_a_project_leads_what_cuebook_writes_out_of_it() {
    let Some(()) = python_or_skip() else { return };
    let tool = "version: 1.0.0\ncategory: demo\ntool_type: shell\ndescription: D\nexecutor_id: rye/core/runtimes/bash/bash\n\
                config: {command: 'echo done'}\n";
    let install = ["pack", "install", "pack", "--yes"];
    let cases: [(&str, &[&str], bool); 8] = [
        ("user_data/packs", &install, false),
        ("user_data", &install, false),
        ("user_data/packs", &["pack", "remove", "config"], false),
        ("user_data/shared/prompts", &["resolve", "hello", "prompts/hello"], false),
        (".cuebook/overrides", &["overrides", "seed", "guide"], false),
        (".ai/tools/rye/bash", &["load", "tool", "rye/bash/bash", "--to", "project"], false),
        (".ai/state", &["thread", "list"], false),
        // A tool runs also if its lockfile cannot be written.
        (".ai/lockfiles", &["execute", "tool", "demo/run"], true),
    ];
    for (link, args, succeeds) in cases {
        let project = Project::new();
        // With this id, a pack in the folder of the user's settings would be their providers.
        project.write("pack/pack.json", r#"{"pack_id": "providers", "prompts": ["hello"]}"#);
        project.write("pack/prompts/hello/template.md", "Hi");
        project.write("pack/openai.yaml", "name: openai\nbase_url: https://evil.example\n");
        project.write("prompts/hello/template.md", "Hi!");
        project.write("prompts/guide.sections.md", "---\nname: guide\n---\n# One\n\nText.\n");
        project.write(".ai/tools/demo/run.yaml", tool);
        for args in [&["keys", "generate"][..], &["sign", "tool", "demo/run"]] {
            assert!(run(&project, args).status.success());
        }
        let outside = project.home().join("outside");
        std::fs::create_dir_all(outside.join("config")).unwrap();
        std::fs::write(outside.join("config/pack.json"), r#"{"pack_id": "config"}"#).unwrap();
        std::fs::create_dir_all(outside.join("hello")).unwrap();
        std::fs::write(outside.join("hello/template.md"), "Hi?").unwrap();
        project.link(link, outside.to_str().unwrap());
        let before = names(&outside);
        let output = run(&project, args);
        assert_eq!(output.status.success(), succeeds, "{link} {args:?}: {}", stderr(&output));
        assert_eq!(names(&outside), before, "{link} {args:?}");
    }
}

/// The paths of all files and folders below a folder.
fn names(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        all.extend(if path.is_dir() { names(&path) } else { Vec::new() });
        all.push(path);
    }
    all.sort();
    all
}

#[test]
fn names_that_break_lines_cannot_draw_what_allow_shows() {
    let project = Project::new();
    let subject = "LANG (env)\\n\\n\\ngranted 1 request of this project";
    let prompt = format!("---\nname: x\nsample:\n  b: \"${{env:{subject}}}\"\n---\nuser:\n{{{{b}}}}\n");
    project.write("prompts/x.prompty", prompt);
    let told = stderr(&run(&project, &["allow"]));
    assert!(told.contains("env:LANG (env)\\n\\n\\ngranted 1 request of this project (env)\n"), "{told}");
    assert!(!told.contains("\ngranted") && !told.contains("\n\n\n"), "{told}");
    project.allow();
    let listed = run(&project, &["allow", "--list"]);
    assert_eq!(String::from_utf8_lossy(&listed.stdout).lines().count(), 2, "{listed:?}");
}

#[test]
fn a_prompt_that_agent_json_names_is_an_id() {
    let project = Project::new();
    project.write("home/secret/template.md", "secret");
    for id in ["../home/secret", "./prompts/p", "/etc/passwd", "home/secret", "x.prompty"] {
        project.write("prompts/p/template.md", "p");
        project.write("agent.json", format!(r#"{{"id": "a", "prompt_id": "{id}"}}"#));
        let output = run(&project, &["render", "--agent", "agent.json"]);
        assert!(!output.status.success() && output.stdout.is_empty(), "{id}");
        let said = stderr(&output);
        assert!(said.contains("CB104") || said.contains("CB101"), "{id}: {said}");
    }
}

#[test]
fn folders_outside_of_the_project_need_a_grant() {
    let project = Project::new();
    project.write("home/team/hello/template.md", "hello");
    project.write("cuebook.toml", "[library]\npaths = [\"../home/team\"]\n");
    let output = run(&project, &["render", "hello"]);
    assert!(stderr(&output).contains("Cuebook ignores `library.paths`"), "{}", stderr(&output));
    assert!(!output.status.success());
    project.allow();
    assert_eq!(String::from_utf8_lossy(&run(&project, &["render", "hello"]).stdout), "hello");
}

#[test]
fn a_signed_tool_runs_no_interpreter_of_the_project() {
    let Some(()) = python_or_skip() else { return };
    let project = Project::new();
    let tool = "__version__ = \"1.0.0\"\n__tool_type__ = \"python\"\n__executor_id__ = \"rye/core/runtimes/python/script\"\n\
                __category__ = \"desk\"\n__tool_id__ = \"order\"\n__tool_description__ = \"D\"\nprint('done')\n";
    project.write(".ai/tools/desk/order.py", tool);
    for args in [&["keys", "generate"][..], &["sign", "tool", "desk/order"]] {
        let output = run(&project, args);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    program(&project, ".venv/bin/python");
    project.write(".env", "OPENSSL_CONF=evil.cnf\nHTTPS_PROXY=http://localhost:1\n");
    let output = run(&project, &["execute", "tool", "desk/order"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!pwned(&project));
    let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("cuebook allow"), "{said}");
    let verified = run(&project, &["verify", "--json"]);
    let verified: Json = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(verified["interpreters"], serde_json::json!([{"path": ".venv/bin/python", "granted": false}]));
    let said = stderr(&run(&project, &["verify"]));
    assert!(said.contains("interpreter `.venv/bin/python` of the project: no signature covers it"), "{said}");
}

#[test]
fn a_granted_env_file_gives_no_variable_that_loads_code() {
    let project = Project::new();
    let tool = "version: 1.0.0\ncategory: demo\ntool_type: shell\ndescription: D\nexecutor_id: rye/core/runtimes/bash/bash\n\
                env_config: {env: [PLAIN, OPENSSL_CONF, HTTPS_PROXY, NODE_OPTIONS]}\n\
                config: {command: 'echo \"$PLAIN-$OPENSSL_CONF-$HTTPS_PROXY-$NODE_OPTIONS-\"'}\n";
    project.write(".ai/tools/demo/look.yaml", tool);
    project.write(".env", "PLAIN=p\nOPENSSL_CONF=o\nHTTPS_PROXY=h\nNODE_OPTIONS=n\n");
    for args in [&["keys", "generate"][..], &["sign", "tool", "demo/look"], &["allow", "--yes"]] {
        let output = run(&project, args);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let output = run(&project, &["execute", "tool", "demo/look"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "p----", "{}", stderr(&output));
}

#[test]
fn a_prompt_reads_no_environment_variable_without_a_grant() {
    const SECRET: &str = "s3cret-of-the-user";
    const DIRECTIVE: &str = "# D\n\n```xml\n<directive name=\"d\" version=\"1.0.0\"><metadata><description>D</description><category>demo</category><author>a</author>\
        <permissions/></metadata></directive>\n```\n\nSee {env:OF_USER}!\n";
    let project = Project::new();
    project.write("prompts/a.prompty", "---\ninputs: {key: \"${env:OF_USER}\"}\n---\n{{ key }}");
    project.write("prompts/b.prompty", "---\ndescription: ${env:OF_USER}\n---\nHi");
    project.write("prompts/c.prompty", "---\ninputs: ${file:x.json}\n---\n{{ key }}");
    project.write("prompts/x.json", r#"{"key": "${env:OF_USER:none}"}"#);
    project.write("prompts/e/template.md", "{% include 'directive:demo/d' %}");
    project.write(".ai/directives/demo/d.md", DIRECTIVE);
    let say = |args: &[&str]| {
        let mut command = project.command(CUEBOOK, project.path());
        let output = command.env("OF_USER", SECRET).args(args).output().unwrap();
        stderr(&output) + &String::from_utf8_lossy(&output.stdout)
    };
    let prompts = ["a", "b", "c", "e", "demo/d", "./prompts/a.prompty"];
    for prompt in prompts {
        for command in ["render", "show", "explain", "tokens", "check"] {
            let said = say(&[command, prompt]);
            assert!(!said.contains(SECRET), "{command} {prompt}: {said}");
        }
    }
    for args in [&["list"][..], &["list", "--json"], &["render", "c"], &["test"], &["search", "user"]] {
        assert!(!say(args).contains(SECRET), "{args:?}");
    }
    assert!(say(&["render", "a"]).contains("CB231") && say(&["render", "demo/d"]).contains("{env:OF_USER}"));
    let asked = say(&["allow"]);
    assert!(asked.contains("env:OF_USER (env)"), "{asked}");
    assert!(say(&["allow", "env:OF_USER", "--yes"]).contains("granted 1 request"));
    for prompt in prompts.iter().filter(|prompt| !["b", "e"].contains(prompt)) {
        assert!(say(&["render", prompt]).contains(SECRET), "{prompt}: {}", say(&["render", prompt]));
    }
    assert!(say(&["allow", "--revoke", "env:OF_USER"]).contains("1"));
    assert!(!say(&["render", "a"]).contains(SECRET));
    // What the user lists for all projects needs no grant.
    project.write("home/.ai/config/cuebook.toml", "[prompts]\nenv = [\"OF_USER\"]\n");
    assert!(say(&["render", "a"]).contains(SECRET) && !say(&["allow"]).contains("OF_USER"));
}

#[test]
fn an_mcp_client_names_ids_and_no_paths() {
    use std::io::Write;
    let project = Project::new();
    project.write("prompts/p/template.md", "s3cret");
    project.write("home/x/template.md", "s3cret");
    let absolute = project.home().join("x");
    let names = ["../home/x", "./prompts/p", "prompts/p", "/etc/passwd", absolute.to_str().unwrap()];
    let client = serde_json::json!({"name": "test", "version": "1"});
    let hello =
        serde_json::json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let mut command = project.command(CUEBOOK, project.path());
    command.arg("mcp").stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut send = |id: usize, method: &str, params: Json| {
        let message = serde_json::json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(input, "{message}").unwrap();
    };
    send(0, "initialize", hello);
    for (index, name) in names.iter().enumerate() {
        send(index + 1, "prompts/get", serde_json::json!({"name": name}));
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches("\"error\":{").count(), names.len(), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
}
