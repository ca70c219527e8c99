//! `cuebook watch`, with real files that change.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests, though the lint sees only functions"
)]

mod support;

use support::skip;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value as Json;
use support::{Project, Test};

/// How long a change may take at most; nothing waits that long unless something is wrong.
const PATIENCE: Duration = Duration::from_secs(120);

/// A watch that goes on until it is dropped.
struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    fn start(project: &Project, args: &[&str]) -> Watching {
        let mut command = project.command("cuebook", project.path());
        let mut child =
            command.arg("watch").args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Watching { child, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("the change is noticed")
    }

    /// The next document for which a question is answered with yes. A change may be seen in two steps.
    fn until(&self, what: &str, wanted: impl Fn(&Json) -> bool) -> Json {
        let mut seen = Vec::new();
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else { panic!("{what}: {seen:#?}") };
            let document: Json = serde_json::from_str(&line).unwrap();
            if wanted(&document) {
                return document;
            }
            seen.push(document);
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_change_is_one_document_errors_too_and_it_goes_on() {
    let project = Project::new();
    project.write("prompts/hi/template.md", "Hi {{ name }}! {% include 'partials/end.md' %}");
    project.write("prompts/partials/end.md", "Bye.");
    project.write("values.json", r#"{"name": "Ada"}"#);
    let watching = Watching::start(&project, &["hi", "--vars", "values.json", "--json", "--diff"]);
    let text = |wanted: &'static str| move |document: &Json| document["text"] == wanted;
    let first = watching.until("the first render", text("Hi Ada! Bye."));
    assert_eq!((&first["status"], &first["diff"]), (&Json::from("ok"), &Json::Null));
    project.write("values.json", r#"{"name": "Bo"}"#);
    let second = watching.until("other values", text("Hi Bo! Bye."));
    assert_eq!(second["diff"][1]["text"], "Hi Bo! Bye.");
    assert_eq!(second["diff"][1]["origin"], "name (the caller), prompts/hi/template.md:1");
    project.write("prompts/partials/end.md", "See you.");
    watching.until("what is included", text("Hi Bo! See you."));
    project.write("prompts/hi/template.md", "Hi {{ name");
    let broken = watching.until("an error", |document| document["status"] == "error");
    assert_eq!(broken["error"]["code"], "CB304");
    project.write("prompts/hi/template.md", "Hello {{ name }}!");
    watching.until("mended", text("Hello Bo!"));
    std::fs::remove_file(project.path().join("values.json")).unwrap();
    watching.until("no values", |document| document["status"] == "error");
    project.write("values.json", r#"{"name": "Cy"}"#);
    watching.until("values again", text("Hello Cy!"));
}

#[test]
fn people_see_the_text_and_then_what_is_different() {
    let project = Project::new();
    project.write("prompts/hi/template.md", "Hi!\nBye.\n");
    let watching = Watching::start(&project, &["hi", "--diff"]);
    assert_eq!([watching.line(), watching.line()], ["Hi!", "Bye."]);
    project.write("prompts/hi/template.md", "Hello!\nBye.\n");
    let mut lines = Vec::new();
    while !lines.iter().any(|line: &String| line.contains("Bye.")) {
        lines.push(watching.line().trim().to_owned());
    }
    assert_eq!(lines, ["- Hi!", "+ Hello!  <- prompts/hi/template.md:1", "Bye."]);
}

#[test]
fn the_code_of_a_pack_is_watched_and_so_is_its_approval() {
    if support::python_or_skip().is_none() {
        return;
    }
    let project = Project::new();
    let provider = |branch: &str| format!("def provide(context):\n    return {{'branch': '{branch}'}}\n");
    project.write(
        "user_data/packs/repo/pack.json",
        r#"{"pack_id": "repo", "variable_providers": [{"file": "variables/git.py", "namespace": "git"}]}"#,
    );
    project.write("user_data/packs/repo/variables/git.py", provider("main"));
    project.write("prompts/hi/template.md", "On {{ git.branch }}.");
    let watching = Watching::start(&project, &["hi", "--json"]);
    watching.until("nobody has approved it", |document| document["error"]["code"] == "CB207");
    let approve = || {
        let mut command = project.command("cuebook", project.path());
        assert!(command.args(["pack", "approve", "repo", "--yes"]).output().unwrap().status.success());
    };
    approve();
    // Whether a pack's code can be fenced in here is another matter: the approval was noticed.
    let approved = watching.until("it is approved", |document| document["error"]["code"] != "CB207");
    if approved["text"] != "On main." {
        return skip::missing_peer(format_args!("code of packs does not run here: {approved}"));
    }
    project.write("user_data/packs/repo/variables/git.py", provider("next"));
    watching.until("other code", |document| document["error"]["code"] == "CB207");
    approve();
    watching.until("and its values", |document| document["text"] == "On next.");
}

#[test]
fn without_a_prompt_nothing_is_waited_for() {
    let project = Project::new();
    let output = project.command("cuebook", project.path()).arg("watch").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error[CB407]: no prompt was given\n"));
}

#[test]
fn unwatchable_targets_are_refused() {
    Test::new().args(["watch", "general_system", "--vars", "-"]).code(2).run();
}

#[test]
fn a_conversation_is_no_change_of_the_text() {
    let project = Project::new();
    let file = |text: &str| {
        format!(
            "---\nname: talk\ninputs:\n  - {{name: history, kind: thread}}\n---\nsystem:\n{text}\n\n{{{{ history }}}}\n"
        )
    };
    project.write("prompts/talk.prompty", file("Hi."));
    project.write("values.yaml", "history: [{role: user, content: Hello}]\n");
    let watching = Watching::start(&project, &["talk", "--vars", "values.yaml", "--json", "--diff"]);
    watching.until("the first render", |document| document["status"] == "ok");
    project.write("prompts/talk.prompty", file("Hello."));
    let changed = watching.until("the change", |document| {
        document["text"].as_str().is_some_and(|text| text.contains("Hello."))
    });
    let marked = |sign: &str| -> Vec<String> {
        let lines = changed["diff"].as_array().unwrap().iter();
        let lines = lines.filter(|line| line["change"] == sign);
        lines.map(|line| line["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (marked("gone"), marked("new")),
        (vec!["Hi.".to_owned()], vec!["Hello.".to_owned()]),
        "{changed}"
    );
}
