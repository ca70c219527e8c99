//! Attributed text as messages: the projection that a model is spoken to with.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Map, Value as Json};

use super::Rendered;
pub use crate::chat::MARKS;
use crate::chat::wire::{self, Api, Payload, Request, Wire};
use crate::chat::{self, Message, ParseOptions, Part, Role, Run};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, Severity};
use crate::notation::directive;
use crate::template::sink::{Piece, Writer};
use crate::template::unit::Emission;
use crate::trace::{self, span};

/// The provider of a prompt that names none, as in Prompty.
pub const DEFAULT_PROVIDER: &str = "openai";

/// The parser of text whose lines begin messages.
pub const PARSER: &str = "prompty";

impl Rendered {
    /// The text as messages: roles, parts, conversations put in. A prompt without roles is one message of the system,
    /// and a directive one of the user.
    pub fn messages(&self) -> Result<Vec<Message>> {
        let span = span!("parse", "cuebook.parse", self.prompt().id.as_str());
        let _entered = span.enter();
        let messages = self.parse();
        let mut secrets = trace::secrets(&span, || self.scope().given().to_json());
        trace::keep_secret(&span, &mut secrets, self.prompt().secrets());
        trace::outcome(&span, secrets, &messages, |messages| messages.iter().map(Message::to_json).collect());
        messages
    }

    /// The messages as an interface is sent them, and whether what the system says is sent as the user's.
    pub fn messages_for(&self, api: Api) -> Result<(Vec<Message>, bool)> {
        let mut messages = self.messages()?;
        let is_plain = self.prompt().format.parser.is_none();
        let is_system = |message: &Message| message.role == Role::System;
        let spoken_by_user = is_plain && api.needs_a_question() && messages.iter().all(is_system);
        if spoken_by_user {
            // Where the system alone cannot be answered, the user says it.
            messages.iter_mut().for_each(|message| message.role = Role::User);
        }
        Ok((messages, spoken_by_user))
    }

    fn parse(&self) -> Result<Vec<Message>> {
        let mut messages = self.parse_text()?;
        if let Some(message) = &self.scope().context().message {
            messages.push(Message::text(Role::User, message));
        }
        Ok(messages)
    }

    fn parse_text(&self) -> Result<Vec<Message>> {
        let format = &self.prompt().format;
        match format.parser.as_deref() {
            None => {
                self.refuse_changed_roles()?;
                Ok(self.parts().into_iter().map(|(role, range)| self.part(role, range)).collect())
            }
            Some(key) if key == PARSER || (key == MARKS && !self.prompt().dialect.has_roles) => {
                self.refuse_changed_roles()?;
                let options = ParseOptions::of(format);
                let messages = match self.has_plain_runs(&options) {
                    true => {
                        let parts = self.ranges();
                        let is_value = |writer: Writer| matches!(writer, Writer::Value { .. });
                        let parts = parts.map(|(range, piece)| (range, !is_value(piece.writer)));
                        chat::parse_plain(self.text(), parts, &options)?
                    }
                    false => chat::parse(self.text(), &self.runs(), &options)?,
                };
                chat::insert_history(messages, &format.parser_options, self.scope().rich_inputs())
            }
            Some(other) => {
                let message = format!("no parser is registered for the key `{other}`");
                let diagnostic = Diagnostic::new(Code::UnknownEngine, message)
                    .hint(format!("write `{PARSER}`, the only parser"));
                let diagnostic = match &format.parser_place {
                    Some(place) => diagnostic.at(place.clone()),
                    None => diagnostic,
                };
                Err(Error::new(ErrorKind::Invoker, diagnostic).with("key", other).with("known", [PARSER]))
            }
        }
    }

    /// The messages of a text without role markers. A template or a tree is the system's. A directive is something to do, so the
    /// user says it; what the system says before it ends with a frame of the engine.
    fn parts(&self) -> Vec<(Role, Range<usize>)> {
        let all = 0..self.text().len();
        if !self.prompt().dialect.is_request {
            return vec![(Role::System, all)];
        }
        match self.framed(directive::SYSTEM) {
            Some(end) => vec![(Role::System, 0..end.start), (Role::User, end.end..all.end)],
            None => vec![(Role::User, all)],
        }
    }

    fn part(&self, role: Role, range: Range<usize>) -> Message {
        let value = self.text()[range.clone()].to_owned();
        Message { role, parts: vec![Part::Text { value, ranges: vec![range] }], metadata: Map::new() }
    }

    /// The request that says this to a model, for the prompt's own provider. The model is the one that the render was for, if that was
    /// said, and else the prompt's own.
    ///
    /// # Errors
    ///
    /// `CB602` for an unknown provider, `CB603` and `CB604` for what the provider does not accept.
    pub fn wire(&self) -> Result<Wire> {
        self.wire_with(None)
    }

    /// The same for a provider or a format by its name, such as `openai` or `openai-responses`.
    pub fn wire_as(&self, format: &str) -> Result<Wire> {
        self.wire_with(Some(format))
    }

    /// The same for an interface.
    pub fn wire_for(&self, api: Api) -> Result<Wire> {
        self.wire_with(Some(api.as_str()))
    }

    fn wire_with(&self, format: Option<&str>) -> Result<Wire> {
        self.prepare(
            |wire: &Wire| wire.body.clone(),
            || {
                let (mut wire, note) = self.say(format, wire::body)?;
                wire.notes.extend(note);
                Ok(wire.with_output(self.output().cloned()))
            },
        )
    }

    /// The body as the bytes that are sent, for a program that sends them: nothing else is made on the way.
    pub fn payload_as(&self, format: &str) -> Result<Payload> {
        let reported = |payload: &Payload| serde_json::from_slice(&payload.bytes).unwrap_or_default();
        self.prepare(reported, || {
            let (mut payload, note) = self.say(Some(format), wire::payload)?;
            payload.notes.extend(note);
            Ok(payload)
        })
    }

    /// Does the step, and reports it to listeners.
    fn prepare<T>(&self, reported: impl FnOnce(&T) -> Json, step: impl FnOnce() -> Result<T>) -> Result<T> {
        let span = span!("prepare", "cuebook.prepare", self.prompt().id.as_str());
        let _entered = span.enter();
        let outcome = step();
        let mut secrets = trace::secrets(&span, || self.scope().given().to_json());
        trace::keep_secret(&span, &mut secrets, self.prompt().secrets());
        trace::outcome(&span, secrets, &outcome, reported);
        outcome
    }

    /// What `write` makes of the messages, and what is to be noted besides.
    fn say<T>(
        &self,
        format: Option<&str>,
        write: impl FnOnce(Api, &Request<'_>) -> Result<T>,
    ) -> Result<(T, Option<Diagnostic>)> {
        let prompt = self.prompt();
        let mut model = prompt.model.as_ref().map_or_else(Cow::default, Cow::Borrowed);
        if let Some(id) = self.scope().model() {
            model.to_mut().id = id.to_owned();
        }
        let provider = format.or(model.provider.as_deref()).unwrap_or(DEFAULT_PROVIDER);
        let api = Api::choose(provider, model.api_type.as_deref()).map_err(|error| {
            match &model.provider_place {
                Some(place) if format.is_none() => error.map(|finding| finding.at(place.clone())),
                _ => error,
            }
        })?;
        let (messages, spoken_by_user) = self.messages_for(api)?;
        let (tools, outputs) = (self.tools(), &prompt.outputs);
        let note = spoken_by_user.then(|| {
            let message = format!("the prompt is sent as a user message, because {} needs one", api.title());
            let hint =
                "a program with a question sends the text as the system message, and the question after it";
            Diagnostic::new(Code::UnsupportedContent, message).severity(Severity::Note).hint(hint)
        });
        let request = Request { model: &model, messages: &messages, tools: &tools, outputs };
        Ok((write(api, &request)?, note))
    }

    /// Whether nothing but an author's lines tells where messages begin, and no part of a message stands for anything.
    fn has_plain_runs(&self, options: &ParseOptions) -> bool {
        let has_rich_inputs = || self.scope().rich_inputs().next().is_some();
        let is_of_hook = |piece: &Piece| matches!(piece.writer, Writer::Hook { .. });
        let is_general = options.marked || options.roles_of_values || self.pieces().iter().any(is_of_hook);
        !is_general && !has_rich_inputs()
    }

    fn runs(&self) -> Vec<Run<'_>> {
        self.emitted().map(|(range, writer, emission)| self.run(range, writer, emission)).collect()
    }

    /// The roles that the author's markers begin, in order.
    pub(super) fn marked_roles(&self) -> Vec<Role> {
        let format = &self.prompt().format;
        match format.parser {
            None => self.parts().into_iter().map(|(role, _)| role).collect(),
            Some(_) => chat::marked_roles(self.text(), &self.runs(), &ParseOptions::of(format)),
        }
    }

    /// A hook returns a string, and whose text it is has to be found by comparing; where that leaves a marker in doubt, a
    /// message would change hands without anybody noticing.
    fn refuse_changed_roles(&self) -> Result<()> {
        let Some(before) = self.roles_before_hooks() else { return Ok(()) };
        let now = self.marked_roles();
        if before == now {
            return Ok(());
        }
        let list = |roles: &[Role]| match roles.is_empty() {
            true => "none".to_owned(),
            false => roles.iter().map(Role::as_str).collect::<Vec<_>>().join(", "),
        };
        let hook = self.last_editor().map_or("a hook", |editor| editor.function);
        let message = format!(
            "`{hook}` changed the roles of the text: they were {}, and would be {}",
            list(before),
            list(&now)
        );
        let diagnostic = Diagnostic::new(Code::HookReturn, message)
            .file(self.prompt().template.name())
            .hint("leave role lines unchanged in the hook; adding text before or after is safe");
        Err(Error::new(ErrorKind::Hook, diagnostic))
    }

    fn run(&self, range: std::ops::Range<usize>, writer: Writer, emission: Option<&Emission>) -> Run<'_> {
        let literal = writer.is_author() || matches!(writer, Writer::Frame { .. });
        let rich = match emission {
            Some(emission) => {
                self.scope().rich_inputs().filter(|input| emission.can_show(&input.name)).collect()
            }
            // A hook may have moved a nonce, which still stands for what it stood for.
            None if matches!(writer, Writer::Hook { .. }) => self.scope().rich_inputs().collect(),
            None => Vec::new(),
        };
        let hook = matches!(writer, Writer::Hook { .. });
        let role = match (writer, emission) {
            (Writer::Value { unit, .. }, Some(emission)) => {
                let tag = self.units().get(unit).0.source().text().get(emission.range.clone());
                tag.is_some_and(is_role_lookup)
            }
            _ => false,
        };
        let mark = match writer {
            Writer::Frame { frame } => self.units().frame(frame).and_then(|frame| chat::mark_of(frame.name)),
            _ => None,
        };
        Run { range, literal, hook, role, mark, rich }
    }
}

/// Whether a tag only looks a role up, as `{{ role }}` and `{{ item.role }}` do.
fn is_role_lookup(tag: &str) -> bool {
    let inside = tag.strip_prefix("{{").and_then(|tag| tag.strip_suffix("}}")).unwrap_or_default();
    let path = inside.trim_start_matches(['-', '+']).trim_end_matches(['-', '+']).trim();
    let is_path =
        path.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '[' | ']'));
    is_path && (path == "role" || path.ends_with(".role"))
}
