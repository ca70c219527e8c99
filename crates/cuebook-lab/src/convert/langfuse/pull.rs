//! A prompt of Langfuse as a `.prompty` file.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use super::{
    COLON, LANGFUSE_FILE, LangfuseContent, LangfuseMessage, LangfusePrompt, MODEL, NUMBERS, PROVIDER, STOP,
};
use super::{bad, is_variable};
use crate::chat::Roles;
use crate::convert::OutFile;
use crate::convert::draft::Piece;
use crate::convert::notation::yaml;
use crate::convert::target_text::{Jinja, SyntaxLines, is_marker, lines};
use crate::error::Result;
use crate::library::PROMPTY_END;
use crate::template::jinja::parts::is_name;
use crate::template::parts::MissingValue;

const JINJA: Jinja<'static> =
    Jinja { guard: SyntaxLines::Nothing, blocks_are_safe: true, kept: &[], forced: &[] };

impl LangfusePrompt {
    /// Its files in the folder of a prompt, and notes on what is different there. All of its text is literal but `{{name}}`, so that
    /// it can neither begin a message nor run code.
    ///
    /// # Errors
    ///
    /// `CB246` if a variable has a name that templates reserve.
    pub fn to_files(&self, id: &str) -> Result<(Vec<OutFile>, Vec<String>)> {
        let mut writing = Writing::default();
        let mut body = String::new();
        match &self.content {
            LangfuseContent::Text(text) => writing.text(text, "the text", &mut body)?,
            LangfuseContent::Chat(messages) => {
                for (index, message) in messages.iter().enumerate() {
                    match message {
                        LangfuseMessage::Message { role, content } => {
                            body.push_str(&format!("{}:\n", role.as_str()));
                            writing.text(content, &format!("message {}", index + 1), &mut body)?;
                            body.push_str("\n\n");
                        }
                        LangfuseMessage::Placeholder(name) => {
                            check(name)?;
                            body.push_str(&format!("{{{{ {name} }}}}\n\n"));
                            writing.threads.insert(name.clone());
                        }
                    }
                }
                body.truncate(body.len() - 1);
            }
        }
        let (model, rest) = self.model();
        let mut front = Map::new();
        let name = if is_plain(&self.name) { &self.name } else { id };
        front.insert("name".into(), json!(name));
        if let Some(version) = self.version {
            front.insert("metadata".into(), json!({"version": version.to_string()}));
        }
        if !model.is_empty() {
            front.insert("model".into(), Json::Object(model));
        }
        let inputs = writing.inputs()?;
        if !inputs.is_empty() {
            front.insert("inputs".into(), Json::Object(inputs));
        }
        let text = format!("---\n{}---\n{body}", yaml(&front));
        let mut files = vec![OutFile { path: format!("{id}{PROMPTY_END}"), text }];
        if !rest.is_empty() {
            let text = format!("{:#}\n", Json::Object(rest));
            files.push(OutFile { path: LANGFUSE_FILE.to_owned(), text });
        }
        Ok((files, writing.notes))
    }

    /// The model of the configuration in the words of a `.prompty` file, and the rest. Nothing else of a configuration takes effect: it
    /// could name another server.
    fn model(&self) -> (Map<String, Json>, Map<String, Json>) {
        let mut rest = self.config.clone();
        let mut take = |key: &str, fits: &dyn Fn(&Json) -> bool| match rest.get(key) {
            Some(value) if fits(value) => rest.shift_remove(key),
            _ => None,
        };
        let (mut model, mut options) = (Map::new(), Map::new());
        for (key, name) in [(MODEL, "id"), (PROVIDER, "provider")] {
            if let Some(value) = take(key, &|value| value.as_str().is_some_and(is_model)) {
                model.insert(name.into(), value);
            }
        }
        for (key, name) in NUMBERS {
            if let Some(value) = take(key, &Json::is_number) {
                options.insert(name.into(), value);
            }
        }
        let is_list = |value: &Json| {
            let texts = value.as_array().filter(|list| !list.is_empty());
            texts.is_some_and(|list| list.iter().all(|text| text.as_str().is_some_and(is_plain)))
        };
        if let Some(value) = take(STOP.0, &is_list) {
            options.insert(STOP.1.into(), value);
        }
        if !options.is_empty() {
            model.insert("options".into(), Json::Object(options));
        }
        (model, rest)
    }
}

/// Whether a text can be the id of a model or of a provider.
fn is_model(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"-_.:/@".contains(&letter))
}

/// Whether front matter reads a text as itself: `${env:NAME}` is a reference there.
fn is_plain(text: &str) -> bool {
    !text.contains("${")
}

/// A name that the template of a file can read.
fn check(name: &str) -> Result<()> {
    match is_name(name) && name != COLON {
        true => Ok(()),
        false => Err(bad(format!("the variable `{name}` has a name that templates reserve"))),
    }
}

/// What the messages that are written so far need.
#[derive(Default)]
struct Writing {
    names: BTreeSet<String>,
    threads: BTreeSet<String>,
    has_colon: bool,
    notes: Vec<String>,
}

impl Writing {
    /// Writes a text so that only its variables are more than text.
    fn text(&mut self, text: &str, of: &str, out: &mut String) -> Result<()> {
        // Every line end of a file is read as `\n`, so a text is looked at as it will be read.
        let text = &text.replace("\r\n", "\n").replace('\r', "\n");
        let mut pieces = Vec::new();
        for piece in split(text) {
            match piece {
                Part::Text(text) => pieces.push(Piece::Text(text.to_owned())),
                Part::Tag(tag) => {
                    self.notes.push(format!("`{tag}` in {of} stays text: it is not the name of a variable"));
                    pieces.push(Piece::Text(tag.to_owned()));
                }
                Part::Variable(name) => {
                    check(name)?;
                    self.names.insert(name.to_owned());
                    pieces.push(Piece::Value { name: name.to_owned(), absent: MissingValue::Nothing });
                }
            }
        }
        if text.starts_with('\n') || text.ends_with('\n') {
            self.notes.push(format!("newlines around {of} are left out: no message has them"));
        }
        let pieces = self.without_markers(&joined(pieces));
        JINJA.pieces(&pieces, 0, out);
        Ok(())
    }

    /// The pieces with a value in the place of the colon of each line that would begin a message.
    fn without_markers(&mut self, pieces: &[Piece]) -> Vec<Piece> {
        let mut all = Vec::new();
        for (number, mut line) in lines(pieces).into_iter().enumerate() {
            if number > 0 {
                all.push(Piece::Text("\n".to_owned()));
            }
            if is_marker(&line, &Roles::default())
                && let Some(Piece::Text(last)) = line.last_mut()
                && let Some(at) = last.rfind(':')
            {
                let rest = last.split_off(at);
                line.push(Piece::Value { name: COLON.to_owned(), absent: MissingValue::Nothing });
                line.push(Piece::Text(rest[1..].to_owned()));
                self.has_colon = true;
            }
            all.extend(line);
        }
        joined(all)
    }

    /// The inputs, by name.
    fn inputs(&self) -> Result<Map<String, Json>> {
        if let Some(name) = self.names.intersection(&self.threads).next() {
            return Err(bad(format!("`{name}` is a variable and a placeholder")));
        }
        let name = |name: &String| (name.clone(), json!({"kind": "string", "required": true}));
        let thread = |name: &String| (name.clone(), json!({"kind": "thread"}));
        let colon = self.has_colon.then(|| {
            let why = "Keeps a line that is only text from beginning a message";
            (COLON.to_owned(), json!({"kind": "string", "description": why, "default": ":"}))
        });
        Ok(self.names.iter().map(name).chain(self.threads.iter().map(thread)).chain(colon).collect())
    }
}

/// Text beside text becomes one piece: what is syntax depends on its neighbours.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut all: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (all.last_mut(), piece) {
            (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
            (_, piece) => all.push(piece),
        }
    }
    all
}

enum Part<'t> {
    Text(&'t str),
    /// Braces with something else than a name between them.
    Tag(&'t str),
    Variable(&'t str),
}

/// Splits a text at its tags, as Langfuse does: from two braces to the next two.
fn split(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("{{").map(|at| from + at) {
        let Some(end) = text[start..].find("}}").map(|at| start + at) else { break };
        let name = text[start + 2..end].trim();
        parts.push(Part::Text(&text[from..start]));
        parts.push(match is_variable(name) {
            true => Part::Variable(name),
            false => Part::Tag(&text[start..end + 2]),
        });
        from = end + 2;
    }
    parts.push(Part::Text(&text[from..]));
    parts
}
