//! Scripts for a shell that stand in a configuration: `args: ["-c", "echo hello {who}"]`.
//!
//! A value that is pasted into a script becomes part of its syntax, whatever is done about quotes. So nothing is pasted: a
//! placeholder becomes the name of a shell variable, which gets the value through the environment, and the quotes around
//! the name are chosen by where it stands. What a value says, the shell only ever expands. `${VAR}` is left to the shell,
//! which has the same environment and the same meaning for it.
//!
//! One thing a shell does run although it comes out of a variable: what stands in brackets behind a name, wherever it
//! calculates or takes the name of a variable. Values like that are refused where a script does such things.

use cuebook::dialect::tool::nested::{LANGUAGES, Nested, SHELLS, nested};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::{Map, Value as Json};

use crate::config::{Piece, PlaceholderValue, Values, pieces, text_of};

/// Whether a word is the name or the path of a shell.
pub(crate) fn is_shell(word: &str) -> bool {
    SHELLS.contains(&file_name(word))
}

fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether the argument at a place is a script for a shell: the first one that is no option, behind a `-c`. The shell may
/// be the program, or an argument of one that starts it, as in `env bash -c`.
pub(crate) fn is_script(program: &str, args: &[Json], index: usize) -> bool {
    let words: Vec<&str> = args.iter().map(|arg| arg.as_str().unwrap_or_default()).collect();
    let starts = [program].into_iter().chain(words.iter().copied()).enumerate();
    // The options of a shell at 0, which is the program itself, begin with the argument 0.
    starts.take(index + 1).filter(|(_, word)| is_shell(word)).any(|(mut at, _)| {
        let mut takes_script = false;
        while let Some(option) = words.get(at).filter(|word| word.starts_with(['-', '+'])) {
            takes_script |= option.starts_with('-') && !option.starts_with("--") && option.contains('c');
            let has_value = option.ends_with(['o', 'O']) && !option.starts_with("--");
            at += if has_value { 2 } else { 1 };
        }
        // `busybox sh`: the shell comes once more.
        takes_script && at == index
    })
}

/// Whether the argument at a place is a program in another language, which has no variables that a value could travel in.
pub(crate) fn is_program(program: &str, args: &[Json], index: usize) -> bool {
    let words: Vec<&str> = args.iter().map(|arg| arg.as_str().unwrap_or_default()).collect();
    let Some(option) = index.checked_sub(1).and_then(|before| words.get(before)) else { return false };
    let mut programs = [program].into_iter().chain(words.iter().copied().take(index)).map(file_name);
    programs.any(|name| {
        LANGUAGES.iter().any(|(language, options)| name.starts_with(language) && options.contains(option))
    })
}

/// A script with its placeholders as variables, which are added to the environment.
///
/// # Errors
///
/// [`Code::BadParameters`] if a shell could run what a value says, [`Code::BadTool`] if another interpreter would.
pub(crate) fn fill(script: &str, values: &Values<'_>, env: &mut Vec<(String, String)>) -> Result<String> {
    if let Some(Nested { name, by }) = nested(script, &|name| values.parameters.contains_key(name)) {
        let message = format!("{{{name}}} would become part of the program that `{by}` runs");
        let hint =
            format!("pass it as an argument: sh -c '… \"$1\"' sh {{{name}}}; then sign the tool again");
        return Err(Error::new(ErrorKind::Execute, Diagnostic::new(Code::BadTool, message).hint(hint)));
    }
    let mut known: Map<String, Json> = Map::new();
    let from = env.len();
    let script = written(script, values, env, &mut known, 0);
    if takes_names_or_numbers(&script) && env[from..].iter().any(|(_, value)| is_run_in_arithmetic(value)) {
        let message = "the shell would run this value where the script calculates or names a variable";
        let hint = "the script uses [[, ((, let, declare, read, unset or similar: do not pass name[…] with $ or ` in it";
        let diagnostic = Diagnostic::new(Code::BadParameters, message).hint(hint);
        return Err(Error::new(ErrorKind::Execute, diagnostic));
    }
    Ok(script)
}

/// A script that the caller gives, as an argument that does not hold it: other users of the machine can read arguments.
pub(crate) fn given(script: String, env: &mut Vec<(String, String)>) -> String {
    env.push(("CUEBOOK_SCRIPT".to_owned(), script));
    "eval \"${CUEBOOK_SCRIPT}\"".to_owned()
}

/// Whether a script has something that evaluates the text of a variable: arithmetic, or the name of another variable.
fn takes_names_or_numbers(script: &str) -> bool {
    const SIGNS: [&str; 5] = ["((", "[[", "$[", "[\"$", " -v"];
    const WORDS: [&str; 15] = [
        "let",
        "declare",
        "typeset",
        "local",
        "export",
        "readonly",
        "read",
        "unset",
        "mapfile",
        "readarray",
        "getopts",
        "wait",
        "integer",
        "float",
        "eval",
    ];
    let is_sign = SIGNS.iter().any(|sign| script.contains(sign));
    is_sign
        || script.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| WORDS.contains(&word))
}

/// Whether a value has an index that is more than a number or a name: `a[$(…)]`.
fn is_run_in_arithmetic(value: &str) -> bool {
    value.match_indices('[').any(|(at, _)| {
        let is_index =
            value[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '}' || c == ']');
        is_index && (value[at..].contains('`') || value[at..].contains("$"))
    })
}

fn written(
    script: &str,
    values: &Values<'_>,
    env: &mut Vec<(String, String)>,
    known: &mut Map<String, Json>,
    round: usize,
) -> String {
    let mut text = String::with_capacity(script.len());
    for piece in pieces(script) {
        let name = match piece {
            Piece::Text(piece) => {
                text.push_str(piece);
                continue;
            }
            Piece::Variable { name, default } => {
                let default = default.map(|default| format!(":-{default}")).unwrap_or_default();
                text.push_str(&format!("${{{name}{default}}}"));
                continue;
            }
            Piece::Name { name, .. } => name,
        };
        let value = match values.look(name) {
            // Part of a script that its author keeps under a name of its own.
            Some(PlaceholderValue::Written(Json::String(part))) if round < 3 && part != script => {
                text.push_str(&written(part, values, env, known, round + 1));
                continue;
            }
            Some(PlaceholderValue::Data(value) | PlaceholderValue::Written(value)) => text_of(value),
            None => {
                text.push_str(&format!("{{{name}}}"));
                continue;
            }
        };
        if !known.contains_key(name) {
            let variable = format!("CUEBOOK_VALUE_{}", known.len() + 1);
            env.push((variable.clone(), value));
            known.insert(name.to_owned(), variable.into());
        }
        let variable = known.get(name).map(text_of).unwrap_or_default();
        text.push_str(&match quotes(&text) {
            Quotes::None => format!("\"${{{variable}}}\""),
            Quotes::Double => format!("${{{variable}}}"),
            Quotes::Single => format!("'\"${{{variable}}}\"'"),
        });
    }
    text
}

#[derive(Debug, PartialEq, Eq)]
enum Quotes {
    None,
    Double,
    Single,
}

/// Inside which quotes the end of a script lies. Where this is wrong (in a here-document, say) the value shows with quotes
/// too many or is split into words; it is never run.
fn quotes(script: &str) -> Quotes {
    let mut state = Quotes::None;
    let mut chars = script.chars().peekable();
    let mut at_word = true;
    while let Some(c) = chars.next() {
        match (&state, c) {
            (Quotes::None | Quotes::Double, '\\') => {
                chars.next();
            }
            (Quotes::None, '\'') => state = Quotes::Single,
            (Quotes::None, '"') => state = Quotes::Double,
            (Quotes::None, '#') if at_word => while chars.next_if(|c| *c != '\n').is_some() {},
            (Quotes::Single, '\'') | (Quotes::Double, '"') => state = Quotes::None,
            _ => {}
        }
        at_word = c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(');
    }
    state
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(script: &str, parameters: Json) -> String {
        let parameters = parameters.as_object().cloned().unwrap();
        let config = json!({"greeting": "echo hi {who}"}).as_object().cloned().unwrap();
        let nothing = Map::new();
        let look = |_: &str| None;
        let values = Values { context: &nothing, parameters: &parameters, config: &config, env: &look };
        let mut env = vec![("NAME".to_owned(), "V".to_owned())];
        let script = match fill(script, &values, &mut env) {
            Ok(script) => script,
            Err(error) => return format!("refused: {}", error.code()),
        };
        let output = std::process::Command::new("bash").arg("-c").arg(&script).envs(env).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    }

    #[test]
    fn no_value_becomes_part_of_a_script_whatever_the_quotes() {
        for value in
            ["Ann", "$(echo INJECTED)", "a;echo b", "it's \"x\" `y` \\ $HOME", "a  b", "*", "\n", "'; ls #"]
        {
            let given = json!({"who": value});
            for script in
                ["printf %s {who}", "printf %s \"{who}\"", "printf %s '{who}'", "x={who}; printf %s \"$x\""]
            {
                assert_eq!(run(script, given.clone()), value, "{script}");
            }
            assert_eq!(
                run(
                    "printf %s \"<$(printf %s {who})>\" | grep -c INJECTED || true",
                    json!({"who": "$(echo INJECTED)"})
                ),
                "1\n"
            );
        }
    }

    #[test]
    fn arithmetic_runs_nothing_that_a_value_says() {
        for script in [
            "[[ {n} -gt 3 ]] && echo yes",
            "echo $(( {n} + 1 ))",
            "let 'x = {n}'",
            "(( {n} > 1 ))",
            "a=(1 2); echo ${a[{n}]}",
            "unset {n}",
            "declare {n}=1",
            "[ -v {n} ]",
        ] {
            for value in
                ["a[$(echo INJECTED >&2)]", "1+x[`echo INJECTED >&2`]", "a[\"]\"$(echo INJECTED >&2)]"]
            {
                assert_eq!(run(script, json!({"n": value})), "refused: CB710", "{script} {value}");
            }
        }
        assert_eq!(run("[[ {n} -gt 3 ]] && echo yes", json!({"n": 4})), "yes\n");
        assert_eq!(run("printf %s {n}", json!({"n": "a[$(x)]"})), "a[$(x)]");
        assert_eq!(run("[[ {n} == x* ]] && printf %s {n}", json!({"n": "x [a](b) `c`"})), "x [a](b) `c`");
    }

    #[test]
    fn a_script_is_found_wherever_its_shell_and_its_option_stand() {
        let at = |program: &str, args: Json| {
            let args = args.as_array().unwrap().clone();
            (0..args.len()).filter(|index| is_script(program, &args, *index)).collect::<Vec<_>>()
        };
        assert_eq!(at("/bin/sh", json!(["-c", "echo {x}", "{y}"])), [1]);
        assert_eq!(at("bash", json!(["-eu", "-o", "pipefail", "-c", "{x} y", "-c", "z"])), [4]);
        assert_eq!(at("bash", json!(["-c", "-e", "s"])), [2]);
        assert_eq!(at("bash", json!(["-ce", "s"])), [1]);
        assert_eq!(at("bash", json!(["-c", "-o", "pipefail", "s", "p"])), [3]);
        assert_eq!(at("/usr/bin/env", json!(["A=1", "bash", "-c", "s"])), [3]);
        assert_eq!(at("busybox", json!(["sh", "-c", "s"])), [2]);
        assert_eq!(at("bash", json!(["tool.sh", "-c", "s"])), Vec::<usize>::new());
        assert_eq!(at("echo", json!(["-c", "s"])), Vec::<usize>::new());
        let is = |program: &str, args: Json, index| is_program(program, args.as_array().unwrap(), index);
        assert!(is("/usr/bin/python3.12", json!(["-c", "print({x})"]), 1));
        assert!(is("env", json!(["node", "--eval", "x"]), 2));
        assert!(!is("python3", json!(["tool.py", "{x}"]), 1));
    }

    #[test]
    fn unknown_placeholders_stay_and_the_shell_expands_variables() {
        assert_eq!(run("echo {what} ${NAME} ${NONE:-d} # it's {who}", json!({"who": 1})), "{what} V d\n");
        assert_eq!(run("{greeting}", json!({"who": "$(id)"})), "hi $(id)\n");
    }
}
