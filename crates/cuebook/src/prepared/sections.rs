//! A tree of sections that has been found and read: how it is rendered, with the project's overrides.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value as Json, json};

use super::Prepared;
use super::budget::fit_request;
use crate::dialect::sections::{File, INPUTS};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, Severity, did_you_mean, nearest};
use crate::overrides::{DEFAULT_TAG, Resolved, Store};
use crate::render::Rendered;
use crate::sections::disclosure::Answer;
use crate::sections::{
    Body as SectionBody, Bound, Disclosed, Fitting, Missing, RenderedPrompt, Setting, Tree,
    VisibilityOverrides,
};
use crate::template::engine::{Engines, Loader, Outline};
use crate::template::jinja::Settings;
use crate::tokens::{Counter, Tokenizer};
use crate::variables::{Context, Scope, Variables, validation_error};

/// A tree, and how its file wants it rendered.
pub(super) struct SectionsBody {
    tree: Tree,
    missing: Missing,
    outline: Arc<dyn Outline>,
    /// Tokens that were counted, for renders that must fit.
    counter: Counter,
}

impl SectionsBody {
    pub(super) fn new(
        file: File,
        loader: Arc<dyn Loader>,
        settings: &Settings,
        engines: &Engines,
    ) -> Result<SectionsBody> {
        for (engine, place) in &file.engines {
            engines.get(engine, Some(place))?;
        }
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
        Ok(SectionsBody { tree, missing: file.missing, outline, counter: Counter::new() })
    }

    pub(super) fn outline(&self) -> Arc<dyn Outline> {
        self.outline.clone()
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Does something with the setting of a render: its values, overrides, and what was opened in the session, if that counts.
    pub(super) fn with_setting<T>(
        &self,
        scope: &Arc<Scope>,
        overrides: &Resolved,
        limit: usize,
        opens: bool,
        work: impl FnOnce(&Setting<'_>) -> Result<T>,
    ) -> Result<T> {
        let bound = [Bound::of_scope(INPUTS, scope.clone())];
        let setting = Setting {
            overrides: (!overrides.is_empty()).then_some(overrides),
            missing: self.missing,
            limit,
            ..Setting::new(&bound)
        };
        let session = &scope.context().visibility;
        work(&if opens { setting.session(session) } else { setting })
    }
}

/// The store of the project's overrides, kept for what it remembers of its files.
#[derive(Debug, Default)]
pub(crate) struct Shelf(Mutex<Option<Arc<Store>>>);

impl Shelf {
    /// The store as it is now: which of two folders it is in can change while a program runs.
    pub(crate) fn store(&self, project: &Path) -> Result<Arc<Store>> {
        let now = Store::of_project(project)?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some(store) if store.root() == now.root() => Ok(store.clone()),
            _ => Ok(known.insert(Arc::new(now)).clone()),
        }
    }
}

impl Prepared {
    /// The tree, if it is a tree of sections.
    pub fn tree(&self) -> Option<&Tree> {
        match &self.body {
            super::Body::Sections(body) => Some(&body.tree),
            _ => None,
        }
    }

    /// What happens to a `$name` that nothing fills.
    pub fn missing(&self) -> Missing {
        match &self.body {
            super::Body::Sections(body) => body.missing,
            _ => Missing::Error,
        }
    }

    /// The project's overrides of it under a tag.
    pub fn resolve_overrides(&self, tag: &str) -> Result<Resolved> {
        let Some(tree) = self.tree() else { return Ok(Resolved::default()) };
        self.overrides.store(self.loader.library().root())?.resolve(tree.descriptor(), tag)
    }

    /// The tags under which the project has overrides of it.
    pub fn override_tags(&self) -> Result<Vec<String>> {
        let Some(tree) = self.tree() else { return Ok(Vec::new()) };
        self.overrides.store(self.loader.library().root())?.tags(&tree.ns, &tree.key)
    }

    /// Does something with the setting of a render: its values, what was opened, and the project's overrides.
    fn with_setting<T>(
        &self,
        body: &SectionsBody,
        scope: &Arc<Scope>,
        work: impl FnOnce(&Setting<'_>, &Resolved) -> Result<T>,
    ) -> Result<T> {
        let context = scope.context();
        let resolved = match &context.overrides_tag {
            None => self.resolve_overrides(DEFAULT_TAG)?,
            Some(tag) => {
                self.refuse_unknown_tag(&body.tree, tag)?;
                self.resolve_overrides(tag)?
            }
        };
        let limit = self.prompt.limits.max_output_size;
        body.with_setting(scope, &resolved, limit, true, |setting| work(setting, &resolved))
    }

    pub(super) fn render_sections(&self, body: &SectionsBody, scope: &Arc<Scope>) -> Result<Rendered> {
        let (tree, context) = (&body.tree, scope.context());
        let rendered = self.with_setting(body, scope, |setting, resolved| {
            let complete = |rendered: RenderedPrompt, fitting: Option<Fitting>| {
                let disclosed = Disclosed::new(tree, &rendered, setting, fitting);
                rendered.into_rendered().of_sections(self.prompt.clone(), scope.clone(), disclosed)
            };
            let rendered = match context.fit {
                None => complete(tree.render(setting)?, None),
                Some(budget) => {
                    let tokenizer = self.tokenizer(context.model.as_deref());
                    let fit = |room| tree.fit(setting, room, &tokenizer, &body.counter);
                    fit_request(budget, fit, complete)?
                }
            };
            let stale = resolved.stale_findings().into_iter();
            let stale = stale.map(|stale| stale.severity(Severity::Warning));
            Ok(rendered.with_notes(stale.collect()))
        })?;
        if self.is_strict {
            rendered.refuse_forgeries()?;
        }
        Ok(rendered)
    }

    /// Renders a tree as its file has it, without the project's overrides, and as far as that is asked for whatever its folds
    /// and conditions say. `None` if it is no tree.
    pub fn render_own(
        &self,
        variables: &Variables,
        context: &Arc<Context>,
        unfolded: bool,
        unconditional: bool,
    ) -> Option<Result<Rendered>> {
        let super::Body::Sections(body) = &self.body else { return None };
        let scope = self.scope(variables, context);
        let limit = self.prompt.limits.max_output_size;
        let rendered = validation_error(&self.prompt, &scope).and_then(|()| {
            body.with_setting(&scope, &Resolved::default(), limit, true, |setting| {
                let setting = Setting { unfolded, unconditional, ..*setting };
                let rendered = body.tree.render(&setting)?;
                let disclosed = Disclosed::new(&body.tree, &rendered, &setting, None);
                Ok(rendered.into_rendered().of_sections(self.prompt.clone(), scope.clone(), disclosed))
            })
        });
        Some(rendered)
    }

    /// Answers a model that was given a render of this prompt and called one of the tools which open or read sections. What it
    /// opened is set in the session: put that into the context, and render again if the answer says so. `None` for any
    /// other tool, and for a prompt that is no tree of sections.
    pub fn answer(
        &self,
        rendered: &Rendered,
        name: &str,
        arguments: &Json,
        session: &mut VisibilityOverrides,
    ) -> Result<Option<Answer>> {
        let (super::Body::Sections(body), Some(shown)) = (&self.body, rendered.sections()) else {
            return Ok(None);
        };
        // The values of that render, with what hooks made of them, and its folds.
        let folded = shown.fitting.as_ref().map_or(Vec::new(), |fitting| body.tree.folds(&fitting.steps));
        self.with_setting(body, rendered.shared_scope(), |setting, _| {
            Ok(body.tree.answer(name, arguments, &setting.fold(&folded), session))
        })
    }

    /// The error for a budget that only sections could keep to.
    pub(super) fn cannot_fit(&self) -> Error {
        let message =
            format!("the prompt `{}` has no sections, so Cuebook cannot shorten it", self.prompt.id);
        let hint = "render it without a budget, or write it as sections: cuebook help sections";
        Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint))
    }

    /// The tokenizer of the model that will read the prompt: the one that is asked for, or the prompt's own.
    fn tokenizer(&self, model: Option<&str>) -> Tokenizer {
        let own = self.prompt.model.as_ref().map(|model| model.id.as_str());
        model.or(own).map_or_else(Tokenizer::for_no_model, Tokenizer::for_model)
    }

    /// A tag that somebody asked for and that nobody has made is a slip.
    fn refuse_unknown_tag(&self, tree: &Tree, tag: &str) -> Result<()> {
        let store = self.overrides.store(self.loader.library().root())?;
        if store.read(&tree.ns, &tree.key, tag)?.is_some() {
            return Ok(());
        }
        let known = store.tags(&tree.ns, &tree.key)?;
        let message = format!("no overrides of `{}` with the tag `{tag}` found", self.prompt.id);
        let hint = did_you_mean(&nearest(tag, known.iter().map(String::as_str)))
            .unwrap_or_else(|| format!("create them: cuebook overrides seed {} --tag {tag}", self.prompt.id));
        let diagnostic = Diagnostic::new(Code::BadOverride, message).hint(hint);
        Err(Error::new(ErrorKind::Overrides, diagnostic).with("tag", tag).with("known", known))
    }
}

/// The sections and the tools of a tree as scripts see them.
pub(super) fn tree_json(tree: &Tree) -> (Json, Json) {
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
