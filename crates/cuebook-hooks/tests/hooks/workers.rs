//! Which worker serves whom, and for how long.

use crate::support::skip;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuebook::error::Code;
use cuebook::library::SandboxLevel;
use cuebook_hooks::PythonHooks;
use cuebook_hooks::sandbox::Protection;
use serde_json::{Value as Json, json};

use crate::support::{Bench, config, hint, launcher, python, spaces};

const COUNTER: &str = "import os
COUNT = [0]
def pre_render(variables, context):
    COUNT[0] += 1
    return {'count': COUNT[0]}
";

fn count(bench: &Bench) -> Json {
    bench.pre_render(json!({}))["count"].clone()
}

#[test]
fn a_worker_is_reused_by_its_script_only() {
    let Some(mut bench) = Bench::new(COUNTER) else { return };
    assert_eq!((count(&bench), count(&bench)), (json!(1), json!(2)));
    // The same text in a pack, changed code, another limit: each has a worker of its own.
    bench.script.pack = Some("a".into());
    assert_eq!(count(&bench), 1);
    bench.script.pack = Some("b".into());
    assert_eq!(count(&bench), 1);
    bench.script.fingerprint = "2".into();
    assert_eq!(count(&bench), 1);
    bench = bench.time(4000);
    assert_eq!(count(&bench), 1);
    assert_eq!(bench.hooks.idle_workers(), 5);
    bench.script.pack = Some("a".into());
    bench.script.fingerprint = "1".into();
    bench = bench.time(5000);
    assert_eq!(count(&bench), 2);
}

#[test]
fn calls_at_the_same_time_have_a_worker_each() {
    let text = "def pre_render(variables, context):
    context['render_template']('meeting')
    return {'got': variables['n']}
";
    let Some(bench) = Bench::new(text) else { return };
    let bench = bench.time(60_000);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let bench = &bench;
            scope.spawn(move || assert_eq!(bench.pre_render(json!({"n": number})), json!({"got": number})));
        }
    });
    assert_eq!(bench.hooks.idle_workers(), 4);
}

#[test]
fn only_so_many_workers_wait() {
    let Some(python) = python() else { return };
    let mut settings = config(&python);
    settings.workers = 2;
    let mut bench = Bench::with_config(COUNTER, settings);
    for fingerprint in ["1", "2", "3"] {
        bench.script.fingerprint = fingerprint.into();
        assert_eq!(count(&bench), 1);
    }
    assert_eq!(bench.hooks.idle_workers(), 2);
    assert_eq!(count(&bench), 2);
    bench.script.fingerprint = "1".into();
    assert_eq!(count(&bench), 1);
}

#[test]
fn a_worker_waits_only_for_so_long() {
    let Some(python) = python() else { return };
    let mut settings = config(&python);
    settings.idle_seconds = 1;
    let bench = Bench::with_config(COUNTER, settings);
    assert_eq!(count(&bench), 1);
    let began = Instant::now();
    while bench.hooks.idle_workers() > 0 {
        assert!(began.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(count(&bench), 1);
}

#[test]
fn a_dead_idle_worker_is_replaced() {
    let Some(bench) = Bench::new(
        "import os, threading
def pre_render(variables, context):
    os.close(3)
    return variables
def provide(context):
    return {'pid': os.getpid()}
",
    ) else {
        return;
    };
    assert_eq!(bench.pre_render(json!({})), json!({}));
    // It cannot read the next call, so it ends.
    std::thread::sleep(Duration::from_millis(100));
    assert!(bench.provide()["pid"].is_number());
}

#[test]
fn workers_end_with_their_engine() {
    let Some(mut bench) = Bench::new(COUNTER) else { return };
    bench.pre_render(json!({}));
    let marker = bench.path("workspace");
    let running = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == marker))
            .count()
    };
    assert_eq!(running(), 1);
    bench.hooks = Arc::new(PythonHooks::new(launcher(), config("python3"), spaces()));
    assert_eq!(running(), 0);
}

#[test]
fn code_runs_only_behind_the_fence_that_the_settings_ask_for() {
    let Some(python) = python() else { return };
    let text = "def provide(context): return {'ran': True}\n";
    let run = |level: SandboxLevel, without: &[Protection], pack: Option<&str>| {
        let mut settings = config(&python);
        settings.sandbox = level;
        let mut bench = Bench::with_config(text, settings.clone());
        let hooks = PythonHooks::new(launcher(), settings, spaces()).without(without.iter().copied());
        bench.hooks = Arc::new(hooks);
        bench.script.pack = pack.map(str::to_owned);
        (bench.try_provide(), bench.hooks.report().unwrap())
    };
    let (answer, report) = run(SandboxLevel::Full, &[Protection::Network], None);
    assert_eq!(answer.unwrap_err().code(), Code::SandboxIncomplete);
    assert!(report.why_missing(Protection::Network).is_some());
    let (answer, report) = run(SandboxLevel::Full, &[Protection::Network], Some("stranger"));
    let error = answer.unwrap_err();
    assert_eq!(error.code(), Code::SandboxIncomplete);
    for (protection, why) in &report.missing {
        let missing = format!("{} ({why})", protection.as_str());
        assert!(error.diagnostic().message.contains(&missing), "{error}");
    }
    assert!(hint(&error).contains("`sandbox = \"none\"`"), "{}", hint(&error));
    // A caller that accepts less gets less.
    let (answer, _) = run(SandboxLevel::None, &[Protection::Network], Some("stranger"));
    assert_eq!(answer.unwrap(), json!({"ran": true}));
    if run(SandboxLevel::None, &[], None).1.level() == SandboxLevel::Full {
        let (answer, _) = run(SandboxLevel::Full, &[], Some("stranger"));
        assert_eq!(answer.unwrap(), json!({"ran": true}));
    }
}

#[test]
fn hooks_work_without_any_fence() {
    let Some(python) = python() else { return };
    let text = "import subprocess
def provide(context):
    subprocess.Popen(['sleep', '1000'])
    return {'ran': True}
";
    let mut bench = Bench::with_config(text, config(&python));
    let hooks = PythonHooks::new(launcher(), config(&python), spaces()).without(Protection::ALL);
    bench.hooks = Arc::new(hooks);
    assert_eq!(bench.provide(), json!({"ran": true}));
    // No one in there could end the child, so the worker ends with it.
    assert_eq!(bench.hooks.idle_workers(), 0);
}

#[test]
fn a_missing_python_is_reported_before_any_start() {
    let bench = Bench::with_config(COUNTER, config("no-such-python"));
    let error = bench.error();
    assert_eq!(error.code(), Code::PythonNotFound);
    assert_eq!(error.diagnostic().message, "hooks cannot run: `no-such-python` is not on the PATH");
    // Something that is no Python at all.
    let bench = Bench::with_config(COUNTER, config("/bin/sh"));
    assert_eq!(bench.error().code(), Code::PythonNotFound);
    let bench = Bench::with_config(COUNTER, config("/bin/true"));
    assert_eq!(bench.error().code(), Code::PythonNotFound);
}

#[test]
fn a_virtual_environment_brings_its_modules() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let made = std::process::Command::new(&python)
        .args(["-I", "-m", "venv", "--without-pip"])
        .arg(folder.path().join("venv"))
        .output()
        .unwrap();
    if !made.status.success() {
        return skip::missing_peer(format_args!(
            "venv is missing: {}",
            String::from_utf8_lossy(&made.stderr)
        ));
    }
    let library = std::fs::read_dir(folder.path().join("venv/lib")).unwrap().flatten().next().unwrap().path();
    std::fs::write(library.join("site-packages/only_here.py"), "value = 7\n").unwrap();
    let program = folder.path().join("venv/bin/python");
    let text = "def provide(context):\n    import only_here\n    return {'value': only_here.value}\n";
    let bench = Bench::with_config(text, config(program.to_str().unwrap()));
    assert_eq!(bench.provide(), json!({"value": 7}));
    assert!(Path::new(&program).exists());
}
