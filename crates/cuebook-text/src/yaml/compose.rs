//! From the parser's events to nodes. Nothing here recurses, and every copy that an alias makes is counted before it is
//! made.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use granit_parser::{Event, Marker, Options, Parser, ScalarStyle, Span, StructureStyle, Tag};
use serde_json::Number;

use super::fault::{explain, too_deep};
use super::{MAX_DEPTH, MAX_NODES, Scalar, resolve};
use crate::error::{Code, Diagnostic};
use crate::json::{MAX_FINDINGS, quoted};
use crate::node::{Data, Key, Node};
use crate::source::{Place, Source};

/// What ends the reading at once.
type Fatal = Box<Diagnostic>;

/// Reads the one document of a text: the root, and what is wrong without keeping the rest from being read.
pub(super) fn compose(
    source: &Arc<Source>,
    range: Range<usize>,
    code: Code,
) -> Result<(Node, Vec<Diagnostic>), Fatal> {
    let text = source.text().get(range.clone()).unwrap_or_default();
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.flow_nesting_limit = MAX_DEPTH;
    options.block_nesting_limit = MAX_DEPTH;
    let mut composer = Composer {
        source,
        base: range.start,
        code,
        open: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        wrong: Vec::new(),
        root: None,
        documents: 0,
    };
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            Ok((event, span)) => composer.take(event, &span)?,
            Err(error) => {
                let (mut message, mut hint) = explain(error.kind());
                let mut start = composer.offset(error.marker());
                let text = &source.text()[range.start..range.end.max(range.start)];
                if let Some(unclosed) = super::fault::bracket(error.kind(), text, start - range.start) {
                    (message, hint) = (unclosed.message, Some(unclosed.hint));
                    start = unclosed.at.map_or(start, |at| range.start + at);
                }
                let rest = source.text().get(start..range.end).unwrap_or_default();
                let length = rest.chars().next().map_or(0, char::len_utf8);
                let diagnostic = Diagnostic::new(code, format!("invalid YAML: {message}"))
                    .at(source.place(start..start + length))
                    .label("here")
                    .hint_opt(hint.map(str::to_owned));
                return Err(Box::new(diagnostic));
            }
        }
    }
    let nothing = || Node::new(Data::Null, source.place(range.start..range.start));
    Ok((composer.root.unwrap_or_else(nothing), composer.wrong))
}

struct Composer<'s> {
    source: &'s Arc<Source>,
    /// Where the YAML begins in the source.
    base: usize,
    code: Code,
    /// Lists and maps that have begun and not ended.
    open: Vec<Frame>,
    anchors: HashMap<usize, Anchored>,
    /// Values and keys so far, with the copies.
    nodes: usize,
    wrong: Vec<Diagnostic>,
    root: Option<Node>,
    documents: usize,
}

/// A finished node with an anchor, with what a copy of it costs.
struct Anchored {
    node: Node,
    nodes: usize,
    depth: usize,
}

struct Frame {
    start: usize,
    /// Behind the last thing in it.
    end: usize,
    flow: bool,
    anchor: usize,
    /// How many nodes there were before it.
    nodes_before: usize,
    /// The levels below it.
    depth: usize,
    inside: Inside,
}

enum Inside {
    List(Vec<Node>),
    Map {
        entries: Vec<(Key, Node)>,
        /// Where each key stands in `entries`.
        names: HashMap<String, usize>,
        /// The key whose value comes next.
        key: Option<NextKey>,
        /// What `<<` takes over, and before which entry.
        merged: Vec<(usize, Vec<(Key, Node)>)>,
    },
}

enum NextKey {
    Key(Key),
    /// `<<`
    Merge(Place),
    /// A key that is wrong, which has been said; its value is dropped.
    Dropped,
}

impl Composer<'_> {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Fatal> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    let diagnostic = Diagnostic::new(self.code, "expected one YAML document, found several")
                        .at(self.place(span))
                        .label("the second begins here")
                        .hint("keep one document: remove the line `---` between them");
                    return Err(Box::new(diagnostic));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), span)
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.expect_tag(tag.as_deref(), "seq", span);
                self.begin(Inside::List(Vec::new()), style, anchor, span)
            }
            Event::MappingStart(style, anchor, tag) => {
                self.expect_tag(tag.as_deref(), "map", span);
                let inside =
                    Inside::Map { entries: Vec::new(), names: HashMap::new(), key: None, merged: Vec::new() };
                self.begin(inside, style, anchor, span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::Alias(anchor) => self.alias(anchor, span),
            _ => Ok(()),
        }
    }

    /// The offset of a marker in the source.
    fn offset(&self, marker: &Marker) -> usize {
        let bytes = marker.byte_offset().unwrap_or_else(|| {
            let text = self.source.text().get(self.base..).unwrap_or_default();
            text.char_indices().nth(marker.index()).map_or(text.len(), |(at, _)| at)
        });
        (self.base + bytes).min(self.source.text().len())
    }

    fn place(&self, span: &Span) -> Place {
        self.source.place(self.offset(&span.start)..self.offset(&span.end))
    }

    fn fatal(&self, span: &Span, message: impl Into<String>, hint: &str) -> Fatal {
        Box::new(Diagnostic::new(self.code, message).at(self.place(span)).hint(hint))
    }

    fn note(&mut self, diagnostic: Diagnostic) {
        if self.wrong.len() < MAX_FINDINGS {
            self.wrong.push(diagnostic);
        }
    }

    fn count(&mut self, nodes: usize, span: &Span) -> Result<(), Fatal> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            let message =
                format!("the YAML has too many values: the limit is {MAX_NODES}, including aliases");
            return Err(self.fatal(span, message, "use fewer aliases, or move values into other files"));
        }
        Ok(())
    }

    /// Whether the next node is a key.
    fn key_comes(&self) -> bool {
        matches!(self.open.last(), Some(Frame { inside: Inside::Map { key: None, .. }, .. }))
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        span: &Span,
    ) -> Result<(), Fatal> {
        self.count(1, span)?;
        let mut place = self.place(span);
        // The parser writes nothing as `~`, and means a place that is as wide.
        let nothing = style == ScalarStyle::Plain && place.range().is_empty();
        let written = if nothing { "" } else { text };
        if self.key_comes() {
            self.key(written, style, tag, place);
            if anchor != 0 {
                let node = Node::new(Data::Text(written.to_owned()), self.place(span));
                self.anchors.insert(anchor, Anchored { node, nodes: 1, depth: 0 });
            }
            return Ok(());
        }
        if nothing
            && let Some(Frame { inside: Inside::Map { key: Some(NextKey::Key(key)), .. }, .. }) =
                self.open.last()
        {
            let end = key.place.range().end;
            place = self.source.place(end..end);
        }
        let data = self.data(written, style, tag, span);
        let node = Node::new(data, place);
        if anchor != 0 {
            self.anchors.insert(anchor, Anchored { node: node.clone(), nodes: 1, depth: 0 });
        }
        self.attach(node, 0);
        Ok(())
    }

    fn data(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: &Span) -> Data {
        let plain = style == ScalarStyle::Plain;
        let Some(tag) = tag else {
            return if plain { self.speakable(text, span) } else { Data::Text(text.to_owned()) };
        };
        let wanted = match tag.core_suffix() {
            _ if tag.original() == "!" => "str",
            Some(known @ ("str" | "int" | "float" | "bool" | "null")) => known,
            _ => {
                self.meaningless(tag, span);
                return Data::Null;
            }
        };
        if wanted == "str" {
            return Data::Text(text.to_owned());
        }
        let data = self.speakable(text, span);
        let fits = match (&data, wanted) {
            (Data::Number(number), "int") => !number.is_f64(),
            (Data::Number(_), "float") | (Data::Bool(_), "bool") | (Data::Null, "null") => true,
            _ => false,
        };
        if let (Data::Number(number), "float") = (&data, wanted) {
            let float = number.as_f64().and_then(Number::from_f64);
            return float.map_or(data, Data::Number);
        }
        if !fits {
            let message = format!("the tag {} does not fit this value", quoted(&tag.original()));
            self.note(Diagnostic::new(self.code, message).at(self.place(span)).hint("remove the tag"));
        }
        data
    }

    /// What a plain scalar means, if JSON can say it.
    fn speakable(&mut self, text: &str, span: &Span) -> Data {
        match resolve(text) {
            Scalar::Null => Data::Null,
            Scalar::Bool(value) => Data::Bool(value),
            Scalar::Number(number) => Data::Number(number),
            Scalar::Text => Data::Text(text.to_owned()),
            Scalar::Unspeakable => {
                let message = format!("JSON cannot represent the number {}", quoted(text));
                let hint = "put it in quotes to keep its digits";
                self.note(Diagnostic::new(self.code, message).at(self.place(span)).hint(hint));
                Data::Null
            }
        }
    }

    fn expect_tag(&mut self, tag: Option<&Tag>, wanted: &str, span: &Span) {
        if let Some(tag) = tag
            && tag.core_suffix() != Some(wanted)
            && tag.original() != "!"
        {
            self.meaningless(tag, span);
        }
    }

    fn meaningless(&mut self, tag: &Tag, span: &Span) {
        let name = tag.original();
        let message = format!("unknown tag {}", quoted(&name));
        let start =
            span.tag_start.as_ref().map_or_else(|| self.offset(&span.start), |marker| self.offset(marker));
        let rest = self.source.text().get(start..).unwrap_or_default();
        let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let place = self.source.place(start..start + length);
        let hint = "remove the tag, or put the text in quotes if it begins with `!`";
        self.note(Diagnostic::new(self.code, message).at(place).hint(hint));
    }

    fn key(&mut self, name: &str, style: ScalarStyle, tag: Option<&Tag>, place: Place) {
        let code = self.code;
        let mut wrong = None;
        let Some(Frame { inside: Inside::Map { entries, names, key, .. }, end, .. }) = self.open.last_mut()
        else {
            return;
        };
        *end = (*end).max(place.range().end);
        *key = Some(if style == ScalarStyle::Plain && name == "<<" {
            NextKey::Merge(place)
        } else if name.is_empty() && style == ScalarStyle::Plain {
            let diagnostic = Diagnostic::new(code, "a key is empty").at(place).label("before this colon");
            wrong = Some(diagnostic.hint("write a name before the colon"));
            NextKey::Dropped
        } else if tag.is_some_and(|tag| tag.core_suffix() != Some("str")) {
            let diagnostic = Diagnostic::new(code, "a key cannot have a tag").at(place);
            wrong = Some(diagnostic.hint("remove the tag"));
            NextKey::Dropped
        } else if let Some(index) = names.get(name) {
            let first = entries.get(*index).map(|(key, _)| key.place.clone());
            let mut diagnostic = Diagnostic::new(code, format!("duplicate key {} in a map", quoted(name)))
                .at(place)
                .label("second one here")
                .hint("remove one of them: YAML readers disagree about which one counts");
            if let Some(first) = first {
                diagnostic = diagnostic.related(first, "first one here");
            }
            wrong = Some(diagnostic);
            NextKey::Dropped
        } else {
            names.insert(name.to_owned(), entries.len());
            NextKey::Key(Key { name: name.to_owned(), place })
        });
        if let Some(diagnostic) = wrong {
            self.note(diagnostic);
        }
    }

    fn begin(
        &mut self,
        inside: Inside,
        style: StructureStyle,
        anchor: usize,
        span: &Span,
    ) -> Result<(), Fatal> {
        if self.key_comes() {
            let message = "a list or a map cannot be a key";
            return Err(self.fatal(span, message, "put the text in quotes if it begins with `{` or `[`"));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(self.too_deep(span));
        }
        let nodes_before = self.nodes;
        self.count(1, span)?;
        let start = self.offset(&span.start);
        let flow = style == StructureStyle::Flow;
        let end = self.offset(&span.end);
        self.open.push(Frame { start, end, flow, anchor, nodes_before, depth: 0, inside });
        Ok(())
    }

    fn too_deep(&self, span: &Span) -> Fatal {
        let (message, hint) = too_deep();
        self.fatal(span, format!("invalid YAML: {message}"), hint.unwrap_or_default())
    }

    fn end(&mut self, span: &Span) -> Result<(), Fatal> {
        let Some(frame) = self.open.pop() else { return Ok(()) };
        // Without brackets the end is only noticed at the next thing, so the last thing inside says where it was.
        let end = if frame.flow { self.offset(&span.end).max(frame.end) } else { frame.end };
        let data = match frame.inside {
            Inside::List(items) => Data::List(items),
            Inside::Map { entries, names, merged, .. } => Data::Map(merge_into(entries, names, merged)),
        };
        let node = Node::new(data, self.source.place(frame.start..end));
        let depth = frame.depth + 1;
        if frame.anchor != 0 {
            let nodes = self.nodes - frame.nodes_before;
            // A copy is kept for the aliases, and it is counted like one.
            self.count(nodes, span)?;
            self.anchors.insert(frame.anchor, Anchored { node: node.clone(), nodes, depth });
        }
        self.attach(node, depth);
        Ok(())
    }

    fn alias(&mut self, anchor: usize, span: &Span) -> Result<(), Fatal> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            let message = "an alias refers to a value that contains it";
            return Err(self.fatal(span, message, "refer to a value that ends before the alias"));
        };
        if self.key_comes() {
            let name = match &anchored.node.data {
                Data::Text(text) => text.clone(),
                Data::List(_) | Data::Map(_) => {
                    let message = "a list or a map cannot be a key";
                    return Err(self.fatal(span, message, "use the alias of a text, or write the key"));
                }
                _ => anchored.node.place.text().to_owned(),
            };
            self.count(1, span)?;
            self.key(&name, ScalarStyle::DoubleQuoted, None, self.place(span));
            return Ok(());
        }
        let (nodes, depth) = (anchored.nodes, anchored.depth);
        if self.open.len() + depth > MAX_DEPTH {
            return Err(self.too_deep(span));
        }
        self.count(nodes, span)?;
        let end = self.offset(&span.end);
        // Counted, and found above.
        let Some(anchored) = self.anchors.get(&anchor) else { return Ok(()) };
        let node = anchored.node.clone();
        self.attach(node, depth);
        if let Some(frame) = self.open.last_mut() {
            frame.end = frame.end.max(end);
        }
        Ok(())
    }

    /// Puts a finished value where it belongs.
    fn attach(&mut self, node: Node, depth: usize) {
        let code = self.code;
        let mut wrong = None;
        let Some(frame) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        frame.depth = frame.depth.max(depth);
        let end = node.place.range().end;
        match &mut frame.inside {
            Inside::List(items) => items.push(node),
            Inside::Map { entries, key, merged, .. } => match key.take() {
                Some(NextKey::Key(key)) => entries.push((key, node)),
                Some(NextKey::Merge(place)) => match merge(node) {
                    Some(taken) => merged.push((entries.len(), taken)),
                    None => {
                        let diagnostic = Diagnostic::new(code, "`<<` needs a map, but this is not a map");
                        wrong = Some(diagnostic.at(place).hint("write `<<: *name` with the anchor of a map"));
                    }
                },
                Some(NextKey::Dropped) | None => {}
            },
        }
        // What an alias copies stands further up, so that changes nothing here.
        frame.end = frame.end.max(end);
        if let Some(diagnostic) = wrong {
            self.note(diagnostic);
        }
    }
}

/// The entries of a map with those that `<<` takes over, which stand where `<<` stands. What is written wins, then what was
/// taken over first.
fn merge_into(
    entries: Vec<(Key, Node)>,
    names: HashMap<String, usize>,
    merged: Vec<(usize, Vec<(Key, Node)>)>,
) -> Vec<(Key, Node)> {
    if merged.is_empty() {
        return entries;
    }
    let mut known: HashSet<String> = names.into_keys().collect();
    let mut merged = merged.into_iter().peekable();
    let mut all = Vec::with_capacity(entries.len());
    let mut take_over = |all: &mut Vec<(Key, Node)>, before: usize| {
        while let Some((_, taken)) = merged.next_if(|(at, _)| *at <= before) {
            all.extend(taken.into_iter().filter(|(key, _)| known.insert(key.name.clone())));
        }
    };
    for (at, entry) in entries.into_iter().enumerate() {
        take_over(&mut all, at);
        all.push(entry);
    }
    take_over(&mut all, usize::MAX);
    all
}

/// The entries that `<<` takes over from a map, or from a list of maps.
fn merge(node: Node) -> Option<Vec<(Key, Node)>> {
    match node.data {
        Data::Map(entries) => Some(entries),
        Data::List(items) => {
            let maps: Option<Vec<_>> = items
                .into_iter()
                .map(|item| match item.data {
                    Data::Map(entries) => Some(entries),
                    _ => None,
                })
                .collect();
            maps.map(|maps| maps.into_iter().flatten().collect())
        }
        _ => None,
    }
}
