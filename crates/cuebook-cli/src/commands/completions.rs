//! `cuebook completions`

use std::io::Write;
use std::process::ExitCode;

use clap::{Command, CommandFactory};

use crate::args::{Cli, CompletionsArgs};
use crate::output::Outcome;

pub fn run(args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown(&Cli::command()), "cuebook", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// A command with what its help shows: the scripts would offer what is hidden too.
fn shown(command: &Command) -> Command {
    let mut shown = Command::new(kept(command.get_name()))
        .disable_help_subcommand(command.is_disable_help_subcommand_set())
        .disable_help_flag(command.is_disable_help_flag_set())
        .disable_version_flag(command.is_disable_version_flag_set())
        .visible_aliases(command.get_visible_aliases().map(kept))
        .args(command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned())
        .subcommands(command.get_subcommands().filter(|command| !command.is_hide_set()).map(self::shown));
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(version) = command.get_version() {
        shown = shown.version(kept(version));
    }
    shown
}

/// A name for as long as the process lives, which ends when the script is written.
fn kept(text: &str) -> &'static str {
    text.to_owned().leak()
}
