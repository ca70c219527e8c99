//! The loader that a prompt's texts are compiled with, which also finds what they include by its address (see
//! [`crate::template::address`]).
//!
//! Files come from the library; a guest is read and compiled here, with a loader that knows the way which led to it, so that circles
//! end as errors. Everything goes through the library's loader, so whatever a guest was made from is noticed when it changes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use indexmap::IndexMap;

use super::guest::{Guest, KnowledgeBody, Made};
use super::{Mode, inherit};
use crate::dialect::directive::{self, DirectiveBody, File};
use crate::dialect::{Compiling, Dialects, Texts};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, Severity, nearest};
use crate::hooks::Hooks;
use crate::items::{Item, ItemId, ItemType};
use crate::library::{Defaults, LibraryLoader};
use crate::overrides::ProjectStore;
use crate::prompt::{Need, Prompt, Type, Variable};
use crate::source::{Place, Source};
use crate::template::address::{Address, Kind};
use crate::template::engine::{Compiled, Engines, Loader, Outline, Output};
use crate::template::jinja::{GUEST_SHARE, Settings};
use crate::template::lent::{Bound, Lent};
use crate::variables::Scope;

/// What all guests of a prompt are made with.
pub(super) struct House {
    pub(super) files: Arc<LibraryLoader>,
    pub(super) engines: Arc<Engines>,
    pub(super) dialects: Arc<Dialects>,
    pub(super) hooks: Arc<Hooks>,
    pub(super) overrides: Arc<ProjectStore>,
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
    /// Whether it may have been set on the way: then it need not be given beforehand, and the included prompt asks when it is rendered.
    pub(super) may_be_set: bool,
    /// Whether others declare the name otherwise: then each of them takes its own default.
    pub(super) is_contested: bool,
}

impl Asked {
    /// Whether the caller must give it.
    fn is_needed(&self) -> bool {
        self.variable.need == Need::Required && !self.may_be_set
    }

    /// Whether another declaration says the same of its values.
    fn is_declared_as(&self, other: &Variable) -> bool {
        let one = &self.variable;
        let says = |variable: &Variable| (variable.kind, variable.rich, variable.need == Need::Required);
        says(one) == says(other) && one.default == other.default
    }

    /// The report of two included prompts that want different things of one name: no value suits both of them, or what it is without one
    /// depends on who shows it.
    fn contradiction(&self, other: &Asked) -> Option<Diagnostic> {
        let (one, two) = (&self.variable, &other.variable);
        let named = |asked: &Asked| asked.variable.inherited_from.clone().unwrap_or_default();
        let has_any = |variable: &Variable| variable.rich.is_none() && variable.kind == Type::Any;
        let (message, hint) =
            if (one.kind, one.rich) != (two.kind, two.rich) && !has_any(one) && !has_any(two) {
                let message = format!(
                    "two included prompts declare `{0}` with different types: `{1}` as {2}, `{3}` as {4}",
                    one.name,
                    named(self),
                    one.type_name(),
                    named(other),
                    two.type_name()
                );
                (message, "no value fits both")
            } else if one.default.is_some() && two.default.is_some() && one.default != two.default {
                let message = format!(
                    "two included prompts have different defaults for `{}`: `{}` and `{}`",
                    one.name,
                    named(self),
                    named(other)
                );
                (message, "without a value, each prints its own default")
            } else {
                return None;
            };
        let hint = format!(
            "{hint}: set `{name}` at each include, as in {{% with {name} = … %}}, or rename one",
            name = one.name
        );
        let told = Diagnostic::new(Code::InvalidVariables, message).severity(Severity::Warning);
        Some(told.at(other.place.clone()).related(self.place.clone(), "the other one").hint(hint))
    }

    /// The variable, as one of the prompt that includes the guest.
    pub(crate) fn into_variable(self) -> Variable {
        let mut variable = self.variable;
        if self.may_be_set && variable.need == Need::Required {
            variable.need = Need::Optional;
        }
        variable
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

    /// What the included prompts ask for that has not surely been set where they are included, and reports of those that cannot agree on
    /// it; asked once, when all texts have been read. The first who declares a name says what it is, unless a later one needs it.
    pub(super) fn asked(&self) -> (Vec<Asked>, Vec<(String, Diagnostic)>) {
        let sites = self.sites().take().unwrap_or_default();
        let mut asked: Vec<Asked> = Vec::new();
        let mut told: Vec<(String, Diagnostic)> = Vec::new();
        for Site { guest, lent, place } in sites {
            let Some(guest) = guest.upgrade() else { continue };
            for one in &guest.asks {
                let may_be_set = match lent.of(&one.variable.name) {
                    Bound::Surely => continue,
                    Bound::Perhaps => true,
                    Bound::Never => one.may_be_set,
                };
                // What the guest itself asks for, it asks for at this place; what its own guests ask for, at theirs.
                let place = if one.place.is_same(&guest.place) { &place } else { &one.place };
                let one = Asked { may_be_set, place: place.clone(), ..one.clone() };
                let Some(known) = asked.iter_mut().find(|known| known.variable.name == one.variable.name)
                else {
                    asked.push(one);
                    continue;
                };
                told.extend(known.contradiction(&one).map(|told| (one.variable.name.clone(), told)));
                let is_contested =
                    known.is_contested || one.is_contested || !known.is_declared_as(&one.variable);
                // Elsewhere it is needed whatever is set and has a default; or a default is all there is.
                let has_default = |asked: &Asked| asked.variable.default.is_some();
                if one.is_needed() && !known.is_needed()
                    || (known.may_be_set && !may_be_set)
                    || (has_default(&one) && !has_default(known) && !known.is_needed())
                {
                    *known = one;
                }
                known.is_contested = is_contested;
            }
        }
        (asked, told)
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
            let message = format!("prompts include each other in a cycle: {}", shown.join(" → "));
            let mut diagnostic = Diagnostic::new(Code::IncludeCycle, message)
                .at(at.clone())
                .label("completes the cycle")
                .hint("break the cycle: move the shared text into a third prompt or a partial");
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
        let guest = |id: String, made: Made| Guest::new(id, made, house, &below, at);
        let made = match wanted.what {
            What::Prompt(found) => {
                let (files, defaults, dialects) = (&house.files, &house.defaults, &house.dialects);
                let mut read = dialects.read(&found.id, &found.candidate, files, defaults)?;
                let extends = read.extends.take();
                inherit(&mut read.prompt, extends, &found.candidate.root, files, defaults, dialects)?;
                self.refuse_code(&read.prompt, at)?;
                let compiling = Compiling {
                    prompt: &read.prompt,
                    loader: below.clone(),
                    settings: &settings,
                    engines: &house.engines,
                    is_included: true,
                };
                let dialect = dialects.get(read.prompt.dialect)?;
                let body = match address.section {
                    None => dialect.compile(read.parsed, &compiling)?,
                    Some(section) => match dialect.compile_section(read.parsed, section, &compiling)? {
                        Some(body) => body,
                        None => return Ok(None),
                    },
                };
                guest(found.id, Made::new(read.prompt, body))
            }
            What::Directive(item) => {
                let id = item.located.id.to_string();
                let load = &mut |kind, id: &ItemId| {
                    let files = &house.files;
                    files.item(kind, id)?.ok_or_else(|| files.library().spaces().not_found(kind, id))
                };
                let depth = house.settings.include_depth;
                let directive = directive::read(&item.source()?)?.include(&id, depth, load)?;
                let prompt =
                    directive::prompt(&directive, &id, directive.source.name(), &Defaults::default());
                let body = DirectiveBody::new(File { directive, item: Some(*item) }, true);
                guest(id, Made::new(prompt, Box::new(body)))
            }
            What::Knowledge(item) => {
                let id = item.located.id.to_string();
                guest(id, Made::text(Box::new(KnowledgeBody::new(*item)?)))
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
        let message = format!("`{}` has hooks, which run only when it is rendered directly", prompt.id);
        let hint = format!("include its template file instead, which is only text: {}", file_hint(prompt));
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
                    let House { files, defaults, dialects, .. } = &*self.house;
                    let read = dialects.read(&found.id, &found.candidate, files, defaults);
                    let paths =
                        read.and_then(|read| Ok(dialects.get(read.prompt.dialect)?.sections(&read.parsed)));
                    let paths = match paths {
                        // One text without sections can only be included whole.
                        Ok(paths) if paths.is_empty() => return vec![format!("prompt:{}", address.id)],
                        Ok(paths) => paths,
                        Err(_) => Vec::new(),
                    };
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
    match prompt.dialect.is_folder {
        true => format!("{{% include \"{}/template.md\" %}}", prompt.id),
        false => format!("{{% include \"{}.prompty\" %}}", prompt.id),
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

impl Loader for Hosting {
    fn load(&self, name: &str, parent: &str) -> Result<Option<Arc<Source>>> {
        if Address::of(name).is_some() {
            return Ok(None);
        }
        let found = self.house.files.load(name, parent)?;
        match self.house.mode {
            Mode::DespiteErrors => Ok(found.or_else(|| Some(Source::new(name, "")))),
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
            Mode::DespiteErrors => {
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
                        "write an id after `prompt:`, as in {% include \"prompt:greeting\" %}; include a file without \
                             it, as in {% include \"partials/legal.md\" %}",
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

/// What is missing, where that is reported later.
struct Nothing(Arc<Texts>);

impl Compiled for Nothing {
    fn render(&self, _: &Arc<Scope>, _: usize) -> Result<Output> {
        Ok(Output { text: String::new(), pieces: Vec::new(), units: self.0.units.clone().into() })
    }

    fn outline(&self) -> Arc<dyn Outline> {
        self.0.clone()
    }
}
