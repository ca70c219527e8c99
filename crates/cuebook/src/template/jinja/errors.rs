//! The engine's errors in our form: with a code, the place in the author's file, and the way out.

use std::error::Error as _;
use std::ops::Range;
use std::sync::Arc;

use minijinja::{ErrorKind as Jinja, Value};

use super::writer::Attributing;
use super::{Program, Settings, compat, fence, guests};
use crate::error::{Code, Diagnostic, Error, ErrorKind, did_you_mean, nearest};
use crate::source::{Place, Source};
use crate::template::meter::{self, OutOfTime};
use crate::template::sink::{Full, Sink};
use crate::template::unit::Unit;
use crate::variables::Scope;

/// A template that does not parse. With a unit, the error is in the instrumented text.
pub(super) fn syntax(source: &Arc<Source>, error: &minijinja::Error, unit: Option<&Unit>) -> Error {
    let range = error.range().unwrap_or_default();
    let place = match unit {
        Some(unit) => unit.place(range),
        None => source.place(range),
    };
    let detail = error.detail().unwrap_or("invalid template");
    let problem = Problem::of(detail, source.text(), &place);
    let mut diagnostic = Diagnostic::new(Code::TemplateSyntax, problem.message)
        .hint_opt(problem.hint.or_else(|| mustache_hint(source.text(), &place)));
    diagnostic = match problem.open {
        Some(tag) if problem.never_closed => diagnostic.at(source.place(tag)).label("opened here"),
        Some(tag) => diagnostic.at(place).related(source.place(tag), "opened here"),
        None => diagnostic.at(place),
    };
    Error::new(ErrorKind::PromptRead, diagnostic)
}

/// `{{#items}}` is Mustache.
fn mustache_hint(text: &str, place: &Place) -> Option<String> {
    let start = text[..place.range().start.min(text.len())].rfind("{{")?;
    let is_mustache = text[start + 2..].trim_start().starts_with(['#', '^', '/', '>', '&']);
    is_mustache.then(|| {
        "this looks like Mustache: add `template: {format: mustache}` to the `.prompty` file".to_owned()
    })
}

/// What is wrong with a template, in words for its author.
struct Problem {
    message: String,
    hint: Option<String>,
    /// The tag of the block that is open there, if it matters.
    open: Option<Range<usize>>,
    /// Whether that block is what is wrong.
    never_closed: bool,
}

impl Problem {
    fn of(detail: &str, text: &str, place: &Place) -> Problem {
        if let Some(word) = detail.strip_prefix("unknown statement ") {
            return Problem::statement(word, text, place);
        }
        // The end of the text is where every unclosed block is noticed, and not where anybody would look for it.
        if detail == "unexpected end of input, expected end of block"
            && let Some((word, tag)) = unclosed(text)
        {
            return Problem {
                message: format!("`{{% {word} … %}}` is not closed"),
                hint: Some(format!("add `{{% end{word} %}}`")),
                open: Some(tag),
                never_closed: true,
            };
        }
        if let Some(name) =
            detail.strip_prefix("block '").and_then(|rest| rest.strip_suffix("' defined twice"))
        {
            let hint =
                format!("rename one of them; to print the first again, write `{{{{ self.{name}() }}}}`");
            return Problem::plain(format!("duplicate block `{name}`"), Some(hint));
        }
        let hint = HINTS.iter().find(|(part, _)| detail.contains(part)).map(|(_, hint)| (*hint).to_owned());
        Problem::plain(detail.to_owned(), hint)
    }

    fn plain(message: String, hint: Option<String>) -> Problem {
        Problem { message, hint, open: None, never_closed: false }
    }

    /// A tag that begins with a word which means nothing, or nothing here.
    fn statement(word: &str, text: &str, place: &Place) -> Problem {
        // The engine reads the end of a fence as that of another block.
        let is_fence = text.get(place.range().start..).is_some_and(|rest| rest.starts_with(fence::END));
        let word = if is_fence { fence::END } else { word };
        let closes = word.starts_with("end") && STATEMENTS.contains(&word);
        if !closes && word != "else" && word != "elif" {
            let similar = nearest(word, STATEMENTS.iter().copied());
            return Problem::plain(format!("unknown statement `{word}`"), did_you_mean(&similar));
        }
        let message = format!("unexpected `{{% {word} %}}`");
        let before = text.get(..place.range().start).unwrap_or_default();
        match unclosed(before.rsplit_once("{%").map_or(before, |(before, _)| before)) {
            Some((open, tag)) => {
                let hint = Some(format!("close `{{% {open} … %}}` first: add `{{% end{open} %}}` before it"));
                Problem { message, hint, open: Some(tag), never_closed: false }
            }
            None if closes => Problem::plain(message, Some("no block is open: remove it".to_owned())),
            None => Problem::plain(message, Some("write it between an `if` or `for` and its end".to_owned())),
        }
    }
}

/// Ways out of the mistakes that the engine describes in these words; the first that fits counts.
const HINTS: [(&str, &str); 10] = [
    (
        ", expected end of variable block",
        "close the expression with `}}`, or add an operator or `|` between the two values",
    ),
    (", expected end of block", "close the statement with `%}`"),
    (
        "template exceeds maximum recursion limits",
        "nest at most about 150 blocks or parentheses: move the inner ones to a separate file, and \
             include it",
    ),
    ("unexpected end of raw block", "add `{% endraw %}`"),
    ("unexpected end of comment", "close the comment with `#}`"),
    ("unexpected end of string", "close the string with the same quote"),
    ("expected in", "write `{% for item in items %}`"),
    ("unexpected end of variable block", "something is missing before `}}`"),
    ("unexpected end of block", "something is missing before `%}`"),
    ("unexpected end of input", "close the open tag"),
];

/// The innermost block that is still open at the end of a template: its word and its tag.
fn unclosed(text: &str) -> Option<(&str, Range<usize>)> {
    const BLOCKS: [&str; 10] =
        ["if", "for", "block", "macro", "call", "filter", "fence", "with", "autoescape", "set"];
    let mut open: Vec<(&str, Range<usize>)> = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find('{').map(|found| at + found) {
        let closing = match text.as_bytes().get(start + 1) {
            Some(b'%') => "%}",
            Some(b'{') => "}}",
            Some(b'#') => "#}",
            _ => {
                at = start + 1;
                continue;
            }
        };
        let inside = start + 2;
        let end = text[inside..].find(closing).map(|found| inside + found)?;
        at = end + 2;
        if closing != "%}" {
            continue;
        }
        let content =
            text[inside..end].trim_matches(|edge: char| edge == '-' || edge == '+' || edge.is_whitespace());
        let word = content.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
        if word == "raw" {
            let ending = text[at..].find("endraw").map(|found| at + found);
            at = ending.and_then(|ending| Some(ending + text[ending..].find("%}")? + 2))?;
        } else if let Some(closed) = word.strip_prefix("end") {
            if open.last().is_some_and(|(word, _)| *word == closed) {
                open.pop();
            }
        } else if BLOCKS.contains(&word) && !(word == "set" && content.contains('=')) {
            open.push((word, start..at));
        }
    }
    open.pop()
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
    "fence",
    "endfence",
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

/// Places that a report shows on the way to the one that failed, nearest first.
pub(in crate::template) const MOST_CALLERS: usize = 8;

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
        return output_too_large(main, limit);
    }
    // Without debugging the engine does not say which name was undefined. It costs time, so only a failed render has it.
    let error = match error.kind() {
        Jinja::OutOfFuel | Jinja::WriteFailure => error,
        _ if has_source::<OutOfTime>(&error) => error,
        _ => again(program, main, scope, limit, settings.fuel).unwrap_or(error),
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
    if diagnostic.code == Code::TooDeep
        && let Some(circle) = program.include_circles().into_iter().next()
    {
        let end = "if the recursion ends, raise `limits.recursion` in cuebook.toml";
        diagnostic = diagnostic.hint(format!("{}; {end}", circle.message));
    }
    // A recursion passes the same places again and again.
    let mut shown: Vec<Place> = diagnostic.place.iter().cloned().collect();
    for frame in frames[..frames.len() - 1].iter().rev() {
        if let Some(place) = place(program, frame)
            && shown.len() <= MOST_CALLERS
            && !shown.iter().any(|known| known.is_same(&place))
        {
            diagnostic = diagnostic.related(place.clone(), "used from here");
            shown.push(place);
        }
    }
    Error::new(kind, diagnostic)
}

/// The text came to more characters than the prompt's limit.
pub(in crate::template) fn output_too_large(main: &Source, limit: usize) -> Error {
    let message = format!("the rendered text is longer than {limit} characters");
    let diagnostic = Diagnostic::new(Code::OutputTooLarge, message)
        .file(main.name())
        .hint("shorten the values, or raise `max_output_size`: in LIMITS of prompt.py, or for all prompts under \"limits\" in defaults.json");
    Error::new(ErrorKind::Limit, diagnostic).with("limit", limit)
}

/// A render took more steps than it may.
pub(in crate::template) fn out_of_fuel(fuel: u64) -> Diagnostic {
    Diagnostic::new(Code::OutOfFuel, format!("the template exceeded {fuel} steps"))
        .hint("look for a loop that runs too often, or raise `limits.fuel` in cuebook.toml")
}

/// A render took more time than it may.
fn out_of_time(late: OutOfTime) -> Diagnostic {
    Diagnostic::new(Code::OutOfFuel, late.to_string())
        .hint("look for a loop that runs too often, or raise `limits.render_seconds` in cuebook.toml")
}

/// A template of a render that has no time left.
pub(in crate::template) fn too_late(main: &Source, late: OutOfTime) -> Error {
    Error::new(ErrorKind::Limit, out_of_time(late).file(main.name()))
}

/// Runs the same render once more with debugging on.
fn again(
    program: &Program,
    main: &Arc<Source>,
    scope: &Value,
    limit: usize,
    fuel: u64,
) -> Option<minijinja::Error> {
    let mut environment = program.environment().clone();
    environment.set_debug(true);
    let template = environment.get_template(main.name()).ok()?;
    let mut sink = Sink::new(limit, 0, 0);
    let mut writer = Attributing { sink: &mut sink, extents: &[], last: 0, annex: None, fences: false };
    let mut run = || template.render_captured_to(scope.clone(), &mut writer).err();
    // It has the fuel that the first one had.
    let mut run = || meter::template(fuel, &mut run);
    match scope.downcast_object::<Scope>() {
        Some(lender) => guests::during(&lender, limit, run),
        None => run(),
    }
}

fn place(program: &Program, error: &minijinja::Error) -> Option<Place> {
    let unit = &program.units[*program.index.get(error.name()?)?];
    match error.range() {
        Some(range) => {
            let range = unit.source_range(range);
            let text = unit.source().text();
            let marked = text.get(range.clone()).unwrap_or_default();
            if !marked.trim().is_empty() {
                let start = range.start + marked.len() - marked.trim_start().len();
                return Some(unit.source().place(start..start + marked.trim().len()));
            }
            // Something failed that the engine was given behind what the author wrote: that is what it was about.
            let before = text.get(..range.start)?.trim_end();
            let start = before.rfind(char::is_whitespace).map_or(0, |space| space + 1);
            Some(unit.source().place(start..before.len()))
        }
        None => {
            let line = error.line()?.checked_sub(1)?;
            let text = unit.source().text();
            let start = text.split_inclusive('\n').take(line).map(str::len).sum();
            let length = text[start..].lines().next().map_or(0, str::len);
            Some(unit.source().place(start..start + length))
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
            .hint("raise `limits.string_bytes` or `limits.items` in cuebook.toml if the template needs it");
        return (ErrorKind::Limit, diagnostic);
    }
    if let Some(late) = find_source::<OutOfTime>(error) {
        return (ErrorKind::Limit, out_of_time(*late));
    }
    match error.kind() {
        Jinja::OutOfFuel => (ErrorKind::Limit, out_of_fuel(settings.fuel)),
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
        Jinja::TemplateNotFound => {
            // The engine names it in quotes: `tried to include non-existing template "x.md"`.
            let name = detail.rsplit_once("template ").map(|(_, name)| name.trim_matches(['\'', '"', '`']));
            let message = name.map_or(detail.clone(), |name| format!("no template `{name}` found"));
            let hint = "the template computes this name: paths are relative to the prompts' folder, as in \
                 `partials/safety_rules.md`";
            (ErrorKind::PromptRender, Diagnostic::new(Code::MissingInclude, message).hint(hint))
        }
        kind
        @ (Jinja::UnknownFilter | Jinja::UnknownTest | Jinja::UnknownFunction | Jinja::UnknownMethod) => {
            let name = unknown_name(&detail);
            let message = match (kind, &name) {
                (Jinja::UnknownFilter, Some(name)) => format!("unknown filter `{name}`"),
                (Jinja::UnknownTest, Some(name)) => format!("unknown test `{name}`"),
                (Jinja::UnknownFunction, Some(name)) => format!("unknown function `{name}`"),
                _ => detail,
            };
            let similar = match (kind, &name) {
                (Jinja::UnknownFilter, Some(name)) => nearest(name, compat::filter_names()),
                (Jinja::UnknownTest, Some(name)) => nearest(name, compat::TEST_NAMES.iter().copied()),
                _ => Vec::new(),
            };
            let diagnostic = Diagnostic::new(Code::UnknownFilter, message).hint_opt(did_you_mean(&similar));
            (ErrorKind::PromptRender, diagnostic)
        }
        _ => {
            let hint = "check the values used here";
            (ErrorKind::PromptRender, Diagnostic::new(Code::RenderFailed, detail).hint(hint))
        }
    }
}

/// `filter foo is unknown` and `foo is unknown`: the engine names it without quotes.
fn unknown_name(detail: &str) -> Option<String> {
    let name = detail.strip_suffix(" is unknown")?.split_whitespace().next_back()?;
    Some(name.trim_matches('`').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_open_block_is_found() {
        let open = |text: &'static str| unclosed(text).map(|(word, tag)| (word, &text[tag]));
        assert_eq!(open("{% if a %}{% for b in c %}{% endfor %}x"), Some(("if", "{% if a %}")));
        assert_eq!(open("{%- block a -%}{% set x = 1 %}"), Some(("block", "{%- block a -%}")));
        assert_eq!(open("{% set x %}"), Some(("set", "{% set x %}")));
        assert_eq!(open("{# {% if a %} #}{{ '{% if a %}' }}{% raw %}{% if a %}{% endraw %}"), None);
        assert_eq!(open("{% if a %}{% endif %} { %"), None);
    }

    fn syntax_error(text: &str) -> String {
        let source = Source::new("t.md", text);
        let error = super::super::check_syntax(&source, &Settings::default()).unwrap_err();
        crate::json::shown(error.diagnostics())
    }

    #[test]
    fn a_block_that_is_never_closed_is_shown_where_it_was_opened() {
        assert_eq!(
            syntax_error("a\n{% if b %}\nc\n"),
            "\
error t.md:2:1: `{% if … %}` is not closed [CB304]
  at {% if b %} -- opened here
  help: add `{% endif %}`
"
        );
    }

    #[test]
    fn blocks_that_lie_too_deep_in_each_other_have_a_way_out() {
        let text = format!("{}x{}", "{% if a %}".repeat(400), "{% endif %}".repeat(400));
        let told = syntax_error(&text);
        assert!(told.contains("recursion limits [CB304]") && told.contains("and include it"), "{told}");
    }

    #[test]
    fn an_end_that_does_not_belong_here_is_shown_with_what_is_open() {
        assert_eq!(
            syntax_error("{% if a %}{% endfor %}"),
            "\
error t.md:1:14: unexpected `{% endfor %}` [CB304]
  at endfor -- (no label)
  and t.md:1:1 {% if a %} -- opened here
  help: close `{% if … %}` first: add `{% endif %}` before it
"
        );
        assert!(syntax_error("{% endif %}").contains("help: no block is open: remove it"));
        assert!(syntax_error("{% else %}").contains("help: write it between an `if` or `for` and its end"));
    }

    #[test]
    fn the_usual_slips_get_a_hint() {
        for (text, hint) in [
            ("{{ name }", "close the expression with `}}`"),
            ("{{ name", "close the expression with `}}`"),
            ("{{ a b }}", "add an operator or `|` between the two values"),
            ("{% inclde 'x' %}", "did you mean `include`?"),
            ("{% for a of b %}{% endfor %}", "write `{% for item in items %}`"),
            ("{{ a | }}", "something is missing before `}}`"),
            ("{% include %}", "something is missing before `%}`"),
            ("{{ 'a }}", "close the string"),
            ("{# a", "close the comment"),
            ("{% raw %}a", "add `{% endraw %}`"),
        ] {
            let shown = syntax_error(text);
            assert!(shown.contains(hint), "{text}\n{shown}");
        }
    }
}
