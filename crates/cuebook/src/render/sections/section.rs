//! A section: what an author says about one part of a prompt.

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use super::build::check_task_example;
use super::params::{BoundParams, Params, ParamsType};
use super::selector::{IntoSelector, Selector};
use super::tool::SectionTool;
use crate::error::Result;
use crate::overrides::TaskExample;
use crate::prompt::Visibility;
use crate::source::{Place, Source};
use crate::template::python::is_space;

/// One part of a prompt, with the parts below it.
#[derive(Debug, Clone)]
pub struct Section {
    /// Its key, which makes its path.
    pub key: String,
    /// Its title.
    pub title: String,
    /// Where the title stands in a file.
    pub title_place: Option<Place>,
    /// What it says.
    pub body: Body,
    /// What it says if it is summarized.
    pub summary: Option<Arc<Source>>,
    /// How much of it is shown.
    pub visibility: Selector<Visibility>,
    /// Whether it is there at all.
    pub enabled: Selector<bool>,
    /// Where a file says how much of it is shown.
    pub visibility_place: Option<Place>,
    /// Where a file says whether it is there.
    pub enabled_place: Option<Place>,
    /// The condition of a file for that, as it is written there.
    pub enabled_if: Option<String>,
    /// What it is filled with; `None` if it takes nothing.
    pub params: Option<Arc<ParamsType>>,
    /// What it is filled with without a binding.
    pub default_params: Option<BoundParams>,
    /// Tools that are there if it is.
    pub tools: Vec<Arc<SectionTool>>,
    /// Skills that are there if it is.
    pub skills: Vec<Skill>,
    /// Whether overrides may change its text.
    pub accepts_overrides: bool,
    /// How important it is: of sections that must make room, those with the lowest priority go first.
    pub priority: i64,
    /// The parts below it.
    pub children: Vec<Section>,
    /// Where it is declared.
    pub place: Option<Place>,
}

/// What a section says.
#[derive(Debug, Clone)]
pub enum Body {
    /// A template.
    Template {
        /// Its text.
        text: Arc<Source>,
        /// The key of its engine; `dollar` unless the section chooses another.
        engine: String,
    },
    /// Nothing of its own: the sections below are examples of tasks.
    TaskExamples,
    /// An example of a task.
    TaskExample(TaskExample),
}

/// Something that a model can be taught, by the name of its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// Where it lies.
    pub source: String,
}

impl Skill {
    /// A skill that lies in a file or folder, named after it unless it has a name of its own.
    pub fn new(source: impl Into<String>, name: Option<String>) -> Skill {
        let source = source.into();
        let name = name.unwrap_or_else(|| {
            let path = Path::new(&source);
            let named = if path.extension().is_some() { path.file_stem() } else { path.file_name() };
            named.map_or_else(|| source.clone(), |name| name.to_string_lossy().into_owned())
        });
        Skill { name, source }
    }
}

/// How long the title of an example of a task may be, in characters.
const MAX_TITLE: usize = 60;

/// The task as a title: the beginning of it, if it is long.
pub(crate) fn title_of(objective: &str) -> String {
    if objective.chars().count() <= MAX_TITLE {
        return objective.to_owned();
    }
    objective.chars().take(MAX_TITLE - 3).chain("...".chars()).collect()
}

/// The engine of a section that chooses none.
pub(crate) const DEFAULT_ENGINE: &str = "dollar";

impl Section {
    /// A section of a title and a text with `$names`, which takes nothing.
    pub fn new(key: impl Into<String>, title: impl Into<String>, template: impl Into<String>) -> Section {
        let key = key.into();
        let text = Source::verbatim(format!("section {key}"), template.into());
        Section::with_body(key, title.into(), Body::Template { text, engine: DEFAULT_ENGINE.to_owned() })
    }

    /// A section of a title and whatever it says.
    pub fn with_body(key: String, title: String, body: Body) -> Section {
        Section {
            key,
            title,
            title_place: None,
            body,
            summary: None,
            visibility: Selector::Always(Visibility::Full),
            enabled: Selector::Always(true),
            visibility_place: None,
            enabled_place: None,
            enabled_if: None,
            params: None,
            default_params: None,
            tools: Vec::new(),
            skills: Vec::new(),
            accepts_overrides: true,
            priority: 0,
            children: Vec::new(),
            place: None,
        }
    }

    /// A section that is filled with a Rust type.
    pub fn of<P: Params>(
        key: impl Into<String>,
        title: impl Into<String>,
        template: impl Into<String>,
    ) -> Result<Typed<P>> {
        let section = Section { params: Some(ParamsType::of::<P>()?), ..Section::new(key, title, template) };
        Ok(Typed { section, of: PhantomData })
    }

    /// A section that lists examples of tasks.
    pub fn task_examples(
        key: impl Into<String>,
        title: impl Into<String>,
        examples: impl IntoIterator<Item = Section>,
    ) -> Section {
        let mut section = Section::with_body(key.into(), title.into(), Body::TaskExamples);
        section.children.extend(examples);
        section
    }

    /// An example of a task, to stand below a section that lists them. Its title is the task, unless one is given.
    pub fn task_example(
        key: impl Into<String>,
        title: Option<String>,
        mut example: TaskExample,
    ) -> Result<Section> {
        let key = key.into();
        example.objective = example.objective.trim_matches(is_space).to_owned();
        let title = title.unwrap_or_else(|| title_of(&example.objective));
        let section = Section::with_body(key.clone(), title, Body::TaskExample(example.clone()));
        check_task_example(&section, &[key], &example)?;
        Ok(section)
    }

    /// Whether it is always shown as its summary, unless it is opened.
    pub fn is_summarized(&self) -> bool {
        matches!(self.visibility, Selector::Always(Visibility::Summary))
    }

    /// The same section with a summary.
    pub fn summary(mut self, text: impl Into<String>) -> Section {
        self.summary = Some(Source::verbatim(format!("summary of {}", self.key), text.into()));
        self
    }

    /// The same section, shown so much.
    pub fn visible(mut self, visibility: Visibility) -> Section {
        self.visibility = Selector::Always(visibility);
        self
    }

    /// The same section, shown as much as a closure says: of nothing, or of the session.
    pub fn visible_if<S>(mut self, condition: impl IntoSelector<(), Visibility, S>) -> Section {
        self.visibility = condition.selector();
        self
    }

    /// The same section, there if a closure says so: of nothing, or of the session.
    pub fn enabled_if<S>(mut self, condition: impl IntoSelector<(), bool, S>) -> Section {
        self.enabled = condition.selector();
        self
    }

    /// The same section with a tool.
    pub fn tool(mut self, tool: SectionTool) -> Section {
        self.tools.push(Arc::new(tool));
        self
    }

    /// The same section with a skill.
    pub fn skill(mut self, skill: Skill) -> Section {
        self.skills.push(skill);
        self
    }

    /// The same section with another engine for its texts, by its key, as in `jinja2`.
    pub fn engine(mut self, key: impl Into<String>) -> Section {
        if let Body::Template { engine, .. } = &mut self.body {
            *engine = key.into();
        }
        self
    }

    /// The same section, whose text no override changes.
    pub fn locked(mut self) -> Section {
        self.accepts_overrides = false;
        self
    }

    /// The same section with one below it.
    pub fn child(mut self, child: impl Into<Section>) -> Section {
        self.children.push(child.into());
        self
    }

    /// The same section with another priority.
    pub fn priority(mut self, priority: i64) -> Section {
        self.priority = priority;
        self
    }
}

/// A section whose conditions know what it is filled with.
#[derive(Debug, Clone)]
pub struct Typed<P> {
    section: Section,
    of: PhantomData<fn(P)>,
}

impl<P: Params> Typed<P> {
    /// The same section, filled with this without a binding.
    pub fn default(mut self, params: P) -> Result<Typed<P>> {
        self.section.default_params = Some(BoundParams::of(params)?);
        Ok(self)
    }

    /// The same section, filled with the type's own default without a binding.
    pub fn or_default(self) -> Result<Typed<P>>
    where
        P: Default,
    {
        self.default(P::default())
    }

    /// The same section, there if a closure says so: of nothing, the session, the parameters, or both.
    pub fn enabled_if<S>(mut self, condition: impl IntoSelector<P, bool, S>) -> Typed<P> {
        self.section.enabled = condition.selector();
        self
    }

    /// The same section, shown as much as a closure says: of nothing, the session, the parameters, or both.
    pub fn visible_if<S>(mut self, condition: impl IntoSelector<P, Visibility, S>) -> Typed<P> {
        self.section.visibility = condition.selector();
        self
    }

    /// The same section with whatever else sections have.
    pub fn map(mut self, change: impl FnOnce(Section) -> Section) -> Typed<P> {
        self.section = change(self.section);
        self
    }
}

impl<P> From<Typed<P>> for Section {
    fn from(typed: Typed<P>) -> Section {
        typed.section
    }
}
