//! What the parser complains about, in words that say what to do.

use granit_parser::ErrorKind as Fault;

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
    let message = format!("values are nested too deeply: the limit is {} levels", super::MAX_DEPTH);
    (message, Some("nest the values less"))
}

/// What is wrong with the brackets of a flow collection.
pub(super) struct Bracket {
    pub(super) message: String,
    pub(super) hint: &'static str,
    /// The bracket that is not closed, if that is the problem.
    pub(super) at: Option<usize>,
}

/// What the parser's complaint about a list in `[…]` or a map in `{…}` comes from. It stops where it gives up, which often is lines
/// behind the cause, so the text says which bracket is open there, and whether it is ever closed.
pub(super) fn bracket(fault: &Fault, text: &str, stopped: usize) -> Option<Bracket> {
    let is_bracket = matches!(
        fault,
        Fault::UnclosedFlowCollection { .. }
            | Fault::ExpectedFlowMappingSeparator
            | Fault::ExpectedFlowSequenceSeparator
            | Fault::UnexpectedEofFlowSequence
            | Fault::UnexpectedEofFlowMapping
            | Fault::UnexpectedEofImplicitFlowMapping
    );
    if !is_bracket {
        return None;
    }
    let open = unclosed(text).or_else(|| unclosed(&text[..text.floor_char_boundary(stopped)]))?;
    let is_never_closed = unclosed(text).is_some();
    Some(match (is_never_closed, open.1) {
        (true, '{') => Bracket {
            message: "`{` is not closed".to_owned(),
            hint: "put a comma between entries and close with `}`, or put the text in quotes",
            at: Some(open.0),
        },
        (true, _) => Bracket {
            message: "`[` is not closed".to_owned(),
            hint: "put a comma between elements and close with `]`, or put the text in quotes",
            at: Some(open.0),
        },
        (false, bracket) => Bracket {
            message: format!("a comma or quotes are missing after this `{bracket}`"),
            hint: "put a comma between entries, and put a text that holds `: ` in quotes",
            at: Some(open.0),
        },
    })
}

/// The innermost bracket that a text opens and does not close. Brackets in quotes, in comments and inside of a plain text do not count.
fn unclosed(text: &str) -> Option<(usize, char)> {
    let mut open: Vec<(usize, char)> = Vec::new();
    // What comes before a value.
    let mut before = '\n';
    let mut quote = None;
    let mut is_comment = false;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (_, '\n') if is_comment => is_comment = false,
            _ if is_comment => continue,
            (Some(mark), letter) => {
                if letter == mark {
                    quote = None;
                    before = 'x';
                }
                continue;
            }
            (None, '#') if before.is_whitespace() || text[..at].ends_with([' ', '\n']) => is_comment = true,
            (None, '"' | '\'') if starts_value(before) => quote = Some(letter),
            (None, '[' | '{') if starts_value(before) => open.push((at, letter)),
            (None, ']' | '}') if open.last().is_some_and(|(_, bracket)| closes(*bracket, letter)) => {
                open.pop();
            }
            _ => {}
        }
        if !letter.is_whitespace() || (letter == '\n' && open.is_empty()) {
            before = letter;
        }
    }
    open.pop()
}

fn starts_value(before: char) -> bool {
    matches!(before, '\n' | ':' | '-' | ',' | '[' | '{' | '?')
}

fn closes(bracket: char, letter: char) -> bool {
    matches!((bracket, letter), ('[', ']') | ('{', '}'))
}
