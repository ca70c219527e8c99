//! A model behind a command, with real programs.

#![cfg(unix)]
#![allow(clippy::unwrap_used)] // A test that fails to unwrap has failed.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use cuebook::hooks::{Model, ModelRequest};
use cuebook_hooks::model::CommandModel;

const SECOND: Duration = Duration::from_secs(1);

fn ask(prompt: &str) -> ModelRequest {
    ModelRequest {
        prompt: prompt.into(),
        system: None,
        model: None,
        max_tokens: None,
        timeout: Duration::from_secs(20),
    }
}

fn sh(script: &str) -> CommandModel {
    CommandModel::new(vec!["sh".into(), "-c".into(), script.into()])
}

#[test]
fn the_answer_is_what_the_program_prints() {
    let cat = CommandModel::new(vec!["cat".into()]);
    for (prompt, answer) in
        [("Hi", "Hi"), ("Hi\n", "Hi"), ("Hi\r\n\r\n", "Hi\r\n"), ("", ""), ("größe\n\n", "größe\n")]
    {
        assert_eq!(cat.ask(&ask(prompt)).unwrap(), answer);
    }
    let request = ModelRequest { system: Some("Be brief.".into()), ..ask("Hi") };
    assert_eq!(cat.ask(&request).unwrap(), "Be brief.\n\nHi");
}

#[test]
fn the_program_gets_the_model_and_the_length() {
    let model = sh("echo \"${CUEBOOK_MODEL-none} ${CUEBOOK_MAX_TOKENS-none}\"");
    assert_eq!(model.ask(&ask("")).unwrap(), "none none");
    let request = ModelRequest { model: Some("m-1".into()), max_tokens: Some(50), ..ask("") };
    assert_eq!(model.ask(&request).unwrap(), "m-1 50");
}

#[test]
fn no_shell_reads_the_command() {
    let model = CommandModel::new(["echo", "$HOME", ";", "a b"].map(String::from).to_vec());
    assert_eq!(model.ask(&ask("")).unwrap(), "$HOME ; a b");
}

#[test]
fn a_failed_program_shows_the_end_of_its_errors() {
    let refusal = sh("echo answer; echo why >&2; exit 3").ask(&ask("")).unwrap_err();
    assert_eq!(refusal.exception, "RuntimeError");
    assert_eq!(refusal.message, "llm_call: \"sh\" failed (exit status: 3): why");
    assert_eq!(sh("exit 1").ask(&ask("")).unwrap_err().message, "llm_call: \"sh\" failed (exit status: 1)");

    let script = "yes ä | head -n 50000 >&2; printf 'a\\033[1mb' >&2; kill -9 $$";
    let refusal = sh(script).ask(&ask("")).unwrap_err();
    let (start, reported) = refusal.message.split_once("): ").unwrap();
    assert!(start.contains("signal"), "{start}");
    assert_eq!(reported.chars().count(), 2000);
    assert!(reported.ends_with("ä\na[1mb"), "{reported}");

    let refusal = CommandModel::new(vec!["/no/such/program".into()]).ask(&ask("")).unwrap_err();
    assert!(refusal.message.contains("does not start"), "{}", refusal.message);
}

#[test]
fn a_slow_program_is_killed_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    for (script, number) in [
        // The child holds the output open; the second one has closed it.
        ("sleep 300 & echo $! > PID; wait", "waits"),
        ("exec >/dev/null; sleep 300 & echo $! > PID; wait", "closed"),
    ] {
        let pid = folder.path().join(number);
        let model = sh(&script.replace("PID", &pid.display().to_string()));
        let started = Instant::now();
        let refusal = model.ask(&ModelRequest { timeout: SECOND, ..ask("") }).unwrap_err();
        assert_eq!(refusal.exception, "TimeoutError");
        assert_eq!(refusal.message, "llm_call: \"sh\" did not end within 1s");
        assert!(started.elapsed() < 10 * SECOND);
        let child = std::fs::read_to_string(&pid).unwrap();
        let deadline = Instant::now() + 10 * SECOND;
        while runs(child.trim()) {
            assert!(Instant::now() < deadline, "the child is still there");
            thread::sleep(SECOND / 50);
        }
    }
}

/// If a process is there and not a mere entry that no one has collected yet.
fn runs(pid: &str) -> bool {
    let listed = Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap();
    let state = String::from_utf8(listed.stdout).unwrap();
    !state.trim().is_empty() && !state.starts_with('Z')
}

#[test]
fn a_huge_prompt_blocks_neither_side() {
    let prompt = "x".repeat(1 << 20);
    assert_eq!(CommandModel::new(vec!["cat".into()]).ask(&ask(&prompt)).unwrap(), prompt);
    // One that answers and complains at length before it reads, and one that does not read at all.
    let script = "yes | head -c 500000; yes | head -c 500000 >&2; cat >/dev/null";
    assert_eq!(sh(script).ask(&ask(&prompt)).unwrap().len(), 499_999);
    assert_eq!(sh("echo done").ask(&ask(&prompt)).unwrap(), "done");
    assert_eq!(sh("cat").ask(&ask(&(prompt + "x"))).unwrap_err().exception, "ValueError");
}

#[test]
fn an_answer_must_be_text_and_not_endless() {
    assert_eq!(sh("printf '\\377'").ask(&ask("")).unwrap_err().exception, "ValueError");
    let refusal = sh("yes").ask(&ask("")).unwrap_err();
    assert_eq!(refusal.exception, "OSError");
    assert_eq!(refusal.message, "llm_call: the answer of \"sh\" is longer than 1048576 bytes");
}

#[test]
fn leftovers_of_a_program_block_no_caller() {
    let started = Instant::now();
    let script = "sleep 30 >/dev/null & echo $!; exit EXIT";
    let pid = sh(&script.replace("EXIT", "0")).ask(&ask("")).unwrap();
    sh(&script.replace("EXIT", "1")).ask(&ask("")).unwrap_err();
    assert!(started.elapsed() < 10 * SECOND);
    assert!(runs(&pid), "a server that the program started goes on");
    Command::new("kill").arg(&pid).status().unwrap();
}
