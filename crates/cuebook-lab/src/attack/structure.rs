//! What must stay as it is, whatever a value says.

use crate::chat::{self, Message, ParseOptions, Run};
use crate::error::Result;
use crate::render::{Origin, PARSER, Rendered};
use crate::source::Place;

/// The structure of a rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Structure {
    /// Who speaks, in which parts, with which attributes.
    pub(super) messages: Vec<String>,
    /// The sections, and what is shown of each.
    pub(super) sections: Vec<String>,
    /// What a model may call.
    pub(super) tools: Vec<String>,
    /// What authors and the engine wrote, by section, without the values between.
    pub(super) written: Vec<FixedText>,
}

/// A stretch of text that no value wrote.
#[derive(Debug, Clone)]
pub(super) struct FixedText {
    pub(super) text: String,
    pub(super) section: Option<String>,
    /// Whether an author wrote it, and not the engine.
    pub(super) authored: bool,
    pub(super) place: Option<Place>,
}

impl PartialEq for FixedText {
    fn eq(&self, other: &FixedText) -> bool {
        // Where a stretch begins may differ with the pieces that it was written in.
        (&self.text, &self.section, self.authored) == (&other.text, &other.section, other.authored)
    }
}

impl Eq for FixedText {}

/// A difference between two structures.
pub(super) struct Difference {
    /// What is different.
    pub(super) what: &'static str,
    pub(super) before: String,
    pub(super) after: String,
    pub(super) place: Option<Place>,
}

impl Structure {
    pub(super) fn of(rendered: &Rendered) -> Result<Structure> {
        let disclosed = rendered.sections();
        let sections = disclosed.iter().flat_map(|disclosed| &disclosed.sections);
        Ok(Structure {
            messages: shapes(&rendered.messages()?),
            sections: sections
                .map(|section| format!("{} ({})", section.path.join("."), section.state.as_str()))
                .collect(),
            tools: rendered.tools().iter().map(|tool| tool.name.clone()).collect(),
            written: written(rendered),
        })
    }

    /// The first difference between this structure and a later one.
    pub(super) fn difference(&self, now: &Structure) -> Option<Difference> {
        let lists = [
            ("the messages", &self.messages, &now.messages),
            ("the sections", &self.sections, &now.sections),
            ("the tools", &self.tools, &now.tools),
        ];
        let place = || {
            let mut pairs = self.written.iter().zip(&now.written);
            let pair = pairs.find(|(before, after)| before != after);
            pair.and_then(|(before, after)| after.place.clone().or_else(|| before.place.clone()))
        };
        for (what, before, after) in lists {
            if before != after {
                let (before, after) = (listed(before), listed(after));
                return Some(Difference { what, before, after, place: place() });
            }
        }
        if self.written == now.written {
            return None;
        }
        let at = self.written.iter().zip(&now.written).take_while(|(before, after)| before == after).count();
        let shown = |written: Option<&FixedText>| {
            written.map_or("nothing".to_owned(), |written| excerpt(&written.text))
        };
        Some(Difference {
            what: "the authors' text",
            before: shown(self.written.get(at)),
            after: shown(now.written.get(at)),
            place: place(),
        })
    }
}

/// What messages are, whatever they say.
fn shapes(messages: &[Message]) -> Vec<String> {
    let shape = |message: &Message| {
        let parts: Vec<&str> = message.parts.iter().map(|part| part.kind()).collect();
        let mut shape = message.role.as_str().to_owned();
        if parts != ["text"] {
            shape.push_str(&format!(" ({})", parts.join(", ")));
        }
        let attributes: Vec<&str> = message.metadata.keys().map(String::as_str).collect();
        if !attributes.is_empty() {
            shape.push_str(&format!(" [{}]", attributes.join(", ")));
        }
        shape
    };
    messages.iter().map(shape).collect()
}

fn written(rendered: &Rendered) -> Vec<FixedText> {
    let mut all: Vec<FixedText> = Vec::new();
    for span in rendered.spans() {
        let authored = match &span.origin {
            Origin::Literal { .. } => true,
            // A fence has the tag that its content cannot close; `tags` looks at that.
            Origin::Frame { name } if name == "fence" => continue,
            Origin::Frame { .. } => false,
            Origin::Value { .. } | Origin::Rich { .. } | Origin::Hook { .. } => continue,
        };
        let text = &rendered.text()[span.range];
        let section = span.section.as_deref();
        match all.last_mut() {
            Some(last) if last.authored == authored && last.section.as_deref() == section => {
                last.text.push_str(text);
            }
            _ => all.push(FixedText {
                text: text.to_owned(),
                section: section.map(str::to_owned),
                authored,
                place: span.origin.place(),
            }),
        }
    }
    all
}

/// The messages of the same text with a plain word in the place of every value, read as if an author had written all of it. This
/// is another way to the same answer: it knows nothing of who wrote what. What a hook wrote keeps its lines and begins no message.
/// `None` where values are more than text, or lines begin no messages.
pub(super) fn without_values(rendered: &Rendered) -> Option<Result<Vec<String>>> {
    rendered.prompt().format.parser.as_deref().filter(|parser| *parser == PARSER)?;
    let mut text = String::new();
    for span in rendered.spans() {
        match span.origin {
            Origin::Literal { .. } | Origin::Frame { .. } => text.push_str(&rendered.text()[span.range]),
            Origin::Value { .. } => text.push('v'),
            Origin::Hook { .. } => text.push_str(match &rendered.text()[span.range] {
                written if written.ends_with('\n') => "v\n",
                written if written.contains('\n') => "v\nv",
                _ => "v",
            }),
            Origin::Rich { .. } => return None,
        }
    }
    let whole =
        Run { range: 0..text.len(), literal: true, hook: false, role: false, mark: None, rich: Vec::new() };
    let ways = ParseOptions::of(&rendered.prompt().format);
    Some(chat::parse(&text, &[whole], &ways).map(|messages| shapes(&messages)))
}

/// A literal whose bytes are not those of its file.
pub(super) fn false_literal(rendered: &Rendered) -> Option<(String, Place)> {
    rendered.spans().find_map(|span| match &span.origin {
        Origin::Literal { source, range, changed: false } => {
            let text = &rendered.text()[span.range];
            let is_true = source.text().get(range.clone()) == Some(text);
            (!is_true).then(|| (text.to_owned(), source.place(range.clone())))
        }
        _ => None,
    })
}

/// A place where a word of a value is attributed to another origin than its variable: the attribution.
pub(super) fn false_value(
    rendered: &Rendered,
    word: &str,
    variable: &str,
) -> Option<(String, Option<Place>)> {
    rendered.text().match_indices(word).find_map(|(at, _)| {
        let span = rendered.span_at(at)?;
        let is_true = match &span.origin {
            Origin::Value { shown, .. } => {
                shown.iter().any(|shown| shown.path.split(['.', '[']).next() == Some(variable))
            }
            Origin::Rich { input, .. } => input == variable,
            Origin::Hook { .. } => true,
            Origin::Literal { .. } | Origin::Frame { .. } => false,
        };
        (!is_true).then(|| (describe(&span.origin), span.origin.place()))
    })
}

/// Who wrote something, in a few words.
fn describe(origin: &Origin) -> String {
    match origin {
        Origin::Literal { .. } => "an author".to_owned(),
        Origin::Value { shown, .. } if shown.is_empty() => "no variable".to_owned(),
        Origin::Value { shown, .. } => {
            let paths: Vec<&str> = shown.iter().map(|shown| shown.path.as_str()).collect();
            paths.join(", ")
        }
        Origin::Rich { input, .. } => format!("the {} `{input}`", origin.kind()),
        Origin::Hook { function, .. } => function.clone(),
        Origin::Frame { name } => format!("the engine ({name})"),
    }
}

fn listed(list: &[String]) -> String {
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}

/// The beginning of a text, in quotes.
pub(super) fn excerpt(text: &str) -> String {
    const MAX: usize = 120;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{:?}… ({} bytes)", &text[..end], text.len()),
        None => format!("{text:?}"),
    }
}
