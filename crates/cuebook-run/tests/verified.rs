//! What runs is what was verified: tools run from private copies, and interpreters load nothing else.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]
#![cfg(unix)]

#[path = "../../skip.rs"]
mod skip;

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value as Json, json};
use support::Fixture;

const SHELL: &str = "# __version__ = \"1.0.0\"\n# __category__ = \"demo\"\n# __executor_id__ = \"rye/core/runtimes/bash/bash\"\n";
const NODE: &str = "const __version__ = '1.0.0';\nconst __category__ = 'demo';\nconst __executor_id__ = 'rye/core/runtimes/node/node';\n";

fn code(answer: &Json) -> &str {
    answer["metadata"]["error"]["code"].as_str().unwrap_or_default()
}

fn printed(world: &Fixture, id: &str) -> String {
    let answer = world.tool(id, json!({}));
    answer["data"]["stdout"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn has_node() -> bool {
    let found = std::process::Command::new("node").arg("--version").output().is_ok();
    if !found {
        skip::missing_peer("node is missing");
    }
    found
}

#[test]
fn a_file_that_is_swapped_while_it_runs_never_runs_unsigned() {
    let world = Fixture::new();
    world.signed("tools/demo/x.sh", &format!("{SHELL}sleep 0.01\necho signed\n"));
    world.signed("tools/demo/lib.sh", "echo helper\n");
    world.signed("tools/demo/y.sh", &format!("{SHELL}. \"$(dirname \"$0\")/lib.sh\"\n"));
    let folder = world.project().join(".ai/tools/demo");
    let files = ["x.sh", "lib.sh"].map(|name| (folder.join(name), std::fs::read(folder.join(name)).unwrap()));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut turn = 0_u32;
            while !stop.load(Ordering::Relaxed) {
                turn += 1;
                for (path, good) in &files {
                    let new = folder.join(format!(".{turn}"));
                    let bytes: &[u8] =
                        if turn.is_multiple_of(2) { good } else { b"touch pwned; echo unsigned\n" };
                    std::fs::write(&new, bytes).unwrap();
                    std::fs::rename(&new, path).unwrap();
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let answers = (0..40).flat_map(|_| ["demo/x", "demo/y"].map(|id| world.tool(id, json!({}))));
        let is_signed = |answer: &Json| {
            let said = answer["data"]["stdout"].as_str().unwrap_or_default();
            ["", "signed\n", "helper\n"].contains(&said)
        };
        let wrong: Vec<Json> = answers.filter(|answer| !is_signed(answer)).collect();
        // Before anything fails: the other thread goes on until then.
        stop.store(true, Ordering::Relaxed);
        assert_eq!(wrong, Vec::<Json>::new());
    });
    assert!(!world.project().join("pwned").exists());
}

#[test]
fn the_copy_that_a_tool_runs_from_is_private_and_goes() {
    let world = Fixture::new();
    world.signed(
        "tools/demo/x.sh",
        &format!("{SHELL}d=$(dirname \"$0\")\necho \"$d\"\nstat -c %a \"$d\" \"$0\" \"$d/../../..\"\n"),
    );
    let said = printed(&world, "demo/x");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[1..], ["700", "700", "700"], "{said}");
    assert!(!Path::new(lines[0]).exists() && !Path::new(lines[0]).starts_with(world.project()), "{said}");
}

#[test]
fn data_beside_a_tool_is_read_as_it_is_there() {
    let world = Fixture::new();
    world.signed("tools/demo/x.sh", &format!("{SHELL}cat \"$(dirname \"$0\")/data/list.txt\"\n"));
    world.plain(".ai/tools/demo/data/list.txt", "one\n");
    assert_eq!(printed(&world, "demo/x"), "one\n");
    world.plain(".ai/tools/demo/data/list.txt", "two\n");
    assert_eq!(printed(&world, "demo/x"), "two\n");
    world.python(
        "demo/p",
        "import os\nprint(open(os.path.join(os.path.dirname(__file__), 'data/list.txt')).read())\n",
    );
    assert_eq!(printed(&world, "demo/p"), "two\n\n");
}

#[test]
fn a_shell_tool_sources_signed_files_only() {
    let world = Fixture::new();
    world.signed("tools/demo/x.sh", &format!("{SHELL}. \"$(dirname \"$0\")/lib.sh\"\n"));
    world.signed("tools/demo/lib.sh", "echo helper\n");
    assert_eq!(printed(&world, "demo/x"), "helper\n");
    world.plain(".ai/tools/demo/lib.sh", "touch pwned\n");
    assert_eq!(world.tool("demo/x", json!({}))["status"], "error");
    assert!(!world.project().join("pwned").exists());
}

#[test]
fn node_loads_no_unsigned_file() {
    if !has_node() {
        return;
    }
    let evil = "require('fs').writeFileSync('pwned', ''); module.exports = 'unsigned';\n";
    for (main, file, text) in [
        ("require('./lib.cjs')", ".ai/tools/demo/lib.cjs", evil),
        ("require('./lib')", ".ai/tools/demo/lib", evil),
        ("require('./lib')", ".ai/tools/demo/lib/index.js", evil),
        ("require('pack')", "node_modules/pack/index.js", evil),
        ("require('pack')", ".ai/tools/demo/node_modules/pack/index.js", evil),
        ("require('./sub')", ".ai/tools/demo/sub/package.json", "{\"main\": \"../evil.txt\"}"),
    ] {
        let world = Fixture::new();
        world.signed("tools/demo/n.cjs", &format!("{NODE}console.log({main});\n"));
        world.plain(".ai/tools/demo/evil.txt", evil);
        world.plain(file, text);
        for marker in [false, true] {
            if marker {
                world.plain(".ai/tools/demo/package.json", "{\"imports\": {\"#x\": \"./evil.txt\"}}");
            }
            let answer = world.tool("demo/n", json!({}));
            assert_eq!(answer["status"], "error", "{main} {file}: {answer}");
            assert!(!world.project().join("pwned").exists(), "{main} {file}");
        }
    }
    let world = Fixture::new();
    world.signed(
        "tools/demo/n.cjs",
        &format!("{NODE}console.log(require('./lib.cjs'), require('./data.json').v);\n"),
    );
    world.signed("tools/demo/lib.cjs", "module.exports = 'signed';\n");
    world.plain(".ai/tools/demo/data.json", "{\"v\": 1}");
    assert_eq!(printed(&world, "demo/n"), "signed 1\n");
    world.plain(".ai/tools/demo/package.json", "{}");
    assert_eq!(printed(&world, "demo/n"), "signed 1\n");
    // Node would also read a package.json in a folder above its copy, where other users may write.
    let world = Fixture::new();
    let nearest = "const fs = require('fs'), path = require('path'); let d = __dirname;\n\
        while (!fs.existsSync(path.join(d, 'package.json'))) d = path.dirname(d);\n\
        console.log(path.relative(d, __dirname), fs.readFileSync(path.join(d, 'package.json'), 'utf8').trim());\n";
    world.signed("tools/demo/n.cjs", &format!("{NODE}{nearest}"));
    assert_eq!(printed(&world, "demo/n"), ".ai/tools/demo {}\n");
}

#[test]
fn python_imports_no_unsigned_file() {
    let evil = "open('pwned', 'w').close()\n";
    for file in [
        "colorsys.py",
        "sitecustomize.py",
        "usercustomize.py",
        ".ai/tools/demo/colorsys.py",
        ".ai/tools/demo/pkg/venv/__init__.py",
        ".ai/tools/demo/pkg/__pycache__/helper.cpython-312.pyc",
        ".ai/tools/demo/pkg/x.pth",
    ] {
        let world = Fixture::new();
        world.plain(file, evil);
        world.python("demo/p", "import colorsys, venv, json, sys\nprint(json.dumps({'path': sys.path}))\n");
        world.python("demo/pkg/q", "import venv, helper\nprint(helper.v)\n");
        world.signed("tools/demo/pkg/__init__.py", "").signed("tools/demo/pkg/helper.py", "v = 'signed'\n");
        let answer = world.tool("demo/p", json!({}));
        assert_eq!(answer["status"], "success", "{answer}");
        let project = world.project().display().to_string();
        assert!(!answer["data"]["path"].to_string().contains(&project), "{answer}");
        assert_eq!(printed(&world, "demo/pkg/q"), "signed\n");
        assert!(!world.project().join("pwned").exists(), "{file}");
    }
}

const GREET: &str = "# Greet\n\n```xml\n<directive name=\"greet\" version=\"1.0.0\">\n  <metadata>\n    \
    <description>Greets</description>\n    <category>demo</category>\n    <author>demo</author>\n  </metadata>\n\
    </directive>\n```\n\n<process>\n  <step name=\"greet\">Greet them.</step>\n</process>\n";

/// A signed directive that was executed until few looks prove that its signature still counts.
fn proven(root: impl Fn(&Fixture) -> std::path::PathBuf) -> Fixture {
    let world = Fixture::new();
    world.signed_in(&root(&world), "directives/demo/greet.md", GREET);
    // Only times that are old enough prove anything.
    std::thread::sleep(std::time::Duration::from_millis(50));
    for _ in 0..4 {
        assert_eq!(world.run("directive", "demo/greet", json!({}))["status"], "success");
    }
    world
}

fn refused(world: &Fixture, wanted: &str) {
    let answer = world.run("directive", "demo/greet", json!({}));
    assert_eq!((answer["status"].as_str(), code(&answer)), (Some("error"), wanted), "{answer}");
}

#[test]
fn a_proven_directive_is_refused_once_it_is_changed() {
    let world = proven(Fixture::project);
    let path = world.project().join(".ai/directives/demo/greet.md");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("Greet them", "Greet me!!")).unwrap();
    refused(&world, "CB221");
    std::fs::write(&path, text).unwrap();
    assert_eq!(world.run("directive", "demo/greet", json!({}))["status"], "success");
    std::fs::remove_file(&path).unwrap();
    refused(&world, "CB116");
}

#[test]
fn a_proven_directive_is_refused_once_its_key_is_not_trusted() {
    let world = proven(Fixture::project);
    for entry in std::fs::read_dir(world.user().join(".ai/config/keys/trusted")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    refused(&world, "CB223");
}

#[test]
fn a_nearer_directive_takes_the_place_of_a_proven_one() {
    let world = proven(Fixture::user);
    world.plain(".ai/directives/demo/greet.md", GREET);
    refused(&world, "CB220");
}

#[test]
fn parameters_are_never_arguments_of_a_process() {
    let world = Fixture::new();
    let secret = "hunter2-hunter2";
    let check = |id: &str, parameters: Json| {
        let answer = world.tool(id, parameters);
        let said = answer["data"]["stdout"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        assert!(said.contains("PID") && !said.contains(secret), "{said}");
    };
    world.signed("tools/demo/x.sh", &format!("{SHELL}echo PID; tr '\\0' ' ' < /proc/$$/cmdline\n"));
    world.python("demo/p", "import sys\nassert 'hunter2' in ' '.join(sys.argv)\nassert 'hunter2' in sys.stdin.read()\nprint('PID', open('/proc/self/cmdline').read())\n");
    let yaml = "version: 1.0.0\ncategory: demo\nexecutor_id: rye/core/runtimes/bash/bash\n";
    world.signed("tools/demo/any.yaml", yaml);
    world.signed(
        "tools/demo/own.yaml",
        &format!("{yaml}config: {{command: 'true {{p}}; echo PID; cat /proc/$$/cmdline'}}\n"),
    );
    check("demo/x", json!({"p": secret}));
    check("demo/p", json!({"p": secret}));
    check("demo/own", json!({"p": secret}));
    check("demo/any", json!({"command": format!("true {secret}; echo PID; cat /proc/$$/cmdline")}));
    // A runtime of real Rye's, which asks for them.
    let runtime = "version: 1.0.0\ncategory: demo\ntool_type: runtime\nexecutor_id: rye/core/primitives/subprocess\nconfig: {command: bash, args: ";
    let tool = |id: &str| {
        format!(
            "# __version__ = \"1.0.0\"\n# __category__ = \"demo\"\n# __executor_id__ = \"{id}\"\necho PID; cat /proc/$$/cmdline\n"
        )
    };
    world.signed(
        "tools/demo/rye.yaml",
        &format!("{runtime}['{{tool_path}}', '--params', '{{params_json}}']}}\n"),
    );
    world.signed("tools/demo/r.sh", &tool("demo/rye"));
    check("demo/r", json!({"p": secret}));
    world.signed(
        "tools/demo/glued.yaml",
        &format!("{runtime}['{{tool_path}}', '--params={{params_json}}']}}\n"),
    );
    world.signed("tools/demo/g.sh", &tool("demo/glued"));
    assert_eq!(code(&world.tool("demo/g", json!({"p": secret}))), "CB705");
}

#[test]
fn a_parameter_inside_a_nested_script_is_refused() {
    let world = Fixture::new();
    let yaml = "version: 1.0.0\ncategory: demo\nexecutor_id: rye/core/runtimes/bash/bash\n";
    for script in ["sh -c \"echo {x}\"", "eval echo {x}", "echo {x} | sh", "python3 -c \"print('{x}')\""] {
        let script = serde_json::to_string(script).unwrap();
        world.signed("tools/demo/n.yaml", &format!("{yaml}config: {{command: {script}}}\n"));
        let answer =
            world.tool("demo/n", json!({"x": "$(touch pwned); touch pwned; '+open('pwned','w').name+'"}));
        assert_eq!(code(&answer), "CB328", "{script} {answer}");
        assert!(!world.project().join("pwned").exists());
        let _ = std::fs::remove_dir_all(world.project().join(".ai/lockfiles"));
    }
    world.signed(
        "tools/demo/ok.yaml",
        &format!("{yaml}config: {{command: \"sh -c 'echo \\\"$1\\\"' sh {{x}}\"}}\n"),
    );
    let answer = world.tool("demo/ok", json!({"x": "$(touch pwned)"}));
    assert_eq!(answer["data"]["stdout"], "$(touch pwned)\n", "{answer}");
}

#[test]
fn a_dry_run_and_the_lockfile_name_the_interpreter() {
    let world = Fixture::new();
    world.plain("bin/prog", "#!/bin/sh\necho '{}'\n");
    let prog = world.project().join("bin/prog");
    std::fs::set_permissions(&prog, std::fs::Permissions::from_mode(0o755)).unwrap();
    world.python("demo/p", "print('{}')\n");
    let dry = world.dry("tool", "demo/p", json!({}));
    let interpreter = &dry["interpreter"];
    assert!(interpreter["path"].as_str().unwrap().starts_with('/'), "{dry}");
    assert!(Path::new(interpreter["target"].as_str().unwrap()).is_file(), "{dry}");
    assert_eq!(interpreter["sha256"].as_str().map(str::len), Some(64), "{dry}");
    world.tool("demo/p", json!({}));
    let lock = world.project().join(".ai/lockfiles/demo/p@1.0.0.lock.json");
    let mut written: Json = serde_json::from_slice(&std::fs::read(&lock).unwrap()).unwrap();
    assert_eq!(written["interpreter"]["target"], interpreter["target"]);
    assert_eq!(world.tool("demo/p", json!({}))["metadata"]["lockfile_used"], true);
    // The user's own `PATH` may lead to another program; a file of the project may not take its place.
    written["interpreter"]["path"] = "/opt/other/python".into();
    std::fs::write(&lock, written.to_string()).unwrap();
    assert_eq!(world.tool("demo/p", json!({}))["status"], "success");
    written["interpreter"]["in_project"] = true.into();
    std::fs::write(&lock, written.to_string()).unwrap();
    assert_eq!(code(&world.tool("demo/p", json!({}))), "CB229");
    // Another machine has its interpreters elsewhere.
    written["interpreter"]["host"] = "0000000000000000".into();
    std::fs::write(&lock, written.to_string()).unwrap();
    assert_eq!(world.tool("demo/p", json!({}))["status"], "success");
    // A program of the project is locked with its content.
    let yaml = "version: 1.0.0\ncategory: demo\nexecutor_id: rye/core/primitives/subprocess\nconfig: {command: bin/prog}\n";
    world.signed("tools/demo/own.yaml", yaml);
    let dry = world.dry("tool", "demo/own", json!({}));
    assert_eq!(dry["interpreter"]["in_project"], true);
    // The signature covers its name only, so the user has to grant it.
    assert!(dry["warnings"].to_string().contains("cuebook allow bin/prog"), "{dry}");
    let refused = world.tool("demo/own", json!({}));
    assert_eq!(code(&refused), "CB231", "{refused}");
    world.allow();
    assert_eq!(world.tool("demo/own", json!({}))["status"], "success");
    std::fs::write(&prog, "#!/bin/sh\ntouch pwned\n").unwrap();
    assert_eq!(code(&world.tool("demo/own", json!({}))), "CB229");
    // A clone can leave the lockfile out; the grant is bound to the content.
    std::fs::remove_dir_all(world.project().join(".ai/lockfiles")).unwrap();
    assert_eq!(code(&world.tool("demo/own", json!({}))), "CB231");
    assert!(!world.project().join("pwned").exists());
}

#[test]
fn a_copied_tool_does_not_run_as_another() {
    let world = Fixture::new();
    world.signed("tools/demo/danger.sh", &format!("{SHELL}touch pwned\n"));
    let danger = std::fs::read_to_string(world.project().join(".ai/tools/demo/danger.sh")).unwrap();
    world.plain(".ai/tools/demo/safe.sh", &danger);
    assert_eq!(code(&world.tool("demo/safe", json!({}))), "CB222");
    assert!(!world.project().join("pwned").exists());
}

const OWN: &str = "version: 1.0.0\ncategory: demo\nexecutor_id: rye/core/primitives/subprocess\nconfig: {command: bin/prog}\n";

fn program(world: &Fixture, path: &str, text: &str) {
    world.plain(path, text);
    let file = world.project().join(path);
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_granted_program_that_is_swapped_runs_only_as_granted() {
    let world = Fixture::new();
    program(&world, "bin/prog", "#!/bin/sh\necho granted\n");
    world.signed("tools/demo/own.yaml", OWN);
    world.allow();
    let lock = world.project().join(".ai/lockfiles");
    assert_eq!(printed(&world, "demo/own"), "granted\n");
    let folder = world.project().join("bin");
    let good = std::fs::read(folder.join("prog")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut turn = 0_u32;
            while !stop.load(Ordering::Relaxed) {
                turn += 1;
                let new = folder.join(format!(".{turn}"));
                let evil: &[u8] = b"#!/bin/sh\ntouch pwned; echo unsigned\n";
                std::fs::write(&new, if turn.is_multiple_of(2) { &good } else { evil }).unwrap();
                std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
                std::fs::rename(&new, folder.join("prog")).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let answers = (0..60).map(|_| {
            // Without the lockfile, which would notice most changes first.
            let _ = std::fs::remove_dir_all(&lock);
            world.tool("demo/own", json!({}))
        });
        let is_granted = |answer: &Json| {
            ["", "granted\n"].contains(&answer["data"]["stdout"].as_str().unwrap_or_default())
        };
        let wrong: Vec<Json> = answers.filter(|answer| !is_granted(answer)).collect();
        // Before anything fails: the other thread goes on until then.
        stop.store(true, Ordering::Relaxed);
        assert_eq!(wrong, Vec::<Json>::new());
    });
    assert!(!world.project().join("pwned").exists());
}

#[test]
fn every_way_to_a_program_of_the_project_needs_a_grant() {
    let config = |config: &str| OWN.replace("{command: bin/prog}", config);
    let path = |world: &Fixture| world.project().join("bin").display().to_string();
    for (name, text) in [
        (
            "a PATH in `env`",
            Box::new(|world: &Fixture| {
                config(&format!("{{command: prog, env: {{PATH: \"{}:/usr/bin:/bin\"}}}}", path(world)))
            }) as Box<dyn Fn(&Fixture) -> String>,
        ),
        ("a relative PATH", Box::new(|_| config("{command: prog, env: {PATH: \"bin:/usr/bin:/bin\"}}"))),
        (
            "a path through /proc",
            Box::new(|world: &Fixture| {
                config(&format!("{{command: \"/proc/self/root{}/prog\"}}", path(world)))
            }),
        ),
    ] {
        let world = Fixture::new();
        program(&world, "bin/prog", "#!/bin/sh\ntouch pwned\n");
        world.signed("tools/demo/own.yaml", &text(&world));
        let refused = world.tool("demo/own", json!({}));
        assert_eq!(code(&refused), "CB231", "{name}: {refused}");
        assert!(!world.project().join("pwned").exists(), "{name}");
    }
}

#[test]
fn a_program_below_proc_self_cwd_is_that_of_this_process() {
    // In the tool's process, which starts in the project, the same path leads to another file.
    let world = Fixture::new();
    program(&world, "bin/prog", "#!/bin/sh\ntouch pwned\n");
    world.signed("tools/demo/own.yaml", &OWN.replace("bin/prog", "/proc/self/cwd/bin/prog"));
    assert_eq!(world.tool("demo/own", json!({}))["status"], "error");
    assert!(!world.project().join("pwned").exists());
}

#[test]
fn a_project_program_needs_a_grant_to_find_python() {
    let world = Fixture::new();
    program(&world, "bin/find", "#!/bin/sh\ntouch pwned\necho /bin/sh\n");
    let runtime = "version: 1.0.0\ncategory: demo\ntool_type: runtime\nexecutor_id: rye/core/primitives/subprocess\n\
                   env_config: {interpreter: {type: command, resolve_cmd: ./bin/find, var: DEMO_SHELL, fallback: sh}}\n\
                   config: {command: \"${DEMO_SHELL}\", args: [-c, \"echo ran\"]}\n";
    world.signed("tools/demo/runtime.yaml", runtime);
    world.signed(
        "tools/demo/own.yaml",
        "version: 1.0.0\ncategory: demo\nexecutor_id: demo/runtime\nconfig: {}\n",
    );
    let answer = world.tool("demo/own", json!({}));
    assert!(!world.project().join("pwned").exists(), "{answer}");
    assert!(answer.to_string().contains("cuebook allow bin/find"), "{answer}");
    let spaces = cuebook::items::Spaces::new(&world.project(), Some(&world.user()));
    let request = cuebook::trust::interpreter_request(&world.project(), &world.project().join("bin/find"));
    let mut grants = cuebook::trust::Grants::of(&spaces).unwrap();
    grants.allow(&[request.unwrap().unwrap()], jiff::Timestamp::UNIX_EPOCH).unwrap();
    let answer = world.tool("demo/own", json!({}));
    assert_eq!(answer["data"]["stdout"], "ran\n", "{answer}");
    assert!(world.project().join("pwned").exists());
}

#[test]
fn a_tool_of_a_pack_replaces_another_only_with_consent() {
    let world = Fixture::new();
    world.signed("tools/demo/read.sh", &format!("{SHELL}echo old\n"));
    // The author of the pack signed the tool as `demo/better`.
    world.signed("tools/demo/better.sh", &format!("{SHELL}echo new\n"));
    let signed = world.project().join(".ai/tools/demo/better.sh");
    let better = std::fs::read_to_string(&signed).unwrap();
    std::fs::remove_file(&signed).unwrap();
    world.plain(
        "new/pack.json",
        r#"{"pack_id": "pro", "prompts": [], "replaces": {"tools": {"demo/read": "demo/better"}}}"#,
    );
    world.plain("new/tools/demo/better.sh", &better);
    let spaces = cuebook::items::Spaces::new(&world.project(), Some(&world.user()));
    let library = || cuebook::library::Library::open(world.project()).with_spaces(spaces.clone());
    // "No" changes nothing.
    library().stage_pack(&world.project().join("new")).unwrap().commit(false, &[]).unwrap();
    assert_eq!(printed(&world, "demo/read"), "old\n");
    let library_now = library();
    let staged = library_now.stage_pack(&world.project().join("new")).unwrap();
    let proposals = staged.proposals();
    staged.commit(true, &proposals).unwrap();
    let answer = world.tool("demo/read", json!({}));
    assert_eq!(answer["data"]["stdout"], "new\n", "{answer}");
    assert_eq!((&answer["replaces"]["pack"], &answer["chain"][0]), (&json!("pro"), &json!("demo/better")));
    // The record of a clone counts for nothing.
    cuebook::trust::Grants::of(&spaces).unwrap().revoke(None).unwrap();
    let answer = world.tool("demo/read", json!({}));
    assert_eq!(answer["data"]["stdout"], "old\n", "{answer}");
    assert!(answer["metadata"]["warnings"].to_string().contains("tool.demo/read"), "{answer}");
    world.allow();
    assert_eq!(printed(&world, "demo/read"), "new\n");
    // Without its signature it does not run, and neither does the other one in its place.
    world.plain("user_data/packs/pro/tools/demo/better.sh", "touch pwned\n");
    assert_eq!(world.tool("demo/read", json!({}))["status"], "error");
    assert!(!world.project().join("pwned").exists());
}
