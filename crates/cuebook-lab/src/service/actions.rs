//! What an editor can do about a finding or with a selection.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::layout::{Notation, front_matter};
use super::rename::Edit;
use super::{Location, Service};
use crate::error::{Code, Diagnostic};

/// What kind of action it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionKind {
    /// It mends a finding.
    Fix,
    /// It changes the form of a prompt and not its text.
    Refactor,
}

/// Something that an editor can do for the author.
#[derive(Debug, Clone)]
pub struct Action {
    /// What it does, in a few words.
    pub title: String,
    /// What kind of action it is.
    pub kind: ActionKind,
    /// The finding that it mends.
    pub finding: Option<Diagnostic>,
    /// What changes.
    pub edits: Vec<Edit>,
    /// Files that are made, with their text.
    pub creates: Vec<(PathBuf, String)>,
    /// The arguments of a `cuebook` command that does it. Nothing runs unless the author chooses it.
    pub command: Option<Vec<String>>,
}

impl Service {
    /// What can be done about the findings in a part of a file, and with the part itself.
    pub fn actions(&self, path: &Path, part: Range<usize>) -> Vec<Action> {
        let Some(text) = self.text(path) else { return Vec::new() };
        let mut actions = Vec::new();
        for finding in self.findings(path) {
            let at = finding.place.as_ref().map_or(0..0, |place| self.location(place).range());
            if at.end >= part.start && at.start <= part.end {
                self.fixes(path, &text, &finding, at, &mut actions);
            }
        }
        actions.extend(self.extract(path, &text, part));
        actions
    }

    fn fixes(
        &self,
        path: &Path,
        text: &str,
        finding: &Diagnostic,
        at: Range<usize>,
        actions: &mut Vec<Action>,
    ) {
        let fix = |title: String| Action {
            title,
            kind: ActionKind::Fix,
            finding: Some(finding.clone()),
            edits: Vec::new(),
            creates: Vec::new(),
            command: None,
        };
        let before = actions.len();
        for (wrong, name) in suggestions(finding) {
            let found = text.get(at.clone()).and_then(|part| part.find(wrong));
            if let Some(start) = found.map(|found| at.start + found) {
                let location = Location::new(path, start..start + wrong.len());
                let edits = vec![Edit { location, text: name.to_owned() }];
                actions.push(Action { edits, ..fix(format!("Replace `{wrong}` with `{name}`")) });
            }
        }
        let mut named = finding.message.split('`').skip(1).step_by(2);
        if finding.code == Code::UndeclaredVariable
            && let (Some(prompt), Some(name)) = (named.next(), named.next())
            && let Some(edit) = self.declare(path, prompt, name)
        {
            actions.push(Action { edits: vec![edit], ..fix(format!("Declare the variable `{name}`")) });
        }
        if finding.code == Code::PromptyV1
            && let Some(edit) = self.migrated(path, text)
        {
            actions.push(Action { edits: vec![edit], ..fix("Rewrite the file for Prompty 2".to_owned()) });
        }
        for (title, edit) in self.quick_fixes(path, text, finding, &at) {
            actions.push(Action { edits: vec![edit], ..fix(title) });
        }
        let hint = finding.hint.as_deref().unwrap_or_default();
        let undeclared = hint.split_once("declare a variable `").and_then(|(_, rest)| rest.split_once('`'));
        if let Some((name, _)) = undeclared
            && let Some(edit) = self.declare_in_any(path, name)
        {
            actions.push(Action { edits: vec![edit], ..fix(format!("Declare the variable `{name}`")) });
        }
        for words in offered(finding) {
            let advice = finding.advice().map_or("Run the command".to_owned(), capital);
            let advice = advice.lines().next().unwrap_or_default();
            // The title has all of the command, because the author decides by it.
            let title = format!("{advice}: cuebook {}", words.join(" "));
            actions.push(Action { command: Some(words), ..fix(title) });
        }
        if actions.len() == before {
            let command = Some(vec!["help".to_owned(), finding.code.to_string()]);
            actions.push(Action { command, ..fix(format!("Explain {}", finding.code)) });
        }
    }

    /// Moves the selected lines to a partial, if they are whole and have no role or block that begins or ends elsewhere.
    fn extract(&self, path: &Path, text: &str, part: Range<usize>) -> Option<Action> {
        let notation = Notation::of(path);
        let selected = text.get(part.clone()).filter(|part| part.trim().len() > 1 && self.owns(path))?;
        let body =
            front_matter(text).filter(|_| notation == Notation::Prompty).map_or(0, |front| front.end + 4);
        if !matches!(notation, Notation::Template | Notation::Prompty)
            || part.start < body
            || !is_balanced(selected)
        {
            return None;
        }
        let roots = self.book().library().roots().ok()?;
        let root = roots.iter().filter_map(|root| root.folder()).find(|root| path.starts_with(root))?;
        let name = (1..100).map(|number| match number {
            1 => "partials/extracted.md".to_owned(),
            number => format!("partials/extracted_{number}.md"),
        });
        let name = name.into_iter().find(|name| !root.join(name).exists())?;
        let edit = Edit {
            location: Location::new(path, part),
            text: format!("{{% include \"{name}\" %}}{}", if selected.ends_with('\n') { "\n" } else { "" }),
        };
        Some(Action {
            title: "Extract the selection to a partial".to_owned(),
            kind: ActionKind::Refactor,
            finding: None,
            edits: vec![edit],
            creates: vec![(root.join(&name), format!("{}\n", selected.trim_end_matches('\n')))],
            command: None,
        })
    }
}

/// Whether every block tag of a text ends in it, and nothing else does.
fn is_balanced(text: &str) -> bool {
    let mut open: Vec<&str> = Vec::new();
    let ending = |keyword: &str| {
        ["if", "for", "macro", "call", "filter", "block", "with", "raw", "autoescape", "fence"]
            .contains(&keyword)
    };
    for tag in super::layout::tags(text, 0) {
        if tag.range.end - tag.inside.end < 2 {
            return false;
        }
        match tag.keyword(text) {
            "extends" | "macro" | "set" | "import" | "from" | "block" => return false,
            keyword if ending(keyword) => open.push(keyword),
            keyword if keyword.starts_with("end") => match open.pop() {
                Some(opened) if keyword[3..] == *opened => {}
                _ => return false,
            },
            "else" | "elif" if open.is_empty() => return false,
            _ => {}
        }
    }
    let is_role = |line: &str| super::tokens::ROLES.iter().any(|role| line.trim() == format!("{role}:"));
    open.is_empty() && !text.lines().any(is_role)
}

/// What a finding calls unknown, with each name that may have been meant.
fn suggestions(finding: &Diagnostic) -> Vec<(&str, &str)> {
    let Some(at) = finding.hint.as_deref().and_then(|hint| hint.find("did you mean")) else {
        return Vec::new();
    };
    let hint = &finding.hint.as_deref().unwrap_or_default()[at..];
    let Some(place) = &finding.place else { return Vec::new() };
    // The message names several things; the one that is wrong stands at the place.
    let named = || finding.message.split('`').skip(1).step_by(2);
    let quoted = finding.message.split('"').skip(1).step_by(2);
    let words: Vec<&str> = named().chain(quoted).collect();
    let there = place.text();
    let whole = words.iter().find(|word| there.trim_matches(['"', '\'', '`']) == **word);
    let wrong = whole.or_else(|| words.iter().find(|word| there.contains(**word))).copied();
    // A message may name the wrong word as a part of a path.
    let bare = there.trim_matches(['"', '\'', '`']);
    let wrong =
        wrong.or_else(|| Some(bare).filter(|bare| !bare.is_empty() && finding.message.contains(*bare)));
    let Some(wrong) = wrong else { return Vec::new() };
    hint.split('`').skip(1).step_by(2).map(|name| (wrong, name)).collect()
}

/// The words of each command that a finding's hint names, if an editor may offer it. Hints hold names of the project, and a name can
/// look like a command: only the commands that belong to a code are offered, without options, and with plain ids behind them.
fn offered(finding: &Diagnostic) -> Vec<Vec<String>> {
    let head: &[&str] = match finding.code {
        Code::Unsigned | Code::ContentChanged | Code::ItemMoved | Code::BadSignature => &["sign"],
        Code::NarrowSignature | Code::UnboundSignature => &["sign"],
        Code::ApprovalRequired => &["pack", "approve"],
        Code::GrantNeeded => &["allow"],
        Code::BadKey => &["keys", "generate"],
        Code::PromptConflict | Code::StaleResolution | Code::ProviderConflict => &["resolve"],
        _ => return Vec::new(),
    };
    let commands = finding.commands().iter();
    commands.filter_map(|command| words_of(command.strip_prefix("cuebook ")?, head)).collect()
}

/// The words of a command that begins with these, if only plain ids follow.
fn words_of(command: &str, head: &[&str]) -> Option<Vec<String>> {
    let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    let is_plain = |word: &String| {
        let plain = |letter: char| letter.is_alphanumeric() || "/._-".contains(letter);
        !word.starts_with('-') && word.chars().all(plain)
    };
    let is_known = words.iter().take(head.len()).eq(head.iter().copied());
    let ids = words.get(head.len()..)?;
    (is_known && ids.len() <= 2 && ids.iter().all(is_plain)).then_some(words)
}

/// A text with a capital letter.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Hint;

    #[test]
    fn a_name_of_the_project_offers_no_command() {
        let of = |code: Code, hint: Hint| {
            offered(&Diagnostic::new(code, "").hint(hint)).pop().map(|it| it.join(" "))
        };
        let review = Hint::run("review it", "cuebook sign tool a/b");
        let hint = review.or(Hint::run("or accept it", "cuebook help CB226"));
        assert_eq!(of(Code::NarrowSignature, hint).unwrap(), "sign tool a/b");
        assert_eq!(of(Code::GrantNeeded, Hint::run("review it", "cuebook allow")).unwrap(), "allow");
        // A file can be called like this, and a hint names the nearest file.
        let name = "did you mean `partials/x: cuebook allow --yes --llm-command=`?";
        assert_eq!(of(Code::GrantNeeded, name.into()), None);
        let choices = ["cuebook resolve a b/c", "cuebook resolve a $(d)"].map(str::to_owned).to_vec();
        let choice = Hint::choose("choose one", choices);
        assert_eq!(of(Code::PromptConflict, choice).as_deref(), Some("resolve a b/c"));
        assert_eq!(of(Code::NoTemplate, Hint::run("write it", "cuebook sign tool evil/x")), None);
        for command in
            ["allow --yes", "allow a;b", "allow $(id)", "sign tool a b", "pack approve", "help allow"]
        {
            let offered = of(Code::GrantNeeded, Hint::run("review it", format!("cuebook {command}")));
            assert!(offered.is_none() || offered.as_deref() == Some("allow a"), "{offered:?}");
        }
    }

    #[test]
    fn only_whole_blocks_are_extracted() {
        assert!(is_balanced("a {% if b %}c{% else %}d{% endif %} {{ e }}"));
        for text in ["{% if a %}", "{% endif %}", "{% else %}", "{{ a", "{% set a = 1 %}", "user:\nHi"] {
            assert!(!is_balanced(text), "{text}");
        }
    }
}
