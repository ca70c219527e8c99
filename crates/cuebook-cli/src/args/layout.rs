//! How the JSON of a command is laid out, for every result.

use std::ffi::OsString;

use clap::CommandFactory;

use super::{Cli, Command, ThreadCommand};

/// How the JSON of a command is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One document over several lines, for programs that read all of it.
    Document,
    /// A document per line, for programs that read along. Failures have the same layout.
    Lines,
}

impl Layout {
    fn lines(lines: bool) -> Layout {
        if lines { Layout::Lines } else { Layout::Document }
    }

    /// That of a command.
    pub fn of(command: &Command) -> Layout {
        use ThreadCommand::{Cancel, List, Show};
        Layout::lines(match command {
            Command::Run(_) | Command::Watch(_) => true,
            Command::Execute(args) => args.thread,
            Command::Thread(command) => !matches!(command, List(_) | Show(_) | Cancel(_)),
            _ => false,
        })
    }

    /// That of a command line that cannot be read, as far as it can.
    pub fn of_arguments(arguments: &[OsString]) -> Layout {
        let command = Cli::command().ignore_errors(true);
        let Ok(matches) = command.try_get_matches_from(arguments) else { return Layout::Document };
        Layout::lines(match matches.subcommand() {
            Some(("run" | "watch", _)) => true,
            Some(("execute", _)) => arguments.iter().any(|argument| argument == "--thread"),
            Some(("thread", of)) => matches!(of.subcommand_name(), Some("tail" | "resume")),
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_errors_keep_the_layout_of_the_command() {
        let layout =
            |line: &str| Layout::of_arguments(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in [
            "cuebook run --limit",
            "cuebook --root . run x --nonsense --json",
            "cuebook execute directive --thread",
            "cuebook thread tail x --after never",
            "cuebook thread resume --json",
            "cuebook watch x --nonsense",
        ] {
            assert_eq!(layout(line), Layout::Lines, "{line}");
        }
        for line in
            ["cuebook execute tool --json", "cuebook thread list --status no", "cuebook rn", "cuebook"]
        {
            assert_eq!(layout(line), Layout::Document, "{line}");
        }
    }
}
