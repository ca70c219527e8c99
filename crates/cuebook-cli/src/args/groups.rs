//! The groups in which `cuebook --help` lists the commands.

use std::fmt::Write as _;

use clap::{Command, CommandFactory, FromArgMatches};

use super::Cli;

/// The groups in their order. Every command is in one of them: a new command is one name here.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Write", &["init", "render", "check", "watch", "convert", "overrides", "schema", "stubs"]),
    ("Inspect", &["list", "show", "explain", "tokens", "candidates", "resolve", "search", "load"]),
    ("Test", &["test", "attack", "diff"]),
    (
        "Share",
        &[
            "add", "pull", "push", "sync", "update", "remove", "pack", "allow", "keys", "trust", "sign",
            "verify",
        ],
    ),
    ("Run", &["run", "batch", "execute", "thread", "worker", "providers", "mock"]),
    ("Serve", &["studio", "mcp", "lsp"]),
    ("Help", &["help", "doctor", "completions"]),
];

impl Cli {
    /// Reads the command line of this process.
    pub fn read() -> Result<Cli, clap::Error> {
        let mut matches = Cli::grouped().try_get_matches()?;
        Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut Cli::grouped()))
    }

    /// The command line, with a help that lists the commands in groups.
    pub fn grouped() -> Command {
        let command = Cli::command();
        let listed = listed(&command);
        command.help_template(format!(
            "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{listed}\n{}\n{{options}}{{after-help}}",
            heading(&Cli::command(), "Options")
        ))
    }
}

/// The commands in their groups, one per line.
fn listed(command: &Command) -> String {
    let name_style = command.get_styles().get_literal();
    let width = command.get_subcommands().map(|command| command.get_name().len()).max().unwrap_or_default();
    let mut text = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(text, "\n{}", heading(command, group));
        for subcommand in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let name = subcommand.get_name();
            let summary = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(
                text,
                "  {name_style}{name}{name_style:#}{:1$}{summary}",
                "",
                width + 2 - name.len()
            );
        }
    }
    text
}

fn heading(command: &Command, text: &str) -> String {
    let style = command.get_styles().get_header();
    format!("{style}{text}:{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let mut commands: Vec<&str> = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(Command::get_name)
            .collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        commands.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, commands);
    }

    #[test]
    fn the_help_of_every_command_has_examples() {
        fn check(command: &Command, name: &str) {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Examples:\n  "), "`{name} --help` has no examples");
            // Clap wraps long lines; a line that is broken here would be broken twice.
            for line in after.lines().filter(|line| !line.starts_with("  ")) {
                assert!(
                    line.is_empty()
                        || !line.ends_with(|end: char| end.is_alphanumeric() || end == ',')
                        || line.contains(": cuebook "),
                    "`{name} --help` breaks a line: {line}"
                );
            }
            for inner in command.get_subcommands().filter(|command| !command.is_hide_set()) {
                check(inner, &format!("{name} {}", inner.get_name()));
            }
        }
        check(&Cli::command(), "cuebook");
    }

    #[test]
    fn a_command_takes_one_line_of_80_columns() {
        for line in anstream::adapter::strip_str(&listed(&Cli::command())).to_string().lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
