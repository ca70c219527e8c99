//! From a prompt to a draft. Features that only its own notation has are reported here.

mod data;
mod includes;
mod inputs;
mod own;
mod portable;
mod roles;

use crate::error::Hint;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::draft::{Chunk, Draft, Input, Language, Piece, Print, RoleLines, UnsupportedPart};
use super::mustache::Writer;
use super::report::Report;
use super::reported_differences::ReportedDifference;
use super::target_text::{Jinja, SyntaxLines};
use crate::by_name::ByName;
use crate::convert::BuiltIn;
use crate::error::Result;
use crate::library::{Config, Defaults};
use crate::node::Node;
use crate::prepared::Prepared;
use crate::prompt::{Limits, Prompt};
use crate::sections::{Body, Selector, Tree};
use crate::source::{Place, Source};
use crate::template::dollar::{self, Missing};
use crate::template::input::LITERAL_INPUT;
use crate::template::jinja::{self, Settings, Style};
use crate::template::mustache;
use crate::template::parts::{Branch, NotPlain, TemplatePart};
use crate::variables::{SESSION, SYSTEM};

/// How deep Mustache sections may lie in each other here, where nothing is rendered.
const DEEPEST: usize = 500;

/// Makes drafts of one prompt.
pub(super) struct Drafting<'p> {
    pub(super) prepared: &'p Prepared,
    pub(super) from: BuiltIn,
    pub(super) target: BuiltIn,
    pub(super) config: &'p Config,
    pub(super) defaults: &'p Defaults,
    pub(super) report: &'p mut Report,
}

impl Drafting<'_> {
    pub(super) fn draft(mut self) -> Result<Draft> {
        let prompt = self.prepared.prompt();
        let front = front_matter(prompt);
        let inputs = self.inputs(prompt, front.as_ref());
        let words = match self.from {
            BuiltIn::Template => vec![self.jinja(&prompt.template, self.config.template_settings(false))],
            BuiltIn::Prompty => vec![self.prompty_text(prompt, &inputs)?],
            BuiltIn::Sections => self.sections(&inputs)?,
            BuiltIn::Directive => self.directive(),
            BuiltIn::Dotprompt => vec![self.dotprompt_text(prompt, &inputs)?],
            BuiltIn::Skill => vec![Chunk::text(prompt.template.text())],
        };
        let usual_size = self.defaults.max_output_size.unwrap_or(Limits::GENEROUS_SIZE);
        let mut draft = Draft {
            id: prompt.id.rsplit('/').next().unwrap_or(&prompt.id).to_owned(),
            from: self.from,
            name: Some(prompt.metadata.name.clone()).filter(|name| *name != prompt.id),
            version: Some(prompt.metadata.version.clone()),
            kind: Some(prompt.metadata.kind.clone())
                .filter(|kind| kind != "custom" && self.from != BuiltIn::Directive),
            description: prompt.metadata.description.clone(),
            extra: self.extra(prompt),
            inputs,
            words,
            role: self.role(prompt),
            opening: RoleLines::Missing,
            model: self.model(prompt, front.as_ref()),
            tools: self.tools(prompt),
            outputs: self.outputs(prompt, front.as_ref()),
            max_output_size: Some(prompt.limits.max_output_size).filter(|size| *size != usual_size),
            renamed: Default::default(),
            named_before: Default::default(),
        };
        if draft.name.as_deref() == Some(&draft.id) {
            draft.name = None;
        }
        match self.from {
            BuiltIn::Template => self.own_of_template(prompt),
            BuiltIn::Prompty => {
                self.own_of_prompty(front.as_ref(), prompt);
                self.roles(prompt, &mut draft);
            }
            BuiltIn::Sections => self.own_of_sections(front.as_ref(), prompt),
            BuiltIn::Directive => self.own_of_directive(),
            BuiltIn::Dotprompt => {}
            BuiltIn::Skill => self.own_of_skill(),
        }
        self.variants(prompt);
        for chunk in &mut draft.words {
            chunk.keep_names();
        }
        self.certain(&mut draft);
        Ok(draft)
    }

    fn jinja(&mut self, source: &Arc<Source>, settings: Settings) -> Chunk {
        let text = source.text();
        let keeps = settings.keep_trailing_newline;
        let written = if keeps { text } else { text.strip_suffix('\n').unwrap_or(text) };
        let mut comments = Vec::new();
        let pieces = match jinja::parts::parts(text, &settings) {
            Ok(found) => {
                comments.extend(found.comments.into_iter().map(|range| source.place(range)));
                Ok(self.pieces(source, found.parts))
            }
            Err(not_plain) => Err(stop(source, not_plain)),
        };
        let print = if settings.style == Style::Portable { Print::Portable } else { Print::Python };
        let is_dropped = !keeps && !settings.trim_blocks && self.target != BuiltIn::Template;
        let written = match is_dropped {
            true => includes::with_kept_newlines(written, &*self.prepared.outline()),
            false => written.to_owned(),
        };
        let written = Some((Language::Jinja, written));
        Chunk { names: self.names(), pieces, written, jinja: None, print, comments }
    }

    fn prompty_text(&mut self, prompt: &Prompt, inputs: &ByName<Input>) -> Result<Chunk> {
        let source = &prompt.template;
        let settings = self.config.template_settings(false).portable();
        Ok(match prompt.format.engine.as_str() {
            "mustache" => {
                let escape = prompt.format.options.get("escape") != Some(&Json::Bool(false));
                self.mustache(source, escape, inputs)?
            }
            "jinja2" | "jinja" | "nunjucks" => {
                let python = prompt.format.options.get("scalars") == Some(&json!("python"));
                let style = if python { Style::Python } else { Style::Portable };
                self.jinja(source, Settings { style, ..settings })
            }
            "dollar" => {
                let keep = prompt.format.options.get("missing") == Some(&json!("keep"));
                self.dollar(source, if keep { Missing::Keep } else { Missing::Error })
            }
            other => self.unknown_engine(source, other, prompt.format.engine_place.clone()),
        })
    }

    fn unknown_engine(&self, source: &Arc<Source>, engine: &str, place: Option<Place>) -> Chunk {
        let place = place.unwrap_or_else(|| source.place(0..0));
        let what = format!("the language of the engine `{engine}`");
        Chunk {
            pieces: Err(UnsupportedPart { what, place }),
            written: None,
            jinja: None,
            print: Print::Python,
            names: Vec::new(),
            comments: Vec::new(),
        }
    }

    fn mustache(&mut self, source: &Arc<Source>, escape: bool, inputs: &ByName<Input>) -> Result<Chunk> {
        let (mut jinja, mut names) = (None, self.names());
        let pieces = match mustache::parts::parts(source, DEEPEST, escape)? {
            Ok(parts) => Ok(self.pieces(source, parts)),
            Err(not_plain) => match self.sections_as_jinja(source, escape, inputs)? {
                Ok((text, roots)) => {
                    jinja = Some(text);
                    if self.target == BuiltIn::Template {
                        // What is a part of an item is no name there.
                        names.retain(|name| roots.contains(name));
                    }
                    Err(stop(source, not_plain))
                }
                // The user who wants Jinja2 gets the reason why it does not work.
                Err(worse) if self.target == BuiltIn::Template => Err(stop(source, worse)),
                Err(_) => Err(stop(source, not_plain)),
            },
        };
        Ok(Chunk {
            names,
            comments: Vec::new(),
            pieces,
            written: Some((Language::Mustache { escape }, source.text().to_owned())),
            jinja,
            print: Print::Mustache,
        })
    }

    /// A Mustache template with sections as Jinja2, if its inputs say what its sections are.
    fn sections_as_jinja(
        &mut self,
        source: &Arc<Source>,
        escape: bool,
        inputs: &ByName<Input>,
    ) -> Result<std::result::Result<(String, BTreeSet<String>), NotPlain>> {
        let settings = self.config.template_settings(false);
        if self.target == BuiltIn::Template && (settings.trim_blocks || settings.lstrip_blocks) {
            let what = "a Mustache section in a project whose tags strip whitespace".to_owned();
            return Ok(Err(NotPlain { range: 0..0, what }));
        }
        let branches = match mustache::parts::branches(source, DEEPEST, escape)? {
            Ok(branches) => branches,
            Err(not_plain) => return Ok(Err(not_plain)),
        };
        let jinja = Jinja { guard: SyntaxLines::Nothing, blocks_are_safe: true, kept: &[], forced: &[] };
        let mut text = String::new();
        let mut writer = Writer::new(inputs, jinja);
        let written = writer.write(&branches, &mut text);
        if written.is_ok() && self.target == BuiltIn::Template {
            self.unescaped(source, &branches);
        }
        Ok(written.map(|()| (text, writer.roots)))
    }

    /// Tells of values that were escaped.
    fn unescaped(&mut self, source: &Arc<Source>, branches: &[Branch]) {
        for branch in branches {
            match branch {
                Branch::Value { keys, escaped: true, range } => {
                    let name = if keys.is_empty() { ".".to_owned() } else { keys.join(".") };
                    self.no_longer_escaped(&name, source.place(range.clone()));
                }
                Branch::Section { body, .. } => self.unescaped(source, body),
                Branch::Text(_) | Branch::Value { .. } => {}
            }
        }
    }

    fn no_longer_escaped(&mut self, name: &str, place: Place) {
        let message = format!("the value of `{name}` is no longer escaped for HTML");
        let hint = "to avoid escaping in Mustache, write {{{…}}}";
        self.report.changed("text", message).at(Some(place)).hint(hint).spares(ReportedDifference::Markup);
    }

    fn dollar(&mut self, source: &Arc<Source>, missing: Missing) -> Chunk {
        let template = dollar::Template::compile(source.clone());
        let pieces = match template.parts(missing) {
            Ok(parts) => Ok(self.pieces(source, parts)),
            Err(not_plain) => Err(stop(source, not_plain)),
        };
        let names = template.placeholders().to_vec();
        Chunk { pieces, written: None, jinja: None, print: Print::Python, names, comments: Vec::new() }
    }

    /// Bits as pieces. Only directives read the environment, and only Mustache has HTML.
    fn pieces(&mut self, source: &Arc<Source>, parts: Vec<TemplatePart>) -> Vec<Piece> {
        let variables = &self.prepared.prompt().variables;
        let rich: HashSet<&str> =
            variables.iter().filter(|it| it.rich.is_some()).map(|it| it.name.as_str()).collect();
        let mut pieces = Vec::new();
        for bit in parts {
            pieces.push(match bit {
                TemplatePart::Text { text, .. } => Piece::Text(text),
                TemplatePart::Value { name, range, .. } if rich.contains(&name.as_str()) => {
                    let message = format!("`{name}` is not text, so it is removed");
                    let hint = "put conversations, images, files and audio into separate messages";
                    self.report
                        .lost("inputs", message)
                        .at(Some(source.place(range)))
                        .hint(hint)
                        .spares(ReportedDifference::Value(name));
                    continue;
                }
                TemplatePart::Value { name, absent, escaped, range } => {
                    if escaped && matches!(self.target, BuiltIn::Template | BuiltIn::Directive) {
                        self.no_longer_escaped(&name, source.place(range));
                    }
                    Piece::Value { name, absent }
                }
                TemplatePart::Environment { name, otherwise, range } => {
                    let message = format!(
                        "`{name}` from the environment is left out: only directives read the environment"
                    );
                    let hint =
                        Hint::option("make it an input, and pass it", format!("--var {name}=\"${name}\""));
                    self.report
                        .lost("text", message)
                        .at(Some(source.place(range)))
                        .hint(hint)
                        .spares(ReportedDifference::Environment);
                    Piece::Text(otherwise)
                }
            });
        }
        pieces
    }

    /// Every name that the prompt's texts mention.
    fn names(&self) -> Vec<String> {
        let is_rich = |name: &str| {
            self.prepared.prompt().variable(name).is_some_and(|variable| variable.rich.is_some())
        };
        let reads = self.prepared.reads().into_iter().map(|(read, _)| read.root);
        let mut names: Vec<String> =
            reads.filter(|name| !is_rich(name) && name != SYSTEM && name != SESSION).collect();
        names.sort();
        names.dedup();
        names
    }

    fn directive(&mut self) -> Vec<Chunk> {
        let Some(directive) = self.prepared.directive() else { return Vec::new() };
        let mut chunks = Vec::new();
        let preamble = directive.shown_preamble();
        let takes_all = directive.inputs.is_empty();
        let declared: HashSet<&str> = directive.inputs.iter().map(|input| input.name.as_str()).collect();
        let is_given = |name: &str| name != LITERAL_INPUT && (takes_all || declared.contains(name));
        let parts = directive.template().parts(is_given);
        if !preamble.is_empty() {
            let between = if parts.as_ref().is_ok_and(Vec::is_empty) { "" } else { "\n\n" };
            chunks.push(Chunk::text(format!("{preamble}{between}")));
        }
        let pieces = match parts {
            Ok(parts) => {
                let pieces = self.pieces(&directive.source, parts);
                let place = directive.source.place(directive.template().range());
                self.edges(&pieces, place, "the body of a directive");
                Ok(pieces)
            }
            Err(not_plain) => Err(stop(&directive.source, not_plain)),
        };
        chunks.push(Chunk {
            pieces,
            written: None,
            jinja: None,
            print: Print::Json,
            names: self.names(),
            comments: Vec::new(),
        });
        chunks
    }

    /// A value at an edge of a text that is stripped.
    fn edges(&mut self, pieces: &[Piece], place: Place, of: &str) {
        for (edge, piece) in [("beginning", pieces.first()), ("end", pieces.last())] {
            if let Some(Piece::Value { name, .. }) = piece {
                let message = format!("whitespace of `{name}` at the {edge} is printed: {of} removes it");
                self.report
                    .changed("text", message)
                    .at(Some(place.clone()))
                    .hint("write a word before it, or pass values without surrounding whitespace")
                    .spares(ReportedDifference::Edge(name.clone()));
            }
        }
    }

    fn sections(&mut self, inputs: &ByName<Input>) -> Result<Vec<Chunk>> {
        let Some(tree) = self.prepared.tree() else { return Ok(Vec::new()) };
        let missing = self.prepared.missing();
        let mut chunks: Vec<Chunk> = Vec::new();
        let nodes = tree.sections();
        let keeps_conditions = self.keeps_conditions();
        // Where the conditions end that have begun.
        let mut ends: Vec<usize> = Vec::new();
        let mut at = 0;
        while let Some(node) = nodes.get(at) {
            while ends.pop_if(|end| *end <= at).is_some() {
                chunks.push(condition("{% endif %}".to_owned(), node.section.place.as_ref(), tree));
            }
            at += 1;
            let section = &node.section;
            if let Selector::Always(false) = section.enabled {
                let message = format!("the section `{}` is disabled, so it is left out", node.dotted());
                self.report
                    .lost("sections", message)
                    .at(section.enabled_place.clone())
                    .hint("enable it before you convert to keep it");
                at = node.end();
                continue;
            }
            if let (Selector::Asked(_), Some(text)) = (&section.enabled, &section.enabled_if)
                && keeps_conditions
            {
                let tag = format!("{{% if {} %}}", text.trim());
                chunks.push(condition(tag, section.enabled_place.as_ref(), tree));
                ends.push(node.end());
            }
            let heading = if chunks.is_empty() { &node.heading()[2..] } else { node.heading() };
            let under = match &section.body {
                Body::Template { text, engine } => {
                    let trimmed = text.text().trim();
                    let settings = self.config.template_settings(false).portable();
                    match engine.as_str() {
                        _ if trimmed.is_empty() => None,
                        "dollar" => Some(self.dollar(text, missing)),
                        "jinja2" | "jinja" | "nunjucks" => Some(self.jinja(text, settings)),
                        "mustache" => Some(self.mustache(text, true, inputs)?),
                        other => Some(self.unknown_engine(text, other, section.place.clone())),
                    }
                }
                Body::TaskExample(_) => node.written_example().map(Chunk::text),
                Body::TaskExamples => None,
            };
            match under {
                Some(under) => {
                    let place = section.place.clone();
                    if let (Ok(pieces), Some(place)) = (&under.pieces, place) {
                        self.edges(pieces, place, "the text of a section");
                    } else if let Err(stop) = &under.pieces {
                        let message =
                            "whitespace at the edge of a section is printed: a section tree removes it";
                        if let Some((_, text)) = &under.written
                            && (text.trim_start().starts_with('{') || text.trim_end().ends_with('}'))
                        {
                            self.report
                                .changed("text", message)
                                .at(Some(stop.place.clone()))
                                .spares(ReportedDifference::Space);
                        }
                    }
                    chunks.push(Chunk::text(heading));
                    chunks.push(under);
                }
                None => chunks.push(Chunk::text(heading.trim_end_matches('\n'))),
            }
            if let Some(examples) = node.tool_examples() {
                chunks.push(Chunk::text(examples));
            }
        }
        ends.iter().for_each(|_| chunks.push(condition("{% endif %}".to_owned(), None, tree)));
        Ok(chunks)
    }
}

/// A tag around sections that are there on a condition.
fn condition(tag: String, place: Option<&Place>, tree: &Tree) -> Chunk {
    let first = || tree.sections().first().and_then(|node| node.section.place.clone());
    let place = place.cloned().or_else(first).unwrap_or_else(|| Source::new("", "").place(0..0));
    Chunk {
        pieces: Err(UnsupportedPart { what: "a condition".to_owned(), place }),
        written: None,
        jinja: Some(tag),
        print: Print::Python,
        names: Vec::new(),
        comments: Vec::new(),
    }
}

fn stop(source: &Arc<Source>, not_plain: NotPlain) -> UnsupportedPart {
    UnsupportedPart { what: not_plain.what, place: source.place(not_plain.range) }
}

/// The front matter of the file that a prompt was read from, as it is written.
fn front_matter(prompt: &Prompt) -> Option<Node> {
    if !prompt.dialect.has_front_matter {
        return None;
    }
    let source = prompt.template.place(0..0).source().clone();
    let range = crate::dialect::front_range(&source)?;
    let document = crate::yaml::Document::parse(
        &source,
        range,
        crate::error::Code::BadFrontMatter,
        crate::error::ErrorKind::PromptRead,
    );
    document.ok().map(crate::yaml::Document::into_root)
}
