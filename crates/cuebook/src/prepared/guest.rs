//! Guests: what a prompt's texts include by its address (see [`crate::template::address`]), each rendered by its own engine.
//!
//! [`Hosting`] is the loader that a prompt's texts are compiled with. Files come from the library; a guest is read and compiled here,
//! with a loader that knows the way which led to it, so that circles end as errors. Everything goes through the library's loader, so
//! whatever a guest was made from is noticed when it changes.
//!
//! Only the text of a guest is included. It sees the values of the prompt that includes it, which takes what its guests take. What
//! runs code is no guest: hooks see whole prompts.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use indexmap::IndexMap;

use super::directive::OfScope;
use super::sections::SectionsBody;
use super::{Mode, Shelf, inherit};
use crate::dialect::directive::{Directive, whole};
use crate::dialect::knowledge::{self, Knowledge};
use crate::dialect::{self, Read};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, nearest};
use crate::hooks::Hooks;
use crate::items::{Item, ItemId, ItemType};
use crate::library::{Defaults, LibraryLoader};
use crate::overrides::DEFAULT_TAG;
use crate::prompt::{Dialect, Need, Prompt, Variable};
use crate::render::refuse_forgeries;
use crate::sections::render_part;
use crate::source::{OffsetMap, Place, Source};
use crate::template::address::{Address, Kind};
use crate::template::engine::{Compiled, Engine, Engines, Jinja, Job, Loader, Outline, Output};
use crate::template::input::Template as InputTemplate;
use crate::template::jinja::names::Names;
use crate::template::jinja::{GUEST_SHARE, Settings};
use crate::template::lent::{Bound, Lent};
use crate::template::unit::Unit;
use crate::variables::{Scope, convert, refuse_invalid, validate_lent};

/// What all guests of a prompt are made with.
pub(super) struct House {
    pub(super) files: Arc<LibraryLoader>,
    pub(super) engines: Arc<Engines>,
    pub(super) hooks: Arc<Hooks>,
    pub(super) overrides: Arc<Shelf>,
    pub(super) defaults: Arc<Defaults>,
    pub(super) settings: Settings,
    pub(super) mode: Mode,
    /// Whether the prompt itself is a tree of sections: then what is opened in the session is its own.
    pub(super) is_tree: bool,
    /// What was included, by its key, and how many include each other in a row there. Templates hold their guests, and with their
    /// loader this: held here as well, nothing of it would ever go.
    pub(super) known: Mutex<IndexMap<String, (Weak<Guest>, usize)>>,
}

impl House {
    /// Everything that was included so far, each once.
    pub(super) fn guests(&self) -> Vec<Arc<Guest>> {
        self.known().values().filter_map(|(guest, _)| guest.upgrade()).collect()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, IndexMap<String, (Weak<Guest>, usize)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One include on the way to another.
#[derive(Clone)]
struct Step {
    /// The source of what is included, and the path of a section.
    key: String,
    shown: String,
    place: Option<Place>,
}

/// The loader of a prompt's texts, or of a guest's.
pub(super) struct Hosting {
    house: Arc<House>,
    /// What led here, the prompt itself first.
    way: Vec<Step>,
    /// How many guests include each other in a row below this.
    tallest: AtomicUsize,
    /// Where the texts include something; `None` once they all have been read.
    sites: Mutex<Option<Vec<Site>>>,
}

/// A place where something is included, and what has been set there.
struct Site {
    place: Place,
    guest: Weak<Guest>,
    lent: Lent,
}

/// A variable that a guest asks of what includes it.
#[derive(Clone)]
pub(crate) struct Asked {
    /// What it is, with the guest that declares it.
    pub(crate) variable: Variable,
    /// Where that guest is included.
    pub(crate) place: Place,
    /// Whether it may have been set on the way: then nobody has to give it beforehand, and the guest asks when it is rendered.
    may_be_set: bool,
}

impl Asked {
    /// The variable, as one of the prompt that includes the guest.
    pub(crate) fn into_variable(self) -> Variable {
        let mut variable = self.variable;
        if self.may_be_set && variable.need == Need::Required {
            variable.need = Need::Optional;
        }
        variable
    }
}

/// Something that is included.
pub(crate) struct Guest {
    /// Its id.
    pub(crate) id: String,
    /// Where it is first included.
    pub(crate) place: Place,
    /// What it declares and mentions: validated where it is rendered, if that was set there.
    variables: Vec<Variable>,
    dialect: Dialect,
    /// What it takes, and what its own guests take beside that.
    asks: Vec<Asked>,
    /// What it has beside its text, in words: that is not included.
    pub(crate) left: Vec<&'static str>,
    body: GuestBody,
    files: Arc<LibraryLoader>,
    overrides: Arc<Shelf>,
    /// Whether what is opened in the session is opened in it as well.
    opens: bool,
}

enum GuestBody {
    Template(Box<dyn Compiled>),
    /// A tree, and the section that is meant.
    Sections(Box<SectionsBody>, Option<usize>),
    Directive(Box<Directive>, Option<Item>, Arc<Texts>),
    Knowledge(Knowledge, Item, Arc<Texts>),
}

/// Texts with what they mention.
struct Texts {
    units: Arc<Vec<Unit>>,
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
    fn of(source: &Arc<Source>) -> Arc<Texts> {
        let unit = Unit::new(source.clone(), OffsetMap::default(), Vec::new(), Vec::new());
        Arc::new(Texts { units: Arc::new(vec![unit]), names: vec![Names::default()] })
    }
}

impl Hosting {
    /// The loader of the texts of a prompt.
    pub(super) fn new(house: Arc<House>, source: &str, id: &str) -> Hosting {
        let step = Step { key: source.to_owned(), shown: id.to_owned(), place: None };
        Hosting::leading(house, vec![step])
    }

    fn leading(house: Arc<House>, way: Vec<Step>) -> Hosting {
        Hosting { house, way, tallest: AtomicUsize::new(0), sites: Mutex::new(Some(Vec::new())) }
    }

    fn sites(&self) -> std::sync::MutexGuard<'_, Option<Vec<Site>>> {
        self.sites.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the guests ask for that has not surely been set where they are included; asked once, when all texts have been read. The
    /// first who declares a name says what it is.
    pub(super) fn asked(&self) -> Vec<Asked> {
        let sites = self.sites().take().unwrap_or_default();
        let mut asked: Vec<Asked> = Vec::new();
        for Site { guest, lent, .. } in sites {
            for one in guest.upgrade().iter().flat_map(|guest| &guest.asks) {
                let may_be_set = match lent.of(&one.variable.name) {
                    Bound::Surely => continue,
                    Bound::Perhaps => true,
                    Bound::Never => one.may_be_set,
                };
                let one = Asked { may_be_set, ..one.clone() };
                match asked.iter_mut().find(|known| known.variable.name == one.variable.name) {
                    None => asked.push(one),
                    // Somewhere else it is needed whatever is set.
                    Some(known) if known.may_be_set && !may_be_set => *known = one,
                    Some(_) => {}
                }
            }
        }
        asked
    }

    /// What an address names, found and not yet compiled.
    fn find(&self, address: Address<'_>) -> Result<Option<Wanted>> {
        let files = &self.house.files;
        let item = |kind| match ItemId::new(address.id) {
            Ok(id) => files.item(kind, &id),
            Err(_) => Ok(None),
        };
        Ok(match address.kind {
            Kind::Prompt => {
                let Some(found) = files.choose_if_any(address.id)? else { return Ok(None) };
                let key = match address.section {
                    Some(section) => format!("{}#{}", found.candidate.source, section.replace('/', ".")),
                    None => found.candidate.source.clone(),
                };
                Some(Wanted { key, what: What::Prompt(Box::new(found)) })
            }
            Kind::Directive => item(ItemType::Directive)?.map(|item| Wanted::item(item, What::Directive)),
            Kind::Knowledge => item(ItemType::Knowledge)?.map(|item| Wanted::item(item, What::Knowledge)),
        })
    }

    /// Refuses what leads back to where it came from, and what goes too deep.
    fn refuse(&self, wanted: &Wanted, height: usize, at: &Place) -> Result<()> {
        if let Some(start) = self.way.iter().position(|step| step.key == wanted.key) {
            let circle = &self.way[start..];
            let mut shown: Vec<&str> = circle.iter().map(|step| step.shown.as_str()).collect();
            shown.push(shown[0]);
            let message = format!("prompts include each other in a circle: {}", shown.join(" → "));
            let mut diagnostic = Diagnostic::new(Code::IncludeCycle, message)
                .at(at.clone())
                .label("leads back to the beginning")
                .hint("break the circle: move what both need into a third prompt or a partial");
            for step in &circle[1..] {
                if let Some(place) = &step.place {
                    diagnostic =
                        diagnostic.related(place.clone(), format!("`{}` is included here", step.shown));
                }
            }
            return Err(Error::new(ErrorKind::PromptRead, diagnostic));
        }
        let limit = self.house.settings.include_depth;
        if self.way.len() - 1 + height > limit {
            let message = format!("prompts include each other more than {limit} deep");
            let hint = "flatten the includes, or raise `limits.include_depth` in cuebook.toml";
            let diagnostic = Diagnostic::new(Code::TooDeep, message).at(at.clone()).hint(hint);
            return Err(Error::new(ErrorKind::Limit, diagnostic));
        }
        Ok(())
    }

    fn invite(&self, name: &str, address: Address<'_>, wanted: Wanted, at: &Place) -> Result<Option<Guest>> {
        let house = &self.house;
        let mut way = self.way.clone();
        way.push(Step { key: wanted.key, shown: name.to_owned(), place: Some(at.clone()) });
        // What nests on one side of a border adds up with what nests on the other.
        let recursion = house.settings.recursion / GUEST_SHARE;
        let settings = Settings { recursion, ..house.settings.clone() };
        let below = Arc::new(Hosting::leading(house.clone(), way));
        let guest = |id: String, made: Made| {
            let Made { dialect, mut variables, left, body } = made;
            let own = variables.iter().map(|variable| Asked {
                variable: Variable { inherited_from: Some(id.clone()), ..variable.clone() },
                place: at.clone(),
                may_be_set: false,
            });
            let mut asks: Vec<Asked> = own.collect();
            for one in below.asked() {
                if asks.iter().all(|known| known.variable.name != one.variable.name) {
                    asks.push(one);
                }
            }
            let outline = body.outline();
            let reads: HashSet<&str> = outline
                .names()
                .iter()
                .flat_map(|names| &names.reads)
                .map(|read| read.root.as_str())
                .collect();
            variables.retain(|variable| reads.contains(variable.name.as_str()));
            Guest {
                id,
                place: at.clone(),
                variables,
                dialect,
                asks,
                left,
                body,
                files: house.files.clone(),
                overrides: house.overrides.clone(),
                opens: !house.is_tree,
            }
        };
        let made = match wanted.what {
            What::Prompt(found) => {
                let mut read = dialect::read(&found.id, &found.candidate, &house.files, &house.defaults)?;
                let extends = read.extends.take();
                inherit(&mut read.prompt, extends, &house.files, &house.defaults)?;
                self.refuse_code(&read.prompt, at)?;
                match read.directive.take() {
                    Some(file) => {
                        let made = directive_guest(file.directive, file.item, &found.id);
                        guest(found.id, made)
                    }
                    None => match prompt_body(read, address, &below, &settings, &house.engines)? {
                        Some(made) => guest(found.id, made),
                        None => return Ok(None),
                    },
                }
            }
            What::Directive(item) => {
                let id = item.located.id.to_string();
                let load = &mut |kind, id: &ItemId| {
                    let files = &house.files;
                    files.item(kind, id)?.ok_or_else(|| files.library().spaces().not_found(kind, id))
                };
                let depth = house.settings.include_depth;
                let directive = dialect::directive::read(&item.source()?)?.include(&id, depth, load)?;
                let made = directive_guest(directive, Some(*item), &id);
                guest(id, made)
            }
            What::Knowledge(item) => {
                let knowledge = knowledge::read(&item.source()?)?;
                let texts = Texts::of(&knowledge.source);
                let id = item.located.id.to_string();
                let body = GuestBody::Knowledge(knowledge, *item, texts);
                guest(id, Made { dialect: Dialect::Directive, variables: Vec::new(), left: Vec::new(), body })
            }
        };
        self.tallest.fetch_max(below.tallest.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Ok(Some(made))
    }

    /// Hooks see whole prompts, so what has some is no part of another one; leaving them out would change what it says.
    fn refuse_code(&self, prompt: &Prompt, at: &Place) -> Result<()> {
        let hooks = &self.house.hooks;
        let has_hooks = !prompt.hooks.is_empty()
            || hooks.pre_render.contains_key(&prompt.id)
            || hooks.post_render.contains_key(&prompt.id);
        if !has_hooks {
            return Ok(());
        }
        let message = format!("`{}` has hooks, and they run only where it is rendered itself", prompt.id);
        let hint =
            format!("include the file of its template instead, which is text alone: {}", file_hint(prompt));
        let diagnostic = Diagnostic::new(Code::HooksUnavailable, message).at(at.clone()).hint(hint);
        Err(Error::new(ErrorKind::PromptRead, diagnostic))
    }

    /// Notes where something is included.
    fn note(&self, guest: &Arc<Guest>, at: &Place) {
        let site = Site { place: at.clone(), guest: Arc::downgrade(guest), lent: Lent::default() };
        if let Some(sites) = &mut *self.sites() {
            sites.push(site);
        }
    }

    /// Ids that could have been meant.
    fn similar(&self, address: Address<'_>) -> Vec<String> {
        let library = self.house.files.library();
        let of_items = |kind: ItemType| -> Vec<String> {
            let spaces = library.spaces();
            let walk = |space| spaces.walk(kind, space).unwrap_or_default();
            spaces.all().iter().flat_map(walk).map(|item| item.id.to_string()).collect()
        };
        let known = match address.kind {
            Kind::Prompt => {
                if let Some(section) = address.section
                    && let Ok(Some(found)) = self.house.files.choose_if_any(address.id)
                {
                    let read =
                        dialect::read(&found.id, &found.candidate, &self.house.files, &self.house.defaults);
                    let file = read.ok().and_then(|read| read.sections);
                    let paths = file.map_or_else(Vec::new, |file| file.paths());
                    let near = nearest(&section.replace('/', "."), paths.iter().map(String::as_str));
                    return near.into_iter().map(|path| format!("prompt:{}#{path}", address.id)).collect();
                }
                library.ids().unwrap_or_default()
            }
            Kind::Directive => of_items(ItemType::Directive),
            Kind::Knowledge => of_items(ItemType::Knowledge),
        };
        let near = nearest(address.id, known.iter().map(String::as_str));
        near.into_iter().map(|id| format!("{}:{id}", address.kind.as_str())).collect()
    }
}

fn file_hint(prompt: &Prompt) -> String {
    match prompt.dialect {
        Dialect::Template => format!("{{% include \"{}/template.md\" %}}", prompt.id),
        _ => format!("{{% include \"{}.prompty\" %}}", prompt.id),
    }
}

/// Something that was found under an address.
struct Wanted {
    key: String,
    what: What,
}

enum What {
    Prompt(Box<crate::library::Found>),
    Directive(Box<Item>),
    Knowledge(Box<Item>),
}

impl Wanted {
    fn item(item: Item, what: impl FnOnce(Box<Item>) -> What) -> Wanted {
        Wanted { key: item.located.name.clone(), what: what(Box::new(item)) }
    }
}

/// What a guest is made of.
struct Made {
    dialect: Dialect,
    /// What it declares.
    variables: Vec<Variable>,
    left: Vec<&'static str>,
    body: GuestBody,
}

/// Compiles a prompt that is no directive; `None` if it has no such section.
fn prompt_body(
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
        let reads =
            |name: &str| outline.names().iter().any(|names| names.reads.iter().any(|read| read.root == name));
        let mut variables = prompt.variables;
        variables.retain(|variable| index.is_none() || reads(&variable.name));
        let body = GuestBody::Sections(Box::new(body), index);
        return Ok(Some(Made { dialect: prompt.dialect, variables, left, body }));
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
    Ok(Some(Made { dialect: prompt.dialect, variables: prompt.variables, left, body }))
}

/// Compiles a prompt that is one template.
pub(super) fn compile(
    prompt: &Prompt,
    loader: Arc<dyn Loader>,
    settings: &Settings,
    engines: &Engines,
) -> Result<Box<dyn Compiled>> {
    let engine: &dyn Engine = match prompt.dialect {
        Dialect::Template => &Jinja,
        _ => &**engines.get(&prompt.format.engine, prompt.format.engine_place.as_ref())?,
    };
    engine.compile(Job {
        source: prompt.template.clone(),
        loader,
        settings,
        options: &prompt.format.options,
        place: prompt.format.engine_place.as_ref(),
    })
}

fn directive_guest(directive: Directive, item: Option<Item>, id: &str) -> Made {
    let variables = directive.prompt(id, directive.source.name(), &Defaults::default()).variables;
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
    let texts = Arc::new(Texts { units: Arc::new(units), names });
    let body = GuestBody::Directive(Box::new(directive), item, texts);
    Made { dialect: Dialect::Directive, variables, left, body }
}

impl Loader for Hosting {
    fn load(&self, name: &str, parent: &str) -> Result<Option<Arc<Source>>> {
        if Address::of(name).is_some() {
            return Ok(None);
        }
        let found = self.house.files.load(name, parent)?;
        match self.house.mode {
            Mode::DespiteMissing => Ok(found.or_else(|| Some(Source::new(name, "")))),
            Mode::Lenient | Mode::Strict => Ok(found),
        }
    }

    fn load_computed(&self, name: &str, parent: &str) -> Result<Option<Arc<Source>>> {
        // What is included by its address must be known before values are: a value chooses among files at most.
        match Address::of(name) {
            Some(_) => Ok(None),
            None => self.house.files.load_computed(name, parent),
        }
    }

    fn guest(&self, name: &str, at: &Place) -> Result<Option<Arc<dyn Compiled>>> {
        let Some(address) = Address::of(name) else { return Ok(None) };
        let nobody = || match self.house.mode {
            Mode::DespiteMissing => {
                Some(Arc::new(Nothing(Texts::of(&Source::new(name, "")))) as Arc<dyn Compiled>)
            }
            Mode::Lenient | Mode::Strict => None,
        };
        let found = self.find(address).map_err(|error| match error.diagnostic().place {
            Some(_) => error,
            None => {
                let mut told = error.diagnostic().clone().at(at.clone());
                if told.code == Code::InvalidId {
                    // Where a command takes an id or a path, an include has an address for the one and a name for the other.
                    told = told.hint(
                        "`prompt:` takes an id, as in {% include \"prompt:greeting\" %}; \
                         a file is included without it, as in {% include \"partials/legal.md\" %}",
                    );
                }
                error.replaced(told)
            }
        });
        let Some(wanted) = found? else { return Ok(nobody()) };
        let key = wanted.key.clone();
        let known =
            self.house.known().get(&key).and_then(|(guest, height)| Some((guest.upgrade()?, *height)));
        let height = known.as_ref().map_or(1, |(_, height)| *height);
        self.refuse(&wanted, height, at)?;
        if let Some((guest, height)) = known {
            self.tallest.fetch_max(height, Ordering::Relaxed);
            self.note(&guest, at);
            return Ok(Some(guest));
        }
        let before = self.tallest.swap(0, Ordering::Relaxed);
        let invited =
            self.invite(name, address, wanted, at).map_err(|error| error.map(|told| told.included(at)))?;
        let height = self.tallest.fetch_max(before, Ordering::Relaxed);
        let Some(guest) = invited else { return Ok(nobody()) };
        let guest = Arc::new(guest);
        self.house.known().insert(key, (Arc::downgrade(&guest), height.max(1)));
        self.note(&guest, at);
        Ok(Some(guest))
    }

    fn lends(&self, at: &Place, lent: &Lent) {
        for site in self.sites().iter_mut().flatten().filter(|site| site.place.is_same(at)) {
            site.lent = lent.clone();
        }
    }

    fn suggestions(&self, name: &str) -> Vec<String> {
        match Address::of(name) {
            Some(address) => self.similar(address),
            None => self.house.files.suggestions(name),
        }
    }
}

/// What is missing, where that is told later.
struct Nothing(Arc<Texts>);

impl Compiled for Nothing {
    fn render(&self, _: &Arc<Scope>, _: usize) -> Result<Output> {
        Ok(Output { text: String::new(), pieces: Vec::new(), units: self.0.units.clone().into() })
    }

    fn outline(&self) -> Arc<dyn Outline> {
        self.0.clone()
    }
}

impl Guest {
    /// Whether it is a tree of sections, or one of its sections.
    pub(crate) fn is_tree(&self) -> bool {
        matches!(self.body, GuestBody::Sections(..))
    }

    /// The signed files that it is made from.
    pub(super) fn items(&self) -> Vec<&Item> {
        match &self.body {
            GuestBody::Directive(directive, item, _) => {
                item.iter().chain(directive.included_items()).collect()
            }
            GuestBody::Knowledge(_, item, _) => vec![item],
            GuestBody::Template(_) | GuestBody::Sections(..) => Vec::new(),
        }
    }

    /// Sections that are included in their short form: nothing can open them where they are included.
    pub(crate) fn summarized(&self) -> Vec<String> {
        let GuestBody::Sections(body, index) = &self.body else { return Vec::new() };
        let nodes = body.tree().sections();
        let start = index.map(|index| nodes[index].path.as_slice()).unwrap_or_default();
        let below = nodes.iter().filter(|node| node.path.starts_with(start));
        below.filter(|node| node.section.is_summarized()).map(|node| node.dotted().to_owned()).collect()
    }

    /// Whether it is what somebody trusted has signed, if it is something that must be signed: as `execute` asks, also for what is
    /// still being written.
    pub(crate) fn verify(&self) -> Result<()> {
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
    /// What was set where it is included, as its own declarations want it: everything of its type, and defaults for what was set to
    /// nothing. `None` if there is nothing to add.
    fn fill(&self, scope: &Arc<Scope>) -> Result<Option<Arc<Scope>>> {
        let mut problems = Vec::new();
        let mut defaults = Vec::new();
        for variable in &self.variables {
            let is_missing = scope.find(&variable.name).is_none();
            match &variable.default {
                Some(default) if is_missing => defaults.push((variable.name.clone(), convert(default))),
                _ => problems.extend(validate_lent(self.dialect, variable, scope)),
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
            GuestBody::Directive(directive, ..) => {
                let output = directive.body_output(&OfScope(scope), limit, true);
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

/// What is odd about what a prompt includes, for `check`.
pub(crate) fn findings(guests: &[Arc<Guest>]) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
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
                format!("only the text of `{}` is included: its {what} are not", guest.id),
                "declare them in this prompt too, or run the other one by itself".to_owned(),
            );
        }
        if let [first, ..] = guest.summarized().as_slice() {
            told(
                format!(
                    "the section `{first}` of `{}` is included as a summary, and nothing can open it",
                    guest.id
                ),
                format!(
                    "include it by itself where it is shown in full, or give `{}` another visibility",
                    guest.id
                ),
            );
        }
    }
    findings
}
