//! What to do about a finding: in words for programs, and as the command line spells it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde_json::{Map, Value, json};

/// What to do about a finding.
///
/// A plain text is the same for people and for programs. A hint that names a command or an option of `cuebook` keeps the advice and
/// the command as fields, because a program has no command line.
///
/// ```
/// use cuebook_text::error::Hint;
///
/// let hint = Hint::run("list the prompts", "cuebook list");
/// assert_eq!(hint.text, "list the prompts: cuebook list");
/// assert_eq!(hint.advice.as_deref(), Some("list the prompts"));
/// assert_eq!(hint.commands, ["cuebook list"]);
/// assert_eq!(Hint::from("did you mean `x`?").advice.as_deref(), Some("did you mean `x`?"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hint {
    /// What the command line prints.
    pub text: String,
    /// The words for programs and their clients. `None` if only the command line can do it.
    pub advice: Option<String>,
    /// The commands that do it, if there are any.
    pub commands: Vec<String>,
}

impl Hint {
    /// Advice, and the command that follows it.
    pub fn run(advice: impl Into<String>, command: impl Into<String>) -> Hint {
        let (advice, command) = (advice.into(), command.into());
        Hint { text: format!("{advice}: {command}"), advice: Some(advice), commands: vec![command] }
    }

    /// Advice, and the option of the command line that follows it.
    pub fn option(advice: impl Into<String>, option: impl fmt::Display) -> Hint {
        let advice = advice.into();
        Hint { text: format!("{advice}: {option}"), advice: Some(advice), commands: Vec::new() }
    }

    /// Advice, and a command for each choice, on a line each.
    pub fn choose(advice: impl Into<String>, commands: Vec<String>) -> Hint {
        let advice = advice.into();
        Hint { text: format!("{advice}:\n  {}", commands.join("\n  ")), advice: Some(advice), commands }
    }

    /// What only the command line can do. [`for_programs`](Hint::for_programs) adds what a program can do instead.
    pub fn command_line(text: impl Into<String>) -> Hint {
        Hint { text: text.into(), advice: None, commands: Vec::new() }
    }

    /// The same hint with other words for programs.
    #[must_use]
    pub fn for_programs(mut self, advice: impl Into<String>) -> Hint {
        self.advice = Some(advice.into());
        self
    }

    /// The same hint, which names a command in its text.
    #[must_use]
    pub fn with_command(mut self, command: impl Into<String>) -> Hint {
        self.commands.push(command.into());
        self
    }

    /// The same hint with another way behind a semicolon.
    #[must_use]
    pub fn or(self, other: impl Into<Hint>) -> Hint {
        self.joined("; ", other.into())
    }

    /// The same hint with another one below it.
    #[must_use]
    pub fn and_below(self, other: impl Into<Hint>) -> Hint {
        self.joined("\n", other.into())
    }

    fn joined(mut self, between: &str, other: Hint) -> Hint {
        self.text = format!("{}{between}{}", self.text, other.text);
        self.advice = match (self.advice, other.advice) {
            (Some(first), Some(second)) => Some(format!("{first}{between}{second}")),
            (first, second) => first.or(second),
        };
        self.commands.extend(other.commands);
        self
    }

    /// The same hint with each of its texts changed.
    #[must_use]
    pub fn map(self, change: impl Fn(&str) -> String) -> Hint {
        Hint {
            text: change(&self.text),
            advice: self.advice.as_deref().map(&change),
            commands: self.commands.iter().map(|command| change(command)).collect(),
        }
    }

    /// Adds the hint to an object for scripts: `hint` is its text; `advice` and `commands` are there if they differ from it.
    pub fn add_to(&self, object: &mut Map<String, Value>) {
        object.insert("hint".to_owned(), json!(self.text));
        if self.advice.as_deref() != Some(&self.text) {
            object.insert("advice".to_owned(), json!(self.advice));
        }
        if !self.commands.is_empty() {
            object.insert("commands".to_owned(), json!(self.commands));
        }
    }
}

impl Deref for Hint {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq<str> for Hint {
    fn eq(&self, text: &str) -> bool {
        self.text == text
    }
}

impl PartialEq<&str> for Hint {
    fn eq(&self, text: &&str) -> bool {
        self.text == *text
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Hint {
        Hint { advice: Some(text.clone()), text, commands: Vec::new() }
    }
}

impl From<&str> for Hint {
    fn from(text: &str) -> Hint {
        Hint::from(text.to_owned())
    }
}

impl From<&String> for Hint {
    fn from(text: &String) -> Hint {
        Hint::from(text.clone())
    }
}

impl From<Cow<'_, str>> for Hint {
    fn from(text: Cow<'_, str>) -> Hint {
        Hint::from(text.into_owned())
    }
}

impl From<&Hint> for Hint {
    fn from(hint: &Hint) -> Hint {
        hint.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_keeps_advice_and_command_apart() {
        let hint =
            Hint::run("sign it", "cuebook sign tool a").or(Hint::run("or accept it", "cuebook help CB226"));
        assert_eq!(hint.text, "sign it: cuebook sign tool a; or accept it: cuebook help CB226");
        assert_eq!(hint.advice.as_deref(), Some("sign it; or accept it"));
        assert_eq!(hint.commands, ["cuebook sign tool a", "cuebook help CB226"]);
        let hint = Hint::command_line("pass --yes").or("nothing was changed");
        assert_eq!(
            (&*hint.text, hint.advice.as_deref()),
            ("pass --yes; nothing was changed", Some("nothing was changed"))
        );
        let hint = Hint::choose(
            "choose one",
            vec!["cuebook resolve a b".to_owned(), "cuebook resolve a c".to_owned()],
        );
        assert_eq!(hint.text, "choose one:\n  cuebook resolve a b\n  cuebook resolve a c");
        assert_eq!(Hint::option("use another model", "--model ID").commands, Vec::<String>::new());
    }

    #[test]
    fn names_in_a_plain_hint_are_never_commands() {
        let hint = Hint::from("did you mean `x: cuebook allow --yes`?");
        assert_eq!((hint.advice.as_deref(), hint.commands.len()), (Some(&*hint.text), 0));
    }

    #[test]
    fn scripts_get_advice_and_commands_where_they_differ() {
        let json = |hint: Hint| {
            let mut object = Map::new();
            hint.add_to(&mut object);
            Value::Object(object)
        };
        assert_eq!(json(Hint::from("a")), json!({"hint": "a"}));
        assert_eq!(json(Hint::command_line("--a")), json!({"hint": "--a", "advice": null}));
        let run = json!({"hint": "list: cuebook list", "advice": "list", "commands": ["cuebook list"]});
        assert_eq!(json(Hint::run("list", "cuebook list")), run);
    }
}
