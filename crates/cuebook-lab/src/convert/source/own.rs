//! What only one notation can say: it is lost in all others, and reported.

use crate::error::Hint;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value as Json;

use super::Drafting;
use crate::chat::ROLES;
use crate::convert::BuiltIn;
use crate::convert::reported_differences::ReportedDifference;
use crate::dialect::python::{self, Module};
use crate::node::{Data, Node};
use crate::prepared::Prepared;
use crate::prompt::{Limits, Permissions, Prompt};
use crate::sections::{Body, Section, Selector};
use crate::source::{Place, Source};

impl Drafting<'_> {
    pub(super) fn own_of_template(&mut self, prompt: &Prompt) {
        for hook in &prompt.hooks {
            let message = format!("the hook `{}` is left out: only templates have hooks", hook.name);
            let hint = "call its code in your program before or after the render, or pass a function to \
                 Book::with_hooks";
            self.report
                .lost("hooks", message)
                .at(Some(hook.place.clone()))
                .hint(hint)
                .spares(ReportedDifference::Code);
        }
        let module = prompt.code.as_ref().and_then(|code| Module::parse(code).ok());
        let place = |name: &str| {
            let module = module.as_ref()?;
            Some(module.source().place(module.defines(name)?))
        };
        if let Some(parent) = &prompt.metadata.extends {
            let message = format!(
                "the variables of `{parent}` are copied: later changes of `{parent}` no longer apply"
            );
            self.report.changed("extends", message).at(place("METADATA")).hint("repeat such changes here");
        }
        if prompt.permissions != Permissions::default() {
            let granted = prompt.permissions.granted().join(", ");
            self.report
                .lost("permissions", format!("the permissions of the hooks are left out: {granted}"))
                .at(place("PERMISSIONS"))
                .hint("the result has no hooks");
        }
        let standard = Limits::default();
        if prompt.limits.max_execution_time != standard.max_execution_time {
            self.report.lost("limits", "the time limit of the hooks is left out").at(place("LIMITS"));
        }
        let limit = prompt.limits.max_output_size;
        let later = self.defaults.max_output_size.unwrap_or(Limits::GENEROUS_SIZE);
        let hint = "`max_output_size` under \"limits\" in defaults.json applies to all prompts";
        match place("LIMITS") {
            _ if limit == later => {}
            // That limit was not set by the user, and a text of that length is hardly ever intended.
            None => {
                let message =
                    format!("the text may have {later} characters: its own limit of {limit} is left out");
                self.report.note("limits", message).hint(hint);
            }
            stated => {
                let message = format!("the limit of {limit} characters is left out");
                self.report.lost("limits", message).at(stated).hint(hint);
            }
        }
        if let Some(code) = &prompt.code {
            self.comments(code, python::comments(code.text()), "prompt.py");
            if module.as_ref().and_then(Module::docstring).is_some() {
                let message = "the docstring of prompt.py is left out";
                let hint = "move it to the description";
                self.report.lost("comments", message).at(Some(code.place(0..3))).hint(hint);
            }
        }
        if self.prepared.has_code() && prompt.hooks.is_empty() && self.target == BuiltIn::Directive {
            let message = "variable providers do not set variables of directives";
            self.report
                .lost("providers", message)
                .hint("pass the values as inputs")
                .spares(ReportedDifference::Code);
        }
    }

    /// Tells of the same prompt in other languages, in files beside it.
    pub(super) fn variants(&mut self, prompt: &Prompt) {
        let used = prompt.template.name();
        let candidate = &self.prepared.found().candidate;
        let (Some(folder), Some((_, file))) = (candidate.root.path(&candidate.entry), used.rsplit_once('/'))
        else {
            return;
        };
        let base = match self.from {
            BuiltIn::Template => "template",
            BuiltIn::Sections => file.split('.').next().unwrap_or_default(),
            _ => return,
        };
        let end = if self.from == BuiltIn::Sections { ".sections" } else { "" };
        let is_tag = |tag: &str| tag.len() < 12 && tag.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let is_variant = |name: &str| {
            let tag = name.strip_prefix(base).and_then(|rest| rest.strip_prefix(end)?.strip_suffix(".md"));
            tag.is_some_and(|tag| tag.is_empty() || tag.strip_prefix('.').is_some_and(is_tag))
        };
        // A folder that cannot be listed has been read from all the same, so that this is about a file that is not seen.
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| is_variant(name) && name != file);
        names.sort();
        for name in names {
            let message = format!("the translation `{name}` is left out");
            let hint = "convert it separately: set `language` in cuebook.toml, and choose another name for the result";
            self.report.lost("variants", message).hint(hint);
        }
    }

    /// Tells of comments beside the text.
    fn comments(&mut self, source: &Arc<Source>, found: Vec<Range<usize>>, of: &str) {
        if let Some(first) = found.first() {
            let message = match found.len() {
                1 => format!("a comment in the {of} is left out"),
                count => format!("{count} comments in the {of} are left out"),
            };
            self.report
                .lost("comments", message)
                .at(Some(source.place(first.clone())))
                .hint("copy the comments you need by hand");
        }
    }

    pub(super) fn own_of_prompty(&mut self, front: Option<&Node>, prompt: &Prompt) {
        const KNOWN: [&str; 10] = [
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
        ];
        let Some(root) = front else { return };
        self.unknown_keys(root, &KNOWN);
        if let (Some(name), Some(_)) = (root.entry("name"), root.get("displayName")) {
            let message = "the file has a `name` and a `displayName`: only `displayName` is kept";
            self.report.lost("metadata", message).at(Some(name.0.place.clone()));
        }
        // The names of roles that a file declares are read, so nothing of them is lost.
        let is_read = |(name, value): (&String, &Json)| name == ROLES && value.is_object();
        if prompt.format.parser.as_deref() != Some("prompty")
            || !prompt.format.parser_options.iter().all(is_read)
        {
            let message = "the parser is left out";
            self.report.lost("roles", message).at(prompt.format.parser_place.clone());
        }
        let known = ["scalars", "escape", "missing"];
        for option in prompt.format.options.keys().filter(|option| !known.contains(&option.as_str())) {
            let message = format!("the option `{option}` of the engine is left out");
            self.report.lost("engine", message).at(prompt.format.engine_place.clone());
        }
        self.front_comments(root);
    }

    pub(super) fn front_comments(&mut self, root: &Node) {
        let source = root.place.source().clone();
        let found = yaml_comments(&source.text()[..front_end(&source)]);
        self.comments(&source, found, "front matter");
    }

    pub(super) fn unknown_keys(&mut self, root: &Node, known: &[&str]) {
        let Data::Map(entries) = &root.data else { return };
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.name.as_str())) {
            let message = format!("the unknown key `{}` is left out", key.name);
            let hint = "move it to `metadata` to keep it";
            self.report.lost("metadata", message).at(Some(key.place.clone())).hint(hint);
        }
    }

    pub(super) fn own_of_sections(&mut self, front: Option<&Node>, prompt: &Prompt) {
        if let Some(root) = front {
            self.unknown_keys(root, &crate::dialect::sections::KEYS);
            for key in ["ns", "key"] {
                if let Some((key, _)) = root.entry(key) {
                    let message =
                        format!("`{}` is left out: only section trees use it, to find overrides", key.name);
                    self.report.lost("sections", message).at(Some(key.place.clone()));
                }
            }
            self.front_comments(root);
        }
        let Some(tree) = self.prepared.tree() else { return };
        // A folder of overrides that cannot be read is an error of the render that uses them.
        let tags = self.prepared.override_tags().unwrap_or_default();
        if !tags.is_empty() {
            let message = format!("the project's overrides are left out: {}", tags.join(", "));
            let hint = Hint::run(
                "copy their texts into the sections first",
                format!("cuebook overrides show {}", prompt.id),
            );
            self.report.lost("overrides", message).hint(hint);
        }
        let keeps_conditions = self.keeps_conditions();
        for node in tree.sections() {
            let section = &node.section;
            let named = node.dotted();
            let place = section.place.clone();
            if let Some(summary) = &section.summary {
                let message = format!("the summary of `{named}` is left out: only sections have summaries");
                self.report.lost("sections", message).at(Some(summary.place(0..summary.text().len())));
            }
            if !matches!(section.visibility, Selector::Always(crate::prompt::Visibility::Full)) {
                let message = format!("`{named}` is always shown in full: only sections can be summarized");
                let hint = "write a separate, shorter prompt for callers that need less";
                self.report
                    .lost("sections", message)
                    .at(section.visibility_place.clone().or_else(|| place.clone()))
                    .hint(hint)
                    .spares(ReportedDifference::Folds);
            }
            let is_asked = matches!(section.enabled, Selector::Asked(_));
            for tool in section.tools.iter().filter(|_| is_asked && keeps_conditions) {
                let message = format!("the tool `{}` is always available, also without `{named}`", tool.name);
                if self.target == BuiltIn::Prompty {
                    self.report.changed("tools", message).at(place.clone());
                }
            }
            if is_asked && !keeps_conditions {
                let message = format!("the condition of `{named}` is left out: it is always shown");
                let hint = "write the condition into the text: {% if … %}…{% endif %}";
                self.report
                    .lost("sections", message)
                    .at(section.enabled_place.clone().or_else(|| place.clone()))
                    .hint(hint)
                    .spares(ReportedDifference::Conditions);
            }
            for skill in &section.skills {
                let message = format!("the skill `{}` of `{named}` is left out", skill.name);
                self.report.lost("skills", message).at(place.clone());
            }
            if section.priority != 0 || !section.accepts_overrides {
                let message = format!("the priorities and override settings of `{named}` are left out");
                self.report.lost("sections", message).at(place.clone());
            }
        }
    }

    /// Whether the conditions of all sections can be written around them. The first one is always there: what stands between two
    /// sections would else stand before the text.
    pub(super) fn keeps_conditions(&self) -> bool {
        let settings = self.config.template_settings(false);
        let is_safe = match self.target {
            BuiltIn::Template => !settings.trim_blocks && !settings.lstrip_blocks,
            BuiltIn::Prompty => true,
            _ => false,
        };
        let Some(tree) = self.prepared.tree().filter(|_| is_safe) else { return false };
        let is_on = |section: &Section| !matches!(section.enabled, Selector::Always(false));
        let is_asked = |section: &Section| matches!(section.enabled, Selector::Asked(_));
        let first = tree.sections().iter().map(|node| &node.section).find(|section| is_on(section));
        let fits = |section: &Section| {
            // Only sections know a session, and a tag ends where it ends.
            let condition = section.enabled_if.as_deref();
            let can_say = condition
                .is_some_and(|text| !text.contains(crate::variables::SESSION) && !text.contains("%}"));
            let is_jinja = match &section.body {
                Body::Template { engine, .. } => {
                    ["dollar", "jinja2", "jinja", "nunjucks"].contains(&engine.as_str())
                }
                Body::TaskExample(_) | Body::TaskExamples => true,
            };
            is_jinja && (!is_asked(section) || can_say)
        };
        first.is_some_and(|first| !is_asked(first)) && tree.sections().iter().all(|node| fits(&node.section))
    }

    pub(super) fn own_of_directive(&mut self) {
        let prepared = self.prepared;
        let Some(directive) = prepared.directive() else { return };
        let own: [(&'static str, bool, &str); 4] = [
            (
                "limits",
                directive.limits.is_some(),
                "the limits of a thread are left out: only directives have them",
            ),
            (
                "permissions",
                directive.permissions.is_some(),
                "the permissions of a thread are left out: only directives have them",
            ),
            (
                "hooks",
                directive.hooks.is_some(),
                "the hooks of a thread are left out: only directives have them",
            ),
            (
                "context",
                directive.context.is_some(),
                "the knowledge for a thread is left out: only directives name it",
            ),
        ];
        for (about, is_there, message) in own {
            if is_there {
                let hint = Hint::from("set it in the program that runs the prompt")
                    .or(Hint::command_line("for limits, use cuebook run --limit turns=6"));
                let adding = self.report.lost(about, message).at(element(self.prepared, about));
                match about {
                    "limits" => drop(adding.hint(hint)),
                    _ => drop(adding),
                }
            }
        }
        if let Some(parent) = &directive.extends {
            let message = format!(
                "the context and permissions that `{}` gives to its children are left out",
                parent.as_str()
            );
            self.report.lost("extends", message).at(Some(parent.place()));
        }
        for action in &directive.actions {
            let primary = action.get("primary").and_then(Json::as_str).unwrap_or_default();
            let message = format!("the action <{primary}> is left out: only directives have actions");
            self.report
                .lost("actions", message)
                .at(element(self.prepared, primary))
                .hint("write it in the text, and give the model a tool");
        }
        if !directive.templates.is_empty() {
            let message = "<template>, <example> and <raw> are left out: models do not see them";
            self.report.lost("metadata", message).at(element(self.prepared, "template")
                .or_else(|| element(self.prepared, "example"))
                .or_else(|| element(self.prepared, "raw")));
        }
        if directive.content().contains("<!--") {
            self.report
                .lost("comments", "comments in the XML are left out")
                .at(element(self.prepared, "!--"));
        }
        if let Some(category) = directive.category.as_ref().filter(|category| !category.is_empty()) {
            let message = format!(
                "the category `{}` is left out: other prompts are sorted by folder",
                category.as_str()
            );
            self.report.note("metadata", message).at(Some(category.place()));
        }
        let message = "only the text is kept: Cuebook no longer adds an instruction, its name, its description and \
             how to return results";
        self.report.note("frame", message);
    }
}

/// Where the front matter of a file ends.
fn front_end(source: &Arc<Source>) -> usize {
    crate::dialect::front_range(source).map_or(0, |range| range.end)
}

/// Where an element begins, if it is a directive that has one.
pub(super) fn element(prepared: &Prepared, name: &str) -> Option<Place> {
    let directive = prepared.directive()?;
    let source = &directive.source;
    let found = directive.content().find(&format!("<{name}"))?;
    let start = source.text().find(directive.content())? + found;
    Some(source.place(start..start + name.len() + 1))
}

/// Comments in YAML: from a `#` behind white space that stands in no quotes and in no block of text to the end of the line.
fn yaml_comments(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut at, mut quote) = (0, None);
    // The indent of the line whose block of text this is.
    let mut block: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let bare = line.trim();
        let indent = line.len() - line.trim_start().len();
        if block.is_some_and(|outer| bare.is_empty() || indent > outer) {
            continue;
        }
        block = None;
        let mut shown = bare;
        // A quote begins a text only where a value begins.
        let (mut before, mut last) = (' ', ':');
        let mut letters = line.char_indices();
        while let Some((index, letter)) = letters.next() {
            match (quote, letter) {
                (Some('"'), '\\') => drop(letters.next()),
                (Some(open), _) if letter == open => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') if ":-,[{?".contains(last) => quote = Some(letter),
                (None, '#') if before.is_whitespace() => {
                    found.push(start + index..start + line.trim_end().len());
                    shown = line[..index].trim();
                    break;
                }
                (None, _) => {}
            }
            before = letter;
            if !letter.is_whitespace() {
                last = letter;
            }
        }
        let header = shown.trim_end_matches(|letter: char| letter.is_ascii_digit() || "+-".contains(letter));
        let opens =
            header.ends_with(['|', '>']) && header[..header.len() - 1].trim_end().ends_with([':', '-']);
        if quote.is_none() && opens {
            block = Some(indent);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_of_front_matter_are_distinguished_from_texts() {
        let text = "---\na: 1 # one\n# two\nb: 'x # no'\nc: it's # three\nd: a#b\n";
        let shown: Vec<&str> = yaml_comments(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(shown, ["# one", "# two", "# three"]);
        let text = "a: \"x \\\" # no\"  # one\nb: |- # two\n  # no\n\n  no # no\nc: \"over\n  lines # no\" # three\nd: ['# no', x] # four\n";
        let shown: Vec<&str> = yaml_comments(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(shown, ["# one", "# two", "# three", "# four"]);
    }
}
