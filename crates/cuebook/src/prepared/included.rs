//! Included prompts: what a prompt's texts include by its address, each rendered by its own engine. [`super::include_loader`] finds them.
//!
//! Only the text of an included prompt is included. It sees the values of the prompt that includes it, and before them what that has set where it
//! includes it; that prompt takes what its included prompts ask for and it has not surely set. What was set is validated here, when it is known,
//! as everything else is before a render begins. What runs code is no included prompt: hooks see whole prompts.

use std::collections::HashSet;
use std::sync::Arc;

use super::include_loader::{IncludeContext, IncludeLoader, RequestedVariable};
use crate::chat::{Marker, Roles};
use crate::dialect::directive::whole;
use crate::dialect::knowledge::{self, Knowledge};
use crate::dialect::sections::SectionsBody;
use crate::dialect::{Body, Texts, Writing};
use crate::error::{Code, Diagnostic, Result};
use crate::items::Item;
use crate::library::LibraryLoader;
use crate::overrides::ProjectStore;
use crate::prompt::{Need, Prompt, Traits, Variable};
use crate::render::{PARSER, refuse_forgeries};
use crate::source::Place;
use crate::template::engine::{Compiled, Outline, Output};
use crate::template::input::Template as InputTemplate;
use crate::trust::Trust;
use crate::variables::{Scope, refuse_invalid, validate_included};

/// Something that is included.
pub struct IncludedPrompt {
    /// Its id.
    pub id: String,
    /// Where it is first included.
    pub place: Place,
    /// What it declares and mentions: validated where it is rendered, if that was set there.
    variables: Vec<Variable>,
    /// What it takes, and what its own included prompts take beside that.
    pub(super) asks: Vec<RequestedVariable>,
    /// What it has beside its text, in words: that is not included.
    pub left: Vec<&'static str>,
    /// Whether its text has lines that begin messages.
    begins_messages: bool,
    body: Box<dyn Body>,
    files: Arc<LibraryLoader>,
    overrides: Arc<ProjectStore>,
    /// Whether what is opened in the session is opened in it as well.
    opens: bool,
}

/// What an included prompt is made of.
pub(super) struct IncludedContent {
    /// What it declares.
    variables: Vec<Variable>,
    left: Vec<&'static str>,
    begins_messages: bool,
    body: Box<dyn Body>,
}

impl IncludedContent {
    /// A text that declares nothing.
    pub(super) fn text(body: Box<dyn Body>) -> IncludedContent {
        IncludedContent { variables: Vec::new(), left: Vec::new(), begins_messages: false, body }
    }

    /// A prompt that was compiled to be included.
    pub(super) fn new(prompt: Prompt, body: Box<dyn Body>) -> IncludedContent {
        let left = match (body.sections(), body.directive()) {
            (Some(body), _) => [(body.tree().output.is_some(), "outputs"), (body.has_tools(), "tools")],
            (None, Some(body)) => {
                let directive = body.directive();
                [(!directive.outputs.is_empty(), "outputs"), (directive.context.is_some(), "context")]
            }
            (None, None) => [(!prompt.tools.is_empty(), "tools"), (!prompt.outputs.is_empty(), "outputs")],
        };
        let left = left.into_iter().filter_map(|(has, what)| has.then_some(what)).collect();
        let roles = Roles::of(&prompt.format.parser_options);
        let begins_messages = prompt.format.parser.as_deref() == Some(PARSER)
            && prompt.template.text().lines().any(|line| Marker::in_template(line, &roles).is_some());
        // Of one section, only what it mentions is asked for.
        let is_part = body.sections().is_some_and(SectionsBody::is_part);
        let outline = body.outline();
        let is_asked = |variable: &Variable| !is_part || reads(&*outline).contains(variable.name.as_str());
        let variables = prompt.variables.into_iter().filter(is_asked).collect();
        IncludedContent { variables, left, begins_messages, body }
    }
}

/// The variables that texts read.
fn reads(outline: &dyn Outline) -> HashSet<&str> {
    outline.names().iter().flat_map(|names| &names.reads).map(|read| read.root.as_str()).collect()
}

/// A piece of knowledge that is included.
pub(super) struct KnowledgeBody {
    knowledge: Knowledge,
    item: Item,
    texts: Arc<Texts>,
}

impl KnowledgeBody {
    pub(super) fn new(item: Item) -> Result<KnowledgeBody> {
        let knowledge = knowledge::read(&item.source()?)?;
        let texts = Texts::of(&knowledge.source);
        Ok(KnowledgeBody { knowledge, item, texts })
    }
}

impl Body for KnowledgeBody {
    fn outline(&self) -> Arc<dyn Outline> {
        self.texts.clone()
    }

    fn write(&self, writing: &Writing<'_>) -> Result<Output> {
        whole(&self.knowledge, &self.texts.units, writing.limit).map_err(|_| {
            let end = self.knowledge.source.text().len();
            InputTemplate::compile(self.knowledge.source.clone(), end..end).too_large(writing.limit)
        })
    }

    fn items(&self) -> Vec<&Item> {
        vec![&self.item]
    }

    fn verify(&self, trust: &Trust) -> Result<()> {
        trust.verify(&self.item).map(|_| ())
    }
}

impl IncludedPrompt {
    /// One that is included at a place; `below` is the loader that its texts were read with.
    pub(super) fn new(
        id: String,
        made: IncludedContent,
        include_context: &IncludeContext,
        below: &IncludeLoader,
        at: &Place,
    ) -> IncludedPrompt {
        let IncludedContent { mut variables, left, begins_messages, body } = made;
        let own = variables.iter().map(|variable| RequestedVariable {
            variable: Variable { inherited_from: Some(id.clone()), ..variable.clone() },
            place: at.clone(),
            may_be_set: false,
            is_contested: false,
        });
        let mut asks: Vec<RequestedVariable> = own.collect();
        // Disagreements between its includes are reported where it is checked itself.
        let mut known: HashSet<String> = asks.iter().map(|one| one.variable.name.clone()).collect();
        asks.extend(
            below.requested_variables().0.into_iter().filter(|one| known.insert(one.variable.name.clone())),
        );
        let outline = body.outline();
        let reads = reads(&*outline);
        variables.retain(|variable| reads.contains(variable.name.as_str()));
        IncludedPrompt {
            id,
            place: at.clone(),
            variables,
            asks,
            left,
            begins_messages,
            body,
            files: include_context.files.clone(),
            overrides: include_context.overrides.clone(),
            opens: !include_context.is_tree,
        }
    }

    /// The names that it asks for, and its own included prompts beside it.
    pub fn requested_names(&self) -> impl Iterator<Item = &str> {
        self.asks.iter().map(|one| one.variable.name.as_str())
    }

    /// Whether it refuses values of this name that look like role markers, also if the name was set where it is included.
    pub fn is_strict(&self, name: &str) -> bool {
        self.variables.iter().any(|variable| variable.strict && variable.name == name)
    }

    /// Whether it is a tree of sections, or one of its sections.
    pub fn is_tree(&self) -> bool {
        self.body.sections().is_some()
    }

    /// Whether it is a directive: in XML everything is text, its defaults as well.
    pub fn is_directive(&self) -> bool {
        self.body.directive().is_some()
    }

    /// Whether its text has lines that begin messages in a `.prompty` file.
    pub fn begins_messages(&self) -> bool {
        self.begins_messages
    }

    /// The signed files that it is made from.
    pub fn items(&self) -> Vec<&Item> {
        self.body.items()
    }

    /// Sections that are included in their short form: nothing can open them where they are included.
    pub fn summarized(&self) -> Vec<String> {
        self.body.sections().map_or(Vec::new(), SectionsBody::summarized)
    }

    /// Whether it has a trusted signature, if it must be signed: as `execute` asks, also for what is
    /// still being written.
    pub fn verify(&self) -> Result<()> {
        let trust = self.files.library().trust();
        self.body.verify(trust).map_err(|error| error.map(|reported| reported.included(&self.place)))
    }
}

impl Compiled for IncludedPrompt {
    fn render(&self, scope: &Arc<Scope>, limit: usize) -> Result<Output> {
        self.verify()?;
        let filled = self.fill(scope)?;
        let output = self.body.write(&Writing {
            scope: filled.as_ref().unwrap_or(scope),
            limit,
            files: &self.files,
            overrides: &self.overrides,
            opens: self.opens,
        })?;
        self.refuse_forgeries(scope, &output)?;
        Ok(output)
    }

    fn outline(&self) -> Arc<dyn Outline> {
        self.body.outline()
    }
}

impl IncludedPrompt {
    /// What it is given, as its own declarations want it: everything of its type, and its own defaults for what was set to nothing or
    /// is only the default of another included prompt. `None` if there is nothing to add.
    fn fill(&self, scope: &Arc<Scope>) -> Result<Option<Arc<Scope>>> {
        let mut problems = Vec::new();
        let mut defaults = Vec::new();
        for variable in &self.variables {
            let name = &variable.name;
            let is_anothers = scope.is_contested_default(name);
            let is_missing = is_anothers || scope.find(name).is_none();
            match &variable.default {
                Some(default) if is_missing => defaults.push((name.clone(), Some(default.clone()))),
                None if is_anothers && variable.need != Need::Required => {
                    defaults.push((name.clone(), None));
                }
                _ => problems.extend(validate_included(variable, scope)),
            }
        }
        refuse_invalid(&self.id, problems)?;
        Ok((!defaults.is_empty()).then(|| scope.with_set_values(defaults)))
    }

    /// Refuses the text if what was set for a strict input looks like a role marker in it. Inputs of the whole prompt are looked at
    /// when all of it is there.
    fn refuse_forgeries(&self, scope: &Arc<Scope>, output: &Output) -> Result<()> {
        let strict = self.variables.iter().filter(|variable| variable.strict && variable.rich.is_none());
        let names =
            strict.map(|variable| variable.name.as_str()).filter(|name| scope.set_names(name).is_some());
        refuse_forgeries(output, &names.collect::<Vec<_>>())
    }
}

/// What is odd about what a prompt of a notation includes, for `check`.
pub fn findings(
    included_prompts: &[Arc<IncludedPrompt>],
    host: &Traits,
    contradictions: &[Diagnostic],
) -> Vec<Diagnostic> {
    let mut findings = contradictions.to_vec();
    for included in included_prompts {
        if let Err(error) = included.verify() {
            findings.extend(error.into_diagnostics());
        }
        let mut reported = |message: String, hint: String| {
            findings.push(Diagnostic::new(Code::LeftBehind, message).at(included.place.clone()).hint(hint));
        };
        if !included.left.is_empty() {
            let what = included.left.join(" and ");
            reported(
                format!("only the text of `{}` is included, not its {what}", included.id),
                "declare them in this prompt too, or run the other prompt separately".to_owned(),
            );
        }
        if included.begins_messages && !host.has_roles {
            reported(
                format!("role lines of `{}` are text here: only .prompty files have roles", included.id),
                format!(
                    "include it in a .prompty file, or move the shared text of `{}` into a partial",
                    included.id
                ),
            );
        }
        if let [first, ..] = included.summarized().as_slice() {
            reported(
                format!(
                    "the section `{first}` of `{}` is included as a summary, and a model cannot open it",
                    included.id
                ),
                format!(
                    "include the section alone where you need all of it, or change the visibility of `{}`",
                    included.id
                ),
            );
        }
    }
    findings
}
