//! `cuebook init`

use std::fs;
use std::process::ExitCode;

use cuebook::error::shell_word;
use cuebook::files;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint};
use serde_json::json;

use crate::args::{InitArgs, Options};
use crate::output::{Outcome, print_json, say};

/// The files of a new project.
const FILES: [(&str, &str); 6] = [
    ("cuebook.toml", include_str!("../../starter/cuebook.toml")),
    ("prompts/greeting/prompt.py", include_str!("../../starter/greeting/prompt.py")),
    ("prompts/greeting/template.md", include_str!("../../starter/greeting/template.md")),
    ("prompts/greeting/tests.md", include_str!("../../starter/greeting/tests.md")),
    ("prompts/partials/tone.md", include_str!("../../starter/partials/tone.md")),
    (".github/workflows/prompts.yml", include_str!("../../starter/ci/prompts.yml")),
];

/// What to try in a new project. A test runs each of them.
const COMMANDS: [&str; 4] = [
    "cuebook render greeting --var user_name=Ada",
    "cuebook explain greeting --var user_name=Ada --find 'Keep answers short'",
    "cuebook check",
    "cuebook test",
];

pub fn run(args: &InitArgs, options: &Options) -> Outcome {
    let dir = args.dir.clone().or_else(|| options.root.clone()).unwrap_or_else(|| ".".into());
    let existing: Vec<&str> =
        FILES.iter().map(|(path, _)| *path).filter(|path| dir.join(path).exists()).collect();
    if !existing.is_empty() {
        let message = match existing.as_slice() {
            [one] => format!("a project exists here: {one} would be overwritten"),
            [first, rest @ ..] => format!(
                "a project exists here: {first} and {} more file{} would be overwritten",
                rest.len(),
                if rest.len() == 1 { "" } else { "s" }
            ),
            [] => String::new(),
        };
        let diagnostic = Diagnostic::new(Code::WriteFailed, message)
            .hint(Hint::run("choose another folder, as in", "cuebook init my-prompts"));
        return Err(Error::new(ErrorKind::Io, diagnostic).into());
    }
    fs::create_dir_all(&dir).map_err(|error| files::write_error(&dir.to_string_lossy(), &error))?;
    for (path, text) in FILES {
        files::write_atomic(&dir.join(path), path, text.as_bytes())?;
    }
    if options.json {
        let created: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
        print_json(&json!({"root": dir.to_string_lossy(), "created": created}))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (path, _) in FILES {
        say(format_args!("created {path}"));
    }
    say("\nnow try:");
    if dir.as_os_str() != "." {
        say(format_args!("  cd {}", shell_word(&dir.to_string_lossy())));
    }
    COMMANDS.iter().for_each(|command| say(format_args!("  {command}")));
    Ok(ExitCode::SUCCESS)
}
