//! The parts of the reference that are made from the code, so that they cannot go stale.

use cuebook::Code;
use cuebook_run::Kind;

use crate::book;
use crate::chapters::keep;
use crate::support::{Project, transcript};

/// The stages, by the hundreds of their codes.
const STAGES: [(char, &str); 9] = [
    ('1', "Find prompts"),
    ('2', "Packs, overrides and signatures"),
    ('3', "Read prompts"),
    ('4', "Fill in values"),
    ('5', "Render"),
    ('6', "Messages and wires"),
    ('7', "Run"),
    ('8', "Serve"),
    ('9', "Batches"),
];

const NOTE: &str = "<!-- Made from the codes: CUEBOOK_BLESS=1 cargo test -p cuebook-cli --test guide -->\n\n";

fn of_stage(digit: char) -> impl Iterator<Item = &'static Code> {
    Code::ALL.iter().filter(move |code| code.as_str()[2..].starts_with(digit))
}

/// The list of errors, and a page per stage that holds the pages of its codes.
pub fn every_error_is_in_the_book() {
    let mut wrong = String::new();
    let mut list = format!(
        "# Errors\n\n{NOTE}Codes are stable and never reused. `cuebook help CODE` prints the page of a code, and \
         `cuebook help codes --json`\nprints all of them. The table shows the usual severity: an *error* ends the command, a *warning* \
         does not, and a *note* is\nfor your information.\n"
    );
    for (digit, title) in STAGES {
        list += &format!("\n## {title}\n\n| code | name | severity | meaning |\n| --- | --- | --- | --- |\n");
        let mut pages = format!("# {title}: CB{digit}xx\n\n{NOTE}");
        for code in of_stage(digit) {
            let (name, severity, summary) = (code.name(), code.severity().as_str(), code.summary());
            let anchor = format!("{}-{name}", code.as_str().to_lowercase());
            list += &format!("| [{code}](errors-{digit}.md#{anchor}) | {name} | {severity} | {summary} |\n");
            pages += &format!("{{{{#include ../../../crates/cuebook-text/src/error/pages/{code}.md}}}}\n\n");
        }
        wrong += &kept(&format!("reference/errors-{digit}.md"), &format!("{}\n", pages.trim_end()));
    }
    wrong += &kept("reference/errors.md", &list);
    assert!(wrong.is_empty(), "{wrong}");
    let listed: usize = STAGES.iter().map(|(digit, _)| of_stage(*digit).count()).sum();
    assert_eq!(listed, Code::ALL.len(), "a stage is missing");
}

/// The events of threads, with what the code says of each.
pub fn every_event_is_in_the_book() {
    let source = book::code("cuebook-store/record/event.rs");
    let mut table = String::from("| event | meaning |\n| --- | --- |\n");
    for kind in Kind::ALL {
        let word = format!("\"{kind}\" \"");
        let (_, about) = source.split_once(&word).expect("an event says what it is");
        table += &format!("| `{kind}` | {} |\n", about.split('"').next().unwrap());
    }
    let path = "reference/threads.md";
    let text = std::fs::read_to_string(book::source().join(path)).unwrap();
    let (before, rest) = text.split_once("<!-- generated: events -->\n").expect("a place for it");
    let (_, after) = rest.split_once("<!-- end -->").expect("its end");
    let wrong = kept(path, &format!("{before}<!-- generated: events -->\n{table}<!-- end -->{after}"));
    assert!(wrong.is_empty(), "{wrong}");
}

/// Every command, with what it says of itself.
pub fn every_command_is_in_the_book() {
    let mut text = String::from(
        "# Commands\n\nThis page shows the help of every command. `cuebook COMMAND --help` prints the same text, and `-h` prints a summary.\nEvery command also takes the general options, which this page shows once, for `cuebook` itself.\n",
    );
    let mut count = 0;
    describe(&Project::new(), &[], &mut text, &mut count);
    assert!(count > 40, "{count} commands");
    let wrong = kept("reference/commands.md", &text);
    assert!(wrong.is_empty(), "{wrong}");
}

/// Writes down what a command says, and the commands below it.
fn describe(project: &Project, command: &[String], text: &mut String, count: &mut usize) {
    *count += 1;
    let said = project.command("cuebook", project.path()).args(command).arg("--help").output().unwrap();
    // As a session shows it, in which the numbers of threads are none.
    let help = transcript::normalise(&String::from_utf8(said.stdout).unwrap(), project.path());
    let help = without_general(&help);
    if !command.is_empty() {
        *text += &format!("\n{} {}\n", "#".repeat(command.len() + 1), command.join(" "));
    }
    let line =
        ["cuebook"].into_iter().chain(command.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    *text += &format!("\n```text\n$ {line} --help\n{help}```\n");
    let usage = help.lines().find(|line| line.starts_with("Usage:")).unwrap_or_default();
    if !usage.ends_with(" <COMMAND>") {
        return;
    }
    // The commands, in one group or in several, come before the options.
    for row in help.lines().take_while(|row| *row != "Options:") {
        // Further lines of a description stand further to the right.
        let Some(name) = row.strip_prefix("  ").filter(|row| !row.starts_with(' ')) else { continue };
        let name = name.split_whitespace().next().unwrap().to_owned();
        describe(project, &[command, &[name]].concat(), text, count);
    }
}

/// A help text without the options that every command has.
fn without_general(help: &str) -> String {
    let Some((before, general)) = help.split_once("\nGeneral:\n") else { return help.to_owned() };
    let next = general.match_indices("\n\n").map(|(at, _)| &general[at + 1..]);
    let rest = next.into_iter().find(|rest| rest[1..].starts_with(|letter: char| !letter.is_whitespace()));
    format!("{before}{}", rest.unwrap_or_default())
}

fn kept(path: &str, wanted: &str) -> String {
    let file = book::source().join(path);
    keep(&file, &std::fs::read_to_string(&file).unwrap_or_default(), wanted)
}
