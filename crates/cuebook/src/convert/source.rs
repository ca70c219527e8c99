//! From a prompt to a draft. What no other notation than its own can say is told here.

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::draft::{Chunk, Draft, Input, Language, Piece, Print, Stop};
use super::report::Report;
use super::words::{is_marker, lines, noun};
use crate::chat::{Marker, Role};
use crate::error::Result;
use crate::library::{Config, Defaults};
use crate::node::{Data, Node};
use crate::prepared::Prepared;
use crate::prompt::{Dialect, Limits, Need, Permissions, Prompt, Type, Variable};
use crate::sections::{Body, Selector};
use crate::source::{Place, Source};
use crate::template::bits::{Absent, Beyond, Bit};
use crate::template::dollar::{self, Missing};
use crate::template::input::NOBODY;
use crate::template::jinja::{self, Settings, Style};
use crate::template::mustache;

/// How deep Mustache sections may lie in each other here, where nothing is rendered.
const DEEPEST: usize = 500;

/// Makes drafts of one prompt.
pub(super) struct Drafting<'p> {
    pub(super) prepared: &'p Prepared,
    pub(super) target: Dialect,
    pub(super) config: &'p Config,
    pub(super) defaults: &'p Defaults,
    pub(super) report: &'p mut Report,
}

impl Drafting<'_> {
    pub(super) fn draft(mut self) -> Result<Draft> {
        let prompt = self.prepared.prompt();
        let front = front_matter(prompt);
        let inputs = self.inputs(prompt, front.as_ref());
        let words = match prompt.dialect {
            Dialect::Template => vec![self.jinja(&prompt.template, self.config.template_settings(false))],
            Dialect::Prompty => vec![self.prompty_text(prompt)?],
            Dialect::Sections => self.sections()?,
            Dialect::Directive => self.directive(),
        };
        let mut draft = Draft {
            id: prompt.id.rsplit('/').next().unwrap_or(&prompt.id).to_owned(),
            from: prompt.dialect,
            name: Some(prompt.metadata.name.clone()).filter(|name| *name != prompt.id),
            version: Some(prompt.metadata.version.clone()),
            kind: Some(prompt.metadata.kind.clone())
                .filter(|kind| kind != "custom" && prompt.dialect != Dialect::Directive),
            description: prompt.metadata.description.clone(),
            extra: self.extra(prompt),
            inputs,
            words,
            role: if prompt.dialect == Dialect::Directive { Role::User } else { Role::System },
            model: self.model(prompt, front.as_ref()),
            tools: self.tools(prompt),
            outputs: self.outputs(prompt, front.as_ref()),
            max_output_size: prompt.limits.max_output_size,
            renamed: Default::default(),
        };
        if draft.name.as_deref() == Some(&draft.id) {
            draft.name = None;
        }
        match prompt.dialect {
            Dialect::Template => self.own_of_template(prompt),
            Dialect::Prompty => {
                self.own_of_prompty(front.as_ref(), prompt);
                self.roles(prompt, &mut draft);
            }
            Dialect::Sections => self.own_of_sections(front.as_ref(), prompt),
            Dialect::Directive => self.own_of_directive(),
        }
        for chunk in &mut draft.words {
            chunk.keep_names();
        }
        self.certain(&mut draft);
        Ok(draft)
    }

    // ---- the text

    fn jinja(&mut self, source: &Arc<Source>, settings: Settings) -> Chunk {
        let text = source.text();
        let keeps = settings.keep_trailing_newline;
        let written = if keeps { text } else { text.strip_suffix('\n').unwrap_or(text) };
        let pieces = match jinja::bits::bits(text, &settings) {
            Ok(found) => {
                if self.target == Dialect::Directive {
                    self.comments(source, &found.comments);
                }
                Ok(self.pieces(source, found.bits))
            }
            Err(beyond) => Err(stop(source, beyond)),
        };
        let print = if settings.style == Style::Portable { Print::Portable } else { Print::Python };
        Chunk { names: self.names(), pieces, written: Some((Language::Jinja, written.to_owned())), print }
    }

    fn comments(&mut self, source: &Arc<Source>, comments: &[std::ops::Range<usize>]) {
        for range in comments {
            self.report
                .lost("comments", "a comment of the template is left out: the text of the target has none")
                .at(Some(source.place(range.clone())))
                .hint("keep it in the description, if it matters to whoever uses the prompt");
        }
    }

    fn prompty_text(&mut self, prompt: &Prompt) -> Result<Chunk> {
        let source = &prompt.template;
        let settings = self.config.template_settings(false).portable();
        Ok(match prompt.format.engine.as_str() {
            "mustache" => {
                let escape = prompt.format.options.get("escape") != Some(&Json::Bool(false));
                self.mustache(source, escape)?
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
        Chunk { pieces: Err(Stop { what, place }), written: None, print: Print::Python, names: Vec::new() }
    }

    fn mustache(&mut self, source: &Arc<Source>, escape: bool) -> Result<Chunk> {
        let pieces = match mustache::bits::bits(source, DEEPEST, escape)? {
            Ok(bits) => Ok(self.pieces(source, bits)),
            Err(beyond) => Err(stop(source, beyond)),
        };
        Ok(Chunk {
            names: self.names(),
            pieces,
            written: Some((Language::Mustache { escape }, source.text().to_owned())),
            print: Print::Mustache,
        })
    }

    fn dollar(&mut self, source: &Arc<Source>, missing: Missing) -> Chunk {
        let template = dollar::Template::compile(source.clone());
        let pieces = match template.bits(missing) {
            Ok(bits) => Ok(self.pieces(source, bits)),
            Err(beyond) => Err(stop(source, beyond)),
        };
        let names = template.placeholders().to_vec();
        Chunk { pieces, written: None, print: Print::Python, names }
    }

    /// Bits as pieces. What the environment says is nobody's but a directive's, and HTML nobody's but Mustache's.
    fn pieces(&mut self, source: &Arc<Source>, bits: Vec<Bit>) -> Vec<Piece> {
        let variables = &self.prepared.prompt().variables;
        let rich: Vec<&str> =
            variables.iter().filter(|it| it.rich.is_some()).map(|it| it.name.as_str()).collect();
        let mut pieces = Vec::new();
        for bit in bits {
            pieces.push(match bit {
                Bit::Text { text, .. } => Piece::Text(text),
                Bit::Value { name, range, .. } if rich.contains(&name.as_str()) => {
                    let message = format!("`{name}` is no text, and nothing stands where it stood");
                    let hint = "put conversations, pictures, files and sounds into messages of their own";
                    self.report.lost("inputs", message).at(Some(source.place(range))).hint(hint).in_text();
                    continue;
                }
                Bit::Value { name, absent, escaped, range } => {
                    if escaped && self.target == Dialect::Template
                        || escaped && self.target == Dialect::Directive
                    {
                        let message = format!(
                            "the value of `{name}` is shown as it is, and no longer escaped for HTML"
                        );
                        let hint =
                            "if that is what was meant all along, write {{{…}}} in the Mustache template";
                        self.report
                            .changed("text", message)
                            .at(Some(source.place(range)))
                            .hint(hint)
                            .in_text();
                    }
                    Piece::Value { name, absent }
                }
                Bit::Environment { name, otherwise, range } => {
                    let message =
                        format!("the environment's `{name}` does not show: only directives ask for it");
                    let hint = format!("make it an input, and pass it: --var {name}=\"${name}\"");
                    self.report.lost("text", message).at(Some(source.place(range))).hint(hint).in_text();
                    Piece::Text(otherwise)
                }
            });
        }
        pieces
    }

    /// Every name that the prompt's texts mention.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.prepared.reads().into_iter().map(|(read, _)| read.root).collect();
        names.sort();
        names.dedup();
        names
    }

    fn directive(&mut self) -> Vec<Chunk> {
        let Some(directive) = self.prepared.directive() else { return Vec::new() };
        let mut chunks = Vec::new();
        let preamble = directive.shown_preamble();
        let takes_all = directive.inputs.is_empty();
        let is_given = |name: &str| {
            name != NOBODY && (takes_all || directive.inputs.iter().any(|input| input.name == name))
        };
        let bits = directive.template().bits(is_given);
        if !preamble.is_empty() {
            let between = if bits.is_empty() { "" } else { "\n\n" };
            chunks.push(Chunk::text(format!("{preamble}{between}")));
        }
        let pieces = self.pieces(&directive.source, bits);
        self.edges(&pieces, directive.source.place(directive.template().range()), "the body of a directive");
        chunks.push(Chunk { pieces: Ok(pieces), written: None, print: Print::Json, names: self.names() });
        chunks
    }

    /// A value at an edge of a text that is stripped.
    fn edges(&mut self, pieces: &[Piece], place: Place, of: &str) {
        for (edge, piece) in [("beginning", pieces.first()), ("end", pieces.last())] {
            if let Some(Piece::Value { name, .. }) = piece {
                let message = format!(
                    "white space that `{name}` brings at the {edge} shows: around {of} it is taken away"
                );
                self.report
                    .changed("text", message)
                    .at(Some(place.clone()))
                    .hint("write a word before it, or pass values without white space around them")
                    .in_text();
            }
        }
    }

    fn sections(&mut self) -> Result<Vec<Chunk>> {
        let Some(tree) = self.prepared.tree() else { return Ok(Vec::new()) };
        let missing = self.prepared.missing();
        let mut chunks: Vec<Chunk> = Vec::new();
        let nodes = tree.sections();
        let mut at = 0;
        while let Some(node) = nodes.get(at) {
            at += 1;
            let section = &node.section;
            if let Selector::Always(false) = section.enabled {
                let message = format!("the section `{}` is turned off, and left out", node.dotted());
                self.report
                    .lost("sections", message)
                    .at(section.enabled_place.clone())
                    .hint("turn it on before, if it is to be kept");
                at = node.end();
                continue;
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
                        "mustache" => Some(self.mustache(text, true)?),
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
                        let message = "white space that the template makes at an edge of its section shows: around a section it is taken away";
                        if let Some((_, text)) = &under.written
                            && (text.trim_start().starts_with('{') || text.trim_end().ends_with('}'))
                        {
                            self.report.changed("text", message).at(Some(stop.place.clone())).in_text();
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
        Ok(chunks)
    }

    // ---- roles

    /// Takes the one role marker away that a text may begin with; several make messages that no other notation has.
    fn roles(&mut self, prompt: &Prompt, draft: &mut Draft) {
        let [chunk] = draft.words.as_mut_slice() else { return };
        let source = &prompt.template;
        let text = source.text();
        let mut at = 0;
        let mut markers: Vec<(Role, std::ops::Range<usize>)> = Vec::new();
        for line in text.split_inclusive('\n') {
            let range = at..at + line.len();
            at = range.end;
            if let Some(role) = role_of(line.trim_end_matches('\n')) {
                markers.push((role, range));
            }
        }
        if let Ok(pieces) = &chunk.pieces {
            // What is quoted in a template is text, and no marker.
            let real = lines(pieces).iter().filter(|line| is_marker(line)).count();
            if real == 0 {
                markers.clear();
            }
        }
        let is_first = |range: &std::ops::Range<usize>| text[..range.start].trim().is_empty();
        match markers.as_slice() {
            [] => {}
            [(role, range)] if is_first(range) => {
                let line = &text[range.clone()];
                if line.contains('[') {
                    let message = "the attributes of the message are left out";
                    self.report.lost("roles", message).at(Some(source.place(range.start..range.end)));
                }
                draft.role = role.clone();
                let end = range.end;
                if let Some((_, written)) = &mut chunk.written {
                    *written = written.get(end..).unwrap_or_default().trim_matches('\n').to_owned();
                }
                if let Ok(pieces) = &mut chunk.pieces {
                    without_first_line(pieces);
                }
            }
            [(_, first), ..] => {
                let message = format!(
                    "the text has {} messages, and a {} is one: the lines that begin them are text in it",
                    markers.len(),
                    noun(self.target)
                );
                let hint =
                    "only .prompty files have several; split the prompt, or let the program add the others";
                self.report.lost("roles", message).at(Some(source.place(first.clone()))).hint(hint);
            }
        }
    }

    // ---- what is taken

    fn inputs(&mut self, prompt: &Prompt, front: Option<&Node>) -> Vec<Input> {
        let variables = prompt.variables.iter();
        variables.filter_map(|variable| self.input(variable, front, prompt.dialect)).collect()
    }

    fn input(&mut self, variable: &Variable, front: Option<&Node>, from: Dialect) -> Option<Input> {
        let target = self.target;
        let place = variable.place.clone();
        let name = &variable.name;
        let has_front = matches!(target, Dialect::Prompty | Dialect::Sections);
        if let Some(rich) = variable.rich {
            let message = format!(
                "the input `{name}` is of the kind `{}`, which only .prompty files have",
                rich.as_str()
            );
            self.report.lost("inputs", message).at(place).hint("put it into a message of its own");
            return None;
        }
        let (mut kind_name, mut more) = (None, Map::new());
        if let Some(Data::Map(entries)) = front.and_then(|front| declared(front, name)).map(|node| &node.data)
        {
            for (key, node) in entries {
                match key.name.as_str() {
                    "name" | "description" | "required" | "default" | "enumValues" | "strict" => {}
                    "kind" | "type" => kind_name = node.text().map(str::to_owned),
                    _ => drop(more.insert(key.name.clone(), node.to_json())),
                }
            }
        }
        let mut input = Input {
            name: name.clone(),
            need: variable.need,
            kind: variable.kind,
            kind_name: kind_name.filter(|_| has_front),
            description: variable.description.clone(),
            default: variable.default.clone(),
            choices: variable.choices.clone(),
            strict: variable.strict,
            more,
            place: place.clone(),
        };
        if !has_front && !input.more.is_empty() {
            let keys: Vec<&str> = input.more.keys().map(String::as_str).collect();
            let message = format!("what `{name}` looks like inside is left out: {}", keys.join(", "));
            self.report.lost("inputs", message).at(place.clone()).hint("say it in the description");
        }
        if !has_front && !input.choices.is_empty() {
            let message = format!("the values that `{name}` may have are left out");
            self.report.lost("inputs", message).at(place.clone()).hint("say them in the description");
        }
        if variable.is_secret {
            let message =
                format!("the default of `{name}` comes from the environment, and is not written down");
            let hint = "pass it with --var, or make it required";
            self.report.lost("inputs", message).at(place.clone()).hint(hint).in_text();
            input.default = None;
        }
        if input.strict && target != Dialect::Prompty {
            let message =
                format!("`{name}` refuses values that look like a role marker, which only .prompty files do");
            self.report
                .lost("inputs", message)
                .at(place.clone())
                .hint("without roles there is nothing to forge");
            input.strict = false;
        }
        if variable.need == Need::Custom {
            let message =
                format!("`{name}` is a point at which users adapt the prompt, and becomes optional");
            self.report
                .changed("inputs", message)
                .at(place.clone())
                .hint("say in the description who is to set it");
            input.need = Need::Optional;
        }
        if variable.from_system {
            let message = format!("the system no longer gives `{name}`: whoever renders the prompt must");
            let hint = match has_front {
                true => format!("write {{{{ system.{name} }}}} in its stead"),
                false => format!("pass it: --var {name}=…"),
            };
            self.report.changed("inputs", message).at(place.clone()).hint(hint).in_text();
            if input.default.is_none() {
                input.need = Need::Required;
            }
        }
        if from == Dialect::Directive
            && let Some(Json::String(text)) = &input.default
        {
            // In XML everything is text.
            match (input.kind, serde_json::from_str::<Json>(text)) {
                (Type::String | Type::Any, _) => {}
                (kind, Ok(value)) if kind.admits(&value) && value.to_string() == *text => {
                    input.default = Some(value)
                }
                (kind, _) => {
                    let message = format!(
                        "the default {text:?} of `{name}` is no {}, so that its type is left out",
                        kind.as_str()
                    );
                    self.report
                        .changed("inputs", message)
                        .at(place.clone())
                        .hint("change the default or the type");
                    input.kind = Type::Any;
                }
            }
        }
        if target == Dialect::Template
            && input.default.as_ref().is_some_and(|value| !input.kind.admits(value))
        {
            let message = format!(
                "the default of `{name}` is no {}, so that its type is left out",
                input.kind.as_str()
            );
            self.report.changed("inputs", message).at(place).hint("change the default or the type");
            input.kind = Type::Any;
        }
        Some(input)
    }

    /// A value that a text cannot do without is required; one that is always there needs no words for its absence.
    fn certain(&mut self, draft: &mut Draft) {
        let mut needed: Vec<String> = Vec::new();
        for piece in draft.words.iter().filter_map(|chunk| chunk.pieces.as_ref().ok()).flatten() {
            if let Piece::Value { name, absent: Absent::Fails } = piece {
                needed.push(name.clone());
            }
        }
        for name in needed {
            match draft.inputs.iter_mut().find(|input| input.name == name) {
                Some(input) if input.default.is_none() => input.need = Need::Required,
                Some(_) => {}
                None => draft.inputs.push(Input {
                    name,
                    need: Need::Required,
                    kind: Type::Any,
                    kind_name: None,
                    description: None,
                    default: None,
                    choices: Vec::new(),
                    strict: false,
                    more: Map::new(),
                    place: None,
                }),
            }
        }
        let certain: Vec<String> =
            draft.inputs.iter().filter(|input| input.is_certain()).map(|input| input.name.clone()).collect();
        for chunk in &mut draft.words {
            for piece in chunk.pieces.iter_mut().flatten() {
                if let Piece::Value { name, absent } = piece
                    && certain.contains(name)
                {
                    *absent = Absent::Nothing;
                }
            }
        }
    }

    // ---- everything else

    /// What its author noted, without what every prompt of the project has and what has a place of its own.
    fn extra(&self, prompt: &Prompt) -> Map<String, Json> {
        let own = ["limits", "permissions", "acknowledged_risks", "context", "outputs", "category"];
        let mut extra = prompt.metadata.extra.clone();
        extra.retain(|key, value| {
            self.defaults.metadata.get(key) != Some(value)
                && !(prompt.dialect == Dialect::Directive && own.contains(&key.as_str()))
        });
        extra
    }

    fn model(&mut self, prompt: &Prompt, front: Option<&Node>) -> Option<(Map<String, Json>, Option<Place>)> {
        let model = prompt.model.as_ref()?;
        let place = front.and_then(|front| front.entry("model")).map(|(key, _)| key.place.clone());
        let Json::Object(mut object) = model.to_json() else { return None };
        if let Some(Json::Object(connection)) = object.get_mut("connection") {
            let mut hidden = Vec::new();
            connection.retain(|key, value| {
                let is_secret = matches!(crate::redact::kind_of_name(key), crate::redact::Name::Secret);
                let is_reference = value.as_str().is_some_and(|text| text.starts_with("${"));
                if is_secret && !is_reference {
                    hidden.push(key.clone());
                }
                !is_secret || is_reference
            });
            for key in hidden {
                let message = format!("the connection's `{key}` is a key, and is not copied");
                self.report
                    .lost("model", message)
                    .at(place.clone())
                    .hint("keep it in the environment, and write ${env:NAME}");
            }
        }
        if object.get("id").and_then(Json::as_str) == Some("") {
            object.remove("id");
        }
        Some((object, place))
    }

    fn tools(&mut self, prompt: &Prompt) -> Vec<(Map<String, Json>, Option<Place>)> {
        if let Some(tree) = self.prepared.tree() {
            return self.section_tools(tree);
        }
        let object = |tool: &crate::prompt::Tool| match tool.to_json() {
            Json::Object(object) => (object, tool.place.clone()),
            _ => (Map::new(), tool.place.clone()),
        };
        prompt.tools.iter().map(object).collect()
    }

    fn section_tools(&mut self, tree: &crate::sections::Tree) -> Vec<(Map<String, Json>, Option<Place>)> {
        let mut tools = Vec::new();
        for tool in tree.sections().iter().flat_map(|node| &node.section.tools) {
            let mut object = Map::new();
            object.insert("name".into(), json!(tool.name));
            object.insert("kind".into(), json!("function"));
            object.insert("description".into(), json!(tool.description));
            if let Some(record) = &tool.params {
                object.insert("parameters".into(), super::shape::properties(record));
            }
            if !tool.accepts_overrides {
                let message = format!("that overrides may not change `{}` is left out", tool.name);
                self.report.lost("tools", message).at(tool.place.clone());
            }
            tools.push((object, tool.place.clone()));
        }
        tools
    }

    fn outputs(&mut self, prompt: &Prompt, front: Option<&Node>) -> Vec<(Map<String, Json>, Option<Place>)> {
        if let Some(directive) = self.prepared.directive() {
            return self.directive_outputs(directive);
        }
        let key = |name: &str| front.and_then(|front| front.entry(name)).map(|(key, _)| key.place.clone());
        let place = key("outputs").or_else(|| key("output"));
        let object = |output: &crate::prompt::Property| match output.to_json() {
            Json::Object(object) => (object, output.place.clone().or_else(|| place.clone())),
            _ => (Map::new(), place.clone()),
        };
        prompt.outputs.iter().map(object).collect()
    }

    fn directive_outputs(
        &mut self,
        directive: &crate::dialect::directive::Directive,
    ) -> Vec<(Map<String, Json>, Option<Place>)> {
        let mut outputs = Vec::new();
        for output in directive.outputs.iter().filter(|output| !output.name.is_empty()) {
            let mut object = Map::new();
            object.insert("name".into(), json!(output.name.as_str()));
            let kind = match output.kind() {
                Type::List => "array",
                kind => kind.as_str(),
            };
            object.insert("kind".into(), json!(kind));
            if let Some(description) = &output.description {
                object.insert("description".into(), json!(description.as_str()));
            }
            if !output.optional {
                object.insert("required".into(), json!(true));
            }
            outputs.push((object, Some(output.name.place())));
        }
        outputs
    }

    fn own_of_template(&mut self, prompt: &Prompt) {
        for hook in &prompt.hooks {
            let message = format!("the hook `{}` is left out: only templates have hooks", hook.name);
            let hint = "call what it does in your program, before or behind the render; Book::with_hooks takes functions for any prompt";
            self.report.lost("hooks", message).at(Some(hook.place.clone())).hint(hint).in_text();
        }
        let place = prompt.code.as_ref().map(|code| code.place(0..0));
        if let Some(parent) = &prompt.metadata.extends {
            let message = format!("the variables of `{parent}` are copied: they no longer follow it");
            self.report
                .changed("extends", message)
                .at(place.clone())
                .hint("change them here as well when it changes");
        }
        if prompt.permissions != Permissions::default() {
            let granted = prompt.permissions.granted().join(", ");
            self.report
                .lost("permissions", format!("what hooks may do is left out with them: {granted}"))
                .at(place.clone());
        }
        let standard = Limits::default();
        if prompt.limits.max_execution_time != standard.max_execution_time {
            self.report.lost("limits", "how long hooks may take is left out with them").at(place.clone());
        }
        let known = [standard.max_output_size, 1_000_000, self.defaults.max_output_size.unwrap_or(0)];
        if !known.contains(&prompt.limits.max_output_size) {
            let message = format!("the limit of {} characters is left out", prompt.limits.max_output_size);
            self.report
                .lost("limits", message)
                .at(place)
                .hint("`max_output_size` in defaults.json holds for all prompts");
        }
        if let Some(code) = &prompt.code {
            self.line_comments(code, 0..code.text().len(), "prompt.py");
        }
        if self.prepared.has_code() && prompt.hooks.is_empty() && self.target == Dialect::Directive {
            let message = "variable providers do not fill directives";
            self.report.lost("providers", message).hint("pass what they provide as inputs").in_text();
        }
    }

    /// Comments that begin with `#` and stand on lines of their own.
    fn line_comments(&mut self, source: &Arc<Source>, range: std::ops::Range<usize>, of: &str) {
        let text = &source.text()[range.clone()];
        let mut found: Vec<std::ops::Range<usize>> = Vec::new();
        let mut at = range.start;
        for line in text.split_inclusive('\n') {
            let bare = line.trim();
            if bare.starts_with('#') && !bare.starts_with("#!") {
                let start = at + line.find('#').unwrap_or_default();
                found.push(start..start + bare.len());
            }
            at += line.len();
        }
        if let Some(first) = found.first() {
            let message = match found.len() {
                1 => format!("a comment in the {of} is left out"),
                count => format!("{count} comments in the {of} are left out"),
            };
            self.report
                .lost("comments", message)
                .at(Some(source.place(first.clone())))
                .hint("copy what still matters by hand");
        }
    }

    fn own_of_prompty(&mut self, front: Option<&Node>, prompt: &Prompt) {
        const KNOWN: [&str; 12] = [
            "name",
            "displayName",
            "description",
            "metadata",
            "model",
            "inputs",
            "outputs",
            "tools",
            "template",
            "kind",
            "version",
            "authors",
        ];
        let Some(root) = front else { return };
        self.unknown_keys(root, &KNOWN);
        if let (Some(name), Some(_)) = (root.entry("name"), root.get("displayName")) {
            let message = "the file has a `name` and a `displayName`, and only the latter is kept";
            self.report.lost("metadata", message).at(Some(name.0.place.clone()));
        }
        if prompt.format.parser.as_deref() != Some("prompty") || !prompt.format.parser_options.is_empty() {
            let message = "what makes messages of the text is left out";
            self.report.lost("roles", message).at(prompt.format.parser_place.clone());
        }
        let known = ["scalars", "escape", "missing"];
        for option in prompt.format.options.keys().filter(|option| !known.contains(&option.as_str())) {
            let message = format!("the option `{option}` of the engine is left out");
            self.report.lost("engine", message).at(prompt.format.engine_place.clone());
        }
        self.front_comments(root);
    }

    fn front_comments(&mut self, root: &Node) {
        let source = root.place.source().clone();
        let end = front_end(&source);
        self.line_comments(&source, 0..end, "front matter");
    }

    fn unknown_keys(&mut self, root: &Node, known: &[&str]) {
        let Data::Map(entries) = &root.data else { return };
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.name.as_str())) {
            let message = format!("`{}` means nothing to Cuebook, and is left out", key.name);
            let hint = "move it into `metadata`, if it is a note";
            self.report.lost("metadata", message).at(Some(key.place.clone())).hint(hint);
        }
    }

    fn own_of_sections(&mut self, front: Option<&Node>, prompt: &Prompt) {
        const KNOWN: [&str; 12] = [
            "ns",
            "key",
            "name",
            "description",
            "metadata",
            "inputs",
            "output",
            "headings",
            "missing",
            "model",
            "engine",
            "kind",
        ];
        if let Some(root) = front {
            self.unknown_keys(root, &KNOWN);
            for key in ["ns", "key"] {
                if let Some((key, _)) = root.entry(key) {
                    let message =
                        format!("`{}` is left out: overrides find only trees of sections by it", key.name);
                    self.report.lost("sections", message).at(Some(key.place.clone()));
                }
            }
            self.front_comments(root);
        }
        let Some(tree) = self.prepared.tree() else { return };
        let _ = prompt;
        for node in tree.sections() {
            let section = &node.section;
            let named = node.dotted();
            let place = section.place.clone();
            if let Some(summary) = &section.summary {
                let message = format!("the summary of `{named}` is left out: only sections have one");
                self.report.lost("sections", message).at(Some(summary.place(0..summary.text().len())));
            }
            if !matches!(section.visibility, Selector::Always(crate::prompt::Visibility::Full)) {
                let message = format!("`{named}` is always shown in full: only sections can be folded");
                let hint = "a shorter prompt of its own may do for whoever needs less";
                self.report
                    .lost("sections", message)
                    .at(section.visibility_place.clone().or_else(|| place.clone()))
                    .hint(hint)
                    .in_text();
            }
            if let Selector::Asked(_) = section.enabled {
                let message = format!("`{named}` is always there: its condition is left out");
                let hint = "write the condition around the text by hand: {% if … %}…{% endif %}";
                self.report
                    .lost("sections", message)
                    .at(section.enabled_place.clone().or_else(|| place.clone()))
                    .hint(hint)
                    .in_text();
            }
            for skill in &section.skills {
                let message = format!("the skill `{}` of `{named}` is left out", skill.name);
                self.report.lost("skills", message).at(place.clone());
            }
            if section.priority != 0 || !section.accepts_overrides {
                let message = format!("what `{named}` says about priorities and overrides is left out");
                self.report.lost("sections", message).at(place.clone());
            }
        }
    }

    fn own_of_directive(&mut self) {
        let Some(directive) = self.prepared.directive() else { return };
        let source = &directive.source;
        let element = |name: &str| {
            let found = directive.content().find(&format!("<{name}"))?;
            let start = source.text().find(directive.content())? + found;
            Some(source.place(start..start + name.len() + 1))
        };
        let own: [(&'static str, bool, &str); 4] = [
            (
                "limits",
                directive.limits.is_some(),
                "how far a thread may go is left out: only directives say it",
            ),
            (
                "permissions",
                directive.permissions.is_some(),
                "what a thread may do is left out: only directives say it",
            ),
            (
                "hooks",
                directive.hooks.is_some(),
                "what happens at certain moments of a thread is left out: only directives say it",
            ),
            (
                "context",
                directive.context.is_some(),
                "the knowledge that a thread is given is left out: only directives name it",
            ),
        ];
        for (about, is_there, message) in own {
            if is_there {
                let hint = "what runs the prompt has to see to it; --max-turns, --max-spend and the like of cuebook run do for limits";
                let adding = self.report.lost(about, message).at(element(about));
                match about {
                    "limits" => drop(adding.hint(hint)),
                    _ => drop(adding),
                }
            }
        }
        if let Some(parent) = &directive.extends {
            let message = format!(
                "what `{}` gives to those that extend it is left out: context and permissions",
                parent.as_str()
            );
            self.report.lost("extends", message).at(Some(parent.place()));
        }
        for action in &directive.actions {
            let primary = action.get("primary").and_then(Json::as_str).unwrap_or_default();
            let message = format!("the action <{primary}> is left out: only directives have actions");
            self.report
                .lost("actions", message)
                .at(element(primary))
                .hint("say it in the text, and give the model a tool");
        }
        if !directive.templates.is_empty() {
            let message = "what stands in <template>, <example> and <raw> is left out: no model is shown it";
            self.report
                .lost("metadata", message)
                .at(element("template").or_else(|| element("example")).or_else(|| element("raw")));
        }
        if directive.content().contains("<!--") {
            self.report.lost("comments", "comments in the XML are left out").at(element("!--"));
        }
        if let Some(category) = directive.category.as_ref().filter(|category| !category.is_empty()) {
            let message = format!(
                "the category `{}` is left out: other prompts are found by their folders",
                category.as_str()
            );
            self.report.note("metadata", message).at(Some(category.place()));
        }
        let message = "a directive is said by the user, with an instruction, its name, its description and how to return results around the text: the text alone is kept";
        self.report.note("frame", message);
    }
}

fn stop(source: &Arc<Source>, beyond: Beyond) -> Stop {
    Stop { what: beyond.what, place: source.place(beyond.range) }
}

/// The role that a line of a template begins. What stands in a tag is a value.
fn role_of(line: &str) -> Option<Role> {
    let mut atoms: Vec<(bool, &str)> = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("{{") {
        let Some(length) = rest[at..].find("}}") else { break };
        atoms.push((true, &rest[..at]));
        atoms.push((false, "x"));
        rest = rest[at + length + 2..].trim_start_matches('}');
    }
    atoms.push((true, rest));
    Marker::role_of(atoms)
}

/// Takes the marker away that the first line with words is, and the newlines around what is left.
fn without_first_line(pieces: &mut Vec<Piece>) {
    // Everything up to the newline behind the marker goes, also a value in one of its attributes.
    let mut marked = false;
    let mut kept: Vec<Piece> = Vec::new();
    for piece in pieces.drain(..) {
        match piece {
            piece if marked => kept.push(piece),
            Piece::Text(text) => {
                let start = if kept.is_empty() { text.len() - text.trim_start().len() } else { 0 };
                if let Some(newline) = text[start..].find('\n') {
                    marked = true;
                    kept.push(Piece::Text(text[start + newline + 1..].to_owned()));
                }
            }
            Piece::Value { .. } => {}
        }
    }
    if let Some(Piece::Text(text)) = kept.first_mut() {
        *text = text.trim_start_matches('\n').to_owned();
    }
    if let Some(Piece::Text(text)) = kept.last_mut() {
        *text = text.trim_end_matches('\n').to_owned();
    }
    *pieces = kept;
}

/// The front matter of the file that a prompt was read from, as it is written.
fn front_matter(prompt: &Prompt) -> Option<Node> {
    if !matches!(prompt.dialect, Dialect::Prompty | Dialect::Sections) {
        return None;
    }
    let source = prompt.template.place(0..0).source().clone();
    let range = crate::dialect::front_range(&source)?;
    let document = crate::yaml::Document::parse(
        &source,
        range,
        crate::Code::BadFrontMatter,
        crate::ErrorKind::PromptRead,
    );
    document.ok().map(crate::yaml::Document::into_root)
}

/// Where the front matter of a file ends.
fn front_end(source: &Arc<Source>) -> usize {
    crate::dialect::front_range(source).map_or(0, |range| range.end)
}

/// What front matter says of an input.
fn declared<'n>(front: &'n Node, name: &str) -> Option<&'n Node> {
    let inputs = front.get("inputs")?;
    match &inputs.data {
        Data::List(items) => items.iter().find(|item| item.get("name").and_then(Node::text) == Some(name)),
        _ => inputs.get(name),
    }
}
