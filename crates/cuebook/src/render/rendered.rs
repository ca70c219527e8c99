//! Attributed text: one string, and spans that cover it without gaps.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::{Origin, Segment, Shown, edit};
use crate::chat::Role;
use crate::chat::output::OutputSpec;
use crate::error::Diagnostic;
use crate::prompt::{Prompt, Tools};
use crate::sections::{Disclosed, Fitting};
use crate::template::engine::Output;
use crate::template::sink::{Piece, Writer};
use crate::template::unit::{Emission, Unit, Units};
use crate::variables::{HookTexts, LateScope, Scope, Supplier};

/// A rendered prompt: its text, and where every byte of it came from.
///
/// The origins are kept in the form in which they were recorded and joined with files, variables and layers when a caller
/// asks, so that a render without such a question does not pay for the answer.
///
/// ```
/// use cuebook::{Book, Origin};
///
/// let rendered = Book::open(".").prompt("general_system").var("agent_name", "Rumi").render()?;
/// let at = rendered.text().find("Rumi").unwrap();
/// match rendered.span_at(at).unwrap().origin {
///     Origin::Value { shown, .. } => assert_eq!(shown[0].path, "agent_name"),
///     other => panic!("{other:?}"),
/// }
/// let text: String = rendered.spans().map(|span| &rendered.text()[span.range]).collect();
/// assert_eq!(text, rendered.text());
/// assert!(rendered.segments().iter().any(|segment| segment.text == "Rumi"));
/// assert!(rendered.notes().is_empty() && rendered.sections().is_none());
/// # Ok::<(), cuebook::Error>(())
/// ```
///
/// With the feature `chat`, it becomes a request for a provider:
///
/// ```
/// use cuebook::chat::wire::Api;
///
/// let rendered = cuebook::Book::open(".").prompt("general_system").var("agent_name", "Rumi").model("gpt-5").render()?;
/// let (messages, _) = rendered.messages_for(Api::OpenAiChat)?;
/// assert_eq!(rendered.wire_for(Api::OpenAiChat)?.body["messages"].as_array().unwrap().len(), messages.len());
/// let body: serde_json::Value = serde_json::from_slice(&rendered.payload_as("anthropic")?.bytes).unwrap();
/// assert_eq!(body, rendered.wire_as("anthropic")?.body);
/// # Ok::<(), cuebook::Error>(())
/// ```
#[derive(Debug)]
pub struct Rendered {
    text: String,
    pieces: Vec<Piece>,
    units: Units,
    scope: LateScope,
    prompt: Arc<Prompt>,
    /// The roles that the author's markers began before a hook changed the text.
    roles: Option<Vec<Role>>,
    /// Hooks that changed the text; pieces speak of them by index.
    editors: Vec<Editor>,
    notes: Vec<Diagnostic>,
    /// What a tree of sections gives a model beside the text.
    sections: Option<Box<Disclosed>>,
    /// The tools of a directive's thread, if the book knows who offers them.
    tools: Option<Arc<Tools>>,
    /// What an answer is to hold, if the tree that it was rendered from says so and is no prompt of a library.
    output: Option<OutputSpec>,
}

/// A hook that changed the text.
#[derive(Debug, Clone)]
pub(crate) struct Editor {
    pub(crate) prompt: String,
    pub(crate) function: &'static str,
}

/// A run of text with one origin.
#[derive(Debug, Clone)]
pub struct Span {
    /// Its bytes in the text.
    pub range: Range<usize>,
    /// Where they came from.
    pub origin: Origin,
    /// The section that they belong to, as in `context.history`.
    pub section: Option<Arc<str>>,
}

/// The version of [`Rendered::to_json`]. It changes when a program that reads the format has to change.
const FORMAT: u32 = 1;

impl Rendered {
    pub(crate) fn new(output: Output, scope: impl Into<LateScope>, prompt: Arc<Prompt>) -> Rendered {
        Rendered {
            text: output.text,
            pieces: output.pieces,
            units: output.units,
            scope: scope.into(),
            prompt,
            roles: None,
            editors: Vec::new(),
            notes: Vec::new(),
            sections: None,
            tools: None,
            output: None,
        }
    }

    /// The same with the tools of a directive's thread. Texts of the thread's hooks, if there are any, are the first editor's.
    pub(crate) fn of_thread(mut self, hooks: &HookTexts, tools: Option<Arc<Tools>>) -> Rendered {
        if *hooks != HookTexts::default() {
            self.editors.push(Editor { prompt: self.prompt.id.clone(), function: "thread_started" });
        }
        self.tools = tools;
        self
    }

    /// The same with the tools and the output of a tree that is no prompt of a library.
    pub(crate) fn with_tools(mut self, tools: Tools, output: Option<OutputSpec>) -> Rendered {
        (self.tools, self.output) = (Some(Arc::new(tools)), output);
        self
    }

    /// What an answer is to hold, if a section tree says so.
    pub(super) fn output(&self) -> Option<&OutputSpec> {
        self.output.as_ref().or_else(|| self.sections.as_ref()?.structured_output.as_ref())
    }

    /// The text with its pieces, for a prompt that takes it over.
    pub(crate) fn into_output(self) -> Output {
        Output { text: self.text, pieces: self.pieces, units: self.units }
    }

    /// The same prompt after a hook made another text of it. What it left as it was keeps its origin.
    pub(crate) fn edited(mut self, text: String, by: Editor) -> Rendered {
        if text != self.text {
            if self.roles.is_none() {
                self.roles = Some(self.marked_roles());
            }
            let editor = self.editors.len() as u32;
            self.pieces = edit::reattribute(&self.text, &self.pieces, &text, editor);
            self.text = text;
            self.editors.push(by);
        }
        self
    }

    /// Adds a note about this render.
    pub(crate) fn with_notes(mut self, notes: Vec<Diagnostic>) -> Rendered {
        self.notes.extend(notes);
        self
    }

    /// The same text as one of a prompt of the library, with what its sections give a model beside it.
    pub(crate) fn of_sections(
        mut self,
        prompt: Arc<Prompt>,
        scope: Arc<Scope>,
        sections: Disclosed,
    ) -> Rendered {
        (self.prompt, self.scope) = (prompt, scope.into());
        self.sections = Some(Box::new(sections));
        self
    }

    /// The same with another account of how it was made to fit.
    pub(crate) fn map_fitting(mut self, change: impl FnOnce(&mut Fitting)) -> Rendered {
        if let Some(fitting) = self.sections.as_mut().and_then(|sections| sections.fitting.as_mut()) {
            change(fitting);
        }
        self
    }

    /// What became of the sections, and what they give a model beside the text, if the prompt is a tree of sections.
    pub fn sections(&self) -> Option<&Disclosed> {
        self.sections.as_deref()
    }

    /// What a model may call: the tools of the sections that are shown in full, or those that the prompt declares.
    pub fn tools(&self) -> Cow<'_, Tools> {
        match (&self.sections, &self.tools) {
            (Some(sections), _) => Cow::Owned(sections.wire_tools().into()),
            (None, Some(tools)) => Cow::Borrowed(tools),
            (None, None) => Cow::Borrowed(&self.prompt.tools),
        }
    }

    /// Notes about this render, though it worked: an optional provider that failed, and the like.
    pub fn notes(&self) -> &[Diagnostic] {
        &self.notes
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text alone.
    pub fn into_text(self) -> String {
        self.text
    }

    /// The roles that the author's markers began before a hook changed the text; `None` if none did.
    pub(super) fn roles_before_hooks(&self) -> Option<&[Role]> {
        self.roles.as_deref()
    }

    /// The hook that changed the text last.
    pub(super) fn last_editor(&self) -> Option<&Editor> {
        self.editors.last()
    }

    /// The prompt that it was rendered from.
    pub fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    /// The pieces, with the emission of each one that a value wrote.
    pub(super) fn emitted(&self) -> impl Iterator<Item = (Range<usize>, Writer, Option<&Emission>)> + '_ {
        self.ranges().map(|(range, piece)| (range, piece.writer, self.emission(piece)))
    }

    /// The pieces, each with its bytes in the text.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (Range<usize>, &Piece)> + '_ {
        let ends = self.pieces.iter().map(|piece| piece.start as usize).skip(1).chain([self.text.len()]);
        self.pieces.iter().zip(ends).map(|(piece, end)| (piece.start as usize..end, piece))
    }

    /// Where a value was printed, if one wrote the piece.
    pub(super) fn emission(&self, piece: &Piece) -> Option<&Emission> {
        match piece.writer {
            Writer::Value { unit, offset } => self.units.get(unit).0.emission(offset),
            _ => None,
        }
    }

    /// The pieces as they were recorded.
    #[doc(hidden)]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The texts that it was written from.
    #[doc(hidden)]
    pub fn units(&self) -> &Units {
        &self.units
    }

    /// The bytes that the engine wrote as the frame of this name, if it did.
    pub(super) fn framed(&self, name: &str) -> Option<Range<usize>> {
        let is_it = |writer: &Writer| match writer {
            Writer::Frame { frame } => self.units.frame(*frame).is_some_and(|frame| frame.name == name),
            _ => false,
        };
        self.ranges().find(|(_, piece)| is_it(&piece.writer)).map(|(range, _)| range)
    }

    /// The values that it was rendered with.
    #[doc(hidden)]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(crate) fn shared_scope(&self) -> &Arc<Scope> {
        self.scope.shared()
    }

    /// The spans, in order. They cover the text without gaps and without overlap. A value that printed nothing has an empty
    /// one in the portable style, so that every place which was reached is there.
    pub fn spans(&self) -> impl Iterator<Item = Span> + '_ {
        (0..self.pieces.len()).map(|index| self.span(index))
    }

    /// The span that holds a byte of the text; never an empty one.
    pub fn span_at(&self, offset: usize) -> Option<Span> {
        if offset >= self.text.len() {
            return None;
        }
        let index = self.pieces.partition_point(|piece| piece.start as usize <= offset);
        index.checked_sub(1).map(|index| self.span(index))
    }

    fn span(&self, index: usize) -> Span {
        let piece = self.pieces[index];
        let start = piece.start as usize;
        let end = self.pieces.get(index + 1).map_or(self.text.len(), |next| next.start as usize);
        let origin = match piece.writer {
            Writer::Literal { unit, offset } => {
                let (unit, _) = self.units.get(unit);
                let offset = offset as usize;
                Origin::Literal {
                    source: unit.source().clone(),
                    range: unit.source_range(offset..offset + (end - start)),
                    changed: false,
                }
            }
            Writer::Changed { unit, change } => {
                let (unit, _) = self.units.get(unit);
                let range = unit.source_range(unit.changed(change));
                Origin::Literal { source: unit.source().clone(), range, changed: true }
            }
            Writer::Value { unit, offset } => {
                let (unit, _) = self.units.get(unit);
                let rich = self.rich_origin(&self.text[start..end], unit.emission(offset));
                rich.unwrap_or_else(|| self.value_origin(unit, offset, &self.text[start..end]))
            }
            Writer::Hook { editor } => {
                let Editor { prompt, function } = self.editors[editor as usize].clone();
                Origin::Hook { prompt, function: function.to_owned() }
            }
            Writer::Frame { frame } => {
                let name = self.units.frame(frame).map_or("frame", |frame| frame.name);
                Origin::Frame { name: name.to_owned() }
            }
        };
        let section = match piece.writer {
            Writer::Literal { unit, .. } | Writer::Changed { unit, .. } | Writer::Value { unit, .. } => {
                self.units.get(unit).1.cloned()
            }
            Writer::Frame { frame } => self.units.frame(frame).and_then(|frame| frame.section.clone()),
            Writer::Hook { .. } => None,
        };
        Span { range: start..end, origin, section }
    }

    /// What a value's text stands for, if it is a nonce of this render that an emission of that very input wrote. The value of
    /// another variable may hold the same digits.
    fn rich_origin(&self, text: &str, emission: Option<&Emission>) -> Option<Origin> {
        let mut inputs = self.scope.rich_inputs();
        let input = inputs.find(|input| {
            input.nonce == text && emission.is_some_and(|emission| emission.can_show(&input.name))
        })?;
        Some(Origin::Rich { input: input.name.clone(), kind: input.kind.as_str().to_owned() })
    }

    fn value_origin(&self, unit: &Unit, mark: u32, text: &str) -> Origin {
        let Some(emission) = unit.emission(mark) else {
            return Origin::Value { shown: Vec::new(), emitted: unit.source().place(0..0) };
        };
        let mut shown: Vec<Shown> = emission
            .paths
            .iter()
            .map(|path| {
                let root = path.split(['.', '[']).next().unwrap_or(path);
                Shown {
                    path: path.clone(),
                    layer: self.scope.layer(root),
                    by: self.scope.supplier(root).cloned(),
                }
            })
            .collect();
        match self.was_set(emission, text) {
            Some(true) => shown.clear(),
            Some(false) => {}
            None => shown.extend(emission.set.iter().map(|path| Shown {
                path: path.clone(),
                layer: None,
                by: Some(Supplier::Template { set: path.clone() }),
            })),
        }
        Origin::Value { shown, emitted: unit.source().place(emission.range.clone()) }
    }

    /// Whether a text is what a template has set in place of a variable; `None` if that is unknown. What reads as the
    /// variable does is taken for it.
    fn was_set(&self, emission: &Emission, text: &str) -> Option<bool> {
        if emission.set.is_empty() {
            return Some(false);
        }
        let values: Vec<Option<Json>> = emission.paths.iter().map(|path| self.value_at(path)).collect();
        let is_same = |value: &Json| match value {
            Json::String(value) => value == text,
            Json::Number(number) => !number.is_f64() && number.to_string() == text,
            _ => false,
        };
        if values.iter().flatten().any(is_same) {
            return Some(false);
        }
        match values.as_slice() {
            // A hook may have left a part of what was there.
            _ if !emission.as_is || text.is_empty() || !self.editors.is_empty() => None,
            [None] if !emission.paths[0].contains(['.', '[']) => Some(true),
            [Some(Json::String(value))] if !value.contains(text) => Some(true),
            _ => None,
        }
    }

    /// The value at a path without an index in it.
    fn value_at(&self, path: &str) -> Option<Json> {
        let mut names = path.split('.');
        let (_, mut value) = self.scope.get(names.next()?)?;
        for name in names {
            value = value.get_mut(name)?.take();
        }
        Some(value)
    }

    /// The text in segments: literals and interpolated values.
    pub fn segments(&self) -> Vec<Segment> {
        Segment::of(self)
    }

    /// The text with its spans, as scripts see it. Offsets are bytes of UTF-8.
    pub fn to_json(&self) -> Json {
        let spans: Vec<Json> = self
            .spans()
            .map(|span| {
                let mut object =
                    json!({"start": span.range.start, "end": span.range.end, "origin": span.origin.to_json()});
                if let Some(section) = span.section {
                    object["section"] = json!(&*section);
                }
                object
            })
            .collect();
        let mut object = json!({"version": FORMAT, "text": self.text, "spans": spans, "tools": []});
        if let Some(disclosed) = self.sections() {
            disclosed.describe_in(&mut object);
        }
        if !self.notes.is_empty() {
            object["notes"] = self.notes.iter().map(|note| Json::Object(note.to_json())).collect();
        }
        object
    }
}
