//! What would surprise a reader of the result, and is no error. `check` and every render report it.

use std::collections::HashMap;

use super::Prepared;
use crate::chat::models::{ModelInfo, enrich};
use crate::chat::{Marker, NO_ROLE, Role, Roles};
use crate::error::{Code, Diagnostic, Hint, nearest};
use crate::prompt::{PROMPTY, Rich};
use crate::render::DEFAULT_PROVIDER;
use crate::template::unit::Unit;
use crate::variables::{Context, DEFAULT_LANGUAGE};

/// Findings of reading a file that a render repeats.
const REPEATED: [Code; 2] = [Code::CarriageReturns, Code::KindAsDefault];

/// Bytes of a token, roughly. A render does not wait for a tokenizer.
const BYTES_OF_A_TOKEN: u64 = 4;

/// Tokens that the models of Anthropic read.
const WINDOW_OF_CLAUDE: u64 = 200_000;

/// Words that other tools use for roles.
const ALIASES: [(&str, &str); 8] = [
    ("human", "user"),
    ("customer", "user"),
    ("client", "user"),
    ("ai", "assistant"),
    ("bot", "assistant"),
    ("chatbot", "assistant"),
    ("model", "assistant"),
    ("agent", "assistant"),
];

/// Whether a render repeats a finding of reading the file.
pub(super) fn is_repeated(note: &Diagnostic) -> bool {
    REPEATED.contains(&note.code)
}

impl Prepared {
    /// What is surprising whatever the prompt is rendered with.
    fn surprises(&self) -> &[Diagnostic] {
        self.reports.surprises.get_or_init(|| {
            let mut found: Vec<Diagnostic> = self.empty_template().into_iter().collect();
            found.extend(self.opened_inputs());
            if self.prompt.dialect.has_roles {
                let roles = Roles::of(&self.prompt.format.parser_options);
                let outline = self.outline();
                found.extend(outline.units().iter().flat_map(|unit| self.changed_inputs(unit)));
                found.extend(outline.units().iter().flat_map(|unit| role_lines(unit, &roles)));
            }
            found
        })
    }

    /// What is surprising about a render.
    pub(super) fn surprises_of_render(&self, context: &Context, text: &str) -> Vec<Diagnostic> {
        let read = self.reports.notes.iter().filter(|note| is_repeated(note));
        let mut found: Vec<Diagnostic> = read.chain(self.surprises()).cloned().collect();
        if let Some(language) = context.language.as_deref().or(context.agent.language.as_deref()) {
            let is_setting = self.files.config.library.language.as_deref() == Some(language);
            found.extend(self.fallbacks(language, !is_setting));
        }
        found.extend(self.too_large(context.model.as_deref(), text.len(), "the rendered text"));
        found
    }

    /// What is surprising as far as it is known without a render.
    #[doc(hidden)]
    pub fn surprises_of_check(&self) -> Vec<Diagnostic> {
        let mut found = self.surprises().to_vec();
        found.extend(self.all_unprovided());
        let own = Some(self.files.loader.language()).filter(|language| *language != UNKNOWN_LANGUAGE);
        for language in own.into_iter().chain(self.files.config.library.language.as_deref()) {
            found.extend(self.fallbacks(language, false));
        }
        let size = self.outline().units().iter().map(|unit| unit.source().text().len()).sum();
        found.extend(self.too_large(None, size, "the text of the templates"));
        found
    }

    /// Templates that read the parts of a rich input, as a loop over a conversation does. They find only the placeholder.
    fn opened_inputs(&self) -> Vec<Diagnostic> {
        let mut findings = Vec::new();
        for (read, place) in self.reads() {
            let rich = self.prompt.variable(&read.root).and_then(|variable| variable.rich);
            if let Some(kind) = rich.filter(|_| read.path != read.root) {
                let (name, kind) = (&read.root, kind.as_str());
                let message =
                    format!("`{name}` is an input of the kind {kind}: a template cannot read its parts");
                let hint = format!("print all of it: {{{{ {name} }}}}");
                findings.push(Diagnostic::new(Code::ChangedNonce, message).at(place).hint(hint));
            }
        }
        findings
    }

    /// Tags that make another text of the placeholder of a rich input, such as a filter, or a loop over a conversation.
    fn changed_inputs(&self, unit: &Unit) -> Vec<Diagnostic> {
        let mut findings = Vec::new();
        let variables = self.prompt.variables.iter();
        let rich: Vec<(&str, Rich)> =
            variables.filter_map(|variable| Some((variable.name.as_str(), variable.rich?))).collect();
        let by_name: HashMap<&str, usize> =
            rich.iter().enumerate().map(|(index, (name, _))| (*name, index)).collect();
        for emission in unit.emissions().iter().filter(|_| !rich.is_empty()) {
            let roots = emission.paths.iter().filter_map(|path| path.split(['.', '[']).next());
            let mut shown: Vec<usize> = match emission.paths.iter().any(|path| path == ".") {
                true => (0..rich.len()).collect(),
                false => roots.filter_map(|root| by_name.get(root).copied()).collect(),
            };
            shown.sort_unstable();
            shown.dedup();
            // Part of it, or something that was made of it.
            let is_changed =
                |name: &str| emission.accessor.is_none() || emission.paths.iter().all(|path| path != name);
            let changed = shown.into_iter().map(|index| rich[index]).filter(|(name, _)| is_changed(name));
            for (name, kind) in changed {
                let kind = kind.as_str();
                let message = format!(
                    "`{name}` is an input of the kind {kind}: a template can only print it unchanged"
                );
                let hint = format!("write {{{{ {name} }}}}, without filters and operators");
                let place = unit.source().place(emission.range.clone());
                findings.push(Diagnostic::new(Code::ChangedNonce, message).at(place).hint(hint));
            }
        }
        findings
    }

    fn empty_template(&self) -> Option<Diagnostic> {
        let template = &self.prompt.template;
        let is_text = self.body.sections().is_none() && self.body.directive().is_none();
        if !is_text || !template.text().trim().is_empty() {
            return None;
        }
        let diagnostic = Diagnostic::new(Code::EmptyTemplate, "the template is empty");
        Some(diagnostic.file(template.name()).hint("write the text of the prompt into it"))
    }

    /// Templates that are read in the plain version because there is none in this language. If the caller asks for the
    /// language, the prompt's own template needs it; if that has it, so does every file that it includes. Otherwise only
    /// templates that have other languages do.
    fn fallbacks(&self, language: &str, is_asked: bool) -> Vec<Diagnostic> {
        let primary = |tag: &str| tag.to_lowercase().split(['-', '_']).next().unwrap_or_default().to_owned();
        let wanted = primary(language);
        // The plain version is the one in the default language.
        if wanted.is_empty() || wanted == primary(DEFAULT_LANGUAGE) || self.reads_language() {
            return Vec::new();
        }
        let own = self.prompt.template.name();
        let mut plain = self.files.loader.plain();
        if *self.prompt.dialect == PROMPTY {
            plain.push((own.to_owned(), Vec::new()));
        }
        let is_mixed = !plain.iter().any(|(file, _)| file == own);
        plain.retain(|(file, languages)| {
            !languages.iter().any(|tag| primary(tag) == wanted)
                && (!languages.is_empty() || is_mixed || (is_asked && file == own))
        });
        plain.into_iter().map(|(file, languages)| fallback(language, file, &languages)).collect()
    }

    /// Whether a template looks at the language itself.
    fn reads_language(&self) -> bool {
        self.reads().iter().any(|(read, _)| read.path == "system.language" || read.path == "system")
    }

    fn too_large(&self, model: Option<&str>, bytes: usize, what: &str) -> Option<Diagnostic> {
        let tokens = bytes as u64 / BYTES_OF_A_TOKEN;
        let own = self.prompt.model.as_ref();
        let model = model.or(own.map(|model| model.id.as_str())).filter(|id| !id.is_empty())?;
        let provider = own.and_then(|model| model.provider.as_deref()).unwrap_or(DEFAULT_PROVIDER);
        let window = window(provider, model).filter(|window| tokens > *window)?;
        let message = format!("{what} has about {tokens} tokens, but {model} reads at most {window}");
        let hint = Hint::command_line("shorten it, drop sections with --fit, or choose a model with a larger window; `cuebook tokens` counts exactly")
            .for_programs("shorten it, or choose a model with a larger window");
        Some(Diagnostic::new(Code::LargerThanWindow, message).file(self.prompt.template.name()).hint(hint))
    }
}

/// The language that `check` prepares the plain templates in.
const UNKNOWN_LANGUAGE: &str = "zxx";

/// Tokens that a model reads, if that is known.
fn window(provider: &str, model: &str) -> Option<u64> {
    if model.starts_with("claude") {
        return Some(WINDOW_OF_CLAUDE);
    }
    let known = |provider| enrich(provider, ModelInfo::new(model)).context_window;
    known(provider).or_else(|| known("openai")).or_else(|| known("gemini"))
}

fn fallback(language: &str, file: String, languages: &[String]) -> Diagnostic {
    let message = format!("there is no version in the language `{language}`, so the plain one is used");
    let hint = match (file.strip_suffix(".md"), languages) {
        (Some(stem), []) => format!("write {stem}.{language}.md, or leave the language out"),
        (Some(stem), some) => format!("write {stem}.{language}.md, or choose one of: {}", some.join(", ")),
        (None, _) => {
            "a .prompty file has one language; use `system.language` in its text, or leave the language out"
                .to_owned()
        }
    };
    Diagnostic::new(Code::LanguageFallback, message).file(file).hint(hint)
}

/// Lines that look like the beginning of a message and are text: `user: Hello`, `sytem:`, `human:`. Code blocks are text anyway.
fn role_lines(unit: &Unit, roles: &Roles) -> Vec<Diagnostic> {
    let source = unit.source();
    let mut findings = Vec::new();
    let mut start = 0;
    let mut is_code = false;
    for line in source.text().split_inclusive('\n') {
        let text = line.trim_end_matches('\n');
        if text.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if let Some((message, hint)) = role_line(text, roles).filter(|_| !is_code) {
            let indent = text.len() - text.trim_start().len();
            let place = source.place(start + indent..start + text.len());
            findings.push(Diagnostic::new(Code::AlmostMarker, message).at(place).hint(hint));
        }
        start += line.len();
    }
    findings
}

/// What is odd about one line, and what to do.
fn role_line(line: &str, roles: &Roles) -> Option<(String, String)> {
    let word = Marker::word(line);
    let lower = word.map(str::to_lowercase);
    if lower.as_deref().is_some_and(|word| roles.knows(word)) {
        return None;
    }
    if let Some(role) = Marker::almost(line) {
        let message = format!("this line looks like a {role} marker, but is text");
        return Some((message, format!("put `{role}:` on a separate line to begin a message")));
    }
    let (word, lower) = (word?, lower?);
    let message = format!("`{word}:` is not a role, so this line is text");
    let alias = ALIASES.iter().find(|(alias, _)| *alias == lower).map(|(_, role)| (*role).to_owned());
    let near = alias.or_else(|| nearest(&lower, Role::MARKERS.iter().map(Role::as_str)).into_iter().next());
    // It fits on a line of 80 columns; the page shows where declarations go.
    let hint = match near {
        Some(role) => format!("did you mean `{role}:`? Or declare `roles: {{{lower}: {role}}}`"),
        None => format!("write a role, or declare the word: `roles: {{{lower}: {NO_ROLE}}}`"),
    };
    Some((message, hint))
}
