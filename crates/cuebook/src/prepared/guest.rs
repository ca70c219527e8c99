//! Guests: what a prompt's texts include by its address, each rendered by its own engine. [`super::hosting`] finds them.
//!
//! Only the text of a guest is included. It sees the values of the prompt that includes it, and before them what that has set where it
//! includes it; that prompt takes what its guests ask for and it has not surely set. What was set is validated here, when it is known,
//! as everything else is before a render begins. What runs code is no guest: hooks see whole prompts.

use std::collections::HashSet;
use std::sync::Arc;

use super::Shelf;
use super::directive::OfScope;
use super::hosting::{Asked, Hosting, House};
use super::sections::SectionsBody;
use crate::chat::{Marker, Roles};
use crate::dialect::Read;
use crate::dialect::directive::{Directive, whole};
use crate::dialect::knowledge::{self, Knowledge};
use crate::error::{Code, Diagnostic, Result};
use crate::items::Item;
use crate::library::{Defaults, LibraryLoader};
use crate::overrides::DEFAULT_TAG;
use crate::prompt::{Dialect, Need, Prompt, Variable};
use crate::render::{PARSER, refuse_forgeries};
use crate::sections::render_part;
use crate::source::{OffsetMap, Place, Source};
use crate::template::address::Address;
use crate::template::engine::{Compiled, Engine, Engines, Jinja, Job, Loader, Outline, Output};
use crate::template::input::Template as InputTemplate;
use crate::template::jinja::Settings;
use crate::template::jinja::names::Names;
use crate::template::unit::Unit;
use crate::variables::{Scope, refuse_invalid, validate_included};

/// Something that is included.
pub struct Guest {
    /// Its id.
    pub id: String,
    /// Where it is first included.
    pub place: Place,
    /// What it declares and mentions: validated where it is rendered, if that was set there.
    variables: Vec<Variable>,
    /// What it takes, and what its own guests take beside that.
    pub(super) asks: Vec<Asked>,
    /// What it has beside its text, in words: that is not included.
    pub left: Vec<&'static str>,
    /// Whether its text has lines that begin messages.
    begins_messages: bool,
    body: GuestBody,
    files: Arc<LibraryLoader>,
    overrides: Arc<Shelf>,
    /// Whether what is opened in the session is opened in it as well.
    opens: bool,
}

pub(super) enum GuestBody {
    Template(Box<dyn Compiled>),
    /// A tree, and the section that is meant.
    Sections(Box<SectionsBody>, Option<usize>),
    Directive(Box<Directive>, Option<Item>, Arc<Texts>),
    Knowledge(Knowledge, Item, Arc<Texts>),
}

/// Texts with what they mention.
pub(super) struct Texts {
    pub(super) units: Arc<Vec<Unit>>,
    names: Vec<Names>,
}

impl Outline for Texts {
    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn names(&self) -> &[Names] {
        &self.names
    }
}

impl Texts {
    pub(super) fn of(source: &Arc<Source>) -> Arc<Texts> {
        let unit = Unit::new(source.clone(), OffsetMap::default(), Vec::new(), Vec::new());
        Arc::new(Texts { units: Arc::new(vec![unit]), names: vec![Names::default()] })
    }
}

/// What a guest is made of.
pub(super) struct Made {
    /// What it declares.
    variables: Vec<Variable>,
    left: Vec<&'static str>,
    begins_messages: bool,
    body: GuestBody,
}

/// Compiles a prompt that is no directive; `None` if it has no such section.
pub(super) fn prompt_body(
    read: Read,
    address: Address<'_>,
    loader: &Arc<Hosting>,
    settings: &Settings,
    engines: &Engines,
) -> Result<Option<Made>> {
    let Read { prompt, sections, .. } = read;
    let mut left = Vec::new();
    if let Some(mut file) = sections {
        let path = match address.section {
            None => None,
            Some(section) => match file.keep_only(section) {
                Some(path) => Some(path),
                None => return Ok(None),
            },
        };
        if file.output.is_some() {
            left.push("outputs");
        }
        let body = SectionsBody::new(*file, loader.clone(), settings, engines)?;
        let index = path.and_then(|path| body.tree().sections().iter().position(|node| node.path == path));
        if body.tree().sections().iter().any(|node| !node.section.tools.is_empty()) {
            left.push("tools");
        }
        // Of one section, only what it mentions is asked for.
        let outline = body.outline();
        let reads: HashSet<&str> =
            outline.names().iter().flat_map(|names| &names.reads).map(|read| read.root.as_str()).collect();
        let is_asked = |variable: &Variable| index.is_none() || reads.contains(variable.name.as_str());
        let variables = prompt.variables.into_iter().filter(is_asked).collect();
        let body = GuestBody::Sections(Box::new(body), index);
        return Ok(Some(Made { variables, left, begins_messages: false, body }));
    }
    if address.section.is_some() {
        return Ok(None);
    }
    if !prompt.tools.is_empty() {
        left.push("tools");
    }
    if !prompt.outputs.is_empty() {
        left.push("outputs");
    }
    let compiled = compile(&prompt, loader.clone(), settings, engines)?;
    let body = GuestBody::Template(compiled);
    let roles = Roles::of(&prompt.format.parser_options);
    let begins_messages = prompt.format.parser.as_deref() == Some(PARSER)
        && prompt.template.text().lines().any(|line| Marker::in_template(line, &roles).is_some());
    Ok(Some(Made { variables: prompt.variables.into_iter().collect(), left, begins_messages, body }))
}

/// Compiles a prompt that is one template.
pub(super) fn compile(
    prompt: &Prompt,
    loader: Arc<dyn Loader>,
    settings: &Settings,
    engines: &Engines,
) -> Result<Box<dyn Compiled>> {
    let engine: &dyn Engine = match prompt.dialect.traits().is_folder {
        true => &Jinja,
        false => &**engines.get(&prompt.format.engine, prompt.format.engine_place.as_ref())?,
    };
    engine.compile(Job {
        source: prompt.template.clone(),
        loader,
        settings,
        options: &prompt.format.options,
        place: prompt.format.engine_place.as_ref(),
    })
}

pub(super) fn directive_guest(directive: Directive, item: Option<Item>, id: &str) -> Made {
    let variables = directive.prompt(id, directive.source.name(), &Defaults::default()).variables;
    let variables = variables.into_iter().collect();
    let mut left = Vec::new();
    if !directive.outputs.is_empty() {
        left.push("outputs");
    }
    if directive.context.is_some() {
        left.push("context");
    }
    let (mut units, mut names) = (directive.units().to_vec(), vec![directive.template().names()]);
    let included = directive.included_texts();
    units.extend(included.0);
    names.extend(included.1);
    // What it does not take, nobody can give it.
    names.iter_mut().for_each(|names| names.reads.retain(|read| directive.takes(&read.root)));
    let texts = Arc::new(Texts { units: Arc::new(units), names });
    let body = GuestBody::Directive(Box::new(directive), item, texts);
    Made { variables, left, begins_messages: false, body }
}

/// A piece of knowledge as a guest, and its id.
pub(super) fn knowledge_guest(item: Item) -> Result<(String, Made)> {
    let knowledge = knowledge::read(&item.source()?)?;
    let texts = Texts::of(&knowledge.source);
    let id = item.located.id.to_string();
    let body = GuestBody::Knowledge(knowledge, item, texts);
    Ok((id, Made { variables: Vec::new(), left: Vec::new(), begins_messages: false, body }))
}

impl Guest {
    /// One that is included at a place; `below` is the loader that its texts were read with.
    pub(super) fn new(id: String, made: Made, house: &House, below: &Hosting, at: &Place) -> Guest {
        let Made { mut variables, left, begins_messages, body } = made;
        let own = variables.iter().map(|variable| Asked {
            variable: Variable { inherited_from: Some(id.clone()), ..variable.clone() },
            place: at.clone(),
            may_be_set: false,
            is_contested: false,
        });
        let mut asks: Vec<Asked> = own.collect();
        // What its guests cannot agree on is told where it is checked itself.
        let mut known: HashSet<String> = asks.iter().map(|one| one.variable.name.clone()).collect();
        asks.extend(below.asked().0.into_iter().filter(|one| known.insert(one.variable.name.clone())));
        let outline = body.outline();
        let reads: HashSet<&str> =
            outline.names().iter().flat_map(|names| &names.reads).map(|read| read.root.as_str()).collect();
        variables.retain(|variable| reads.contains(variable.name.as_str()));
        Guest {
            id,
            place: at.clone(),
            variables,
            asks,
            left,
            begins_messages,
            body,
            files: house.files.clone(),
            overrides: house.overrides.clone(),
            opens: !house.is_tree,
        }
    }

    /// The names that it asks for, and its own guests beside it.
    pub fn asked(&self) -> impl Iterator<Item = &str> {
        self.asks.iter().map(|one| one.variable.name.as_str())
    }

    /// Whether it refuses values of this name that look like role markers, also if the name was set where it is included.
    pub fn is_strict(&self, name: &str) -> bool {
        self.variables.iter().any(|variable| variable.strict && variable.name == name)
    }

    /// Whether it is a tree of sections, or one of its sections.
    pub fn is_tree(&self) -> bool {
        matches!(self.body, GuestBody::Sections(..))
    }

    /// Whether it is a directive: in XML everything is text, its defaults as well.
    pub fn is_directive(&self) -> bool {
        matches!(self.body, GuestBody::Directive(..))
    }

    /// Whether its text has lines that begin messages in a `.prompty` file.
    pub fn begins_messages(&self) -> bool {
        self.begins_messages
    }

    /// The signed files that it is made from.
    pub fn items(&self) -> Vec<&Item> {
        match &self.body {
            GuestBody::Directive(directive, item, _) => {
                item.iter().chain(directive.included_items()).collect()
            }
            GuestBody::Knowledge(_, item, _) => vec![item],
            GuestBody::Template(_) | GuestBody::Sections(..) => Vec::new(),
        }
    }

    /// Sections that are included in their short form: nothing can open them where they are included.
    pub fn summarized(&self) -> Vec<String> {
        let GuestBody::Sections(body, index) = &self.body else { return Vec::new() };
        let nodes = body.tree().sections();
        let start = index.map(|index| nodes[index].path.as_slice()).unwrap_or_default();
        let below = nodes.iter().filter(|node| node.path.starts_with(start));
        below.filter(|node| node.section.is_summarized()).map(|node| node.dotted().to_owned()).collect()
    }

    /// Whether it is what somebody trusted has signed, if it is something that must be signed: as `execute` asks, also for what is
    /// still being written.
    pub fn verify(&self) -> Result<()> {
        let trust = self.files.library().trust();
        let verified = match &self.body {
            GuestBody::Directive(directive, item, _) => match item {
                Some(item) => trust.verify(item).and_then(|_| directive.verify_included(trust)),
                None => directive.verify_included(trust),
            },
            GuestBody::Knowledge(_, item, _) => trust.verify(item).map(|_| ()),
            GuestBody::Template(_) | GuestBody::Sections(..) => Ok(()),
        };
        verified.map_err(|error| error.map(|told| told.included(&self.place)))
    }
}

impl Compiled for Guest {
    fn render(&self, scope: &Arc<Scope>, limit: usize) -> Result<Output> {
        self.verify()?;
        let filled = self.fill(scope)?;
        let output = self.write(filled.as_ref().unwrap_or(scope), limit)?;
        self.refuse_forgeries(scope, &output)?;
        Ok(output)
    }

    fn outline(&self) -> Arc<dyn Outline> {
        self.body.outline()
    }
}

impl GuestBody {
    fn outline(&self) -> Arc<dyn Outline> {
        match self {
            GuestBody::Template(compiled) => compiled.outline(),
            GuestBody::Sections(body, _) => body.outline(),
            GuestBody::Directive(_, _, texts) | GuestBody::Knowledge(_, _, texts) => texts.clone(),
        }
    }
}

impl Guest {
    /// What it is given, as its own declarations want it: everything of its type, and its own defaults for what was set to nothing or
    /// is only the default of another guest. `None` if there is nothing to add.
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
        Ok((!defaults.is_empty()).then(|| scope.lending(defaults)))
    }

    /// Refuses the text if what was set for a strict input looks like a role marker in it. Inputs of the whole prompt are looked at
    /// when all of it is there.
    fn refuse_forgeries(&self, scope: &Arc<Scope>, output: &Output) -> Result<()> {
        let strict = self.variables.iter().filter(|variable| variable.strict && variable.rich.is_none());
        let names = strict.map(|variable| variable.name.as_str()).filter(|name| scope.lent(name).is_some());
        refuse_forgeries(output, &names.collect::<Vec<_>>())
    }

    fn write(&self, scope: &Arc<Scope>, limit: usize) -> Result<Output> {
        match &self.body {
            GuestBody::Template(compiled) => compiled.render(scope, limit),
            GuestBody::Sections(body, index) => {
                let tag = scope.context().overrides_tag.as_deref().unwrap_or(DEFAULT_TAG);
                let store = self.overrides.store(self.files.library().root())?;
                let overrides = store.resolve(body.tree().descriptor(), tag)?;
                body.with_setting(scope, &overrides, limit, self.opens, |setting| match index {
                    Some(index) => render_part(body.tree(), *index, setting),
                    None => Ok(body.tree().render(setting)?.into_rendered().into_output()),
                })
            }
            GuestBody::Directive(directive, item, _) => {
                let values = OfScope::new(scope, directive, item.as_ref(), self.files.library()).included();
                let output = directive.body_output(&values, limit, true);
                output.map_err(|_| directive.template().too_large(limit))
            }
            GuestBody::Knowledge(knowledge, _, texts) => {
                whole(knowledge, &texts.units, limit).map_err(|_| {
                    let end = knowledge.source.text().len();
                    InputTemplate::compile(knowledge.source.clone(), end..end).too_large(limit)
                })
            }
        }
    }
}

/// What is odd about what a prompt of a notation includes, for `check`.
pub fn findings(guests: &[Arc<Guest>], host: Dialect, contradictions: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut findings = contradictions.to_vec();
    for guest in guests {
        if let Err(error) = guest.verify() {
            findings.extend(error.into_diagnostics());
        }
        let mut told = |message: String, hint: String| {
            findings.push(Diagnostic::new(Code::LeftBehind, message).at(guest.place.clone()).hint(hint));
        };
        if !guest.left.is_empty() {
            let what = guest.left.join(" and ");
            told(
                format!("only the text of `{}` is included, not its {what}", guest.id),
                "declare them in this prompt too, or run the other prompt separately".to_owned(),
            );
        }
        if guest.begins_messages && !host.traits().has_roles {
            told(
                format!("role lines of `{}` are text here: only .prompty files have roles", guest.id),
                format!(
                    "include it in a .prompty file, or move the shared text of `{}` into a partial",
                    guest.id
                ),
            );
        }
        if let [first, ..] = guest.summarized().as_slice() {
            told(
                format!(
                    "the section `{first}` of `{}` is included as a summary, and a model cannot open it",
                    guest.id
                ),
                format!(
                    "include the section alone where you need all of it, or change the visibility of `{}`",
                    guest.id
                ),
            );
        }
    }
    findings
}
