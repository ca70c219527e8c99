//! The engine's errors in our form: with a code, the place in the author's file, and the way out.

use std::error::Error as _;
use std::sync::Arc;

use minijinja::{ErrorKind as Jinja, Value};

use super::{Program, Settings, compat};
use crate::error::{Code, Diagnostic, Error, ErrorKind, did_you_mean, nearest};
use crate::source::{Place, Source};
use crate::template::sink::{Full, Sink};
use crate::template::unit::Unit;

/// A template that does not parse. With a unit, the error is in the instrumented text.
pub(super) fn syntax(source: &Arc<Source>, error: &minijinja::Error, unit: Option<&Unit>) -> Error {
    let range = error.range().unwrap_or_default();
    let place = match unit {
        Some(unit) => unit.place(range),
        None => source.place(range),
    };
    let message = error.detail().unwrap_or("the template cannot be read").to_owned();
    let hint = syntax_hint(&message, &place);
    let diagnostic = Diagnostic::new(Code::TemplateSyntax, message).at(place).hint_opt(hint);
    Error::new(ErrorKind::PromptRead, diagnostic)
}

fn syntax_hint(message: &str, place: &Place) -> Option<String> {
    let hint = if message.contains("unexpected end of input") || message.contains("end of template") {
        "a block is still open at the end: add its `{% end… %}`"
    } else if message.contains("unknown statement") {
        let word: String = place.text().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if word.starts_with("end") {
            return Some(format!("`{word}` closes a block that is not open here"));
        }
        return did_you_mean(&nearest(&word, STATEMENTS.iter().copied()));
    } else if message.contains("unexpected end of raw block") {
        "add `{% endraw %}`"
    } else if message.contains("unexpected end of comment") {
        "close the comment with `#}`"
    } else {
        return None;
    };
    Some(hint.to_owned())
}

const STATEMENTS: &[&str] = &[
    "if",
    "elif",
    "else",
    "endif",
    "for",
    "endfor",
    "set",
    "endset",
    "block",
    "endblock",
    "extends",
    "include",
    "import",
    "from",
    "macro",
    "endmacro",
    "call",
    "endcall",
    "filter",
    "endfilter",
    "with",
    "endwith",
    "raw",
    "endraw",
    "autoescape",
    "endautoescape",
    "do",
    "break",
    "continue",
];

/// Places of one error, at most.
const MOST_FRAMES: usize = 12;

/// A render that failed.
pub(super) fn explain(
    program: &Program,
    main: &Arc<Source>,
    scope: &Value,
    error: minijinja::Error,
    limit: usize,
    settings: &Settings,
) -> Error {
    if has_source::<Full>(&error) {
        let diagnostic = Diagnostic::new(
            Code::OutputTooLarge,
            format!("the rendered text is longer than {limit} characters"),
        )
        .file(main.name())
        .hint("shorten the values, or raise LIMITS[\"max_output_size\"] in prompt.py");
        return Error::new(ErrorKind::Limit, diagnostic).with("limit", limit);
    }
    // Without debugging the engine does not say which name was undefined. It costs time, so only a failed render has it.
    let error = match error.kind() {
        Jinja::OutOfFuel | Jinja::WriteFailure => error,
        _ => again(program, main, scope, limit).unwrap_or(error),
    };
    let mut frames = vec![&error];
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(|cause| cause.downcast_ref::<minijinja::Error>()) {
        frames.push(inner);
        cause = inner.source();
    }
    // The innermost error is what happened; the outer ones say how the render got there.
    let innermost = frames[frames.len() - 1];
    let (kind, mut diagnostic) = translate(innermost, settings);
    if let Some(place) = place(program, innermost) {
        diagnostic = diagnostic.at(place);
    } else {
        diagnostic = diagnostic.file(main.name());
    }
    // A template that includes itself comes by the same place hundreds of times; once says it all.
    let mut shown: Vec<Place> = diagnostic.place.iter().cloned().collect();
    for frame in frames[..frames.len() - 1].iter().rev() {
        if let Some(place) = place(program, frame)
            && shown.len() < MOST_FRAMES
            && shown.iter().all(|known| known.to_string() != place.to_string())
        {
            shown.push(place.clone());
            diagnostic = diagnostic.related(place, "used from here");
        }
    }
    Error::new(kind, diagnostic)
}

/// Runs the same render once more with debugging on.
fn again(program: &Program, main: &Arc<Source>, scope: &Value, limit: usize) -> Option<minijinja::Error> {
    let mut environment = program.environment().clone();
    environment.set_debug(true);
    let template = environment.get_template(main.name()).ok()?;
    let mut sink = Sink::new(limit, 0, 0);
    let mut writer = super::Attributing { sink: &mut sink, extents: &[], last: 0 };
    template.render_captured_to(scope.clone(), &mut writer).err()
}

fn place(program: &Program, error: &minijinja::Error) -> Option<Place> {
    let unit = &program.units[*program.index.get(error.name()?)?];
    match error.range() {
        Some(range) => Some(unit.place(range)),
        None => {
            let line = error.line()?;
            let text = unit.source().text();
            let start = text.match_indices('\n').nth(line.checked_sub(2)?).map_or(0, |(at, _)| at + 1);
            Some(unit.source().place(start..start))
        }
    }
}

fn has_source<E: std::error::Error + 'static>(error: &minijinja::Error) -> bool {
    find_source::<E>(error).is_some()
}

/// Looks for an error of ours below the engine's.
fn find_source<E: std::error::Error + 'static>(error: &minijinja::Error) -> Option<&E> {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(found) = inner.downcast_ref::<E>() {
            return Some(found);
        }
        if let Some(io) = inner.downcast_ref::<std::io::Error>()
            && let Some(found) = io.get_ref().and_then(|inner| inner.downcast_ref::<E>())
        {
            return Some(found);
        }
        cause = inner.source();
    }
    None
}

fn translate(error: &minijinja::Error, settings: &Settings) -> (ErrorKind, Diagnostic) {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    if let Some(too_large) = find_source::<compat::ValueTooLarge>(error) {
        let diagnostic = Diagnostic::new(Code::ValueTooLarge, too_large.to_string())
            .hint("raise `limits.string_bytes` or `limits.items` in cuebook.toml if the template is meant to do this");
        return (ErrorKind::Limit, diagnostic);
    }
    match error.kind() {
        Jinja::OutOfFuel => {
            let message = format!("the template took more than {} steps", settings.fuel);
            let hint = "look for a loop that runs too often, or raise `limits.fuel` in cuebook.toml";
            (ErrorKind::Limit, Diagnostic::new(Code::OutOfFuel, message).hint(hint))
        }
        Jinja::InvalidOperation if detail.contains("recursion limit") => {
            let message = format!("templates or macros are nested more than {} deep", settings.recursion);
            let hint =
                "look for a macro or include that calls itself, or raise `limits.recursion` in cuebook.toml";
            (ErrorKind::Limit, Diagnostic::new(Code::TooDeep, message).hint(hint))
        }
        Jinja::UndefinedError => {
            let hint =
                "give the variable a value or a default, or guard the place with `{% if … is defined %}`";
            (ErrorKind::PromptRender, Diagnostic::new(Code::UndefinedValue, detail).hint(hint))
        }
        Jinja::TemplateNotFound => (ErrorKind::PromptRender, Diagnostic::new(Code::MissingInclude, detail)),
        kind
        @ (Jinja::UnknownFilter | Jinja::UnknownTest | Jinja::UnknownFunction | Jinja::UnknownMethod) => {
            let name = quoted_name(&detail);
            let similar = match (kind, &name) {
                (Jinja::UnknownFilter, Some(name)) => nearest(name, compat::filter_names()),
                (Jinja::UnknownTest, Some(name)) => nearest(name, compat::TEST_NAMES.iter().copied()),
                _ => Vec::new(),
            };
            let diagnostic = Diagnostic::new(Code::UnknownFilter, detail).hint_opt(did_you_mean(&similar));
            (ErrorKind::PromptRender, diagnostic)
        }
        _ => (ErrorKind::PromptRender, Diagnostic::new(Code::RenderFailed, detail)),
    }
}

/// `filter foo is unknown`: the engine names it without quotes.
fn quoted_name(detail: &str) -> Option<String> {
    let mut words = detail.split_whitespace();
    words.next()?;
    words.next().map(|word| word.trim_matches('`').to_owned())
}
