//! What the parser complains about, in words that say what to do.

use serde_saphyr::granit_parser::ErrorKind as Fault;

/// The message and the way out for what the parser stopped at.
pub(super) fn explain(fault: &Fault) -> (String, Option<&'static str>) {
    let (message, hint) = match fault {
        Fault::TabNotAllowed
        | Fault::TabInBlockIndentation
        | Fault::TabInIndentation
        | Fault::TabAtBlockScalarStart
        | Fault::TabInPlainScalar => ("a tab where YAML allows only spaces", "indent with spaces"),
        Fault::MappingValueNotAllowed | Fault::MappingKeyNotAllowed | Fault::InvalidColonPlacement => {
            ("unexpected colon", "quote a text that contains `: `, or check the indentation")
        }
        Fault::UnexpectedCharacter { .. } => {
            ("a value cannot start with this character", "put the text in quotes")
        }
        Fault::UnclosedFlowCollection { open: '{' } | Fault::ExpectedFlowMappingSeparator => {
            ("`{` is not closed", "put a comma between entries and close with `}`, or put the text in quotes")
        }
        Fault::UnclosedFlowCollection { .. } | Fault::ExpectedFlowSequenceSeparator => (
            "`[` is not closed",
            "put a comma between elements and close with `]`, or put the text in quotes",
        ),
        Fault::MisplacedFlowCollectionEnd | Fault::MismatchedFlowCollectionEnd { .. } => {
            ("closing bracket without an opening one", "remove the bracket, or put the text in quotes")
        }
        Fault::UnclosedQuotedScalar
        | Fault::InvalidQuotedScalarIndent
        | Fault::DocumentIndicatorInQuotedScalar => {
            ("the quoted text is not closed", "add the closing quote, and indent continued lines")
        }
        Fault::InvalidTrailingSingleQuotedScalar | Fault::InvalidTrailingDoubleQuotedScalar => (
            "unexpected text after a quoted text",
            "put the whole text in quotes; write a quote inside '…' as ''",
        ),
        Fault::UnknownQuotedScalarEscape => {
            ("unknown escape", "write a backslash as `\\\\`, or use single quotes")
        }
        Fault::UnknownAnchor => {
            ("unknown anchor", "define the anchor first with `&name`, or put the text in quotes")
        }
        Fault::MissingAnchorOrAliasName => {
            ("the anchor or alias has no name", "quote a text that starts with `*` or `&`")
        }
        Fault::ExpectedBlockMappingKey | Fault::SimpleKeyExpected | Fault::InvalidSimpleKey => {
            ("expected a key", "write `key: value`, indented like the keys around it")
        }
        Fault::ExpectedBlockSequenceEntry | Fault::BlockSequenceEntryNotAllowed => {
            ("unexpected list element", "put each element on a separate line that starts with `- `")
        }
        Fault::InvalidIndentation | Fault::InvalidBlockScalarIndent | Fault::InvalidFlowScalarIndent => {
            ("the indentation matches no line above", "indent the line like its neighbours")
        }
        Fault::UndeclaredTagHandle => ("unknown tag", "put the text in quotes"),
        Fault::RecursionLimitExceeded => return too_deep(),
        other => return (other.to_string(), None),
    };
    (message.to_owned(), Some(hint))
}

/// The message and the way out for values that are nested too deeply.
pub(super) fn too_deep() -> (String, Option<&'static str>) {
    let message = format!("values are nested too deeply: the limit is {} levels", super::MOST_DEPTH);
    (message, Some("nest the values less"))
}
