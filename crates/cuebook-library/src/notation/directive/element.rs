//! From the tree of XML to the parts of a directive: the root element, its children, and the actions among them.

use std::ops::Range;

use serde_json::{Map, Value as Json};

use super::input::Input;
use super::opaque::OPAQUE;
use super::output::Output;
use super::xml::{Node, Xml, elements, name};
use super::{Directive, PRIMARIES};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, Severity, did_you_mean, nearest};
use crate::source::Place;

/// Reads one directive.
#[doc(hidden)]
pub struct DirectiveReader<'s> {
    pub(super) xml: Xml<'s>,
    #[doc(hidden)]
    pub notes: Vec<Diagnostic>,
    /// What keeps it from being read.
    pub(super) wrong: Vec<Diagnostic>,
}

/// Reads the XML into a directive whose outer parts are known.
pub(super) fn read(directive: &mut Directive, content: Range<usize>) -> Result<()> {
    let source = directive.source.clone();
    let (xml, masked) = Xml::mask(&source, content.clone())?;
    let tree = xml.parse(&masked.text)?;
    let mut reader = DirectiveReader { xml, notes: Vec::new(), wrong: Vec::new() };
    for (number, (element, range)) in masked.opaque.iter().enumerate() {
        let text = &source.text()[content.start + range.start..content.start + range.end];
        directive.templates.insert(format!("__opaque_{element}_{number}__"), text.to_owned());
    }
    reader.refuse_namespaces(tree.root_element());
    reader.root(directive, tree.root_element());
    directive.notes.append(&mut reader.notes);
    match reader.wrong.is_empty() {
        true => Ok(()),
        false => Err(Error::all(ErrorKind::PromptRead, reader.wrong)),
    }
}

/// Elements that a directive has once, directly inside the root.
const SINGLE: [&str; 3] = ["metadata", "inputs", "outputs"];

impl DirectiveReader<'_> {
    /// Refuses a second element of a name that may stand once: a reader would see the first, and the engine obey the last.
    pub(super) fn refuse_repeated(&mut self, node: Node<'_, '_>, single: &[&str]) {
        let mut seen: Vec<Node<'_, '_>> = Vec::new();
        for child in elements(node).filter(|child| single.contains(&name(*child))) {
            let Some(first) = seen.iter().find(|known| name(**known) == name(child)) else {
                seen.push(child);
                continue;
            };
            let message = format!("duplicate <{}>", name(child));
            let diagnostic = Diagnostic::new(Code::BadDirective, message)
                .at(self.xml.name_place(child))
                .related(self.xml.name_place(*first), "first one here")
                .hint("remove one of them");
            self.wrong.push(diagnostic);
        }
    }

    /// Refuses names with a namespace: they look like other names than those that count.
    fn refuse_namespaces(&mut self, root: Node<'_, '_>) {
        for node in root.descendants().filter(Node::is_element) {
            let element = node.tag_name().namespace().map(|_| self.xml.name_place(node));
            let attribute = node.attributes().find(|attribute| attribute.namespace().is_some());
            let attribute = attribute.map(|attribute| self.xml.place(attribute.range_qname()));
            if let Some(place) = element.or(attribute) {
                let diagnostic =
                    Diagnostic::new(Code::BadDirective, "a directive cannot have XML namespaces")
                        .at(place)
                        .hint("remove the prefix and `xmlns`");
                self.wrong.push(diagnostic);
                return;
            }
        }
    }

    fn root(&mut self, directive: &mut Directive, root: Node<'_, '_>) {
        if name(root) == "directive" {
            directive.name = self.xml.attribute(root, "name");
            directive.version = self.xml.attribute(root, "version");
            directive.extends = self.xml.attribute(root, "extends");
            self.know_attributes(root, &["name", "version", "extends"]);
        } else {
            let diagnostic = Diagnostic::new(
                Code::UnknownKey,
                format!("unknown root element <{}>: its attributes are ignored", name(root)),
            );
            let hint = "write <directive name=\"…\" version=\"1.0.0\">";
            self.notes.push(diagnostic.at(self.xml.name_place(root)).hint(hint));
        }
        self.refuse_repeated(root, &SINGLE);
        // What the metadata say wins, wherever it stands.
        directive.description = elements(root)
            .filter(|child| name(*child) == "description")
            .filter_map(|child| Some(self.xml.text(child)?.stripped()))
            .next_back();
        for child in elements(root) {
            match name(child) {
                "metadata" => self.metadata(directive, child),
                "inputs" => self.inputs(directive, child),
                "outputs" => self.outputs(directive, child),
                "description" => {}
                "process" => self.steps_in_block(child),
                known if OPAQUE.contains(&known) || PRIMARIES.contains(&known) => {}
                _ => self.unknown_element(
                    child,
                    &["metadata", "inputs", "outputs", "description", "process"],
                    "text here is ignored: write text for the model after the XML",
                ),
            }
        }
        self.actions(directive, root);
    }

    fn inputs(&mut self, directive: &mut Directive, node: Node<'_, '_>) {
        for child in elements(node) {
            if name(child) == "input" {
                let input = Input::read(self, child);
                if let Some(earlier) = directive.inputs.iter().find(|known| known.name == input.name)
                    && !input.name.is_empty()
                {
                    let message = format!("duplicate input `{}`", input.name);
                    let mut diagnostic = Diagnostic::new(Code::BadDirective, message)
                        .severity(Severity::Warning)
                        .hint("remove one of them");
                    diagnostic = match &input.place {
                        Some(place) => diagnostic.at(place.clone()),
                        None => diagnostic,
                    };
                    if let Some(place) = &earlier.place {
                        diagnostic = diagnostic.related(place.clone(), "also declared here");
                    }
                    self.notes.push(diagnostic);
                }
                directive.inputs.push(input);
            } else {
                self.unknown_element(child, &["input"], "write <input name=\"…\" type=\"string\">…</input>");
            }
        }
    }

    fn outputs(&mut self, directive: &mut Directive, node: Node<'_, '_>) {
        for child in elements(node) {
            if name(child) == "output" {
                let output = Output::read(self, child);
                if let Some(earlier) = directive.outputs.iter().find(|known| *known.name == *output.name)
                    && !output.name.is_empty()
                {
                    self.notes.push(declared_twice(earlier, &output));
                }
                directive.outputs.push(output);
            } else {
                let hint =
                    "write <output name=\"…\" type=\"string\">…</output>: it describes a result to the model";
                self.unknown_element(child, &["output"], hint);
            }
        }
    }

    /// Elements that are actions, wherever they stand, in the order of the document. Those in the metadata are something else.
    fn actions(&mut self, directive: &mut Directive, root: Node<'_, '_>) {
        let mut inside_metadata: Option<Range<usize>> = None;
        for node in root.descendants().skip(1).filter(Node::is_element) {
            if inside_metadata.as_ref().is_some_and(|range| range.contains(&node.range().start)) {
                continue;
            }
            match name(node) {
                "metadata" if node.parent_element() == Some(root) => inside_metadata = Some(node.range()),
                primary if PRIMARIES.contains(&primary) => {
                    let mut action = Map::new();
                    action.insert("primary".into(), primary.into());
                    action.extend(self.attributes(node));
                    self.params(&mut action, node, true);
                    directive.actions.push(action);
                }
                _ => {}
            }
        }
    }

    /// All attributes of an element as texts.
    pub(super) fn attributes(&self, node: Node<'_, '_>) -> Map<String, Json> {
        node.attributes().map(|attribute| (attribute.name().to_owned(), attribute.value().into())).collect()
    }

    /// The parameters of an action: `<param name="…" value="…"/>`, or with the value as text.
    pub(super) fn params(&self, action: &mut Map<String, Json>, node: Node<'_, '_>, value_first: bool) {
        let mut params = Map::new();
        for param in elements(node).filter(|child| name(*child) == "param") {
            let Some(key) = param.attribute("name").filter(|key| !key.is_empty()) else { continue };
            let attribute = || param.attribute("value").filter(|value| !value.is_empty()).map(str::to_owned);
            let text = || self.xml.stripped(param).map(|text| text.to_string());
            let value = if value_first { attribute().or_else(text) } else { text().or_else(attribute) };
            params.insert(key.to_owned(), value.unwrap_or_default().into());
        }
        if !params.is_empty() {
            action.insert("params".into(), Json::Object(params));
        }
    }

    /// Notes an element that nothing reads. If it is nearly one that something does, it is a warning.
    pub(super) fn unknown_element(&mut self, node: Node<'_, '_>, known: &[&str], hint: &str) {
        let message = format!("unknown element <{}>", name(node));
        self.unknown(message, self.xml.name_place(node), name(node), known, hint);
    }

    /// Notes steps that no model reads: its text is what follows the XML. Actions are data for programs.
    fn steps_in_block(&mut self, node: Node<'_, '_>) {
        let is_action = |node: Node<'_, '_>| PRIMARIES.contains(&name(node)) || name(node) == "param";
        let mut inside = node.descendants().filter(|inner| inner.is_element() && !is_action(*inner));
        if inside.any(|inner| self.xml.stripped(inner).is_some()) {
            let message = "no model sees the text of <process> inside the XML block";
            let diagnostic = Diagnostic::new(Code::BadDirective, message)
                .severity(Severity::Warning)
                .at(self.xml.name_place(node))
                .hint("move <process> below the block: the text after the block is the prompt");
            self.notes.push(diagnostic);
        }
    }

    /// Notes attributes that nothing reads.
    pub(super) fn know_attributes(&mut self, node: Node<'_, '_>, known: &[&str]) {
        for attribute in node.attributes() {
            if !known.contains(&attribute.name()) {
                let message = format!("unknown attribute `{1}` of <{0}>", name(node), attribute.name());
                let place = self.xml.place(attribute.range_qname());
                let hint = format!("known attributes: {}", known.join(", "));
                self.unknown(message, place, attribute.name(), known, &hint);
            }
        }
    }

    fn unknown(&mut self, message: String, place: Place, name: &str, known: &[&str], hint: &str) {
        let near = did_you_mean(&nearest(name, known.iter().copied()));
        let severity = if near.is_some() { Severity::Warning } else { Severity::Note };
        self.notes.push(
            Diagnostic::new(Code::UnknownKey, message)
                .severity(severity)
                .at(place)
                .hint(near.unwrap_or_else(|| hint.to_owned())),
        );
    }
}

/// Two outputs have one name. If they are of two types, no value will do for both.
fn declared_twice(earlier: &Output, output: &Output) -> Diagnostic {
    let name = &*output.name;
    let (message, severity) = match earlier.kind() == output.kind() {
        true => (format!("duplicate output `{name}`"), Severity::Warning),
        false => (format!("duplicate output `{name}` with two types"), Severity::Error),
    };
    let diagnostic =
        Diagnostic::new(Code::BadDirective, message).severity(severity).hint("remove one of them");
    diagnostic.at(output.name.place()).related(earlier.name.place(), "also declared here")
}
