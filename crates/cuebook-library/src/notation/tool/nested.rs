//! Scripts inside scripts: `sh -c "… {x} …"`, `eval {x}`, `echo {x} | bash`.
//!
//! A parameter in a shell script is never part of its syntax, because it travels in a variable. But a shell that hands the
//! text on to another interpreter hands on the value as a part of a program. Such a script is refused; the safe way is an
//! argument: `sh -c '… "$1"' sh {x}`.

/// Programs whose `-c` takes a script for a shell.
pub const SHELLS: [&str; 12] =
    ["sh", "bash", "dash", "zsh", "ksh", "ash", "busybox", "rbash", "mksh", "fish", "csh", "tcsh"];

/// Programs that take a program in a language of their own, and the options that do.
pub const LANGUAGES: [(&str, &[&str]); 8] = [
    ("python", &["-c"]),
    ("pypy", &["-c"]),
    ("node", &["-e", "-p", "--eval", "--print"]),
    ("bun", &["-e", "--eval"]),
    ("perl", &["-e", "-E"]),
    ("ruby", &["-e"]),
    ("php", &["-r"]),
    ("lua", &["-e"]),
];

/// Programs that hand the text behind `-c` to a shell.
const STARTERS: [&str; 4] = ["su", "runuser", "script", "flock"];

/// Words that may stand before the name of a command.
const BEFORE: [&str; 16] = [
    "env", "sudo", "command", "builtin", "exec", "nohup", "time", "nice", "then", "do", "else", "elif", "if",
    "while", "!", "until",
];

/// Values that shells and Python take behind options such as `-o` and `-W`.
const VALUES: [&str; 6] = ["pipefail", "errexit", "nounset", "ignore", "utf8", "error"];

/// Options of `ssh` that have a value.
const SSH_VALUES: &str = "BbcDEeFIiJLlmOopQRSWw";

/// A placeholder that another interpreter would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nested {
    /// The name between the braces.
    pub name: String,
    /// What would run it, as in `sh -c`.
    pub by: String,
}

/// A word of a command.
#[derive(Debug, Clone, Default)]
struct CommandWord {
    /// Its text without quotes.
    text: String,
    /// The placeholders in it.
    names: Vec<String>,
}

/// A command, and whether it gets what the one before it prints.
#[derive(Debug, Default)]
struct Command {
    words: Vec<CommandWord>,
    piped: bool,
}

/// Finds a placeholder that a script hands to another interpreter as a part of its program.
pub fn nested(script: &str, is_parameter: &dyn Fn(&str) -> bool) -> Option<Nested> {
    let commands = commands(script, is_parameter);
    let mut before: &[CommandWord] = &[];
    for command in &commands {
        if let Some(found) = inside(&command.words) {
            return Some(found);
        }
        if let Some(shell) = reads_its_input(&command.words) {
            let handed = if command.piped { before } else { &[] };
            let text = command.words.iter().skip_while(|word| !word.text.starts_with("<<<")).chain(handed);
            if let Some(name) = text.flat_map(|word| &word.names).next() {
                return Some(Nested { name: name.clone(), by: shell });
            }
        }
        before = &command.words;
    }
    in_document(script, is_parameter)
}

/// A placeholder among the words of one command.
fn inside(words: &[CommandWord]) -> Option<Nested> {
    let found = |words: &[CommandWord], by: &str| {
        let name = words.iter().flat_map(|word| &word.names).next()?;
        Some(Nested { name: name.clone(), by: by.to_owned() })
    };
    let first =
        words.iter().position(|word| !BEFORE.contains(&word.text.as_str()) && !is_assignment(&word.text))?;
    let rest = &words[first + 1..];
    match file_name(&words[first].text) {
        "eval" => return found(rest, "eval"),
        "trap" => return found(rest.get(..1)?, "trap"),
        "ssh" => return found(behind_host(rest), "ssh"),
        _ => {}
    }
    for (at, word) in words.iter().enumerate() {
        let (name, rest) = (file_name(&word.text), &words[at + 1..]);
        let language = LANGUAGES.iter().find(|(language, _)| is_language(name, language));
        let takes = |option: &str| match language {
            Some((_, options)) => options.contains(&option),
            None => option.starts_with('-') && !option.starts_with("--") && option.contains('c'),
        };
        if language.is_none() && !SHELLS.contains(&name) && !STARTERS.contains(&name) {
            continue;
        }
        // The options of an interpreter come before its first operand; `su` takes them behind the user as well.
        let anywhere = STARTERS.contains(&name);
        let script = rest
            .iter()
            .take_while(|word| anywhere || is_option(word) || VALUES.contains(&word.text.as_str()))
            .position(|word| takes(&word.text))
            .and_then(|option| {
                let more = rest[option + 1..].iter().position(|word| !is_option(word))?;
                Some((&rest[option].text, &rest[option + 1 + more]))
            });
        if let Some((option, script)) = script
            && let Some(found) = found(std::slice::from_ref(script), &format!("{name} {option}"))
        {
            return Some(found);
        }
    }
    None
}

/// The shell that a command is, if it runs what it gets on its standard input.
fn reads_its_input(words: &[CommandWord]) -> Option<String> {
    let first =
        words.iter().position(|word| !BEFORE.contains(&word.text.as_str()) && !is_assignment(&word.text))?;
    let name = file_name(&words[first].text);
    let is_shell =
        SHELLS.contains(&name) || LANGUAGES.iter().any(|(language, _)| is_language(name, language));
    let operand = words[first + 1..].iter().find(|word| !is_option(word));
    let runs = operand.is_none_or(|word| word.text.starts_with(['<', '>']));
    (is_shell && runs).then(|| name.to_owned())
}

/// A placeholder in a here-document that a shell runs. One whose end mark is quoted is not filled before the shell has it.
fn in_document(script: &str, is_parameter: &dyn Fn(&str) -> bool) -> Option<Nested> {
    for (at, _) in script.match_indices("<<") {
        let line = script[..at].rsplit('\n').next().unwrap_or_default();
        let mut words = commands(line, is_parameter).into_iter().map(|command| command.words);
        let words = words.rfind(|words| !words.is_empty()).unwrap_or_default();
        let Some(by) = reads_its_input(&words) else { continue };
        let mark = script[at + 2..].trim_start_matches('-').trim_start();
        if mark.starts_with(['\'', '"', '\\', '<']) {
            continue;
        }
        let end = mark.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        let body = mark.split_once('\n').map_or("", |(_, body)| body);
        let body = body.split(&format!("\n{end}")).next().unwrap_or_default();
        if let Some(name) = placeholders(body, is_parameter).next() {
            return Some(Nested { name: name.to_owned(), by });
        }
    }
    None
}

fn is_option(word: &CommandWord) -> bool {
    word.text.starts_with(['-', '+'])
}

fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether a program is an interpreter of a language: `python3.12` is one of `python`.
fn is_language(name: &str, language: &str) -> bool {
    name.strip_prefix(language).is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// The words behind the host that `ssh` is to reach: a shell there reads them.
fn behind_host(words: &[CommandWord]) -> &[CommandWord] {
    let mut at = 0;
    while let Some(option) = words.get(at).filter(|word| word.text.starts_with('-')) {
        let has_value = option.text.len() == 2 && option.text.ends_with(|c| SSH_VALUES.contains(c));
        at += if has_value { 2 } else { 1 };
    }
    words.get(at + 1..).unwrap_or_default()
}

/// The parameters that a text names: `{name}`, and not `${NAME}`.
fn placeholders<'t>(text: &'t str, is_parameter: &'t dyn Fn(&str) -> bool) -> impl Iterator<Item = &'t str> {
    text.match_indices('{').filter_map(move |(at, _)| {
        let name = &text[at + 1..at + 1 + text[at + 1..].find('}')?];
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        (is_name && !text[..at].ends_with('$') && is_parameter(name)).then_some(name)
    })
}

/// Takes a script apart into commands. Quotes join words; what stands in `$( … )` or backticks is a command of its own.
fn commands(script: &str, is_parameter: &dyn Fn(&str) -> bool) -> Vec<Command> {
    let mut reader = CommandReader { commands: vec![Command::default()], word: None, is_parameter };
    let mut quote: Option<char> = None;
    let mut around: Vec<Option<char>> = Vec::new();
    let mut chars = script.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        match (quote, c) {
            (Some('\''), '\'') => quote = None,
            (Some('\''), _) => reader.push(c),
            (_, '\\') => {
                if let Some((_, c)) = chars.next() {
                    reader.push(c);
                }
            }
            (_, '$') if next == Some('(') => {
                chars.next();
                around.push(quote.take());
                reader.end_command(false);
            }
            (_, '`') => reader.end_command(false),
            (Some('"'), '"') => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                reader.word.get_or_insert_default();
            }
            (None, ')') if !around.is_empty() => {
                reader.end_command(false);
                quote = around.pop().flatten();
            }
            (None, '|') if next != Some('|') => reader.end_command(!script[..at].ends_with('|')),
            (None, ';' | '&' | '|' | '\n' | '(' | ')') => reader.end_command(false),
            (None, c) if c.is_whitespace() => reader.end_word(),
            _ => reader.push(c),
        }
    }
    reader.end_command(false);
    reader.commands
}

struct CommandReader<'r> {
    commands: Vec<Command>,
    word: Option<String>,
    is_parameter: &'r dyn Fn(&str) -> bool,
}

impl CommandReader<'_> {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn end_word(&mut self) {
        let (Some(text), Some(command)) = (self.word.take(), self.commands.last_mut()) else { return };
        let names = placeholders(&text, self.is_parameter).map(str::to_owned).collect();
        command.words.push(CommandWord { text, names });
    }

    fn end_command(&mut self, piped: bool) {
        self.end_word();
        self.commands.push(Command { words: Vec::new(), piped });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(script: &str) -> Option<String> {
        nested(script, &|name| name != "print").map(|found| format!("{} {}", found.by, found.name))
    }

    #[test]
    fn a_parameter_in_a_nested_script_is_found() {
        for (script, wanted) in [
            ("sh -c \"echo {x}\"", "sh -c x"),
            ("sh -c 'echo {x}'", "sh -c x"),
            ("cd /tmp && /bin/bash -ec \"rm {x}\"", "bash -ec x"),
            ("env A=1 bash -e -c {x}", "bash -c x"),
            ("echo a | xargs -I% sh -c \"echo % {x}\"", "sh -c x"),
            ("find . -exec sh -c 'cat {x}' \\;", "sh -c x"),
            ("bash -eu -o pipefail -c \"{x}\"", "bash -c x"),
            ("eval {x}", "eval x"),
            ("A=1 eval \"echo {x}\"", "eval x"),
            ("if true; then eval echo {x}; fi", "eval x"),
            ("echo \"$(eval echo {x})\"", "eval x"),
            ("echo `sh -c \"{x}\"`", "sh -c x"),
            ("python3.12 -c 'print(\"{x}\")'", "python3.12 -c x"),
            ("node --eval \"{x}\"", "node --eval x"),
            ("perl -e 'print {x}' a", "perl -e x"),
            ("ssh -p 22 host \"ls {x}\"", "ssh x"),
            ("su -c \"ls {x}\" ann", "su -c x"),
            ("trap \"rm {x}\" EXIT", "trap x"),
            ("echo {x} | sh", "sh x"),
            ("printf %s {x} | sudo bash -s", "bash x"),
            ("bash <<EOF\necho {x}\nEOF\n", "bash x"),
            ("bash <<< \"echo {x}\"", "bash x"),
        ] {
            assert_eq!(found(script).as_deref(), Some(wanted), "{script}");
        }
    }

    #[test]
    fn a_parameter_that_is_an_argument_is_no_program() {
        for script in [
            "echo {x}",
            "sh -c 'echo \"$1\"' sh {x}",
            "bash -c 'echo \"$1\"' - \"{x}\"",
            "python3 -c 'import sys; print(sys.argv[1])' {x}",
            "sh script.sh {x}",
            "python3 tool.py -c {x}",
            "echo eval {x}",
            "ssh {x} ls",
            "echo {x} | grep -c a",
            "echo {x} | bash script.sh",
            "awk '{print}' {x}",
            "cat <<EOF\n{x}\nEOF\n",
            "bash <<'EOF'\necho {x}\nEOF\n",
            "echo \"sh -c {x}\"",
            "sh -c 'echo ${x}'",
            "echo a; sh -c 'b'; echo {x}",
            "",
        ] {
            assert_eq!(found(script), None, "{script}");
        }
    }

    #[test]
    fn cut_off_commands_do_not_panic() {
        let whole = "A=1 sh -c \"é {x}\" 'a' $(b `c`) <<E\n{x}\nE | bash <<< \\{x} {";
        for (end, _) in whole.char_indices() {
            let _ = (found(&whole[..end]), found(&whole[end..]));
        }
    }
}
