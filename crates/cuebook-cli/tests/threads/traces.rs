//! Traces of threads: what they may not tell.

use std::os::unix::fs::PermissionsExt;

use cuebook_mock::Script;

use crate::greeting::{THREADED, stage};
use crate::setup::{err, returned};

/// A key without the look of one, so that only a caller that knows it can take it out.
const PLAIN: &str = "violet.meadow.4711";

#[test]
fn a_key_that_a_model_repeats_is_in_no_trace() {
    let (outputs, text) = (returned(&format!("It is {PLAIN}.")), format!("So: {PLAIN}!"));
    let stage = stage(Script::new().reply(outputs.clone()).reply(outputs).text(text.clone()).text(text));
    stage.project.write("prompts/ask/template.md", "Say {{ word }}.\n");
    let word = format!("word={PLAIN}");
    let asked = ["run", "ask", "--var", &word, "--model", "fast"];
    for args in [&THREADED[..], &asked] {
        for place in ["console", "traces"] {
            let traced = [args, &["--trace", place]].concat();
            let output = stage.command(&traced).env("MOCK_KEY", PLAIN).output().unwrap();
            let said = err(&output);
            assert!(output.status.success(), "{said}");
            assert_eq!(said.contains("[REDACTED]"), place == "console", "{said}");
            assert!(!said.contains(PLAIN), "{said}");
        }
    }
    let (mut files, mut reported) = (0, false);
    for file in std::fs::read_dir(stage.project.path().join("traces")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains(PLAIN), "{text}");
        reported |= text.contains("So: [REDACTED]!");
        files += 1;
    }
    assert!(reported && files >= 2, "each run leaves a trace");
}

#[test]
fn recordings_and_traces_are_for_the_user_alone() {
    let stage = stage(Script::new().reply(returned("Hi")));
    let mut command = stage.command(&THREADED);
    command.args(["--record", "replies.jsonl", "--trace", "traces"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let folder = stage.project.path().join("traces");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty());
    files.push(stage.project.path().join("replies.jsonl"));
    for path in files {
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
}
