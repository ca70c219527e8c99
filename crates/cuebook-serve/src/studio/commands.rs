//! Runs the command line with `--json` for what measures, proves or runs.
//!
//! The page names one of the [`KNOWN`] commands and its arguments. The program is this one and runs as its user does: what the page
//! records is what the command line records.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use cuebook::error::ErrorKind;
use cuebook::{Code, Diagnostic, Error, Result};
use serde_json::{Value as Json, json};

use super::{invalid, text};

/// Commands that the page may run: their words, and the options they may have. An option that ends in `=` takes a value.
const KNOWN: &[(&[&str], &[&str])] = &[
    (&["test"], &[]),
    (&["attack"], &["--vars="]),
    (&["diff"], &["--since=", "--vars=", "--language="]),
    (&["thread", "show"], &["--explain", "--turn="]),
    (&["thread", "cancel"], &["--take-over"]),
    (&["thread", "resume"], &["--limit=", "--model=", "--allow-again", "--behind="]),
    (&["thread", "fork"], &["--turn=", "--prompt=", "--model=", "--limit=", "--vars=", "--allow-again"]),
    (
        &["run"],
        &[
            "--model=",
            "--provider=",
            "--vars=",
            "--language=",
            "--message=",
            "--limit=",
            "--tool=",
            "--allow=",
        ],
    ),
];

/// Commands that wait for a model or a person are started without a wait, so these must have their option.
const ASYNCHRONOUS: &[&[&str]] = &[&["run"], &["thread", "resume"], &["thread", "fork"]];

/// The command line of this program for one project.
pub(super) struct Commands {
    program: PathBuf,
    root: PathBuf,
    options: Vec<String>,
    /// Commands that measure run one after the other, so that many tabs do not fill the machine.
    one: Mutex<()>,
}

impl Commands {
    pub(super) fn new(program: PathBuf, root: PathBuf, store: Option<String>) -> Commands {
        let options = store.iter().map(|store| format!("--store={store}")).collect();
        Commands { program, root, options, one: Mutex::default() }
    }

    /// Runs a command. The answer has its exit code, the document it printed, and what it said.
    pub(super) fn run(&self, arguments: &Json) -> Result<Json> {
        let words = words(arguments)?;
        let _alone = (words.command[0] != "thread").then(|| self.one.lock());
        let mut command = Command::new(&self.program);
        command.args(&words.command).arg("--json").arg("--root").arg(&self.root).args(&words.options);
        if words.command[0] == "thread" || words.command[0] == "run" {
            command.args(&self.options);
        }
        // What follows is never read as an option.
        command.arg("--").args(&words.operands);
        command.env("NO_COLOR", "1").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        let (input, values) = (child.stdin.take(), arguments["values"].as_object().cloned());
        let write = move || {
            if let (Some(mut input), Some(values)) = (input, values) {
                // A command that does not read its values has failed and says why.
                let _ = input.write_all(Json::Object(values).to_string().as_bytes());
            }
        };
        // On a thread of its own: the command may print before it has read everything.
        let output = std::thread::scope(|scope| {
            scope.spawn(write);
            child.wait_with_output()
        })
        .map_err(|error| failed(&error))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let document: Json = match serde_json::from_str(&printed) {
            Ok(document) => document,
            // A command that prints a document on each line, or a page.
            Err(_) => printed
                .lines()
                .map(serde_json::from_str)
                .collect::<std::result::Result<Vec<Json>, _>>()
                .map_or_else(|_| Json::from(printed.as_ref()), Json::from),
        };
        Ok(json!({
            "code": output.status.code(),
            "document": document,
            "said": String::from_utf8_lossy(&output.stderr),
        }))
    }
}

#[derive(Debug)]
struct Words {
    command: Vec<String>,
    options: Vec<String>,
    operands: Vec<String>,
}

/// The words of a command, if the page may run it.
fn words(arguments: &Json) -> Result<Words> {
    let command = text(arguments, "command")?;
    let unknown = || invalid(format!("the studio does not run `cuebook {command}`"));
    let (parts, allowed) = KNOWN.iter().find(|(words, _)| words.join(" ") == command).ok_or_else(unknown)?;
    let mut options = Vec::new();
    for (name, value) in arguments["options"].as_object().into_iter().flatten() {
        let takes_value = allowed.contains(&format!("--{name}=").as_str());
        match value {
            Json::Bool(true) if allowed.contains(&format!("--{name}").as_str()) => {
                options.push(format!("--{name}"))
            }
            Json::Bool(false) | Json::Null => {}
            Json::String(value) if takes_value => options.push(format!("--{name}={value}")),
            Json::Number(value) if takes_value => options.push(format!("--{name}={value}")),
            Json::Array(values) if takes_value => {
                let texts = values.iter().filter_map(Json::as_str);
                options.extend(texts.map(|value| format!("--{name}={value}")));
            }
            _ => return Err(invalid(format!("`cuebook {command}` has no option `--{name}` in the studio"))),
        }
    }
    if ASYNCHRONOUS.contains(parts) {
        options.push("--async".to_owned());
    }
    let operands = arguments["arguments"].as_array().into_iter().flatten();
    let operands: Option<Vec<String>> = operands.map(|operand| operand.as_str().map(str::to_owned)).collect();
    let operands = operands.ok_or_else(|| invalid("`arguments` is a list of texts"))?;
    Ok(Words { command: parts.iter().map(|part| (*part).to_owned()).collect(), options, operands })
}

fn failed(error: &std::io::Error) -> Error {
    let message = format!("the command did not start: {error}");
    Error::new(ErrorKind::Io, Diagnostic::new(Code::Unreadable, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_commands_and_options_run() {
        let good = json!({"command": "thread show", "options": {"turn": 3, "explain": true}, "arguments": ["a/b-1"]});
        let words = words(&good).unwrap();
        assert_eq!(words.command, ["thread", "show"]);
        assert_eq!(words.options, ["--turn=3", "--explain"]);
        assert_eq!(words.operands, ["a/b-1"]);
        for wrong in [
            json!({"command": "sign"}),
            json!({"command": "execute"}),
            json!({"command": "test", "options": {"root": "/"}}),
            json!({"command": "thread resume", "options": {"no-sandbox": true}}),
            json!({"command": "run", "options": {"async": false, "record": "x"}}),
            json!({"command": "allow", "options": {"yes": true}}),
            json!({"command": "test", "options": {"update": true}}),
            json!({"command": "run", "options": {"unfenced": true}}),
            json!({"command": "attack", "arguments": [1]}),
            json!({}),
        ] {
            assert!(super::words(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn commands_do_not_wait_for_a_model_or_another_process() {
        let run = json!({"command": "run", "arguments": ["greeting"]});
        assert_eq!(words(&run).unwrap().options, ["--async"]);
        let fork = json!({"command": "thread fork", "options": {"turn": 1}, "arguments": ["a"]});
        assert_eq!(words(&fork).unwrap().options, ["--turn=1", "--async"]);
    }
}
