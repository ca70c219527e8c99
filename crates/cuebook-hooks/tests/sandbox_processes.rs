//! How fenced programs end, with all that they have started, and whether they are quiet.

#![cfg(target_os = "linux")]

mod fenced;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cuebook_hooks::sandbox::{Ending, Protection};
use fenced::Fenced;

fn exists(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Waits for something that happens soon.
fn eventually(what: &str, happened: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !happened() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes that have this word among their arguments, as the host sees them.
fn processes_with(word: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("there is a /proc");
    entries
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            String::from_utf8_lossy(&arguments).split('\0').any(|argument| argument == word).then_some(pid)
        })
        .filter(|pid| *pid != std::process::id().cast_signed())
        .collect()
}

#[test]
fn how_a_program_ended_is_known() {
    let Some(test) = Fenced::python("import ctypes; ctypes.string_at(0)") else { return };
    assert_eq!(test.run().ending, Ending::Signal(11));
    let Some(test) = Fenced::python("raise SystemExit(137)") else { return };
    assert_eq!(test.run().ending, Ending::Exited(137));
    let Some(test) = Fenced::python("import time; time.sleep(60)") else { return };
    let mut running = test.start();
    assert_eq!(running.wait(Duration::from_millis(20)), None);
    assert_eq!(running.kill(), Ending::Signal(9));
    assert_eq!(running.kill(), Ending::Signal(9));
}

#[test]
fn the_memory_of_all_processes_together_is_limited() {
    // Each of them stays far below the limit of one process.
    const CROWD: &str = "
import os, time
for _ in range(8):
    if os.fork() == 0:
        block = bytearray(64 << 20)
        for at in range(0, len(block), 4096):
            block[at] = 1
        time.sleep(600)
        os._exit(0)
time.sleep(600)
";
    let Some(mut test) = Fenced::python(CROWD) else { return };
    (test.profile.memory, test.profile.total_memory) = (256 << 20, 256 << 20);
    assert_eq!(test.run().ending, Ending::Signal(9));
}

#[test]
fn a_daemon_is_gone_when_the_program_is() {
    // Twice forked and in a session of its own, so that neither a parent nor a group leads to it.
    const DAEMON: &str = "
import os, time
here, there = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(4, b'up')
        os.write(there, b'.')
        while True: time.sleep(1)
    os._exit(0)
os.wait()
os.read(here, 1)
if 'stays' in os.sys.argv:
    while True: time.sleep(1)
";
    for without in [&[][..], &[Protection::View, Protection::Processes, Protection::ProcessLimit]] {
        for way in ["kill", "drop", "exit", "close"] {
            let word = format!("daemon-{way}-{}-{}", without.len(), std::process::id());
            let Some(mut test) = Fenced::python(DAEMON) else { return };
            test = test.argument(&word).without(without);
            if way != "exit" {
                test = test.argument("stays");
            }
            let mut running = test.start();
            running.replies.read_exact(&mut [0; 2]).unwrap();
            match way {
                "kill" => drop(running.kill()),
                "drop" => drop(running),
                "exit" => assert_eq!(running.wait(Duration::from_secs(10)), Some(Ending::Exited(0))),
                _ => {
                    drop(running.requests);
                    assert_eq!(running.process.wait(Duration::from_secs(10)), Some(Ending::Signal(9)));
                }
            }
            assert_eq!(processes_with(&word), [0; 0], "{way} {without:?}");
        }
    }
}

#[test]
fn everything_ends_when_the_process_that_started_it_is_killed() {
    if let Ok(word) = std::env::var("CUEBOOK_TEST_ORPHAN") {
        // We are the process that is going to be killed.
        let Some(test) = Fenced::python("import os\nos.write(4, b'up')\nwhile True: pass") else { return };
        let mut running = test.argument(word).start();
        running.replies.read_exact(&mut [0; 2]).unwrap();
        println!("up");
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    if Fenced::python("").is_none() {
        return;
    }
    let word = format!("orphan-{}", std::process::id());
    let mut starter = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "everything_ends_when_the_process_that_started_it_is_killed", "--nocapture"])
        .env("CUEBOOK_TEST_ORPHAN", &word)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the program starts", || !processes_with(&word).is_empty());
    starter.kill().unwrap();
    starter.wait().unwrap();
    eventually("the program ends", || processes_with(&word).is_empty());
}

#[test]
fn killing_the_launcher_ends_the_program() {
    let Some(test) = Fenced::python("while True: pass") else { return };
    let running = test.start();
    let pid = running.process.id();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let launcher = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().to_owned();
    assert!(Command::new("kill").args(["-KILL", &launcher]).status().unwrap().success());
    eventually("the program ends", || !exists(pid));
}

#[test]
fn a_quiet_program_has_one_thread_and_no_children() {
    const STEPS: &str = "
import os, threading, subprocess
def step(): os.write(4, b'.'); os.read(3, 1)
step()
event = threading.Event()
thread = threading.Thread(target=event.wait); thread.start()
step()
event.set(); thread.join()
step()
child = os.fork()
if child == 0:
    os.read(3, 1); os._exit(0)
os.write(4, b'.')
os.waitpid(child, 0)
step()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(4, b'.')
        import time; time.sleep(60)
    os._exit(0)
os.wait()
os.write(4, b'.')
os.read(3, 1)
";
    for without in [&[][..], &[Protection::View, Protection::Processes]] {
        let Some(test) = Fenced::python(STEPS) else { return };
        let mut running = test.without(without).start();
        for (step, quiet) in [
            ("nothing", true),
            ("a thread", false),
            ("ended thread", true),
            ("child", false),
            ("ended child", true),
        ] {
            running.replies.read_exact(&mut [0]).unwrap();
            // A thread that was joined may take the kernel a moment to clear away.
            if quiet {
                eventually(step, || running.is_quiet());
            } else {
                assert!(!running.is_quiet(), "{step} {without:?}");
            }
            running.requests.write_all(b"x").unwrap();
        }
        running.replies.read_exact(&mut [0; 2]).unwrap();
        assert!(!running.is_quiet(), "a daemon {without:?}");
        running.kill();
        assert!(!running.is_quiet(), "gone");
    }
}
