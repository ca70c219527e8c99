//! The engine's errors in our form: with a code, the place in the author's file, and the way out.

use std::sync::Arc;

use cuebook_template::{Error as EngineError, ErrorKind as Engine, Exceeded};

use super::Template;
use super::render::Values;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, did_you_mean, nearest};
use crate::source::{Place, Source};
use crate::template::meter::OutOfTime;

/// A template that cannot be read.
pub(super) fn syntax(source: &Arc<Source>, error: &EngineError) -> Error {
    let place = place_in(source, error);
    let hint = error.hint().map(str::to_owned).or_else(|| hint(error.message()).map(str::to_owned));
    if error.exceeded().is_some() {
        let diagnostic = Diagnostic::new(Code::TooDeep, error.message()).at(place).hint_opt(hint);
        return Error::new(ErrorKind::Limit, diagnostic);
    }
    let hint = mustache_hint(source.text(), &place).or_else(|| habit_hint(source.text(), &place)).or(hint);
    let diagnostic = Diagnostic::new(Code::TemplateSyntax, error.message()).at(place).hint_opt(hint);
    let diagnostic = match error.opening() {
        Some(tag) if Some(tag) == error.range() => diagnostic.label("opened here"),
        Some(tag) => diagnostic.related(source.place(tag.start as usize..tag.end as usize), "opened here"),
        None => diagnostic,
    };
    Error::new(ErrorKind::PromptRead, diagnostic)
}

/// Filters and tests that do not exist.
pub(super) fn unknown(source: &Arc<Source>, errors: &[EngineError]) -> Option<Error> {
    errors.iter().fold(None, |all, error| {
        let diagnostic = Diagnostic::new(Code::UnknownFilter, error.message())
            .at(place_in(source, error))
            .hint_opt(error.hint().map(str::to_owned));
        Some(join(all, Error::new(ErrorKind::PromptRender, diagnostic)))
    })
}

/// One error with the findings of both.
pub(super) fn join(all: Option<Error>, next: Error) -> Error {
    match all {
        None => next,
        Some(all) => next.diagnostics().iter().cloned().fold(all, Error::and),
    }
}

fn place_in(source: &Arc<Source>, error: &EngineError) -> Place {
    let range = error.range().unwrap_or_default();
    source.place(range.start as usize..range.end as usize)
}

/// `{{#items}}` is Mustache.
fn mustache_hint(text: &str, place: &Place) -> Option<String> {
    let start = text[..place.range().start.min(text.len())].rfind("{{")?;
    let is_mustache = text[start + 2..].trim_start().starts_with(['#', '^', '/', '>', '&']);
    is_mustache.then(|| {
        "this looks like Mustache: add `template: {format: mustache}` to the `.prompty` file".to_owned()
    })
}

/// Jinja2's form of what the author knows from another language. The error is at `place`.
fn habit_hint(text: &str, place: &Place) -> Option<String> {
    let at = place.range().start;
    let (before, rest) = text.split_at_checked(at)?;
    let inside = &before[before.rfind("{%").max(before.rfind("{{"))? + 2..];
    let word = |word: &str| {
        rest.strip_prefix(word)
            .is_some_and(|rest| !rest.starts_with(|c: char| c == '_' || c.is_alphanumeric()))
    };
    let next = |word: &str| rest.strip_prefix(word).map_or("", str::trim_start);
    // The place of `||` is its second sign.
    if rest.starts_with('|') && inside.ends_with('|') {
        return Some("write `or` instead of `||`".to_owned());
    }
    if word("elseif") || word("elsif") || next("else").starts_with("if ") {
        return Some("write `{% elif … %}`".to_owned());
    }
    if word("if") && inside.trim() == "else" {
        return Some("write `{% elif … %}`".to_owned());
    }
    if word("end") {
        let block: String = next("end").chars().take_while(char::is_ascii_alphabetic).take(20).collect();
        return (!block.is_empty()).then(|| format!("write `{{% end{block} %}}`, as one word"));
    }
    let operator = [
        ("&&", "write `and` instead of `&&`"),
        ("!", "write `not` instead of `!`"),
        ("?", "write `A if CONDITION else B`"),
        ("=", "use `==` to compare; `{% set name = value %}` assigns"),
    ];
    if let Some((_, hint)) = operator.iter().find(|(sign, _)| rest.starts_with(sign)) {
        return Some((*hint).to_owned());
    }
    let argument = rest.starts_with([':', '"', '\'']) || rest.starts_with(char::is_alphanumeric);
    let (_, filter) = inside.rsplit_once('|').filter(|_| argument)?;
    let filter = filter.trim();
    let is_name = !filter.is_empty() && filter.chars().all(|c| c == '_' || c.is_alphanumeric());
    is_name.then(|| format!("write a filter's arguments in parentheses: `{filter}(…)`"))
}

/// Ways out of mistakes that the engine describes in these words; the first that fits counts.
const HINTS: [(&str, &str); 8] = [
    ("unexpected `}`", "close the expression with `}}`"),
    (
        "expected the end of the tag, got the end of the template",
        "close the expression with `}}`, or the tag with `%}`",
    ),
    ("expected the end of the tag", "close the tag, or add an operator or `|` between the two values"),
    ("expected `in`", "write `{% for item in items %}`"),
    ("got the end of the tag", "something is missing before the end of the tag"),
    ("this string", "close the string with the same quote"),
    ("this comment", "close the comment with `#}`"),
    ("`raw`", "add `{% endraw %}`"),
];

fn hint(message: &str) -> Option<&'static str> {
    HINTS.iter().find(|(part, _)| message.contains(part)).map(|(_, hint)| *hint)
}

/// Places that a report shows on the way to the one that failed, nearest first.
pub(in crate::template) const MAX_CALLERS: usize = 8;

/// A render that failed.
pub(super) fn explain(template: &Template, values: Values<'_>, error: &EngineError, limit: usize) -> Error {
    if let Some(own) = error.cause().and_then(|cause| cause.0.downcast_ref::<Error>()) {
        return own.clone();
    }
    if error.exceeded() == Some(Exceeded::Output) {
        return output_too_large(&template.main, limit);
    }
    let (kind, mut diagnostic) = translate(template, values, error);
    let place = |name: &str, range: cuebook_template::Range| {
        let unit = template.unit(name)?;
        Some(unit.source().place(range.start as usize..range.end as usize))
    };
    let at = error.template().zip(error.range()).and_then(|(name, range)| place(name, range));
    diagnostic = match at {
        Some(place) => diagnostic.at(place),
        None => diagnostic.file(template.main.name()),
    };
    if diagnostic.code == Code::TooDeep
        && let Some(circle) = template.program.include_circles().into_iter().next()
    {
        let end = Hint::run(
            "if the recursion ends, raise `limits.recursion` in cuebook.toml, and grant it",
            "cuebook allow",
        );
        diagnostic = diagnostic.hint(format!("{}; {end}", circle.message));
    }
    // A recursion passes the same places again and again.
    let mut shown: Vec<Place> = diagnostic.place.iter().cloned().collect();
    for (name, range) in error.callers() {
        if let Some(place) = place(name, *range)
            && shown.len() <= MAX_CALLERS
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
    Diagnostic::new(Code::OutOfFuel, format!("the template exceeded {fuel} steps")).hint(Hint::run(
        "look for a loop that runs too often, or raise `limits.fuel` in cuebook.toml, and grant it",
        "cuebook allow",
    ))
}

/// A render took more time than it may.
fn out_of_time(late: OutOfTime) -> Diagnostic {
    Diagnostic::new(Code::OutOfFuel, late.to_string()).hint(Hint::run(
        "look for a loop that runs too often, or raise `limits.render_seconds` in cuebook.toml, and grant it",
        "cuebook allow",
    ))
}

/// A template of a render that has no time left.
pub(in crate::template) fn too_late(main: &Source, late: OutOfTime) -> Error {
    Error::new(ErrorKind::Limit, out_of_time(late).file(main.name()))
}

fn translate(template: &Template, values: Values<'_>, error: &EngineError) -> (ErrorKind, Diagnostic) {
    let settings = &template.settings;
    if let Some(late) = error.cause().and_then(|cause| cause.0.downcast_ref::<OutOfTime>()) {
        return (ErrorKind::Limit, out_of_time(*late));
    }
    match error.exceeded() {
        Some(Exceeded::Fuel) => return (ErrorKind::Limit, out_of_fuel(settings.fuel)),
        Some(Exceeded::Depth) => {
            let message = format!("templates or macros are nested more than {} deep", settings.recursion);
            let message =
                if error.message().starts_with("macros") { message } else { error.message().to_owned() };
            let hint = Hint::run(
                "look for a macro or include that calls itself, or raise `limits.recursion` in cuebook.toml, and grant it",
                "cuebook allow",
            );
            return (ErrorKind::Limit, Diagnostic::new(Code::TooDeep, message).hint(hint));
        }
        Some(_) => {
            let hint = Hint::run(
                "if the template needs it, raise `limits.string_bytes` or `limits.items` in cuebook.toml, and grant it",
                "cuebook allow",
            );
            return (ErrorKind::Limit, Diagnostic::new(Code::ValueTooLarge, error.message()).hint(hint));
        }
        None => {}
    }
    let message = error.message();
    let found = match error.kind() {
        Engine::Undefined => {
            let near = error.undefined().map(|name| {
                let known = values.names();
                nearest(name, known.iter().map(String::as_str))
            });
            let near = near.and_then(|near| did_you_mean(&near));
            let own = error.hint().map(str::to_owned);
            let hint = own.or(near).unwrap_or_else(|| {
                "give the variable a value or a default, or guard the place with `{% if … is defined %}`"
                    .to_owned()
            });
            Diagnostic::new(Code::UndefinedValue, message).hint(hint)
        }
        Engine::TemplateNotFound => {
            let name = message.split('`').nth(1).unwrap_or(message);
            let hint = "the template computes this name: paths are relative to the prompts' folder, as in \
                 `partials/safety_rules.md`";
            Diagnostic::new(Code::MissingInclude, format!("no template `{name}` found")).hint(hint)
        }
        Engine::Unknown => {
            Diagnostic::new(Code::UnknownFilter, message).hint_opt(error.hint().map(str::to_owned))
        }
        _ => {
            let hint = error.hint().unwrap_or("check the values used here");
            Diagnostic::new(Code::RenderFailed, message).hint(hint)
        }
    };
    (ErrorKind::PromptRender, found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::jinja::Settings;

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
        let reported = syntax_error(&text);
        assert!(
            reported.contains("nest too deeply here [CB505]") && reported.contains("and include it"),
            "{reported}"
        );
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
    fn common_mistakes_get_a_hint() {
        for (text, hint) in [
            ("{{ name }", "close the expression with `}}`"),
            ("{{ name", "close the expression with `}}`"),
            ("{{ a b }}", "add an operator or `|` between the two values"),
            ("{% inclde 'x' %}", "did you mean `include`?"),
            ("{% for a of b %}{% endfor %}", "write `{% for item in items %}`"),
            ("{{ a | }}", "something is missing before the end of the tag"),
            ("{% include %}", "something is missing before the end of the tag"),
            ("{{ 'a }}", "close the string"),
            ("{# a", "close the comment"),
            ("{% raw %}a", "add `{% endraw %}`"),
            ("{% if a = b %}x{% endif %}", "use `==` to compare"),
            ("{{ a | default \"b\" }}", "write a filter's arguments in parentheses: `default(…)`"),
            ("{{ a | join: ', ' }}", "write a filter's arguments in parentheses: `join(…)`"),
            ("{{ a | truncate 9 }}", "write a filter's arguments in parentheses: `truncate(…)`"),
            ("{{ a || b }}", "write `or` instead of `||`"),
            ("{{ a && b }}", "write `and` instead of `&&`"),
            ("{% if !a %}x{% endif %}", "write `not` instead of `!`"),
            ("{{ a ? b : c }}", "write `A if CONDITION else B`"),
            ("{% if a %}{% else if b %}{% endif %}", "write `{% elif … %}`"),
            ("{% if a %}{% elseif b %}{% endif %}", "write `{% elif … %}`"),
            ("{% if a %}{% end if %}", "write `{% endif %}`, as one word"),
        ] {
            let shown = syntax_error(text);
            assert!(shown.contains(hint), "{text}\n{shown}");
        }
    }
}
