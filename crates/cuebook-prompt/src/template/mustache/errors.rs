//! What can be wrong with a template, in words for its author.

use std::ops::Range;
use std::sync::Arc;

use super::parse::Open;
use super::scan::{Kind, Tag};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, did_you_mean, nearest};
use crate::source::{Place, Source};

fn syntax(diagnostic: Diagnostic) -> Error {
    Error::new(ErrorKind::PromptRead, diagnostic)
}

/// A tag without its end. It is shown up to the end of its line.
pub(super) fn unclosed_tag(source: &Arc<Source>, start: usize, end: &str) -> Error {
    let line = source.text()[start..].lines().next().unwrap_or_default().trim_end();
    syntax(
        Diagnostic::new(Code::TemplateSyntax, "the tag is not closed")
            .at(source.place(start..start + line.len()))
            .label("begins here")
            .hint(format!("this tag must end with `{end}`")),
    )
}

pub(super) fn bad_delimiters(source: &Arc<Source>, tag: &Tag<'_>) -> Error {
    let (open, close) = tag.delimiters;
    syntax(
        Diagnostic::new(Code::TemplateSyntax, "invalid delimiters")
            .at(source.place(tag.range.clone()))
            .label("expected two delimiters")
            .hint(format!(
                "write two delimiters without `=`, separated by whitespace, as in `{open}=<% %>={close}`"
            )),
    )
}

/// A name that is empty, has white space in it, or an empty part.
pub(super) fn bad_name(source: &Arc<Source>, tag: &Tag<'_>, name: &str, range: Range<usize>) -> Error {
    let first = name.split_whitespace().next().unwrap_or_default();
    let (message, hint) = match tag.kind {
        _ if name.is_empty() && tag.kind == Kind::Close => {
            ("the tag has no name", format!("add the name, as in `{}`", tag.like(tag.kind, "name")))
        }
        _ if name.is_empty() => {
            ("the tag has no name", format!("add a name, as in `{}`", tag.like(tag.kind, "name")))
        }
        _ if !name.contains(char::is_whitespace) => (
            "a part of the name is empty",
            "join names with single dots, as in `user.name`; `.` alone is the current item".to_owned(),
        ),
        Kind::Variable if ["if", "for", "each", "end", "else"].contains(&first) => (
            "the name contains whitespace",
            format!(
                "Mustache has no `{first}`: `{}…{}` shows its content if there is a value, once for each item",
                tag.like(Kind::Section, "name"),
                tag.like(Kind::Close, "name")
            ),
        ),
        Kind::Variable | Kind::Raw => (
            "the name contains whitespace",
            format!(
                "Mustache has no filters and no operators: write one name, as in `{}`",
                tag.like(tag.kind, first)
            ),
        ),
        _ => {
            ("the name contains whitespace", format!("write one name, as in `{}`", tag.like(tag.kind, first)))
        }
    };
    syntax(Diagnostic::new(Code::TemplateSyntax, message).at(source.place(range)).hint(hint))
}

pub(super) fn never_closed(source: &Arc<Source>, tag: &Tag<'_>) -> Error {
    let shown = tag.like(tag.kind, tag.content);
    syntax(
        Diagnostic::new(Code::TemplateSyntax, format!("`{shown}` is not closed"))
            .at(source.place(tag.range.clone()))
            .label("opened here")
            .hint(format!("add `{}` at its end", tag.like(Kind::Close, tag.content))),
    )
}

/// An end that does not belong to what is open, innermost last.
pub(super) fn wrong_end(source: &Arc<Source>, tag: &Tag<'_>, open: &[Open<'_>]) -> Error {
    let shown = tag.like(Kind::Close, tag.content);
    let diagnostic = Diagnostic::new(Code::TemplateSyntax, format!("unexpected `{shown}`"))
        .at(source.place(tag.range.clone()));
    let Some(innermost) = open.last().map(|open| &open.tag) else {
        return syntax(diagnostic.label("nothing is open").hint("remove it, or add its opening tag"));
    };
    let wanted = innermost.like(Kind::Close, innermost.content);
    let is_open = open.iter().any(|open| open.tag.content == tag.content);
    let similar = nearest(tag.content, [innermost.content]);
    let hint = match did_you_mean(&similar) {
        _ if is_open => format!(
            "close `{}` first: add `{wanted}` before it",
            innermost.like(innermost.kind, innermost.content)
        ),
        Some(_) => format!("did you mean `{wanted}`?"),
        None => format!("write `{wanted}`, or add the opening tag of `{shown}`"),
    };
    syntax(
        diagnostic
            .label("does not match the open tag")
            .related(source.place(innermost.range.clone()), "open tag")
            .hint(hint),
    )
}

/// Nesting beyond the limit, in a text or in a render.
pub(super) fn too_deep(limit: usize, place: Place) -> Diagnostic {
    let message = format!("sections, blocks and partials are nested more than {limit} deep");
    let hint = Hint::run(
        "look for a partial that includes itself, or raise `limits.recursion` in cuebook.toml, and grant it",
        "cuebook allow",
    );
    Diagnostic::new(Code::TooDeep, message).at(place).hint(hint)
}
