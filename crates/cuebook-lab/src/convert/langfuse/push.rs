//! A prompt as one of Langfuse. What Langfuse cannot express is refused, with its place.

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::{
    COLON, LANGFUSE_FILE, LangfuseContent, LangfuseMessage, LangfusePrompt, MODEL, NUMBERS, PROVIDER, STOP,
};
use crate::book::Book;
use crate::chat::{Marker, Role, Roles};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use crate::files;
use crate::library::Config;
use crate::prepared::Prepared;
use crate::prompt::{Model, PROMPTY, Prompt, Rich, TEMPLATE};
use crate::source::{Place, Source};
use crate::template::parts::{MissingValue, NotPlain, TemplatePart};
use crate::template::{jinja, mustache};
use crate::variables::{Context, UnknownVariables};

/// The deepest Mustache sections, none of which can be pushed.
const DEEPEST: usize = 500;
/// Bytes of the kept configuration.
const MAX_CONFIG: u64 = 1 << 20;

impl LangfusePrompt {
    /// A prompt of a book under a name of Langfuse.
    ///
    /// # Errors
    ///
    /// `CB517` if the prompt has something that Langfuse cannot express: a condition, a loop, a filter, a default, a tool and so on.
    /// Each of them is named with its place.
    pub fn of(book: &Book, prompt_id: &str, name: &str) -> Result<LangfusePrompt> {
        let context =
            Context { without_hooks: true, unknown: UnknownVariables::Ignore, ..Context::default() };
        let context = book.complete(&context)?;
        let prepared = book.prepare(prompt_id, &context)?;
        prepared.verify()?;
        let prompt = prepared.prompt();
        if ![&PROMPTY, &TEMPLATE].contains(&prompt.dialect) {
            let message = format!("a prompt of the dialect `{}` cannot be pushed", prompt.dialect.name);
            let hint = Hint::run("convert it first", format!("cuebook convert {prompt_id} --to prompty"));
            let diagnostic = Diagnostic::new(Code::CannotConvert, message).file(&prompt.source).hint(hint);
            return Err(Error::new(ErrorKind::PromptRead, diagnostic));
        }
        let mut found = Refusals::default();
        found.around_the_text(prompt);
        let config = book.library().config()?;
        let parts = found.parts(prompt, &config)?;
        let content = found.content(prompt, parts);
        let config = found.config(&prepared)?;
        match found.0.is_empty() {
            true => Ok(LangfusePrompt { name: name.to_owned(), version: None, content, config }),
            false => Err(Error::all(ErrorKind::PromptRead, found.0).with("prompt_id", &prompt.id)),
        }
    }
}

/// What Langfuse cannot express.
#[derive(Default)]
struct Refusals(Vec<Diagnostic>);

impl Refusals {
    fn add(&mut self, what: impl std::fmt::Display, place: Option<Place>, prompt: &Prompt, hint: &str) {
        let message = format!("the prompt has {what}, but Langfuse has no equivalent");
        let diagnostic = Diagnostic::new(Code::CannotConvert, message).hint(hint);
        self.0.push(match place {
            Some(place) => diagnostic.at(place),
            None => diagnostic.file(&prompt.source),
        });
    }

    fn around_the_text(&mut self, prompt: &Prompt) {
        for hook in &prompt.hooks {
            let what = format!("the hook `{}`", hook.name);
            self.add(what, Some(hook.place.clone()), prompt, "call its code in your program");
        }
        for tool in prompt.tools.iter() {
            let what = format!("the tool `{}`", tool.name);
            self.add(what, tool.place.clone(), prompt, "give the tool to the model in your program");
        }
        for output in &prompt.outputs {
            let what = format!("the output `{}`", output.name);
            self.add(what, output.place.clone(), prompt, "describe the answer in the text");
        }
        let Some(model) = &prompt.model else { return };
        let place = || model.provider_place.clone();
        if model.connection.is_some() {
            self.add("a connection", place(), prompt, "remove `connection`: pass it where the prompt runs");
        }
        if let Some(kind) = model.api_type.as_deref().filter(|kind| *kind != "chat") {
            self.add(format!("the interface `{kind}`"), place(), prompt, "remove `apiType`");
        }
    }

    /// The text as words and names; nothing, after a refusal, if it is more.
    fn parts(&mut self, prompt: &Prompt, config: &Config) -> Result<Vec<TemplatePart>> {
        let source = &prompt.template;
        let settings = config.template_settings(false);
        let is_prompty = *prompt.dialect == PROMPTY;
        let settings = if is_prompty { settings.portable() } else { settings };
        let read = match prompt.format.engine.as_str() {
            "mustache" => {
                let escape = prompt.format.options.get("escape") != Some(&Json::Bool(false));
                mustache::parts::parts(source, DEEPEST, escape)?
            }
            "jinja2" | "jinja" | "nunjucks" => {
                jinja::parts::parts(source.text(), &settings).map(|found| found.parts)
            }
            other => {
                let what = format!("the template engine `{other}`");
                self.add(what, prompt.format.engine_place.clone(), prompt, "write the text in jinja2");
                return Ok(Vec::new());
            }
        };
        Ok(read.unwrap_or_else(|NotPlain { range, what }| {
            let hint = "remove it, or render the text and push the result";
            self.add(what, Some(source.place(range)), prompt, hint);
            Vec::new()
        }))
    }

    fn content(&mut self, prompt: &Prompt, parts: Vec<TemplatePart>) -> LangfuseContent {
        let roles = match *prompt.dialect == PROMPTY {
            true => Some(Roles::of(&prompt.format.parser_options)),
            false => None,
        };
        let mut messages = Messages::new();
        for line in self.lines(prompt, parts) {
            let atoms = line.iter().map(|atom| (atom.is_literal, atom.text.as_str()));
            let role = roles.as_ref().and_then(|roles| Marker::role_of(atoms, roles));
            match role {
                Some(role) => {
                    if let Some(atom) = line.iter().find(|atom| atom.text.contains('[')) {
                        let hint = "remove the brackets";
                        self.add("attributes of a message", Some(atom.place.clone()), prompt, hint);
                    }
                    messages.begin(role);
                }
                None => messages.line(&line),
            }
        }
        messages.finish(*prompt.dialect == PROMPTY)
    }

    /// The lines that the author wrote.
    fn lines(&mut self, prompt: &Prompt, parts: Vec<TemplatePart>) -> Vec<Vec<Atom>> {
        let source = &prompt.template;
        let mut lines: Vec<Vec<Atom>> = vec![Vec::new()];
        for part in parts {
            match part {
                TemplatePart::Text { text, range } => {
                    if let Some(at) = text.find("{{") {
                        let place = source.place(at_in(source, &range, at, &text));
                        let hint = "write one brace: Langfuse has no way to escape two";
                        self.add("two braces as text", Some(place), prompt, hint);
                    }
                    // Text in a tag counts as a value when roles are read, and its newlines end no line.
                    let is_literal = source.text().get(range.clone()) == Some(text.as_str());
                    let pieces = if is_literal { text.split('\n').collect() } else { vec![text.as_str()] };
                    for (index, piece) in pieces.into_iter().enumerate() {
                        if index > 0 {
                            lines.push(Vec::new());
                        }
                        if let Some(line) = lines.last_mut().filter(|_| !piece.is_empty()) {
                            let place = source.place(range.clone());
                            line.push(Atom { is_literal, text: piece.to_owned(), thread: None, place });
                        }
                    }
                }
                TemplatePart::Value { name, absent, escaped, range } => {
                    let place = source.place(range);
                    let default = prompt.variable(&name).and_then(|variable| variable.default.as_ref());
                    if name == COLON && default == Some(&json!(":")) {
                        if let Some(line) = lines.last_mut() {
                            line.push(Atom { is_literal: false, text: ":".to_owned(), thread: None, place });
                        }
                        continue;
                    }
                    let thread = self.variable(prompt, &name, &absent, escaped, &place);
                    let text = format!("{{{{{name}}}}}");
                    if let Some(line) = lines.last_mut() {
                        let thread = thread.then_some(name);
                        line.push(Atom { is_literal: false, text, thread, place });
                    }
                }
                TemplatePart::Environment { name, range, .. } => {
                    let what = format!("`{name}` from the environment");
                    self.add(what, Some(source.place(range)), prompt, "make it an input");
                }
            }
        }
        lines
    }

    /// Looks at a variable that the text shows, and says whether it is a conversation.
    fn variable(
        &mut self,
        prompt: &Prompt,
        name: &str,
        absent: &MissingValue,
        escaped: bool,
        place: &Place,
    ) -> bool {
        if escaped {
            let what = format!("HTML escaping of `{name}`");
            self.add(what, Some(place.clone()), prompt, "in Mustache, write three braces");
        }
        let declared = prompt.variable(name);
        let default = declared.filter(|variable| variable.default.as_ref().is_some_and(|it| !it.is_null()));
        if let Some(variable) = default {
            let what = format!("a default of `{name}`");
            let place = variable.place.clone().or_else(|| Some(place.clone()));
            self.add(what, place, prompt, "remove the default, or write its value into the text");
        } else if matches!(absent, MissingValue::Shows(_)) {
            self.add(format!("a default of `{name}`"), Some(place.clone()), prompt, "remove the default");
        }
        match declared.and_then(|variable| variable.rich) {
            Some(Rich::Thread) => true,
            Some(rich) => {
                let what = format!("`{name}` of the kind `{}`", rich.as_str());
                self.add(what, Some(place.clone()), prompt, "pass it in a separate message");
                false
            }
            None => false,
        }
    }

    /// The configuration: the model of the prompt, and what `pull` kept beside it.
    fn config(&mut self, prepared: &Prepared) -> Result<Map<String, Json>> {
        let prompt = prepared.prompt();
        let mut config = Map::new();
        if let Some(model) = &prompt.model {
            self.model(model, prompt, &mut config);
        }
        for (key, value) in kept(prepared)? {
            config.entry(key).or_insert(value);
        }
        Ok(config)
    }

    fn model(&mut self, model: &Model, prompt: &Prompt, config: &mut Map<String, Json>) {
        if !model.id.is_empty() {
            config.insert(MODEL.into(), json!(model.id));
        }
        if let Some(provider) = &model.provider {
            config.insert(PROVIDER.into(), json!(provider));
        }
        let mut options = model.options.to_json();
        for (key, name) in NUMBERS.into_iter().chain([STOP]) {
            if let Some(value) = options.shift_remove(name) {
                config.insert(key.into(), value);
            }
        }
        for key in options.keys() {
            let what = format!("the option `{key}` of the model");
            self.add(what, model.provider_place.clone(), prompt, "remove it");
        }
    }
}

/// The configuration that `pull` kept beside the prompt.
fn kept(prepared: &Prepared) -> Result<Map<String, Json>> {
    let candidate = &prepared.found().candidate;
    let Some(entry) = candidate.root.path(&candidate.entry) else { return Ok(Map::new()) };
    let folder = if entry.is_dir() { Some(entry.as_path()) } else { entry.parent() };
    let Some(path) = folder.map(|folder| folder.join(LANGFUSE_FILE)).filter(|path| path.is_file()) else {
        return Ok(Map::new());
    };
    // A link could lead to a private file of the user, which must not be sent.
    let source = files::read_text_inside(folder.unwrap_or(&entry), &path, LANGFUSE_FILE, MAX_CONFIG)?;
    match serde_json::from_str(source.text()) {
        Ok(Json::Object(kept)) => Ok(kept),
        _ => {
            let diagnostic = Diagnostic::new(Code::BadRegistryPrompt, "the file must hold one JSON object");
            let prompt = prepared.prompt().template.name();
            let beside = prompt.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
            let diagnostic = diagnostic.file(format!("{beside}{LANGFUSE_FILE}"));
            Err(Error::new(ErrorKind::PromptRead, diagnostic.hint("delete it, or pull the prompt again")))
        }
    }
}

/// The place of an offset in a text, which a tag may have written otherwise.
fn at_in(
    source: &Arc<Source>,
    range: &std::ops::Range<usize>,
    at: usize,
    text: &str,
) -> std::ops::Range<usize> {
    match source.text().get(range.clone()) == Some(text) {
        true => range.start + at..range.start + at + 2,
        false => range.clone(),
    }
}

/// A piece of a line: text of the author, or a value.
struct Atom {
    is_literal: bool,
    text: String,
    thread: Option<String>,
    place: Place,
}

/// The messages that are read so far.
struct Messages {
    open: OpenMessage,
    messages: Vec<LangfuseMessage>,
    is_chat: bool,
}

/// The message that a line belongs to.
struct OpenMessage {
    role: Role,
    lines: Vec<String>,
    /// Whether a role line began it. Any other is a message only if it says something.
    has_marker: bool,
    /// Whether a placeholder is before it.
    is_cut: bool,
}

impl OpenMessage {
    fn new(role: Role, has_marker: bool, is_cut: bool) -> OpenMessage {
        OpenMessage { role, lines: Vec::new(), has_marker, is_cut }
    }
}

impl Messages {
    fn new() -> Messages {
        let open = OpenMessage::new(Role::System, false, false);
        Messages { open, messages: Vec::new(), is_chat: false }
    }

    fn begin(&mut self, role: Role) {
        self.close(false, OpenMessage::new(role, true, false));
        self.is_chat = true;
    }

    fn line(&mut self, line: &[Atom]) {
        self.open.lines.push(String::new());
        for atom in line {
            match (&atom.thread, self.open.lines.last_mut()) {
                (None, Some(last)) => last.push_str(&atom.text),
                (None, None) => self.open.lines.push(atom.text.clone()),
                (Some(name), _) => {
                    self.close(true, OpenMessage::new(self.open.role.clone(), false, true));
                    self.messages.push(LangfuseMessage::Placeholder(name.clone()));
                    self.is_chat = true;
                }
            }
        }
    }

    /// Ends a message. Newlines around it are in no message, and beside a placeholder no white space is.
    fn close(&mut self, is_cut: bool, next: OpenMessage) {
        let before = std::mem::replace(&mut self.open, next);
        let joined = before.lines.join("\n");
        let is_bare = is_cut || before.is_cut;
        let content = if is_bare { joined.trim() } else { joined.trim_matches('\n') };
        if !content.trim().is_empty() || before.has_marker && !is_cut {
            self.messages.push(LangfuseMessage::Message { role: before.role, content: content.to_owned() });
        }
    }

    fn finish(mut self, is_trimmed: bool) -> LangfuseContent {
        if !self.is_chat {
            let text = self.open.lines.join("\n");
            let text = if is_trimmed { text.trim_matches('\n') } else { &text };
            return LangfuseContent::Text(text.to_owned());
        }
        self.close(false, OpenMessage::new(Role::System, false, false));
        LangfuseContent::Chat(self.messages)
    }
}
