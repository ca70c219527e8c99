//! A tree of sections that has been compiled: how it is rendered, with the project's overrides.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::budget::fit_request;
use super::{File, INPUTS};
use crate::dialect::{Body, Rendering, Writing};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity, did_you_mean, nearest};
use crate::overrides::{DEFAULT_TAG, Resolved, Store};
use crate::prompt::Prompt;
use crate::render::Rendered;
use crate::sections::disclosure::Answer;
use crate::sections::{
    Body as SectionBody, BoundParams, Disclosed, Fitting, Missing, Node, RenderedPrompt, Setting, Tree,
    VisibilityOverrides, render_part,
};
use crate::template::engine::{Engines, Loader, Outline, Output};
use crate::template::jinja::Settings;
use crate::tokens::{Counter, Tokenizer};
use crate::variables::Scope;

/// A tree, and how its file wants it rendered.
pub struct SectionsBody {
    /// Whether a section has a type that the host brought, which gets every value.
    pub(crate) has_host_types: bool,
    tree: Tree,
    missing: Missing,
    outline: Arc<dyn Outline>,
    /// The section that is meant, if it is only one.
    part: Option<usize>,
    /// Tokens that were counted, for renders that must fit.
    counter: Counter,
}

impl SectionsBody {
    pub(super) fn new(
        file: File,
        part: Option<&[String]>,
        loader: Arc<dyn Loader>,
        settings: &Settings,
        engines: &Engines,
    ) -> Result<SectionsBody> {
        for (engine, place) in &file.engines {
            engines.get(engine, Some(place))?;
        }
        let has_host_types = file.engines.iter().any(|(key, _)| engines.is_of_host(key));
        let mut builder = Tree::builder(file.ns, file.key).headings(file.headings).with(
            engines.clone(),
            loader,
            settings.clone(),
        );
        if let Some(name) = file.name {
            builder = builder.name(name);
        }
        if let Some(output) = file.output {
            builder = builder.output(output);
        }
        let tree =
            file.sections.into_iter().fold(builder, |builder, section| builder.section(section)).build()?;
        let outline = tree.outline(file.conditions);
        let part = part.and_then(|path| tree.sections().iter().position(|node| node.path == path));
        Ok(SectionsBody {
            tree,
            missing: file.missing,
            outline,
            part,
            counter: Counter::new(),
            has_host_types,
        })
    }

    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// What happens to a `$name` that nothing fills.
    pub fn missing(&self) -> Missing {
        self.missing
    }

    /// Whether it is only one section of the tree.
    pub(crate) fn is_part(&self) -> bool {
        self.part.is_some()
    }

    /// The sections that are meant: all of them, or one and those below it.
    fn meant(&self) -> impl Iterator<Item = &Node> {
        let nodes = self.tree.sections();
        let start = self.part.map(|index| nodes[index].path.as_slice()).unwrap_or_default();
        nodes.iter().filter(move |node| node.path.starts_with(start))
    }

    /// Sections that show in their short form where it is included: nothing can open them there.
    pub(crate) fn summarized(&self) -> Vec<String> {
        let summarized = self.meant().filter(|node| node.section.is_summarized());
        summarized.map(|node| node.dotted().to_owned()).collect()
    }

    /// Whether one of its sections has tools.
    pub(crate) fn has_tools(&self) -> bool {
        self.meant().any(|node| !node.section.tools.is_empty())
    }

    /// Does something with the setting of a render: its values, overrides, and what was opened in the session, if that counts.
    fn with_setting<T>(
        &self,
        scope: &Arc<Scope>,
        overrides: &Resolved,
        limit: usize,
        opens: bool,
        work: impl FnOnce(&Setting<'_>) -> Result<T>,
    ) -> Result<T> {
        let bound = [BoundParams::of_scope(INPUTS, scope.clone())];
        let setting = Setting {
            overrides: (!overrides.is_empty()).then_some(overrides),
            missing: self.missing,
            limit,
            ..Setting::new(&bound)
        };
        let session = &scope.context().visibility;
        work(&if opens { setting.session(session) } else { setting })
    }

    /// The same with the project's overrides. A tag that the caller names must be there.
    fn with_overrides<T>(
        &self,
        rendering: &Rendering<'_>,
        work: impl FnOnce(&Setting<'_>, &Resolved) -> Result<T>,
    ) -> Result<T> {
        let Writing { scope, limit, files, overrides, opens } = rendering.writing;
        let store = overrides.store(files.library().root())?;
        let resolved = match &scope.context().overrides_tag {
            None => store.resolve(self.tree.descriptor(), DEFAULT_TAG)?,
            Some(tag) => {
                refuse_unknown_tag(&store, &self.tree, tag, rendering.prompt)?;
                store.resolve(self.tree.descriptor(), tag)?
            }
        };
        self.with_setting(scope, &resolved, limit, opens, |setting| work(setting, &resolved))
    }

    /// Renders the tree as its file has it, without the project's overrides, and as far as that is asked for whatever its folds and
    /// conditions say.
    pub(crate) fn render_own(
        &self,
        rendering: &Rendering<'_>,
        unfolded: bool,
        unconditional: bool,
    ) -> Result<Rendered> {
        let Writing { scope, limit, opens, .. } = rendering.writing;
        self.with_setting(scope, &Resolved::default(), limit, opens, |setting| {
            let setting = Setting { unfolded, unconditional, ..*setting };
            let rendered = self.tree.render(&setting)?;
            let disclosed = Disclosed::new(&self.tree, &rendered, &setting, None);
            Ok(rendered.into_text_alone().of_sections(rendering.prompt.clone(), scope.clone(), disclosed))
        })
    }

    /// Its sections and tools as scripts see them.
    pub(crate) fn describe_in(&self, definition: &mut Json) {
        let (sections, tools) = tree_json(&self.tree);
        definition["ns"] = json!(self.tree.ns);
        definition["key"] = json!(self.tree.key);
        definition["sections"] = sections;
        definition["tools"] = tools;
    }
}

impl Body for SectionsBody {
    fn outline(&self) -> Arc<dyn Outline> {
        self.outline.clone()
    }

    fn write(&self, writing: &Writing<'_>) -> Result<Output> {
        let tag = writing.scope.context().overrides_tag.as_deref().unwrap_or(DEFAULT_TAG);
        let store = writing.overrides.store(writing.library().root())?;
        let overrides = store.resolve(self.tree.descriptor(), tag)?;
        self.with_setting(writing.scope, &overrides, writing.limit, writing.opens, |setting| {
            match self.part {
                Some(index) => render_part(&self.tree, index, setting),
                None => Ok(self.tree.render(setting)?.into_text_alone().into_output()),
            }
        })
    }

    fn render(&self, rendering: &Rendering<'_>) -> Result<Rendered> {
        let (tree, scope) = (&self.tree, rendering.writing.scope);
        let context = scope.context();
        self.with_overrides(rendering, |setting, resolved| {
            let complete = |rendered: RenderedPrompt, fitting: Option<Fitting>| {
                let disclosed = Disclosed::new(tree, &rendered, setting, fitting);
                rendered.into_text_alone().of_sections(rendering.prompt.clone(), scope.clone(), disclosed)
            };
            let rendered = match context.fit {
                None => complete(tree.render(setting)?, None),
                Some(budget) => {
                    let tokenizer = tokenizer(rendering.prompt, context.model.as_deref());
                    let fit = |room| tree.fit(setting, room, &tokenizer, &self.counter);
                    fit_request(budget, fit, complete)?
                }
            };
            let stale = resolved.stale_findings().into_iter();
            let stale = stale.map(|stale| stale.severity(Severity::Warning));
            Ok(rendered.with_notes(stale.collect()))
        })
    }

    fn answer(
        &self,
        (name, arguments): (&str, &Json),
        rendered: &Rendered,
        rendering: &Rendering<'_>,
        session: &mut VisibilityOverrides,
    ) -> Result<Option<Answer>> {
        let Some(shown) = rendered.sections() else { return Ok(None) };
        // The values of that render, with what hooks made of them, and its folds.
        let folded = shown.fitting.as_ref().map_or(Vec::new(), |fitting| self.tree.folds(&fitting.steps));
        self.with_overrides(rendering, |setting, _| {
            Ok(self.tree.answer(name, arguments, &setting.fold(&folded), session))
        })
    }

    fn sections(&self) -> Option<&SectionsBody> {
        Some(self)
    }
}

/// The tokenizer of the model that will read the prompt: the one that is asked for, or the prompt's own.
fn tokenizer(prompt: &Prompt, model: Option<&str>) -> Tokenizer {
    let own = prompt.model.as_ref().map(|model| model.id.as_str());
    model.or(own).map_or_else(Tokenizer::for_no_model, Tokenizer::for_model)
}

/// Refuses a tag under which the project has no overrides.
fn refuse_unknown_tag(store: &Store, tree: &Tree, tag: &str, prompt: &Prompt) -> Result<()> {
    if store.read(&tree.ns, &tree.key, tag)?.is_some() {
        return Ok(());
    }
    let known = store.tags(&tree.ns, &tree.key)?;
    let message = format!("no overrides of `{}` with the tag `{tag}` found", prompt.id);
    let hint = did_you_mean(&nearest(tag, known.iter().map(String::as_str))).map_or_else(
        || Hint::run("create them", format!("cuebook overrides seed {} --tag {tag}", prompt.id)),
        Hint::from,
    );
    let diagnostic = Diagnostic::new(Code::BadOverride, message).hint(hint);
    Err(Error::new(ErrorKind::Overrides, diagnostic).with("tag", tag).with("known", known))
}

/// The sections and the tools of a tree as scripts see them.
fn tree_json(tree: &Tree) -> (Json, Json) {
    let none = indexmap::IndexMap::new();
    let section = |node: &crate::sections::Node| {
        json!({
            "path": node.path,
            "number": node.number,
            "title": node.section.title,
            "kind": match node.section.body {
                SectionBody::Template { .. } => "text",
                SectionBody::TaskExamples => "task_examples",
                SectionBody::TaskExample(_) => "task_example",
            },
            "has_summary": node.section.summary.is_some(),
            "priority": node.section.priority,
            "accepts_overrides": node.section.accepts_overrides,
            "tools": node.section.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(),
            "skills": node.section.skills.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>(),
        })
    };
    let tools =
        tree.sections().iter().flat_map(|node| node.section.tools.iter().map(move |tool| (node, tool)));
    let tool = |(node, tool): (&crate::sections::Node, &Arc<crate::sections::SectionTool>)| {
        let mut object = tool.to_json(&none);
        object["section"] = json!(node.path);
        object
    };
    (tree.sections().iter().map(section).collect(), tools.map(tool).collect())
}
