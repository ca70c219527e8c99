//! A tree of sections, numbered, compiled and checked once, and rendered any number of times.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use super::build;
use super::custom::{Custom, SectionType};
use super::params::{BoundParams, ParamsType};
use super::section::Section;
use super::tool::SectionTool;
use crate::chat::output::OutputSpec;
use crate::error::{Diagnostic, Result};
use crate::overrides::{Descriptor, Originals};
use crate::prompt::{Model, Prompt};
use crate::source::Source;
use crate::template::dollar;
use crate::template::engine::{Compiled, Engines, Loader};
use crate::template::jinja::Settings;
use crate::template::unit::{Frame, Unit};
use crate::tokens::Vocabulary;

/// How headings look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Headings {
    /// `# Title`, one mark more for each level.
    #[default]
    Plain,
    /// `## 1.2. Title (path)`, as WINK writes them.
    Numbered,
}

/// A section in its place.
#[derive(Debug)]
pub struct Node {
    /// The section, without those below it.
    pub section: Section,
    /// The keys from the root to it.
    pub path: Vec<String>,
    /// How far below the root; a root is at 0.
    pub depth: usize,
    /// Its number, as in `1.2`.
    pub number: String,
    /// The path with dots, as models see it.
    pub(super) dotted: Arc<str>,
    /// The path, for code that speaks of many sections.
    pub(super) shared_path: Arc<[String]>,
    /// How many tokens it has if it shows its summary, by vocabulary, where that is always the same and was counted.
    pub(super) summary_tokens: [OnceLock<usize>; Vocabulary::ALL.len()],
    /// The first node behind everything below it.
    pub(super) end: usize,
    /// The section above it.
    pub(super) parent: Option<usize>,
    /// Whether it or something below it brings tools or skills.
    pub(super) brings_tools: bool,
    /// What it is filled with, by the index of the type.
    pub(super) filled_with: Option<usize>,
    /// The heading, with a blank line before and behind it.
    pub(super) heading: String,
    /// What it ends with if it is summarized.
    pub(super) suffix: String,
    pub(super) body: Text,
    pub(super) summary: Option<Text>,
    /// The examples of its tools behind a blank line, unless an override changes them.
    pub(super) examples: Option<String>,
}

impl Node {
    /// The path with dots between the keys, as models see it.
    pub fn dotted(&self) -> &str {
        &self.dotted
    }

    /// Its heading, with a blank line before and behind it.
    pub fn heading(&self) -> &str {
        &self.heading
    }

    /// What the engine writes for it below the heading, if it is an example of a task.
    pub fn written_example(&self) -> Option<&str> {
        match &self.body {
            Text::Example(text) => Some(text),
            _ => None,
        }
    }

    /// The examples of its tools, with a blank line before them.
    pub fn tool_examples(&self) -> Option<&str> {
        self.examples.as_deref()
    }

    /// The number of the first section behind everything below it.
    pub fn end(&self) -> usize {
        self.end
    }
}

/// A text, compiled.
pub(super) enum Text {
    /// `$names`, as the unit of this number, and for each placeholder which of the names that are asked for it is.
    Dollar(Box<dollar::Template>, u32, Box<[usize]>),
    /// Another engine, which brings its units along.
    Other(Box<dyn Compiled>),
    /// The text itself, as the unit of this number.
    Raw(Arc<Source>, u32),
    /// An example, which the engine writes out.
    Example(String),
    /// Nothing.
    Empty,
}

impl Text {
    /// Whether it shows the same whatever it is filled with.
    pub(super) fn is_constant(&self) -> bool {
        match self {
            Text::Dollar(template, ..) => template.is_static().is_some(),
            Text::Raw(..) | Text::Empty => true,
            Text::Example(_) | Text::Other(_) => false,
        }
    }

    /// About how many bytes it will show, and how many pieces.
    pub(super) fn size(&self) -> (usize, usize) {
        match self {
            Text::Dollar(template, ..) => (template.text().len(), 1 + 2 * template.names().reads.len()),
            Text::Raw(source, _) => (source.text().len(), 1),
            Text::Example(text) => (text.len(), 1),
            Text::Other(_) => (256, 8),
            Text::Empty => (0, 0),
        }
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Text::Dollar(..) => "dollar",
            Text::Other(..) => "other",
            Text::Raw(..) => "raw",
            Text::Example(..) => "example",
            Text::Empty => "empty",
        })
    }
}

/// A type that sections are filled with.
pub(super) struct Filling {
    pub(super) of: Arc<ParamsType>,
    /// What it is without a binding: the first default of a section, or a value of nothing but defaults.
    pub(super) default: Option<BoundParams>,
}

/// A prompt as a tree of sections.
///
/// ```
/// use cuebook::sections::{Headings, Section, Setting, Tree};
///
/// let task = Section::new("task", "Task", "Answer the letter.");
/// let tree = Tree::builder("desk", "clerk").section(task).headings(Headings::Plain).model("openai", "gpt-4o").build()?;
/// assert_eq!(tree.render(&Setting::new(&[]))?.into_rendered().text(), "# Task\n\nAnswer the letter.");
/// assert!(tree.get_section(&["task".to_owned()]).is_some());
/// # Ok::<(), cuebook::Error>(())
/// ```
pub struct Tree {
    /// The namespace.
    pub ns: String,
    /// The key in the namespace.
    pub key: String,
    /// The name for people; the key unless another was given.
    pub name: String,
    /// How headings look.
    pub headings: Headings,
    /// What a model's answer is to hold.
    pub output: Option<OutputSpec>,
    pub(super) nodes: Vec<Node>,
    pub(super) by_path: HashMap<Vec<String>, usize>,
    /// Keys may have dots, so that one name can mean several sections.
    pub(super) by_name: HashMap<Arc<str>, Vec<usize>>,
    pub(super) types: IndexMap<String, Filling, RandomState>,
    /// Every tool, by name.
    pub(super) tools: IndexMap<String, Arc<SectionTool>>,
    /// The names that its texts ask for, each once for each type that fills them: the index of the type, and the name.
    pub(super) asked: Vec<(usize, String)>,
    pub(super) units: Arc<Vec<Unit>>,
    pub(super) descriptor: Arc<Descriptor>,
    pub(super) engines: Engines,
    pub(super) loader: Arc<dyn Loader>,
    pub(super) settings: Settings,
    pub(super) frames: Arc<[Frame]>,
    pub(super) prompt: Arc<Prompt>,
    pub(super) notes: Vec<Diagnostic>,
    /// The nodes in the order in which they make room: the least important first, of several the deepest and then the last.
    pub(super) by_priority: Vec<usize>,
    /// About how many bytes and pieces a render has.
    pub(super) size: (usize, usize),
}

/// What a tree is made of.
pub struct TreeBuilder {
    pub(super) ns: String,
    pub(super) key: String,
    pub(super) name: Option<String>,
    pub(super) headings: Headings,
    pub(super) output: Option<OutputSpec>,
    pub(super) model: Option<Model>,
    pub(super) sections: Vec<Section>,
    pub(super) engines: Engines,
    pub(super) loader: Arc<dyn Loader>,
    pub(super) settings: Settings,
}

/// Includes nothing.
struct NoIncludes;

impl Loader for NoIncludes {
    fn load(&self, _name: &str, _parent: &str) -> Result<Option<Arc<Source>>> {
        Ok(None)
    }
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree").field("ns", &self.ns).field("key", &self.key).finish_non_exhaustive()
    }
}

impl TreeBuilder {
    /// The same tree with a section more.
    #[must_use]
    pub fn section(mut self, section: impl Into<Section>) -> TreeBuilder {
        self.sections.push(section.into());
        self
    }

    /// The same tree with a name for people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> TreeBuilder {
        self.name = Some(name.into());
        self
    }

    /// The same tree with a section type, for sections that name it as their engine.
    #[must_use]
    pub fn section_type(mut self, name: impl Into<String>, kind: impl SectionType + 'static) -> TreeBuilder {
        self.engines = self.engines.with(name, Arc::new(Custom(Arc::new(kind))));
        self
    }

    /// The same tree with other headings.
    #[must_use]
    pub fn headings(mut self, headings: Headings) -> TreeBuilder {
        self.headings = headings;
        self
    }

    /// The same tree, whose answer is to hold this.
    #[must_use]
    pub fn output(mut self, output: OutputSpec) -> TreeBuilder {
        self.output = Some(output);
        self
    }

    /// The same tree for a model.
    ///
    /// ```
    /// use cuebook::chat::wire::Api;
    /// use cuebook::sections::{Section, Setting, Tree};
    ///
    /// let tree = Tree::builder("docs", "helper")
    ///     .section(Section::new("task", "Task", "Help."))
    ///     .model("openai", "gpt-5")
    ///     .build()?;
    /// let wire = tree.render(&Setting::new(&[]))?.into_rendered().wire()?;
    /// assert_eq!((wire.api, wire.body["model"].as_str()), (Api::OpenAiChat, Some("gpt-5")));
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    #[must_use]
    pub fn model(mut self, provider: impl Into<String>, id: impl Into<String>) -> TreeBuilder {
        self.model = Some(Model { id: id.into(), provider: Some(provider.into()), ..Model::default() });
        self
    }

    /// The same tree with engines, templates to include and settings from elsewhere.
    #[doc(hidden)]
    #[must_use]
    pub fn with(mut self, engines: Engines, loader: Arc<dyn Loader>, settings: Settings) -> TreeBuilder {
        (self.engines, self.loader, self.settings) = (engines, loader, settings);
        self
    }

    /// Numbers, compiles and checks it.
    pub fn build(self) -> Result<Tree> {
        build::build(self)
    }
}

impl Tree {
    /// A tree to be built.
    pub fn builder(ns: impl Into<String>, key: impl Into<String>) -> TreeBuilder {
        TreeBuilder {
            ns: ns.into(),
            key: key.into(),
            name: None,
            headings: Headings::default(),
            output: None,
            model: None,
            sections: Vec::new(),
            engines: Engines::default(),
            loader: Arc::new(NoIncludes),
            settings: Settings::default(),
        }
    }

    /// All sections, each before those below it.
    pub fn sections(&self) -> &[Node] {
        &self.nodes
    }

    /// The section at a path.
    pub fn get_section(&self, path: &[String]) -> Option<&Node> {
        self.by_path.get(path).map(|index| &self.nodes[*index])
    }

    /// The section that a path with dots means. Keys may have dots themselves, so paths are compared and not cut; if
    /// several sections are written like that, it is the first.
    pub fn find(&self, dotted: &str) -> Option<&Node> {
        self.by_name.get(dotted)?.first().map(|index| &self.nodes[*index])
    }

    /// All sections that a path with dots may mean.
    #[doc(hidden)]
    pub fn find_all<'t>(&'t self, dotted: &str) -> impl Iterator<Item = &'t Node> + use<'t> {
        self.by_name.get(dotted).into_iter().flatten().map(|index| &self.nodes[*index])
    }

    /// The types that its sections are filled with, in the order in which they come up.
    #[doc(hidden)]
    pub fn params_types(&self) -> impl Iterator<Item = &Arc<ParamsType>> {
        self.types.values().map(|filling| &filling.of)
    }

    /// The versions of its parts, which overrides are made for.
    #[doc(hidden)]
    pub fn descriptor(&self) -> &Arc<Descriptor> {
        &self.descriptor
    }

    /// What its author wrote, to begin overrides with.
    #[doc(hidden)]
    pub fn originals(&self) -> Originals {
        build::describe::originals(&self.nodes)
    }

    /// The keys of the sections directly below one.
    pub(super) fn keys_below(&self, index: usize) -> Vec<String> {
        let below = self.nodes[index + 1..self.nodes[index].end].iter();
        below.filter(|node| node.parent == Some(index)).map(|node| node.section.key.clone()).collect()
    }

    /// What is probably not as meant, though the tree can be rendered: a summary that asks for names which nothing fills.
    pub fn notes(&self) -> &[Diagnostic] {
        &self.notes
    }
}
