//! The sandbox around tools that a model calls, with the real binary.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use cuebook::items::Spaces;
use cuebook::trust::{Grants, Request, interpreter_request};
use cuebook_mock::{Reply, Script};
use serde_json::{Value as Json, json};

use crate::greeting::{GREET, THREADED, stage};
use crate::setup::{KEY, PATIENCE, Setup, err, out, returned, shell};
use crate::support::decoded;

/// Looks everywhere for secrets, and changes their form so that nothing can hide them.
const SEARCH: &str = "(env; cat /proc/*/environ /proc/*/task/*/environ .env .ai/state/* .ai/state/*/* home/.ai/config/keys/*/* \
                      home/.ssh/* 2>/dev/null) | tr '\\0' '\\n' | grep -aoE 'HOME=/tmp|RYE_PARENT_THREAD_ID=|sk-mock[a-z0-9-]*|\
                      MOCK_KEY|correct-horse|my-private-ssh-key|PRIVATE KEY|thread_started' | sort -u | base64 -w0";

/// The tool results that a thread's model receives.
fn reported(stage: &Setup) -> String {
    stage.mock.requests().last().unwrap().body["messages"].to_string()
}

fn grant(stage: &Setup, request: Request) {
    let home = stage.project.path().join("home");
    let spaces = Spaces::new(&stage.project.path().canonicalize().unwrap(), Some(&home));
    Grants::of(&spaces).unwrap().allow(&[request], jiff::Timestamp::UNIX_EPOCH).unwrap();
}

/// A stage whose model says nothing, with tools.
fn with_tools(tools: &[(&str, &str)]) -> Setup {
    let directive = [(".ai/directives/demo/greet.md", GREET)];
    Setup::new(Script::new(), &[&directive[..], tools].concat())
}

/// Whether a process has this word among its arguments, as the host sees them.
fn runs(word: &str) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let arguments =
        |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
    entries
        .map(arguments)
        .any(|arguments| arguments.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes()))
}

fn fenced(stage: &Setup, command: &str) -> Output {
    let command = format!("command={command}");
    stage.run(&["execute", "tool", "rye/bash/bash", "--sandbox", "--param", &command, "--json"])
}

#[test]
fn a_tool_of_a_thread_finds_no_secret() {
    let stage = stage(Script::new().reply(shell(SEARCH)).reply(returned("Hi")));
    stage.project.write(".env", "PASSWORD=correct-horse-battery\n");
    stage.project.write("home/.ssh/id", "my-private-ssh-key");
    let output = stage.threaded(&[]);
    assert!(output.status.success(), "{}", err(&output));
    let found = decoded(&reported(&stage));
    // It did look: these are the tool's own variables.
    assert!(found.contains("HOME=/tmp") && found.contains("RYE_PARENT_THREAD_ID="), "{found}");
    for secret in [KEY, "MOCK_KEY", "correct-horse", "my-private-ssh-key", "PRIVATE KEY", "thread_started"] {
        assert!(!found.contains(secret), "{secret}: {found}");
    }
}

#[test]
fn a_declared_key_reaches_tools_of_the_user_only() {
    const TOOL: &str = "version: 1.0.0\ncategory: demo\ntool_type: shell\ndescription: Looks\n\
                        executor_id: rye/core/runtimes/bash/bash\n\
                        env_config: {env: [MOCK_KEY, PLAIN, CUEBOOK_STORE]}\n\
                        config: {command: 'echo \"-$MOCK_KEY-$PLAIN-$OTHER-$CUEBOOK_STORE-\" | rev'}\n";
    let stage = with_tools(&[(".ai/tools/demo/look.yaml", TOOL)]);
    let look = |more: &[&str]| {
        let args = [&["execute", "tool", "demo/look", "--store", "t.db"], more].concat();
        let mut command = stage.command(&args);
        command
            .env("PLAIN", "p")
            .env("OTHER", "o")
            .env("CUEBOOK_STORE", "postgres://u:hunter22@127.0.0.1:9/x");
        let output = command.output().unwrap();
        out(&output).trim().chars().rev().collect::<String>()
    };
    assert_eq!(look(&[]), format!("-{KEY}-p--postgres://u:hunter22@127.0.0.1:9/x-"));
    assert_eq!(look(&["--fenced"]), "--p---");
}

#[test]
fn a_fenced_tool_cannot_change_what_carries_trust() {
    let stage = stage(Script::new());
    stage.project.write(".git/config", "[core]\n");
    let output = fenced(
        &stage,
        "echo new > notes.txt; mkdir deep && echo x > deep/file; \
         for name in .ai .git .venv user_data; do echo evil > $name/evil; mkdir $name/bin; mv $name gone; rm -rf $name; done; \
         for name in .env cuebook.toml cuebook.lock .git/config; do echo evil > $name; rm -f $name; ln -sf notes.txt $name; done; \
         mkdir -p .ai/tools/demo; cp notes.txt .ai/tools/demo/evil.py; ln .git/config linked; true",
    );
    assert!(output.status.success(), "{}{}", out(&output), err(&output));
    let root = stage.project.path();
    assert_eq!(std::fs::read_to_string(root.join("notes.txt")).unwrap(), "new\n");
    assert_eq!(std::fs::read_to_string(root.join("deep/file")).unwrap(), "x\n");
    assert_eq!(std::fs::read_to_string(root.join(".git/config")).unwrap(), "[core]\n");
    // Neither the tool nor the placeholders that stopped it leave anything.
    for name in [
        ".env",
        ".venv",
        "user_data",
        "cuebook.toml",
        "cuebook.lock",
        ".git/evil",
        ".ai/evil",
        ".ai/tools/demo",
        "gone",
        "linked",
    ] {
        assert!(!root.join(name).exists(), "{name}");
    }
}

#[test]
fn a_fenced_tool_makes_no_program_with_the_rights_of_its_owner() {
    let stage = stage(Script::new());
    let output = fenced(
        &stage,
        "echo x > a; echo x > b; chmod 755 a; chmod 4755 a; chmod u+s b; install -m 4755 b c; cp --preserve=mode a d; \
         python3 -c 'import os; os.open(\"e\", os.O_CREAT | os.O_WRONLY, 0o4755)'; \
         python3 -c 'import os; os.mknod(\"f\", 0o104755)'; python3 -c 'import os; os.open(\"g\", os.O_CREAT | os.O_WRONLY, 0o755)'; \
         mkdir h; chmod 2775 h; true",
    );
    assert!(output.status.success(), "{}{}", out(&output), err(&output));
    let root = stage.project.path();
    let mode = |name: &str| root.join(name).metadata().map_or(0, |file| file.permissions().mode() & 0o7777);
    assert_eq!((mode("a"), mode("g") & 0o700, mode("h") & 0o2000), (0o755, 0o700, 0o2000));
    for name in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(mode(name) & 0o4000, 0, "{name}");
    }
}

#[test]
fn a_fenced_tool_cannot_lead_a_submodule_to_another_repository() {
    let stage = stage(Script::new());
    stage.project.write("lib/deep/.git", "gitdir: ../../.git/modules/lib\n");
    stage.project.write("lib/deep/code.txt", "code");
    let output = fenced(
        &stage,
        "echo 'gitdir: /tmp/evil' > lib/deep/.git; rm -f lib/deep/.git; mv lib/deep lib/gone; mv lib gone; \
         rm -rf lib; mkdir -p lib/deep; echo 'gitdir: /tmp/evil' > lib/deep/.git; echo new > lib/deep/new.txt; true",
    );
    assert!(output.status.success(), "{}{}", out(&output), err(&output));
    let root = stage.project.path();
    let git = std::fs::read_to_string(root.join("lib/deep/.git")).unwrap();
    assert_eq!(git, "gitdir: ../../.git/modules/lib\n");
    assert_eq!(std::fs::read_to_string(root.join("lib/deep/new.txt")).unwrap(), "new\n");
}

#[test]
fn a_fenced_tool_cannot_change_a_granted_environment() {
    let stage = stage(Script::new());
    stage.project.write("tools/env/pyvenv.cfg", "home = /usr/bin\n");
    std::fs::create_dir_all(stage.project.path().join("tools/env/bin")).unwrap();
    std::os::unix::fs::symlink("/usr/bin/python3", stage.project.path().join("tools/env/bin/python"))
        .unwrap();
    let change = "echo evil > tools/env/evil.pth; ln -sf /tmp/evil tools/env/bin/python; mv tools gone; true";
    let root = stage.project.path().canonicalize().unwrap();
    let program = root.join("tools/env/bin/python");
    grant(&stage, interpreter_request(&root, &program).unwrap().unwrap());
    let output = fenced(&stage, change);
    assert!(output.status.success(), "{}{}", out(&output), err(&output));
    assert_eq!(std::fs::read_link(&program).unwrap(), Path::new("/usr/bin/python3"));
    assert!(!root.join("tools/env/evil.pth").exists() && !root.join("gone").exists());
}

#[test]
fn a_model_cannot_write_settings_with_the_file_tools() {
    let write = |path: &str| {
        let parameters = json!({"path": path, "content": "[hooks]\npython = \"/tmp/x\"\n"});
        let call = json!({"item_type": "tool", "item_id": "rye/file-system/write", "parameters": parameters});
        Reply::call("c1", "rye_execute", call).usage(10, 2)
    };
    let names = [
        "cuebook.toml",
        ".env",
        ".ai/tools/demo/x.py",
        ".git/hooks/post-checkout",
        "user_data/approvals.json",
    ];
    let script = names.into_iter().fold(Script::new(), |script, name| script.reply(write(name)));
    let stage = stage_with_files(script.reply(write("fine.txt")).reply(returned("Hi")));
    let output = stage.threaded(&[]);
    assert!(output.status.success(), "{}", err(&output));
    for name in names {
        assert!(!stage.project.path().join(name).exists(), "{name}");
    }
    assert!(stage.project.path().join("fine.txt").is_file(), "{}", reported(&stage));
}

/// A stage whose directive may use the file tools.
fn stage_with_files(script: Script) -> Setup {
    let text = GREET.replace("rye.bash.bash", "rye.file-system.write").replace("turns=\"4\"", "turns=\"20\"");
    Setup::new(script, &[(".ai/directives/demo/greet.md", &text)])
}

#[test]
fn a_fenced_tool_sees_no_home_and_no_processes() {
    let stage = stage(Script::new());
    stage.project.write("home/notes", "private");
    let outside = std::fs::read_to_string("/proc/1/cmdline").unwrap_or_default();
    let home = std::env::var("HOME").unwrap_or_else(|_| "/root".into());
    let output = fenced(
        &stage,
        &format!(
            "ls home {home}/.ssh {home}/.cargo; cat /etc/shadow; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; ls /proc"
        ),
    );
    let text = out(&output);
    let answer: Json = serde_json::from_str(&text).unwrap();
    let said = answer["data"]["stdout"].as_str().unwrap_or_default();
    assert!(!said.contains("notes") && !said.contains("registry") && !said.contains("root:"), "{said}");
    assert!(outside.is_empty() || !said.contains(outside.split('\0').next().unwrap_or("?")), "{said}");
}

#[test]
fn git_reads_a_worktree_if_the_user_lists_its_repository() {
    let stage = stage(Script::new());
    let main = stage.project.path().with_file_name("main");
    let git = |folder: &Path, args: &[&str]| {
        let mut git = stage.project.command("git", folder);
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let output = git.args(who).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", err(&output));
    };
    std::fs::create_dir_all(&main).unwrap();
    git(&main, &["init", "-q", "."]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "first commit"]);
    git(&main, &["worktree", "add", "-q", "--no-checkout", main.with_file_name("tree").to_str().unwrap()]);
    std::fs::copy(main.with_file_name("tree").join(".git"), stage.project.path().join(".git")).unwrap();
    let log =
        || out(&fenced(&stage, "git log --oneline; echo x > \"$(git rev-parse --git-common-dir)/config\""));
    assert!(!log().contains("first commit"), "{}", log());
    let readable = format!("[tools]\nreadable = [{:?}]\n", main.join(".git"));
    stage.project.write("home/.ai/config/cuebook.toml", readable);
    let config = std::fs::read(main.join(".git/config")).unwrap();
    assert!(log().contains("first commit"), "{}", log());
    assert_eq!(std::fs::read(main.join(".git/config")).unwrap(), config);
}

#[test]
fn nothing_that_a_fenced_tool_starts_outlives_it() {
    let stage = stage(Script::new());
    let output =
        fenced(&stage, "setsid sh -c 'sleep 2; echo late > late.txt' > /dev/null 2>&1 & echo started");
    assert!(out(&output).contains("started"), "{}", out(&output));
    // The file would be written, had the program gone on: its time passes in another call.
    fenced(&stage, "sleep 3");
    assert!(!stage.project.path().join("late.txt").exists());
}

#[test]
fn a_fenced_tool_ends_with_its_thread() {
    for (seconds, is_killed) in [("71234.5", false), ("71235.5", true)] {
        let command = format!("echo here > pid; sleep {seconds}");
        let stage = stage(Script::new().reply(shell(&command)).reply(returned("never")));
        let mut child = stage.start(&THREADED);
        stage.wait_for_file("pid");
        match is_killed {
            true => child.kill().unwrap(),
            false => drop(stage.json(&["thread", "cancel", &stage.id()])),
        }
        child.wait().unwrap();
        let began = Instant::now();
        while runs(seconds) {
            assert!(began.elapsed() < PATIENCE, "the tool still runs");
            std::thread::sleep(Duration::from_millis(20));
        }
        // A cancelled call tidies up itself; after a kill the next tool does.
        fenced(&stage, "true");
        assert!(!stage.project.path().join("cuebook.toml").exists());
    }
}

/// A stage whose model looks into the home folder and writes what carries trust.
fn curious() -> Setup {
    let stage =
        stage(Script::new().reply(shell("cat home/secret; echo x > .env; env | rev")).reply(returned("Hi")));
    stage.project.write("home/secret", "in-the-home-folder");
    stage
}

/// Whether the tool of a thread got out of the fence. No key reaches it, fenced or not.
fn gets_out(stage: &Setup, more: &[&str]) -> bool {
    let output = stage.threaded(more);
    assert!(output.status.success(), "{}", err(&output));
    let reported = reported(stage);
    assert!(
        reported.contains("=EMOH") && !reported.contains(&KEY.chars().rev().collect::<String>()),
        "{reported}"
    );
    let is_out = reported.contains("in-the-home-folder");
    assert_eq!(stage.project.path().join(".env").exists(), is_out);
    is_out
}

const USER_SETTINGS: &str = "home/.ai/config/cuebook.toml";

#[test]
fn the_user_lifts_the_fence_for_one_run() {
    assert!(!gets_out(&curious(), &[]));
    assert!(gets_out(&curious(), &["--unfenced"]));
}

#[test]
fn the_user_lifts_the_fence_for_a_project_and_takes_that_back() {
    let one = curious();
    let allow = ["allow", "--no-sandbox"];
    // Without a terminal the user must say yes in so many words.
    assert!(!one.run(&allow).status.success());
    assert!(one.json(&["doctor"])["tools_fenced"] == true);
    let granted = one.run(&[&allow[..], &["--yes"]].concat());
    assert!(granted.status.success(), "{}", err(&granted));
    assert!(err(&granted).contains("unfenced"), "{}", err(&granted));
    assert!(one.json(&["doctor"])["tools_fenced"] == false);
    assert!(out(&one.run(&["doctor"])).contains("tools    run without the sandbox"));
    assert!(gets_out(&one, &[]));
    // The grant is for that project, and not for another of the same user.
    let other = curious();
    grant_of(&one, &other);
    assert!(!gets_out(&other, &[]));
    let taken = curious();
    assert!(taken.run(&[&allow[..], &["--yes"]].concat()).status.success());
    assert!(taken.run(&["allow", "--revoke", "unfenced"]).status.success());
    assert!(!gets_out(&taken, &[]));
}

/// Gives a user the grants of another.
fn grant_of(one: &Setup, other: &Setup) {
    let grants = |stage: &Setup| stage.project.home().join(".ai/config/grants");
    std::fs::create_dir_all(grants(other)).unwrap();
    let mut count = 0;
    for entry in std::fs::read_dir(grants(one)).unwrap().flatten() {
        std::fs::copy(entry.path(), grants(other).join(entry.file_name())).unwrap();
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn only_the_settings_of_the_user_turn_the_fence_off() {
    let stage = curious();
    stage.project.write(USER_SETTINGS, "[tools]\nsandbox = \"off\"\n");
    assert!(stage.json(&["doctor"])["tools_fenced"] == false);
    assert!(gets_out(&stage, &[]));
    let stage = curious();
    stage.project.write(USER_SETTINGS, "[tools]\nfence = \"required\"\n");
    let said = out(&stage.run(&["doctor"]));
    assert!(said.contains("tools    run in the sandbox when a model calls them"), "{said}");
    assert!(!gets_out(&stage, &[]));
    let stage = curious();
    stage.project.write(USER_SETTINGS, "[tools]\nsandbox = \"of\"\n");
    let output = stage.threaded(&[]);
    assert!(err(&output).contains("`sandbox` must be \"required\" or \"off\""), "{}", err(&output));
    assert!(!stage.project.path().join(".env").exists() && stage.mock.requests().is_empty());
    // What the project says has no effect, whether it is an error or not.
    let stage = curious();
    stage.project.write("cuebook.toml", "[tools]\nsandbox = \"off\"\n");
    stage.threaded(&[]);
    assert!(!stage.project.path().join(".env").exists());
}

/// A server that answers every request with one word, at an address that is no proxy's own.
fn server() -> Option<u16> {
    let listener = TcpListener::bind("127.0.0.2:0").ok()?;
    let port = listener.local_addr().ok()?.port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ =
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello");
        }
    });
    Some(port)
}

#[test]
fn a_fenced_tool_reaches_granted_hosts_only() {
    let Some(port) = server() else { return };
    let code = format!(
        "__version__ = \"1.0.0\"\n__tool_type__ = \"python\"\n__category__ = \"demo\"\n__tool_description__ = \"Fetches\"\n\
         __executor_id__ = \"rye/core/runtimes/python/function\"\nCONFIG = {{\"hosts\": [\"127.0.0.2:{port}\"]}}\n\
         import urllib.request, socket\n\
         def execute(params, project_path):\n    try:\n        return urllib.request.urlopen(params['url'], timeout=20).read().decode()\n    \
         except Exception as error:\n        return repr(error) + getattr(error, 'fp', None).read().decode() if getattr(error, 'fp', None) else repr(error)\n"
    );
    let http = format!(
        "version: 1.0.0\ncategory: demo\ntool_type: http\ndescription: Asks\n\
         executor_id: rye/core/primitives/http_client\nconfig: {{url: 'http://127.0.0.2:{port}/{{path}}'}}\n"
    );
    let files = [(".ai/tools/demo/fetch.py", code.as_str()), (".ai/tools/demo/ask.yaml", http.as_str())];
    let stage = with_tools(&files);
    let run = |tool: &str, param: &str| {
        let output = stage.run(&["execute", "tool", tool, "--fenced", "--param", param, "--json"]);
        out(&output)
    };
    let good = format!("url=http://127.0.0.2:{port}/");
    assert!(run("demo/fetch", &good).contains("CB231"));
    assert!(run("demo/ask", "path=x").contains("CB231"));
    let hosts = [format!("127.0.0.2:{port}")];
    grant(&stage, Request::hosts("demo/fetch", &hosts));
    grant(&stage, Request::hosts("demo/ask", &hosts));
    let answer = run("demo/fetch", &good);
    assert!(answer.contains("\"hello\""), "{answer}");
    let answer = run("demo/fetch", &format!("url=http://127.0.0.3:{port}/"));
    assert!(answer.contains("may not reach 127.0.0.3"), "{answer}");
    let answer = run("demo/ask", "path=x");
    assert!(answer.contains("hello"), "{answer}");
    // Around the proxy there is nothing.
    let direct = format!(
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.2\", {port}), 5)' && echo through"
    );
    let answer = out(&fenced(&stage, &direct));
    assert!(!answer.contains("through\\n"), "{answer}");
}

#[test]
fn a_program_hides_its_keys_from_other_programs() {
    const TOOL: &str = "version: 1.0.0\ncategory: demo\ntool_type: shell\ndescription: Looks\n\
                        executor_id: rye/core/runtimes/bash/bash\n\
                        config: {command: 'cat /proc/$PPID/environ | base64 -w0; echo; id -u'}\n";
    let stage = with_tools(&[(".ai/tools/demo/look.yaml", TOOL)]);
    let mut command = stage.command(&["execute", "tool", "demo/look", "--unfenced"]);
    if rustix::process::geteuid().is_root() {
        // Root may look into every process, so this needs another user.
        if !give_to_nobody(stage.project.path()) {
            return;
        }
        command.uid(65534).gid(65534).env("PATH", "/usr/bin:/bin");
    }
    let Ok(output) = command.output() else { return };
    assert!(!decoded(&out(&output)).contains(KEY), "{}", out(&output));
    assert!(output.status.success(), "{}", err(&output));
}

#[test]
fn an_ordinary_user_has_the_same_fence() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    const TOOL: &str = "version: 1.0.0\ncategory: demo\ntool_type: shell\ndescription: Looks\n\
                        executor_id: rye/core/runtimes/bash/bash\n\
                        config: {command: 'echo x > new.txt; echo x > .env; cat home/.ai/config/keys/*/*; id -u'}\n";
    let stage = with_tools(&[(".ai/tools/demo/look.yaml", TOOL)]);
    if !give_to_nobody(stage.project.path()) {
        return;
    }
    let mut command = stage.command(&["execute", "tool", "demo/look", "--fenced"]);
    let Ok(output) = command.uid(65534).gid(65534).env("PATH", "/usr/bin:/bin").output() else { return };
    assert_eq!(out(&output), "65534\n", "{}", err(&output));
    assert!(stage.project.path().join("new.txt").is_file());
    assert!(!stage.project.path().join(".env").exists());
}

/// Makes a folder that of *nobody*; `false` if that user could not run the program anyway.
fn give_to_nobody(folder: &Path) -> bool {
    let program = Path::new(env!("CARGO_BIN_EXE_cuebook"));
    let open = |path: &Path| path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o001 != 0);
    if !program.ancestors().all(open) {
        return false;
    }
    let status = std::process::Command::new("chown").arg("-R").arg("65534:65534").arg(folder).status();
    status.is_ok_and(|status| status.success())
}
