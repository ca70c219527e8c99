//! Commands that messages suggest: with the options that say where the threads are, so that they can be used as they stand.
//!
//! What stands in the environment stays there, and an address that may hold a password is not repeated.

use std::borrow::Cow;
use std::path::Path;

use cuebook::error::shell_word;

use crate::args::{Command, Options, StoreOptions, ThreadCommand};

/// The commands of threads that messages name.
const SUGGESTED: [&str; 5] = ["resume", "tail", "show", "cancel", "list"];

/// The options of a command that say where its threads are, as a user would type them.
pub fn place(command: &Command, options: &Options) -> String {
    let threads: &StoreOptions = match command {
        Command::Run(args) => &args.threads.kept,
        Command::Execute(args) => &args.threads.kept,
        Command::Thread(ThreadCommand::List(args)) => &args.threads,
        Command::Thread(ThreadCommand::Show(args)) => &args.threads,
        Command::Thread(ThreadCommand::Tail(args)) => &args.threads,
        Command::Thread(ThreadCommand::Cancel(args)) => &args.threads,
        Command::Thread(ThreadCommand::Resume(args)) => &args.threads.kept,
        _ => return String::new(),
    };
    let path =
        |path: &Option<std::path::PathBuf>| path.as_deref().map(Path::to_string_lossy).map(Cow::into_owned);
    let given = [
        ("--root", "CUEBOOK_ROOT", path(&options.root)),
        ("--store", "CUEBOOK_STORE", threads.store.clone()),
    ];
    let typed = given.into_iter().filter_map(|(option, variable, value)| {
        let value = value.filter(|value| std::env::var(variable).as_ref() != Ok(value))?;
        Some(match value.split_once("://") {
            None if option == "--store" && value.contains('@') => format!(" {option} …"),
            Some((scheme, _)) if option == "--store" => format!(" {option} {scheme}://…"),
            _ => format!(" {option} {}", shell_word(&value)),
        })
    });
    typed.collect()
}

/// A text whose commands name the place.
pub fn suggested<'t>(text: &'t str, place: &str) -> Cow<'t, str> {
    if place.is_empty() || !text.contains("cuebook thread ") {
        return Cow::Borrowed(text);
    }
    let mut text = text.to_owned();
    for name in SUGGESTED {
        let command = format!("cuebook thread {name}");
        text = text.replace(&command, &format!("{command}{place}"));
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Cli;

    fn place_of(words: &[&str]) -> String {
        let cli = Cli::try_parse_from(words).unwrap();
        place(&cli.command, &cli.options)
    }

    #[test]
    fn a_command_that_is_suggested_names_the_place_and_no_password() {
        let said = place_of(&["cuebook", "run", "x", "--store", "my threads.db", "--project", "../p"]);
        assert_eq!(said, " --root ../p --store 'my threads.db'");
        let said = place_of(&["cuebook", "--root", "r", "thread", "show", "x"]);
        assert_eq!(said, " --root r");
        let said = place_of(&["cuebook", "thread", "tail", "x", "--store", "postgres://a:secret@h/d"]);
        assert_eq!(said, " --store postgres://…");
        assert_eq!(place_of(&["cuebook", "render", "x", "--root", "r"]), "");
        assert_eq!(
            suggested("go on with `cuebook thread resume a/b-1 --limit turns=2`", " --store x.db"),
            "go on with `cuebook thread resume --store x.db a/b-1 --limit turns=2`"
        );
        assert_eq!(suggested("cuebook thread list shows all", ""), "cuebook thread list shows all");
    }
}
