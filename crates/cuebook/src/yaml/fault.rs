//! What the parser complains about, in words that say what to do.

use serde_saphyr::granit_parser::ErrorKind as Fault;

/// The message and the way out for what the parser stopped at.
pub(super) fn explain(fault: &Fault) -> (String, Option<&'static str>) {
    let (message, hint) = match fault {
        Fault::TabNotAllowed
        | Fault::TabInBlockIndentation
        | Fault::TabInIndentation
        | Fault::TabAtBlockScalarStart
        | Fault::TabInPlainScalar => {
            ("a tab stands where only spaces may stand", "indent with spaces: YAML allows no tabs there")
        }
        Fault::MappingValueNotAllowed | Fault::MappingKeyNotAllowed | Fault::InvalidColonPlacement => (
            "a colon stands where no key can be",
            "put a text that holds `: ` in quotes, or check the indentation of the line",
        ),
        Fault::UnexpectedCharacter { .. } => {
            ("no value can begin with this character", "put the text in quotes")
        }
        Fault::UnclosedFlowCollection { open: '{' } | Fault::ExpectedFlowMappingSeparator => (
            "a `{` is not closed",
            "put a comma between entries and close with `}`, or put the text in quotes",
        ),
        Fault::UnclosedFlowCollection { .. } | Fault::ExpectedFlowSequenceSeparator => (
            "a `[` is not closed",
            "put a comma between elements and close with `]`, or put the text in quotes",
        ),
        Fault::MisplacedFlowCollectionEnd | Fault::MismatchedFlowCollectionEnd { .. } => {
            ("a bracket closes what was not opened", "remove the bracket, or put the text in quotes")
        }
        Fault::UnclosedQuotedScalar
        | Fault::InvalidQuotedScalarIndent
        | Fault::DocumentIndicatorInQuotedScalar => {
            ("a quoted text is not closed", "close the quotes, and indent further lines of the text")
        }
        Fault::InvalidTrailingSingleQuotedScalar | Fault::InvalidTrailingDoubleQuotedScalar => (
            "something follows a quoted text",
            "put the whole text in quotes; a quote inside '…' is written ''",
        ),
        Fault::UnknownQuotedScalarEscape => {
            ("this escape does not exist", "write a backslash as `\\\\`, or use single quotes")
        }
        Fault::UnknownAnchor => (
            "an alias refers to an anchor that does not exist",
            "define it before with `&name`, or put the text in quotes",
        ),
        Fault::MissingAnchorOrAliasName => {
            ("an anchor or alias has no name", "put a text that begins with `*` or `&` in quotes")
        }
        Fault::ExpectedBlockMappingKey | Fault::SimpleKeyExpected | Fault::InvalidSimpleKey => {
            ("a key was expected here", "write `key: value`, indented like the keys around it")
        }
        Fault::ExpectedBlockSequenceEntry | Fault::BlockSequenceEntryNotAllowed => (
            "an element of a list stands where none can be",
            "put the list on lines of its own, each beginning with `- `",
        ),
        Fault::InvalidIndentation | Fault::InvalidBlockScalarIndent | Fault::InvalidFlowScalarIndent => {
            ("the indentation fits no line above", "indent the line like the others that it belongs to")
        }
        Fault::UndeclaredTagHandle => ("this tag means nothing here", "put the text in quotes"),
        Fault::RecursionLimitExceeded => return too_deep(),
        other => return (other.to_string(), None),
    };
    (message.to_owned(), Some(hint))
}

/// The message and the way out for values that are nested too deeply.
pub(super) fn too_deep() -> (String, Option<&'static str>) {
    let message = format!("values are nested too deeply: {} levels are the most", super::MOST_DEPTH);
    (message, Some("nest the values less deeply"))
}
