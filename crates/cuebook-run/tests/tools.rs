//! Tools from end to end: languages, chains, lockfiles, environments, the bundled ones.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../skip.rs"]
mod skip;

mod support;

use cuebook::items::file_hash;
use serde_json::{Value as Json, json};
use support::Fixture;

fn code(answer: &Json) -> &str {
    answer["metadata"]["error"]["code"].as_str().unwrap_or("none")
}

const FUNCTION: &str = "__version__ = \"1.0.0\"\n__tool_type__ = \"python\"\n\
    __executor_id__ = \"rye/core/runtimes/python/function\"\n__category__ = \"demo\"\n";

#[test]
fn the_examples_of_the_reference_work_as_printed() {
    let world = Fixture::new();
    let written =
        world.tool("rye/file-system/write", json!({"path": "output.txt", "content": "hello world"}));
    assert_eq!(written["status"], "success", "{written}");
    assert_eq!(written["type"], "tool");
    assert_eq!(
        written["chain"],
        json!(["rye/file-system/write", "rye/core/runtimes/python/script", "rye/core/primitives/subprocess"])
    );
    assert_eq!(written["data"], json!({"success": true, "path": "output.txt", "bytes": 11, "created": true}));
    assert_eq!(std::fs::read_to_string(world.project().join("output.txt")).unwrap(), "hello world");
    assert!(written["metadata"]["duration_ms"].is_u64());
    let dry = world.dry("tool", "rye/bash/bash", json!({"command": "echo test > made"}));
    assert_eq!(dry["status"], "validation_passed", "{dry}");
    assert_eq!(dry["message"], "Tool chain validation passed (dry run)");
    assert_eq!(dry["validated_pairs"].as_array().unwrap().len(), 2);
    assert!(!world.project().join("made").exists());
}

#[test]
fn functions_node_and_bash_get_their_parameters() {
    let world = Fixture::new();
    world.signed(
        "tools/demo/f.py",
        &format!("{FUNCTION}async def execute(params, project_path):\n    print('noise')\n    return {{'got': params, 'at': project_path}}\n"),
    );
    let answer = world.tool("demo/f", json!({"a": 1}));
    assert_eq!(answer["data"], json!({"got": {"a": 1}, "at": world.project()}), "{answer}");
    world.signed(
        "tools/demo/none.py",
        &format!("{FUNCTION}def execute(params, project_path):\n    return None\n"),
    );
    assert_eq!(world.tool("demo/none", json!({}))["data"], Json::Null);
    world.signed(
        "tools/demo/shell.sh",
        "#!/bin/bash\n# __version__ = \"1.0.0\"\n# __category__ = \"demo\"\n# __executor_id__ = \"rye/core/runtimes/bash/bash\"\ncat; echo \" $#\"\n",
    );
    assert_eq!(world.tool("demo/shell", json!({"a": "$(id)"}))["data"]["stdout"], "{\"a\":\"$(id)\"} 2\n");
    if std::process::Command::new("node").arg("--version").output().is_err() {
        return skip::missing_peer("node is missing");
    }
    world.signed(
        "tools/demo/n.mjs",
        "export const __version__ = '1.0.0';\nconst __category__ = 'demo';\nconst __executor_id__ = 'rye/core/runtimes/node/node';\n\
         import fs from 'fs';\nconst given = JSON.parse(fs.readFileSync(0, 'utf8'));\nconsole.log(JSON.stringify({ given, n: process.argv.length }));\n",
    );
    assert_eq!(world.tool("demo/n", json!({"a": [1]}))["data"], json!({"given": {"a": [1]}, "n": 4}));
}

#[test]
fn parameters_are_data_only() {
    let world = Fixture::new();
    world.signed(
        "tools/demo/sh.yaml",
        "version: 1.0.0\ncategory: demo\nexecutor_id: rye/core/primitives/subprocess\n\
         config:\n  command: /bin/sh\n  args: ['-c', 'echo hello {who}; pwd; echo err >&2']\n  timeout: 10\n",
    );
    let said =
        |parameters: Json| world.tool("demo/sh", parameters)["data"]["stdout"].as_str().unwrap().to_owned();
    let here = world.project().display().to_string();
    assert_eq!(said(json!({"who": "Ann"})), format!("hello Ann\n{here}\n"));
    assert_eq!(said(json!({})), format!("hello {{who}}\n{here}\n"));
    assert_eq!(said(json!({"who": "$(echo INJECTED)"})), format!("hello $(echo INJECTED)\n{here}\n"));
    assert_eq!(
        said(json!({"who": "${PATH} {project_path}"})),
        format!("hello ${{PATH}} {{project_path}}\n{here}\n")
    );
    let others = json!({"who": "x", "command": "/bin/false", "args": [], "cwd": "/", "timeout": 0.001, "env": {"A": "b"}});
    assert_eq!(said(others), format!("hello x\n{here}\n"));
}

#[test]
fn bash_runs_the_tools_command_or_the_callers() {
    let world = Fixture::new();
    let yaml = "version: 1.0.0\ncategory: demo\nexecutor_id: rye/core/runtimes/bash/bash\n";
    world.signed("tools/demo/own.yaml", &format!("{yaml}config: {{command: 'echo \"<{{who}}>\"'}}\n"));
    assert_eq!(
        world.tool("demo/own", json!({"who": "$(id)", "command": "echo no"}))["data"]["stdout"],
        "<$(id)>\n"
    );
    world.signed("tools/demo/any.yaml", yaml);
    assert_eq!(
        world.tool("demo/any", json!({"command": "echo hi; echo {who}"}))["data"]["stdout"],
        "hi\n{who}\n"
    );
    // The runtime itself is not a tool that runs any command.
    let runtime = world.tool("rye/core/runtimes/bash/bash", json!({"command": "touch made"}));
    assert_eq!((code(&runtime), runtime["status"].as_str()), ("CB705", Some("error")), "{runtime}");
    assert!(!world.project().join("made").exists());
}

#[test]
fn no_value_becomes_code_of_a_script() {
    let world = Fixture::new();
    let yaml = "version: 1.0.0\ncategory: demo\nexecutor_id: rye/core/runtimes/bash/bash\n";
    world.signed("tools/demo/sum.yaml", &format!("{yaml}config: {{command: 'echo $(( {{n}} + 1 ))'}}\n"));
    assert_eq!(world.tool("demo/sum", json!({"n": 2}))["data"], 3);
    let answer = world.tool("demo/sum", json!({"n": "a[$(touch made)]"}));
    assert_eq!(code(&answer), "CB710", "{answer}");
    let answer = world.tool("demo/sum", json!({"n": "1\0"}));
    assert_eq!(code(&answer), "CB710", "{answer}");
    let primitive = "version: 1.0.0\ncategory: demo\nexecutor_id: rye/core/primitives/subprocess\n";
    world.signed(
        "tools/demo/py.yaml",
        &format!("{primitive}config: {{command: python3, args: ['-c', 'print(\"{{x}}\")']}}\n"),
    );
    let answer = world.tool("demo/py", json!({"x": "\"); open(\"made\", \"w\"); (\""}));
    assert_eq!(code(&answer), "CB705", "{answer}");
    world.signed(
        "tools/demo/env.yaml",
        &format!("{primitive}config: {{command: /usr/bin/env, args: [bash, '-e', '-c', 'echo {{x}}']}}\n"),
    );
    let answer = world.tool("demo/env", json!({"x": "$(touch made); touch made"}));
    assert_eq!(answer["data"]["stdout"], "$(touch made); touch made\n", "{answer}");
    assert!(!world.project().join("made").exists());
}

#[test]
fn a_command_that_never_stops_talking_fills_no_disk() {
    let world = Fixture::new();
    let command = "timeout 1 yes; echo end >&2; true";
    let answer = world.tool("rye/bash/bash", json!({"command": command}));
    assert_eq!(answer["data"]["truncated"], true, "{}", answer["error"]);
    assert_eq!(answer["data"]["stdout"].as_str().unwrap().len(), 1 << 20);
    assert_eq!(answer["data"]["stderr"], "end\n");
}

#[test]
fn a_tools_environment_beats_its_runtimes() {
    let world = Fixture::new();
    world.plain(
        ".env",
        "FROM_DOT_ENV=yes\nPATH=/nowhere\nBASH_ENV=evil.sh\nENV=evil.sh\nNODE_OPTIONS=--bad\n",
    );
    world.plain("evil.sh", "echo HIJACKED\n");
    world.signed(
        "tools/demo/sh.sh",
        "# __version__ = \"1.0.0\"\n# __category__ = \"demo\"\n# __executor_id__ = \"rye/core/runtimes/bash/bash\"\necho fine\n",
    );
    assert_eq!(world.tool("demo/sh", json!({}))["data"]["stdout"], "fine\n");
    world.signed(
        "tools/demo/runtime.yaml",
        "version: 1.0.0\ncategory: demo\ntool_type: runtime\nexecutor_id: rye/core/primitives/subprocess\n\
         env_config: {env: {COLOUR: runtime, BOTH: 'r:${COLOUR}'}}\n\
         config: {command: sh, args: ['-c', 'echo $COLOUR $BOTH $FROM_DOT_ENV $HERE']}\n",
    );
    world.signed(
        "tools/demo/tool.yaml",
        "version: 1.0.0\ncategory: demo\nexecutor_id: demo/runtime\nenv_config: {env: {COLOUR: tool, FROM_DOT_ENV: '${FROM_DOT_ENV}', HERE: '{tool_id}${NONE:-!}'}}\n",
    );
    let answer = world.tool("demo/tool", json!({}));
    assert_eq!(answer["data"]["stdout"], "tool r:runtime demo/tool!\n", "{answer}");
    let warning = answer["metadata"]["warnings"][0].as_str().unwrap();
    assert!(warning.contains("env-file `.env` needs a grant") && warning.contains("CB231"), "{warning}");
    world.allow();
    let answer = world.tool("demo/tool", json!({}));
    assert_eq!(answer["data"]["stdout"], "tool r:runtime yes demo/tool!\n", "{answer}");
    assert_eq!(answer["metadata"]["warnings"], Json::Null);
    assert_eq!(world.tool("demo/sh", json!({}))["data"]["stdout"], "fine\n");
    assert_eq!(answer["metadata"]["resolved_env_keys"], json!(["COLOUR", "BOTH", "FROM_DOT_ENV", "HERE"]));
    // What is not the project's runs with neither its `.env` nor its interpreter.
    world.plain(".venv/bin/python", "#!/bin/sh\necho HIJACKED\n");
    let python = world.project().join(".venv/bin/python");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(python, mode).unwrap();
    let answer = world.tool("rye/bash/bash", json!({"command": "echo -$FROM_DOT_ENV-"}));
    assert_eq!(answer["data"]["stdout"], "--\n", "{answer}");
    world.python("demo/mine", "print('mine')\n");
    // A lockfile pins the interpreter; this is about the others.
    let run = || {
        let _ = std::fs::remove_dir_all(world.project().join(".ai/lockfiles"));
        world.tool("demo/mine", json!({}))
    };
    let answer = run();
    assert_eq!(answer["data"]["stdout"], "mine\n", "{answer}");
    let warning = answer["metadata"]["warnings"][0].as_str().unwrap();
    assert!(warning.contains("cuebook allow .venv/bin/python"), "{warning}");
    world.allow();
    assert_eq!(run()["data"]["stdout"], "HIJACKED\n");
    // Any change of the environment needs a new grant.
    world.plain(".venv/bin/python", "#!/bin/sh\necho WORSE\n");
    assert_eq!(run()["data"]["stdout"], "mine\n");
    world.allow();
    world.plain(".venv/pyvenv.cfg", "home = /usr/bin\n");
    assert_eq!(run()["data"]["stdout"], "mine\n");
    world.allow();
    world.plain(".venv/lib/x.py", "");
    assert_eq!(run()["data"]["stdout"], "mine\n");
}

#[test]
fn chains_that_do_not_work_are_explained_with_how_far_they_came() {
    let world = Fixture::new();
    let tool = |name: &str, executor: &str, more: &str| {
        let yaml = format!("version: 1.0.0\ncategory: demo\nexecutor_id: {executor}\n{more}");
        world.signed(&format!("tools/demo/{name}.yaml"), &yaml);
    };
    tool("lost", "demo/missing_runtime", "");
    let answer = world.tool("demo/lost", json!({}));
    assert_eq!(answer["error"], "Executor not found: demo/missing_runtime");
    assert_eq!((code(&answer), &answer["chain"]), ("CB701", &json!(["demo/lost"])));
    tool("a", "demo/b", "");
    tool("b", "demo/a", "");
    let answer = world.tool("demo/a", json!({}));
    assert_eq!(answer["error"], "Circular dependency detected: demo/a");
    assert_eq!((code(&answer), &answer["chain"]), ("CB702", &json!(["demo/a", "demo/b"])));
    for n in 0..10 {
        tool(&format!("l{n}"), &format!("demo/l{}", n + 1), "");
    }
    tool("l10", "rye/core/primitives/subprocess", "");
    let answer = world.tool("demo/l0", json!({}));
    assert_eq!((code(&answer), answer["chain"].as_array().unwrap().len()), ("CB703", 10));
    assert_eq!(
        world.dry("tool", "demo/l2", json!({}))["status"],
        "validation_passed",
        "ten links are allowed"
    );
    tool(
        "picky",
        "rye/core/primitives/subprocess",
        "child_constraints: {demo/young: {min_version: 2.0.0}}\ninputs: [b]\n",
    );
    tool("young", "demo/picky", "outputs: [a]\n");
    let answer = world.tool("demo/young", json!({}));
    assert_eq!(
        answer["error"],
        "Chain validation failed: I/O mismatch: 'demo/picky' requires inputs ['b'] not provided by 'demo/young' \
         (outputs: ['a']); Version constraint failed: 'demo/young' version 1.0.0 < minimum required 2.0.0"
    );
    assert_eq!(code(&answer), "CB704");
    world.signed("tools/demo/bare.sh", "echo x\n");
    let answer = world.tool("demo/bare", json!({}));
    assert_eq!((&answer["error"], code(&answer)), (&json!("Unknown primitive: demo/bare"), "CB705"));
    let hint = answer["metadata"]["error"]["hint"].as_str().unwrap();
    assert!(hint.ends_with("as in # __executor_id__ = \"rye/core/runtimes/bash/bash\""), "{hint}");
}

#[test]
fn a_tool_of_the_user_uses_no_runtime_of_a_project() {
    let world = Fixture::new();
    let runtime = |says: &str| {
        format!(
            "version: 1.0.0\ncategory: my\nexecutor_id: rye/core/primitives/subprocess\nconfig: {{command: echo, args: [{says}]}}\n"
        )
    };
    world.signed("tools/my/runtime.yaml", &runtime("project"));
    let tool = "version: 1.0.0\ncategory: my\nexecutor_id: my/runtime\n";
    world.signed_in(&world.user(), "tools/my/tool.yaml", tool);
    let answer = world.tool("my/tool", json!({}));
    assert_eq!(answer["error"], "Executor not found: my/runtime");
    assert!(
        answer["metadata"]["error"]["hint"].as_str().unwrap().contains("the project has one"),
        "{answer}"
    );
    world.signed_in(&world.user(), "tools/my/runtime.yaml", &runtime("user"));
    assert_eq!(world.tool("my/tool", json!({}))["data"]["stdout"], "user\n");
}

#[test]
fn unsigned_items_fail_even_a_dry_run() {
    let world = Fixture::new();
    world.plain(
        ".ai/tools/demo/u.py",
        "__executor_id__ = 'rye/core/runtimes/python/script'\nopen('ran', 'w')\n",
    );
    for answer in [world.tool("demo/u", json!({})), world.dry("tool", "demo/u", json!({}))] {
        assert_eq!(
            answer["error"],
            format!("Unsigned item: {}/.ai/tools/demo/u.py", world.project().display())
        );
        assert_eq!(code(&answer), "CB220");
    }
    assert!(!world.project().join("ran").exists());
}

#[test]
fn a_lockfile_pins_the_chain_until_it_is_deleted() {
    let world = Fixture::new();
    world.python("demo/echo", "print('{\"n\": 1}')\n");
    let first = world.tool("demo/echo", json!({}));
    assert_eq!(
        (&first["metadata"]["lockfile_used"], &first["metadata"]["lockfile_created"]),
        (&json!(false), &json!(true))
    );
    let lock = world.project().join(".ai/lockfiles/demo/echo@1.0.0.lock.json");
    let written: Json = serde_json::from_slice(&std::fs::read(&lock).unwrap()).unwrap();
    assert_eq!(written["lockfile_version"], 1);
    assert_eq!(written["root"]["tool_id"], "demo/echo");
    assert_eq!(written["resolved_chain"], first["chain_details"]);
    let second = world.tool("demo/echo", json!({}));
    assert_eq!(
        (&second["metadata"]["lockfile_used"], &second["metadata"]["lockfile_created"]),
        (&json!(true), &json!(false))
    );
    world.python("demo/echo", "print('{\"n\": 2}')\n");
    let stale = world.tool("demo/echo", json!({}));
    assert_eq!(stale["error"], "Lockfile integrity mismatch for demo/echo");
    assert_eq!(
        (code(&stale), &stale["metadata"]["error"]["file"]),
        ("CB229", &json!(".ai/tools/demo/echo.py"))
    );
    // The same for a file that was changed and not even signed.
    let path = world.project().join(".ai/tools/demo/echo.py");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text + "# more\n").unwrap();
    assert_eq!(code(&world.tool("demo/echo", json!({}))), "CB229");
    std::fs::remove_file(&lock).unwrap();
    assert_eq!(code(&world.tool("demo/echo", json!({}))), "CB221");
    world.python("demo/echo", "print('{\"n\": 2}')\n");
    std::fs::write(&lock, "{").unwrap();
    let corrupt = world.tool("demo/echo", json!({}));
    assert_eq!(
        (code(&corrupt), &corrupt["metadata"]["error"]["file"]),
        ("CB230", &json!(".ai/lockfiles/demo/echo@1.0.0.lock.json"))
    );
    std::fs::remove_file(&lock).unwrap();
    assert_eq!(world.tool("demo/echo", json!({}))["data"], json!({"n": 2}));
    // A runtime that a project puts in the way is another chain.
    let yaml = "name: script\nversion: 9.0.0\ncategory: rye/core/runtimes/python\nexecutor_id: rye/core/primitives/subprocess\nconfig: {command: echo}\n";
    world.signed("tools/rye/core/runtimes/python/script.yaml", yaml);
    let other = world.tool("demo/echo", json!({}));
    assert_eq!(
        other["error"],
        "Lockfile integrity mismatch for chain element rye/core/runtimes/python/script"
    );
}

#[test]
fn the_files_of_an_anchored_tool_are_verified_too() {
    let world = Fixture::new();
    let main = format!(
        "{}from helper import v\ndef execute(params, project_path):\n    return {{'v': v}}\n",
        FUNCTION.replace("\"demo\"", "\"demo/pkg\"")
    );
    world.signed("tools/demo/pkg/main.py", &main);
    world.signed("tools/demo/pkg/helper.py", "v = 42\n");
    let without = world.tool("demo/pkg/main", json!({}));
    assert_eq!(without["status"], "error", "without an anchor nothing beside a tool is imported");
    world.signed("tools/demo/pkg/__init__.py", "");
    let answer = world.tool("demo/pkg/main", json!({}));
    assert_eq!(answer["data"], json!({"v": 42}), "{answer}");
    assert!(!world.project().join(".ai/tools/demo/pkg/__pycache__").exists());
    for compiled in ["json.pyc", "json.so"] {
        world.plain(&format!(".ai/tools/demo/pkg/{compiled}"), "code");
        let answer = world.tool("demo/pkg/main", json!({}));
        assert_eq!(code(&answer), "CB220", "{answer}");
        std::fs::remove_file(world.project().join(".ai/tools/demo/pkg").join(compiled)).unwrap();
    }
    world.plain(".ai/tools/demo/pkg/helper.py", "v = 43\n");
    let answer = world.tool("demo/pkg/main", json!({}));
    let helper = world.project().join(".ai/tools/demo/pkg/helper.py");
    assert_eq!(answer["error"], format!("Unsigned item: {}", helper.display()));
    std::fs::remove_file(&helper).unwrap();
    std::fs::write(world.user().join("helper.py"), "v = 44\n").unwrap();
    std::os::unix::fs::symlink(world.user().join("helper.py"), &helper).unwrap();
    let answer = world.tool("demo/pkg/main", json!({}));
    assert_eq!(answer["error"], format!("Symlink escape: {}", helper.display()));
}

#[test]
fn a_tool_lists_its_files_with_their_hashes() {
    let world = Fixture::new();
    let (helper, rates) = ("def f():\n    return 7\n", "a: 1\n");
    world.plain(".ai/tools/demo/parts/helper.py", helper);
    world.plain(".ai/tools/demo/parts/rates.yaml", rates);
    world.plain(".ai/tools/demo/parts/__init__.py", "");
    let body = "import os\nfrom helper import f\ndef execute(params, project_path):\n    with open(os.path.join(os.path.dirname(__file__), 'rates.yaml')) as file:\n        return [f(), file.read()]\n";
    let header = FUNCTION.replace("\"demo\"", "\"demo/parts\"");
    world.signed("tools/demo/parts/main.py", &format!("{header}{body}"));
    let unlisted = world.tool("demo/parts/main", json!({}));
    let hint = unlisted["metadata"]["error"]["hint"].as_str().unwrap_or_default();
    let hash = file_hash(helper.as_bytes());
    assert!(hint.contains(&format!("__files__ = {{\"helper.py\": \"{hash}\"}}")), "{unlisted}");
    let list = format!(
        "__files__ = {{\"helper.py\": \"{hash}\", \"rates.yaml\": \"{}\"}}\n",
        file_hash(rates.as_bytes())
    );
    world.signed("tools/demo/parts/main.py", &format!("{header}{list}{body}"));
    let answer = world.tool("demo/parts/main", json!({}));
    assert_eq!(answer["data"], json!([7, "a: 1\n"]), "{answer}");
    world.plain(".ai/tools/demo/parts/rates.yaml", "a: 2\n");
    let changed = world.tool("demo/parts/main", json!({}));
    assert!(
        changed["error"].as_str().unwrap().contains("the listed file `rates.yaml` has the hash"),
        "{changed}"
    );
    std::fs::remove_file(world.project().join(".ai/tools/demo/parts/rates.yaml")).unwrap();
    let missing = world.tool("demo/parts/main", json!({}));
    assert!(missing["error"].as_str().unwrap().contains("does not exist"), "{missing}");
}

#[test]
fn a_copy_of_a_built_in_runtime_runs_with_the_built_in_library() {
    let world = Fixture::new();
    world.signed("tools/demo/f.py", &format!("{FUNCTION}def execute(params, project_path):\n    return 1\n"));
    let runtime = cuebook::items::system_files()
        .iter()
        .find(|(path, _)| path.ends_with("runtimes/python/function.yaml"))
        .map(|(_, bytes)| String::from_utf8(bytes.to_vec()).unwrap())
        .unwrap();
    let unsigned: String =
        runtime.lines().filter(|line| !line.contains("signed:")).map(|line| format!("{line}\n")).collect();
    world.signed("tools/rye/core/runtimes/python/function.yaml", &unsigned);
    let answer = world.tool("demo/f", json!({}));
    assert_eq!(answer["data"], json!(1), "{answer}");
}

#[test]
fn two_files_of_one_id_are_refused_with_both_names() {
    let world = Fixture::new();
    world.signed("tools/demo/f.py", &format!("{FUNCTION}def execute(params, project_path):\n    return 1\n"));
    world.plain(".ai/tools/demo/f.yml", "version: 1.0.0\n");
    let answer = world.tool("demo/f", json!({}));
    assert_eq!((code(&answer), &answer["item_id"]), ("CB102", &json!("demo/f")), "{answer}");
    let error = answer["error"].as_str().unwrap();
    assert!(error.contains("demo/f.py") && error.contains("demo/f.yml"), "{error}");
}

#[test]
fn parameters_that_do_not_fit_are_refused_before_anything_runs() {
    let world = Fixture::new();
    let answer = world.tool("rye/file-system/write", json!({"path": 3, "contnt": ""}));
    assert_eq!(code(&answer), "CB710");
    assert_eq!(
        answer["error"],
        "rye/file-system/write has no parameter `contnt`; rye/file-system/write needs the parameter `content`; \
         the parameter `path` must be of type string, not an integer"
    );
}

#[test]
fn the_file_tools_stay_inside_the_project() {
    let world = Fixture::new();
    let outside = world.user().join("secret.txt");
    std::fs::write(&outside, "secret").unwrap();
    std::os::unix::fs::symlink(&outside, world.project().join("link.txt")).unwrap();
    std::os::unix::fs::symlink(world.user(), world.project().join("folder")).unwrap();
    world.plain("inner/a.txt", "one\ntwo\nthree\n");
    std::os::unix::fs::symlink("inner/a.txt", world.project().join("own.txt")).unwrap();
    let absolute = outside.display().to_string();
    for path in
        ["link.txt", "../x", "folder/secret.txt", "folder/new.txt", &absolute, "inner/../../x", "/etc/passwd"]
    {
        for (tool, parameters) in [
            ("read", json!({"path": path})),
            ("write", json!({"path": path, "content": "owned"})),
            ("edit", json!({"path": path, "old": "secret", "new": "owned"})),
            ("list", json!({"path": path})),
            ("glob", json!({"path": path, "pattern": "*"})),
            ("grep", json!({"path": path, "pattern": "."})),
        ] {
            let answer = world.tool(&format!("rye/file-system/{tool}"), parameters);
            assert_eq!(code(&answer), "CB709", "{tool} {path}: {answer}");
        }
    }
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "secret");
    let read = world.tool("rye/file-system/read", json!({"path": "own.txt", "offset": 2, "limit": 1}));
    assert_eq!(read["data"]["content"], "two\n", "{read}");
    assert_eq!(read["data"]["total_lines"], 3);
    let edit = world.tool("rye/file-system/edit", json!({"path": "inner/a.txt", "old": "two", "new": "2"}));
    assert_eq!(edit["data"]["replaced"], 1, "{edit}");
    let list = world.tool("rye/file-system/list", json!({"path": "inner"}));
    assert_eq!(list["data"]["entries"], json!([{"name": "a.txt", "kind": "file", "size": 12}]));
    let glob = world.tool("rye/file-system/glob", json!({"pattern": "*.txt"}));
    assert_eq!(glob["data"]["files"], json!(["own.txt", "inner/a.txt"]));
    let grep = world.tool("rye/file-system/grep", json!({"pattern": "^t|secret"}));
    let lines: Vec<&str> =
        grep["data"]["matches"].as_array().unwrap().iter().map(|m| m["text"].as_str().unwrap()).collect();
    assert_eq!(lines, ["three", "three"], "{grep}");
}
