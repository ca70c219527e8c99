//! A Python module in which `Book.render` and `Book.run` know the prompts of a project, their variables and their outputs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value as Json;

use super::{definitions, id, list, name_of, other_names, quoted};
use crate::book::Book;
use crate::error::Result;

const HEAD: &str = r#""""Typed prompts. Written by `cuebook stubs`; do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import cuebook
from cuebook import Rendered, RunResult

if TYPE_CHECKING:
    from cuebook import RunOptions
    from typing_extensions import Unpack

"#;

/// Keywords of Python, which cannot be names.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// The keywords that `Book.render` and `Book.run` have themselves. A variable of such a name goes into `variables`.
const TAKEN: [&str; 13] = [
    "self",
    "variables",
    "context",
    "allow_unknown",
    "model",
    "provider",
    "limits",
    "tools",
    "allow",
    "replay",
    "record",
    "store",
    "unfenced",
];

/// The module. A prompt that cannot be read has no types: `check` reports it.
///
/// # Errors
///
/// Those of [`Book::list_prompts`].
pub fn python(book: &Book) -> Result<String> {
    let definitions = definitions(book)?;
    let mut text = HEAD.to_owned();
    let with_outputs: Vec<&Json> =
        definitions.iter().filter(|one| !list(&one["outputs"]).is_empty()).collect();
    for definition in &with_outputs {
        text.push_str(&dataclass(definition));
    }
    text.push_str("\nclass Book(cuebook.Book):\n    _outputs = {");
    let entries = with_outputs.iter().map(|one| format!("{}: {}", quoted(id(one)), class_of(id(one))));
    text.push_str(&entries.collect::<Vec<_>>().join(", "));
    text.push_str("}\n\n    if TYPE_CHECKING:\n");
    overloads(
        &mut text,
        "render",
        &definitions.iter().map(|one| (parameters(one), "Rendered".to_owned())).collect::<Vec<_>>(),
    );
    let runs = definitions.iter().map(|one| {
        let output = if list(&one["outputs"]).is_empty() { "Any".to_owned() } else { class_of(id(one)) };
        (format!("{}, **options: Unpack[RunOptions]", parameters(one)), format!("RunResult[{output}]"))
    });
    overloads(&mut text, "run", &runs.collect::<Vec<_>>());
    Ok(text)
}

/// The forms of a method. They take less than the method that they replace, on purpose.
fn overloads(text: &mut String, method: &str, forms: &[(String, String)]) {
    let mut forms = forms.to_vec();
    while forms.len() < 2 {
        // An overload has two forms or more.
        let name = if forms.is_empty() { "\"\"" } else { "\" \"" };
        forms.push((format!("self, prompt_id: Literal[{name}], /"), forms_return(method)));
    }
    for (number, (parameters, returns)) in forms.iter().enumerate() {
        let ignored = if number == 0 { "  # type: ignore[override]" } else { "" };
        let _ = writeln!(
            text,
            "\n        @overload{ignored}\n        def {method}({parameters}) -> {returns}: ..."
        );
    }
    let returns = forms_return(method);
    // mypy reports the first form, and pyright the last line.
    let _ = writeln!(
        text,
        "\n        def {method}(self, prompt_id: str, /, **more: Any) -> {returns}:  # pyright: ignore[reportIncompatibleMethodOverride]\n            ..."
    );
}

fn forms_return(method: &str) -> String {
    if method == "run" { "RunResult[Any]" } else { "Rendered" }.to_owned()
}

/// The name of the class of a prompt's outputs. Other letters than those of ASCII are written as their numbers: Python accepts
/// only some of them in names, and changes some of those.
fn class_of(id: &str) -> String {
    let words = id.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = String::new();
    for word in words {
        for (at, letter) in word.chars().enumerate() {
            match letter {
                letter if !letter.is_ascii() => name.push_str(&format!("U{:X}", u32::from(letter))),
                letter if at == 0 => name.push(letter.to_ascii_uppercase()),
                letter => name.push(letter.to_ascii_lowercase()),
            }
        }
    }
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name + "Output"
}

/// Whether a text is a name in Python, and the same name that templates read.
fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !KEYWORDS.contains(&name)
}

fn is_keyword(name: &str) -> bool {
    is_name(name) && !TAKEN.contains(&name)
}

fn parameters(definition: &Json) -> String {
    let declared = &definition["variables"];
    let required = list(&declared["required"]);
    let more: Vec<&Json> = list(&declared["optional"]).iter().chain(list(&declared["custom"])).collect();
    let mut parts = vec![
        "self".to_owned(),
        format!("prompt_id: Literal[{}]", quoted(id(definition))),
        "/".to_owned(),
        "*".to_owned(),
    ];
    if required.iter().all(|one| is_keyword(name_of(one))) {
        parts.extend(required.iter().map(|one| format!("{}: {}", name_of(one), annotation(one))));
        let optional = more.iter().filter(|one| is_keyword(name_of(one)));
        parts.extend(optional.map(|one| format!("{}: {} | None = ...", name_of(one), annotation(one))));
        let known: BTreeSet<&str> = required.iter().chain(more).map(name_of).collect();
        let unknown = other_names(definition).into_iter().filter(|name| !known.contains(name));
        parts.extend(unknown.filter(|name| is_keyword(name)).map(|name| format!("{name}: Any = ...")));
        parts.push("variables: Mapping[str, Any] | None = ...".to_owned());
    } else {
        parts.push("variables: Mapping[str, Any]".to_owned());
    }
    parts.push("context: Mapping[str, Any] | None = ...".to_owned());
    parts.join(", ")
}

/// The type of a variable or an output.
fn annotation(variable: &Json) -> &'static str {
    let kind = variable["type"].as_str().or_else(|| variable["kind"].as_str()).unwrap_or_default();
    match kind {
        "string" | "str" => "str",
        "integer" | "int" => "int",
        "number" | "float" => "float",
        "boolean" | "bool" => "bool",
        "list" | "array" => "Sequence[Any]",
        "object" | "dict" => "Mapping[str, Any]",
        _ => "Any",
    }
}

fn dataclass(definition: &Json) -> String {
    let mut text = format!("\n@dataclass\nclass {}:\n", class_of(id(definition)));
    let mut outputs: Vec<&Json> =
        list(&definition["outputs"]).iter().filter(|one| is_name(name_of(one))).collect();
    let is_optional = |output: &Json| output["required"] == false;
    // Fields with a default follow the others.
    outputs.sort_by_key(|output| is_optional(output));
    for output in &outputs {
        let optional = if is_optional(output) { " | None = None" } else { "" };
        let _ = writeln!(text, "    {}: {}{optional}", name_of(output), annotation(output));
    }
    if outputs.is_empty() {
        text.push_str("    pass\n");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_in_python() {
        assert_eq!(class_of("desk/refund_2"), "DeskRefund2Output");
        assert_eq!(class_of("2nd"), "_2ndOutput");
        // `x²` is no name in Python, and `ſ` would become `s`.
        assert_eq!(class_of("x²"), "XUB2Output");
        assert_eq!(class_of("ſ"), "U17FOutput");
        assert!(
            is_name("user_name2") && !is_name("x²") && !is_name("ſ") && !is_name("2x") && !is_name("class")
        );
    }
}
