//! What can be wrong with a template, in words for its author.

use std::ops::Range;
use std::sync::Arc;

use super::helper::{Helper, ROLES};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, did_you_mean, nearest};
use crate::source::{Place, Source};

/// An error in the notation.
pub(super) fn syntax(
    source: &Arc<Source>,
    range: Range<usize>,
    message: impl Into<String>,
    hint: impl Into<Hint>,
) -> Error {
    let diagnostic =
        Diagnostic::new(Code::TemplateSyntax, message.into()).at(source.place(range)).hint(hint.into());
    Error::new(ErrorKind::PromptRead, diagnostic)
}

/// A tag without its end. It is shown up to the end of its line.
pub(super) fn unclosed_tag(source: &Arc<Source>, start: usize, end: &str) -> Error {
    let line = source.text()[start..].lines().next().unwrap_or_default().trim_end();
    let range = start..start + line.len();
    syntax(source, range, "the tag is not closed", format!("this tag must end with `{end}`"))
}

pub(super) fn never_closed(source: &Arc<Source>, name: &str, tag: Range<usize>) -> Error {
    syntax(
        source,
        tag,
        format!("`{{{{#{name}}}}}` is not closed"),
        format!("add `{{{{/{name}}}}}` at its end"),
    )
}

/// An end that does not belong to what is open.
pub(super) fn wrong_end(
    source: &Arc<Source>,
    name: &str,
    range: Range<usize>,
    open: Option<(&str, &Range<usize>)>,
) -> Error {
    let diagnostic = Diagnostic::new(Code::TemplateSyntax, format!("unexpected `{{{{/{name}}}}}`"))
        .at(source.place(range));
    let diagnostic = match open {
        None => diagnostic.label("nothing is open").hint("remove it, or add its opening tag"),
        Some((wanted, tag)) => diagnostic
            .label("does not match the open tag")
            .related(source.place(tag.clone()), "open tag")
            .hint(format!("close it with `{{{{/{wanted}}}}}`")),
    };
    Error::new(ErrorKind::PromptRead, diagnostic)
}

/// A name with arguments that is no helper.
pub(super) fn unknown_helper(source: &Arc<Source>, name: &str, range: Range<usize>) -> Error {
    let known: Vec<&str> = Helper::names().collect();
    let hint = did_you_mean(&nearest(name, known.iter().copied()))
        .unwrap_or_else(|| format!("the helpers are {}", known.join(", ")));
    syntax(source, range, format!("unknown helper `{name}`"), hint)
}

pub(super) fn not_a_block(source: &Arc<Source>, helper: Helper, range: Range<usize>) -> Error {
    let name = helper.name();
    syntax(
        source,
        range,
        format!("the helper `{name}` is not a block"),
        format!("write `{{{{{name} …}}}}`, without an end"),
    )
}

pub(super) fn is_a_block(source: &Arc<Source>, helper: Helper, range: Range<usize>) -> Error {
    let name = helper.name();
    syntax(
        source,
        range,
        format!("the helper `{name}` is a block"),
        format!("write `{{{{#{name} …}}}}…{{{{/{name}}}}}`"),
    )
}

pub(super) fn has_no_value(source: &Arc<Source>, helper: Helper, range: Range<usize>) -> Error {
    let name = helper.name();
    syntax(
        source,
        range,
        format!("the helper `{name}` has no value"),
        "only `lookup` and `json` have one: `(lookup list 0)`",
    )
}

pub(super) fn wrong_count(
    source: &Arc<Source>,
    name: &str,
    wanted: usize,
    found: usize,
    range: Range<usize>,
) -> Error {
    let values = |count: usize| match count {
        0 => "no value".to_owned(),
        1 => "1 value".to_owned(),
        many => format!("{many} values"),
    };
    let message = format!("the helper `{name}` takes {}, but has {}", values(wanted), values(found));
    let hint = match name {
        "media" => "write `{{media url=…}}`".to_owned(),
        "role" => "write `{{role \"system\"}}`".to_owned(),
        "section" => "write `{{section \"name\"}}`".to_owned(),
        _ if wanted == 0 => format!("write `{{{{{name}}}}}`"),
        _ => format!("write {} after `{name}`", values(wanted)),
    };
    syntax(source, range, message, hint)
}

pub(super) fn unknown_argument(
    source: &Arc<Source>,
    helper: &str,
    name: &str,
    known: &[&str],
    range: Range<usize>,
) -> Error {
    let hint = match known {
        [] => "remove it".to_owned(),
        known => did_you_mean(&nearest(name, known.iter().copied()))
            .unwrap_or_else(|| format!("its arguments are {}", known.join(", "))),
    };
    syntax(source, range, format!("the helper `{helper}` has no argument `{name}`"), hint)
}

pub(super) fn media_without_url(source: &Arc<Source>, range: Range<usize>) -> Error {
    syntax(source, range, "the helper `media` has no `url`", "write `{{media url=… contentType=…}}`")
}

pub(super) fn unknown_role(source: &Arc<Source>, name: &str, range: Range<usize>) -> Error {
    let known = ROLES.map(|(name, _)| name);
    let hint =
        did_you_mean(&nearest(name, known)).unwrap_or_else(|| format!("use one of: {}", known.join(", ")));
    syntax(source, range, format!("unknown role `{name}`"), hint)
}

/// A role that a value chose and no value may choose.
pub(super) fn chosen_role(found: &str, place: Place) -> Diagnostic {
    let message = format!("a value chooses the role {found}, but a value can choose only `user` or `model`");
    Diagnostic::new(Code::BadMessages, message)
        .at(place)
        .hint("write other roles into the template, as in `{{role \"system\"}}`")
}

/// Something of Handlebars that this engine does not have.
pub(super) fn unsupported(source: &Arc<Source>, range: Range<usize>, what: &str, hint: &str) -> Error {
    syntax(source, range, format!("{what} is not supported"), hint)
}

/// Nesting beyond the limit, in a text or in a render.
pub(super) fn too_deep(limit: usize, place: Place) -> Diagnostic {
    let message = format!("blocks, partials and values are nested more than {limit} deep");
    let hint = Hint::run(
        "look for a partial that includes itself, or raise `limits.recursion` in cuebook.toml, and grant it",
        "cuebook allow",
    );
    Diagnostic::new(Code::TooDeep, message).at(place).hint(hint)
}
