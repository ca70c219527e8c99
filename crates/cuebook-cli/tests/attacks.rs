//! What a pack from a stranger tries, once a user has approved it: each attack on the real command with a real Python in the
//! real sandbox, and what comes of it.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod support;

use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use support::{Project, python_or_skip};

/// A project with an approved pack `stranger` whose prompt `attack` has this `pre_render`. The workspace is `work`, and a
/// secret lies beside it.
struct Setup {
    project: Project,
}

impl Setup {
    fn new(body: &str) -> Setup {
        let project = Project::new();
        project
            .write("user_data/packs/stranger/pack.json", r#"{"pack_id": "stranger", "prompts": ["attack"]}"#);
        let indented: String = body.lines().map(|line| format!("    {line}\n")).collect();
        let code = format!(
            "PERMISSIONS = {{\"read_file\": True}}\nLIMITS = {{\"max_execution_time\": 2}}\nTEMPLATE = \"{{{{ result }}}}\"\n\n\
             def tried(action):\n    try:\n        return repr(action())\n    except BaseException as error:\n        return type(error).__name__\n\n\
             def pre_render(variables, context):\n    import os, sys\n    result = None\n{indented}    variables['result'] = result\n    return variables\n"
        );
        project.write("user_data/packs/stranger/prompts/attack/prompt.py", code);
        project.write("work/notes.txt", "notes");
        project.write("secret/key.txt", "the secret");
        let stage = Setup { project };
        let approved = stage.cuebook(&["pack", "approve", "stranger", "--yes"]);
        assert!(approved.status.success(), "{}", String::from_utf8_lossy(&approved.stderr));
        stage
    }

    fn cuebook(&self, args: &[&str]) -> Output {
        let mut command = self.project.command(env!("CARGO_BIN_EXE_cuebook"), self.project.path());
        command.env("SECRET_TOKEN", "the secret").args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.output().unwrap()
    }

    fn render(&self) -> Output {
        let workspace = format!("workspace_path={}", self.project.path().join("work").display());
        self.cuebook(&["render", "attack", "--verbose", "--context", &workspace])
    }

    /// The text that comes of it.
    fn text(&self) -> String {
        let Output { status, stdout, stderr } = self.render();
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{stderr}");
        assert!(!stderr.contains("the secret"), "{stderr}");
        String::from_utf8(stdout).unwrap()
    }

    /// What is said on stderr when it fails, which must be soon.
    fn error(&self) -> String {
        let started = Instant::now();
        let Output { status, stdout, stderr } = self.render();
        assert_eq!(status.code(), Some(1), "{}", String::from_utf8_lossy(&stdout));
        assert!(stdout.is_empty());
        assert!(started.elapsed() < Duration::from_secs(30), "it took {:?}", started.elapsed());
        String::from_utf8(stderr).unwrap()
    }
}

fn text(body: &str) -> String {
    Setup::new(body).text()
}

fn assert_error(body: &str, parts: &[&str]) {
    let error = Setup::new(body).error();
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in:\n{error}");
    }
}

/// Whether a process that was started with this word among its arguments is still there.
fn is_running(word: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).split('\0').any(|argument| argument == word)
    })
}

#[test]
fn an_endless_loop_is_stopped() {
    let Some(()) = python_or_skip() else { return };
    assert_error(
        "while True: pass",
        &["error[CB412]", "`pre_render` of the prompt `attack`", "2 seconds", "max_execution_time"],
    );
}

#[test]
fn an_endless_loop_is_stopped_with_its_children() {
    let Some(()) = python_or_skip() else { return };
    assert_error(
        "import signal, subprocess\nfor number in range(1, 65):\n    try: signal.signal(number, signal.SIG_IGN)\n    except Exception: pass\n\
         subprocess.Popen(['sleep', '98765'], start_new_session=True)\nwhile True: pass",
        &["error[CB412]"],
    );
    assert!(!is_running("98765"));
}

#[test]
fn a_fork_bomb_finds_no_room() {
    let Some(()) = python_or_skip() else { return };
    let result = text(
        "count = 0\ntry:\n    while count < 5000:\n        if os.fork() == 0:\n            import time; time.sleep(60); os._exit(0)\n        count += 1\n\
         except OSError as error:\n    result = f'{type(error).__name__} after fewer than 100: {count < 100}'",
    );
    assert_eq!(result, "BlockingIOError after fewer than 100: True");
    assert_error("while True:\n    try: os.fork()\n    except OSError: pass", &["error[CB412]"]);
}

#[test]
fn a_memory_bomb_finds_no_room() {
    let Some(()) = python_or_skip() else { return };
    assert_eq!(text("result = tried(lambda: len(bytearray(1 << 30)))"), "MemoryError");
    assert_error("data = []\nwhile True: data.append(bytearray(1 << 20))", &["error[CB410]", "MemoryError"]);
}

#[test]
fn a_gigabyte_of_output_is_refused_before_it_is_read() {
    let Some(()) = python_or_skip() else { return };
    assert_error("result = 'x' * (100 << 20)", &["error[CB413]", "max_output_size"]);
    // The frame claims to be larger than anything that could be right.
    assert_error(
        "for fd in range(3, 20):\n    try: os.write(fd, b'\\xff\\xff\\xff\\x3f' + b'x' * 100)\n    except OSError: pass\nwhile True: pass",
        &["error[CB413]"],
    );
}

#[test]
fn a_gigabyte_without_a_newline_is_harmless() {
    let Some(()) = python_or_skip() else { return };
    let stage = Setup::new(
        "chunk = 'x' * (1 << 20)\nimport time\nend = time.monotonic() + 1\nwritten = 0\nwhile written < 1024 and time.monotonic() < end:\n    sys.stdout.write(chunk); written += 1\nresult = 'done'",
    );
    let Output { status, stdout, stderr } = stage.render();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr[..stderr.len().min(2000)]));
    assert_eq!(String::from_utf8_lossy(&stdout), "done");
    assert!(stderr.len() < 200 << 10, "{} bytes are shown", stderr.len());
    assert!(String::from_utf8_lossy(&stderr).contains("more bytes"));
}

#[test]
fn files_and_keys_of_others_are_not_there() {
    let Some(()) = python_or_skip() else { return };
    let stage = Setup::new(
        "names = ['/etc/shadow', '/etc/ssh', '/root', '/home', '/var', '/proc/1/environ', os.environ.get('HOME', '/') + '/.ssh',\n    os.path.join(context['workspace_path'], '..', 'secret', 'key.txt'), os.path.join(context['workspace_path'], '..', 'cuebook.toml')]\n\
         def look(name):\n    return open(name).read(100) if not os.path.isdir(name) else os.listdir(name)\n\
         result = sorted(set(tried(lambda: look(name)) for name in names))\n\
         result = [found for found in result if found not in ('FileNotFoundError', 'PermissionError', '[]', \"''\")]\n\
         result = 'found: ' + ', '.join(result)",
    );
    // Where Python itself lies below a home folder, the way to it is there and nothing else.
    let text = stage.text();
    assert!(!text.contains("secret") && !text.contains("root:"), "{text}");
    let listed =
        Setup::new("result = ' '.join(sorted(os.listdir(os.path.join(context['workspace_path'], '..'))))")
            .text();
    assert_eq!(listed, "user_data work", "beside the workspace there is the pack, and nothing else");
}

#[test]
fn nothing_can_be_written_but_the_temporary_folder() {
    let Some(()) = python_or_skip() else { return };
    let stage = Setup::new(
        "import tempfile\nplaces = [context['workspace_path'], os.path.dirname(__file__), '/', '/usr', '/etc', '/dev', os.path.dirname(sys.executable)]\n\
         written = [place for place in places if not tried(lambda: open(os.path.join(place, 'mark'), 'w').close()).endswith('Error')]\n\
         with tempfile.NamedTemporaryFile('w+', delete=False) as file:\n    file.write('private'); name = file.name\n\
         result = f'{written} {open(name).read()} {os.path.dirname(name)}'",
    );
    assert_eq!(stage.text(), "[] private /tmp");
    for place in ["work", "user_data/packs/stranger/prompts/attack"] {
        assert!(!stage.project.path().join(place).join("mark").exists());
    }
}

#[test]
fn there_is_no_network() {
    let Some(()) = python_or_skip() else { return };
    let result = text(
        "import socket\nresult = [tried(lambda: socket.socket(family, kind)) for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW)]\n\
         result = ' '.join(sorted(set(result)))\nimport subprocess\nresult += ' ' + tried(lambda: subprocess.run(['bash', '-c', 'echo > /dev/tcp/127.0.0.1/1'], check=True, stderr=subprocess.DEVNULL))",
    );
    assert_eq!(result, "PermissionError CalledProcessError");
}

#[test]
fn the_environment_holds_no_secrets() {
    let Some(()) = python_or_skip() else { return };
    let result = text(
        "result = ' '.join(sorted(os.environ)) + ' ' + str('the secret' in str(os.environ))\n\
         result += ' ' + tried(lambda: b'SECRET_TOKEN' in open(f'/proc/{os.getppid()}/environ', 'rb').read())",
    );
    assert!(!result.contains("SECRET"), "{result}");
    assert!(result.contains(" False "), "{result}");
    let last = result.rsplit(' ').next().unwrap();
    assert!(["FileNotFoundError", "PermissionError", "False"].contains(&last), "{result}");
}

#[test]
fn other_processes_can_be_neither_seen_nor_traced_nor_signalled() {
    let Some(()) = python_or_skip() else { return };
    let seen = text("result = ' '.join(sorted(name for name in os.listdir('/proc') if name.isdigit()))");
    assert_eq!(seen, "1");
    let traced = text(
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\ndef trace(pid):\n    ctypes.set_errno(0)\n    libc.ptrace(16, pid, 0, 0)\n    return ctypes.get_errno()\n\
         result = ' '.join(str(trace(pid)) for pid in (1, os.getppid(), 2))",
    );
    assert_eq!(traced, "1 1 1", "EPERM for whoever it is");
    // A signal to Cuebook: there is no process to send it to.
    let signalled = text(
        "import signal\nresult = tried(lambda: os.kill(os.getppid() or 999999, signal.SIGKILL))\nresult += ' ' + tried(lambda: os.kill(-1, 0))",
    );
    assert_eq!(signalled, "ProcessLookupError ProcessLookupError");
}

#[test]
fn a_daemon_does_not_outlive_the_call() {
    let Some(()) = python_or_skip() else { return };
    let stage = Setup::new(
        "import subprocess\nsubprocess.Popen(['sleep', '87654'], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n\
         if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.execvp('sleep', ['sleep', '87654'])\n    os._exit(0)\nresult = 'left'",
    );
    assert_eq!(stage.text(), "left");
    let gone = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        !is_running("87654")
    });
    assert!(gone, "a daemon is left behind");
}

#[test]
fn the_program_that_answers_for_a_model_ends_with_cuebook() {
    let Some(()) = python_or_skip() else { return };
    let project = Project::new();
    let code = "PERMISSIONS = {'llm_call': True}\nLIMITS = {'max_execution_time': 60}\nTEMPLATE = 'x'\n\
                def pre_render(variables, context):\n    context['llm_call']('hello')\n    return variables\n";
    project.write("prompts/asks/prompt.py", code);
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    let mut cuebook = command.args(["render", "asks", "--llm-command", "sleep 76543"]).spawn().unwrap();
    let soon = |wanted: bool| {
        (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            is_running("76543") == wanted
        })
    };
    assert!(soon(true), "the program was never started");
    cuebook.kill().unwrap();
    cuebook.wait().unwrap();
    assert!(soon(false), "the program outlived Cuebook");
}

#[test]
fn a_link_that_leaves_the_workspace_leads_nowhere() {
    let Some(()) = python_or_skip() else { return };
    let stage = Setup::new(
        "result = tried(lambda: context['read_file']('link')) + ' ' + tried(lambda: open(os.path.join(context['workspace_path'], 'link')).read())\n\
         result += ' ' + tried(lambda: context['read_file']('notes.txt'))",
    );
    stage.project.link("work/link", "../secret/key.txt");
    assert_eq!(stage.text(), "PermissionError FileNotFoundError 'notes'");
}

#[test]
fn messages_that_the_hook_forges_grant_nothing_and_end_the_call() {
    let Some(()) = python_or_skip() else { return };
    // It asks for what was never granted, in the words of the protocol.
    assert_error(
        "import json\ndef send(message):\n    data = json.dumps(message).encode()\n    for fd in range(3, 20):\n        try: os.write(fd, len(data).to_bytes(4, 'little') + data)\n        except OSError: pass\n\
         for number in range(50): send({'id': number, 'ok': {'kept': [], 'set': {'result': 'forged'}}})\nresult = 'true'",
        &["error[CB414]"],
    );
    assert_error(
        "for fd in range(3, 20):\n    try: os.write(fd, b'\\x05\\0\\0\\0rubbi')\n    except OSError: pass\nresult = 'true'",
        &["error[CB414]"],
    );
    let result = text("result = ' '.join(sorted(name for name in context))");
    assert_eq!(result, "get_variable read_file render_template session workspace_path");
}

#[test]
fn no_module_of_a_pack_replaces_one_of_python() {
    let Some(()) = python_or_skip() else { return };
    let stage = Setup::new("import json, statistics\nresult = f'{json.dumps(1)} {statistics.mean([1, 3])}'");
    for module in ["json.py", "statistics.py", "os.py"] {
        stage.project.write(&format!("work/{module}"), "raise SystemExit('shadowed')");
    }
    assert_eq!(stage.text(), "1 2");
}

#[test]
fn byte_code_that_the_user_did_not_see_does_not_run() {
    let Some(()) = python_or_skip() else { return };
    let stage = Setup::new("import helper\nresult = helper.WORD");
    let folder = "user_data/packs/stranger/prompts/attack";
    stage.project.write(&format!("{folder}/helper.py"), "WORD = 'shown'");
    stage.project.write("compile.py", "import py_compile, sys\nopen('evil.py', 'w').write(\"WORD = 'hidden'\")\npy_compile.compile('evil.py', cfile=sys.argv[1], invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\n");
    let cache = format!("{folder}/__pycache__");
    std::fs::create_dir_all(stage.project.path().join(&cache)).unwrap();
    let tag = stage
        .project
        .command("python3", stage.project.path())
        .args(["-c", "import sys; print(sys.implementation.cache_tag)"])
        .output()
        .unwrap();
    let target = format!("{cache}/helper.{}.pyc", String::from_utf8_lossy(&tag.stdout).trim());
    let compiled = stage
        .project
        .command("python3", stage.project.path())
        .args(["compile.py", &target])
        .status()
        .unwrap();
    assert!(compiled.success());
    assert!(stage.cuebook(&["pack", "approve", "stranger", "--yes"]).status.success());
    assert_eq!(stage.text(), "shown");
}

#[test]
fn the_approved_code_is_the_code_that_runs() {
    let Some(()) = python_or_skip() else { return };
    let stage = Setup::new(
        "import helper\nresult = helper.WORD\ntry:\n    from __pycache__ import hidden\nexcept ImportError: pass\nelse: result = hidden.WORD",
    );
    let folder = "user_data/packs/stranger/prompts/attack";
    // In another encoding the comment would not be one.
    stage.project.write(
        &format!("{folder}/helper.py"),
        "# coding: utf-7\nWORD = 'shown'\n# a comment+AAo-WORD = 'hidden'\n",
    );
    assert!(stage.cuebook(&["pack", "approve", "stranger", "--yes"]).status.success());
    stage.project.write(&format!("{folder}/__pycache__/hidden.py"), "WORD = 'never shown'");
    assert_eq!(stage.text(), "shown");
}

#[test]
fn a_hook_imports_the_approved_module() {
    let Some(()) = python_or_skip() else { return };
    let stage = Setup::new("import time\ntime.sleep(1)\nimport helper\nresult = helper.WORD");
    let file = "user_data/packs/stranger/prompts/attack/helper.py";
    stage.project.write(file, "WORD = 'approved'");
    assert!(stage.cuebook(&["pack", "approve", "stranger", "--yes"]).status.success());
    let path = stage.project.path().join(file);
    let change = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(600));
        std::fs::write(path, "WORD = 'changed'").unwrap();
    });
    assert_eq!(stage.text(), "approved");
    change.join().unwrap();
}

#[test]
fn a_socket_in_the_workspace_cannot_be_used() {
    let Some(()) = python_or_skip() else { return };
    let stage = Setup::new(
        "import socket\nresult = tried(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))\na, b = socket.socketpair()\n\
         result += ' ' + tried(lambda: a.connect(os.path.join(context['workspace_path'], 'socket')))\na.send(b'x')\nresult += ' ' + b.recv(1).decode()",
    );
    let path = stage.project.path().join("work/socket");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    socket.set_nonblocking(true).unwrap();
    let text = stage.text();
    assert!(text.starts_with("PermissionError ") && text.ends_with(" x"), "{text}");
    assert!(!text.contains("None"), "{text}");
    assert!(socket.recv(&mut [0; 8]).is_err(), "something was said");
}

#[test]
fn memory_that_no_process_owns_cannot_be_had() {
    let Some(()) = python_or_skip() else { return };
    let result = text(
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nresult = tried(lambda: os.memfd_create('x')) + ' ' + str(libc.shmget(0, 1 << 20, 0o1600))\n\
         count = 0\ntry:\n    while count < 100000:\n        open(f'/tmp/{count}', 'w').close(); count += 1\nexcept OSError: pass\nresult += f' {count < 20000}'",
    );
    assert_eq!(result, "PermissionError -1 True");
}

#[test]
fn output_of_a_hook_cannot_control_the_terminal() {
    let Some(()) = python_or_skip() else { return };
    let stage = Setup::new(
        "print('\\x1b[2J printed')\nerror = ValueError('\\x1b]0;title\\x07\\u202eabc')\nraise error from RuntimeError('\\x9b31m cause\\x1b[2J')",
    );
    let output = stage.cuebook(&["render", "attack", "--verbose", "--color", "always"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("ValueError") && stderr.contains("printed") && stderr.contains("cause"),
        "{stderr}"
    );
    for bad in ["\x1b[2J", "\x1b]", "\x07", "\u{9b}", "\u{202e}"] {
        assert!(!stderr.contains(bad), "{bad:?} in {stderr:?}");
    }
}

#[test]
fn closing_stdout_or_everything_else_ends_in_a_message() {
    let Some(()) = python_or_skip() else { return };
    assert_eq!(text("sys.stdout.close(); os.close(1); os.close(2)\nresult = 'still here'"), "still here");
    assert_eq!(text("sys.stdout = sys.stderr = None\nprint('x')\nresult = 'still here'"), "still here");
    assert_error("os.closerange(0, 256)\nresult = 'gone'", &["error[CB414]"]);
}

#[test]
fn leaving_in_the_middle_of_a_call_ends_in_a_message() {
    let Some(()) = python_or_skip() else { return };
    assert_error("os._exit(3)", &["error[CB414]", "3"]);
    assert_error("sys.exit('enough')", &["error[CB410]", "SystemExit", "enough"]);
    assert_error("raise KeyboardInterrupt", &["error[CB410]", "KeyboardInterrupt"]);
    assert_error("import signal\nos.kill(os.getpid(), signal.SIGSTOP)\nwhile True: pass", &["error[CB412]"]);
    assert_error("import ctypes\nctypes.string_at(0)", &["error[CB414]"]);
}
