//! The loader that a prompt's texts are compiled with, which also finds what they include by its address (see
//! [`crate::template::address`]).
//!
//! Files come from the library; an included prompt is read and compiled here, with a loader that knows the way which led to it, so that circles
//! end as errors. Everything goes through the library's loader, so whatever an included prompt was made from is noticed when it changes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use indexmap::IndexMap;

use super::included::{IncludedContent, IncludedPrompt, KnowledgeBody};
use super::{Mode, inherit};
use crate::dialect::directive::{self, DirectiveBody, File};
use crate::dialect::{Compiling, Dialects, Texts};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity, nearest};
use crate::hooks::Hooks;
use crate::items::{Item, ItemId, ItemType};
use crate::library::{Defaults, LibraryLoader};
use crate::overrides::ProjectStore;
use crate::prompt::{Need, Prompt, Type, Variable};
use crate::source::{Place, Source};
use crate::template::address::{Address, Kind};
use crate::template::engine::{Compiled, Engines, Loader, Outline, Output};
use crate::template::jinja::{INCLUDE_DEPTH_SHARE, Settings};
use crate::template::set_names::{SetNames, SetState};
use crate::variables::Scope;

/// What all included prompts of a prompt are made with.
pub(super) struct IncludeContext {
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
    /// What was included, by its key, and how many include each other in a row there. Templates hold their included prompts, and with their
    /// loader this: held here as well, nothing of it would ever go.
    pub(super) known: Mutex<IndexMap<String, (Weak<IncludedPrompt>, usize)>>,
}

impl IncludeContext {
    /// Everything that was included so far, each once.
    pub(super) fn included_prompts(&self) -> Vec<Arc<IncludedPrompt>> {
        self.known().values().filter_map(|(included, _)| included.upgrade()).collect()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, IndexMap<String, (Weak<IncludedPrompt>, usize)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One include on the way to another.
#[derive(Clone)]
struct IncludeStep {
    /// The source of what is included, and the path of a section.
    key: String,
    shown: String,
    place: Option<Place>,
}

/// The loader of a prompt's texts, or of an included prompt's.
pub(super) struct IncludeLoader {
    include_context: Arc<IncludeContext>,
    /// What led here, the prompt itself first.
    way: Vec<IncludeStep>,
    /// How many included prompts include each other in a row below this.
    tallest: AtomicUsize,
    /// Where the texts include something; `None` once they all have been read.
    sites: Mutex<Option<Vec<IncludeSite>>>,
}

/// A place where something is included, and what has been set there.
struct IncludeSite {
    place: Place,
    included: Weak<IncludedPrompt>,
    set_names: SetNames,
}

/// A variable that an included prompt asks of what includes it.
#[derive(Clone)]
pub(crate) struct RequestedVariable {
    /// What it is, with the included prompt that declares it.
    pub(crate) variable: Variable,
    /// Where that included prompt is included.
    pub(crate) place: Place,
    /// Whether it may have been set on the way: then it need not be given beforehand, and the included prompt asks when it is rendered.
    pub(super) may_be_set: bool,
    /// Whether others declare the name otherwise: then each of them takes its own default.
    pub(super) is_contested: bool,
}

impl RequestedVariable {
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
    fn contradiction(&self, other: &RequestedVariable) -> Option<Diagnostic> {
        let (one, two) = (&self.variable, &other.variable);
        let named = |asked: &RequestedVariable| asked.variable.inherited_from.clone().unwrap_or_default();
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
        let reported = Diagnostic::new(Code::InvalidVariables, message).severity(Severity::Warning);
        Some(reported.at(other.place.clone()).related(self.place.clone(), "the other one").hint(hint))
    }

    /// The variable, as one of the prompt that includes the included prompt.
    pub(crate) fn into_variable(self) -> Variable {
        let mut variable = self.variable;
        if self.may_be_set && variable.need == Need::Required {
            variable.need = Need::Optional;
        }
        variable
    }
}

impl IncludeLoader {
    /// The loader of the texts of a prompt.
    pub(super) fn new(include_context: Arc<IncludeContext>, source: &str, id: &str) -> IncludeLoader {
        let step = IncludeStep { key: source.to_owned(), shown: id.to_owned(), place: None };
        IncludeLoader::leading(include_context, vec![step])
    }

    fn leading(include_context: Arc<IncludeContext>, way: Vec<IncludeStep>) -> IncludeLoader {
        IncludeLoader {
            include_context,
            way,
            tallest: AtomicUsize::new(0),
            sites: Mutex::new(Some(Vec::new())),
        }
    }

    fn sites(&self) -> std::sync::MutexGuard<'_, Option<Vec<IncludeSite>>> {
        self.sites.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the included prompts ask for that has not surely been set where they are included, and reports of those that cannot agree on
    /// it; asked once, when all texts have been read. The first who declares a name says what it is, unless a later one needs it.
    pub(super) fn requested_variables(&self) -> (Vec<RequestedVariable>, Vec<(String, Diagnostic)>) {
        let sites = self.sites().take().unwrap_or_default();
        let mut asked: Vec<RequestedVariable> = Vec::new();
        let mut reported: Vec<(String, Diagnostic)> = Vec::new();
        for IncludeSite { included, set_names, place } in sites {
            let Some(included) = included.upgrade() else { continue };
            for one in &included.asks {
                let may_be_set = match set_names.of(&one.variable.name) {
                    SetState::Surely => continue,
                    SetState::Perhaps => true,
                    SetState::Never => one.may_be_set,
                };
                // What the included prompt itself asks for, it asks for at this place; what its own included prompts ask for, at theirs.
                let place = if one.place.is_same(&included.place) { &place } else { &one.place };
                let one = RequestedVariable { may_be_set, place: place.clone(), ..one.clone() };
                let Some(known) = asked.iter_mut().find(|known| known.variable.name == one.variable.name)
                else {
                    asked.push(one);
                    continue;
                };
                reported
                    .extend(known.contradiction(&one).map(|reported| (one.variable.name.clone(), reported)));
                let is_contested =
                    known.is_contested || one.is_contested || !known.is_declared_as(&one.variable);
                // Elsewhere it is needed whatever is set and has a default; or a default is all there is.
                let has_default = |asked: &RequestedVariable| asked.variable.default.is_some();
                if one.is_needed() && !known.is_needed()
                    || (known.may_be_set && !may_be_set)
                    || (has_default(&one) && !has_default(known) && !known.is_needed())
                {
                    *known = one;
                }
                known.is_contested = is_contested;
            }
        }
        (asked, reported)
    }

    /// What an address names, found and not yet compiled.
    fn find(&self, address: Address<'_>) -> Result<Option<IncludeTarget>> {
        let files = &self.include_context.files;
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
                Some(IncludeTarget { key, what: TargetKind::Prompt(Box::new(found)) })
            }
            Kind::Directive => {
                item(ItemType::Directive)?.map(|item| IncludeTarget::item(item, TargetKind::Directive))
            }
            Kind::Knowledge => {
                item(ItemType::Knowledge)?.map(|item| IncludeTarget::item(item, TargetKind::Knowledge))
            }
        })
    }

    /// Refuses what leads back to where it came from, and what goes too deep.
    fn refuse(&self, wanted: &IncludeTarget, height: usize, at: &Place) -> Result<()> {
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
        let limit = self.include_context.settings.include_depth;
        if self.way.len() - 1 + height > limit {
            let message = format!("prompts include each other more than {limit} deep");
            let hint = Hint::run(
                "flatten the includes, or raise `limits.include_depth` in cuebook.toml, and grant it",
                "cuebook allow",
            );
            let diagnostic = Diagnostic::new(Code::TooDeep, message).at(at.clone()).hint(hint);
            return Err(Error::new(ErrorKind::Limit, diagnostic));
        }
        Ok(())
    }

    fn include(
        &self,
        name: &str,
        address: Address<'_>,
        wanted: IncludeTarget,
        at: &Place,
    ) -> Result<Option<IncludedPrompt>> {
        let include_context = &self.include_context;
        let mut way = self.way.clone();
        way.push(IncludeStep { key: wanted.key, shown: name.to_owned(), place: Some(at.clone()) });
        // What nests on one side of a border adds up with what nests on the other.
        let recursion = include_context.settings.recursion / INCLUDE_DEPTH_SHARE;
        let settings = Settings { recursion, ..include_context.settings.clone() };
        let below = Arc::new(IncludeLoader::leading(include_context.clone(), way));
        let included =
            |id: String, made: IncludedContent| IncludedPrompt::new(id, made, include_context, &below, at);
        let made = match wanted.what {
            TargetKind::Prompt(found) => {
                let (files, defaults, dialects) =
                    (&include_context.files, &include_context.defaults, &include_context.dialects);
                let mut read = dialects.read(&found.id, &found.candidate, files, defaults)?;
                let extends = read.extends.take();
                inherit(&mut read.prompt, extends, &found.candidate.root, files, defaults, dialects)?;
                self.refuse_code(&read.prompt, at)?;
                let compiling = Compiling {
                    prompt: &read.prompt,
                    loader: below.clone(),
                    settings: &settings,
                    engines: &include_context.engines,
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
                included(found.id, IncludedContent::new(read.prompt, body))
            }
            TargetKind::Directive(_) | TargetKind::Knowledge(_) if !cfg!(feature = "items") => {
                return Err(Error::missing_feature(ErrorKind::PromptRead, "include items", "items"));
            }
            TargetKind::Directive(item) => {
                let id = item.located.id.to_string();
                let load = &mut |kind, id: &ItemId| {
                    let files = &include_context.files;
                    files.item(kind, id)?.ok_or_else(|| files.library().spaces().not_found(kind, id))
                };
                let depth = include_context.settings.include_depth;
                let directive = directive::read(&item.source()?)?.include(&id, depth, load)?;
                let prompt =
                    directive::prompt(&directive, &id, directive.source.name(), &Defaults::default());
                let body = DirectiveBody::new(File { directive, item: Some(*item) }, true);
                included(id, IncludedContent::new(prompt, Box::new(body)))
            }
            TargetKind::Knowledge(item) => {
                let id = item.located.id.to_string();
                included(id, IncludedContent::text(Box::new(KnowledgeBody::new(*item)?)))
            }
        };
        self.tallest.fetch_max(below.tallest.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Ok(Some(made))
    }

    /// Hooks see whole prompts, so what has some is no part of another one; leaving them out would change what it says.
    fn refuse_code(&self, prompt: &Prompt, at: &Place) -> Result<()> {
        let hooks = &self.include_context.hooks;
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
    fn note(&self, included: &Arc<IncludedPrompt>, at: &Place) {
        let site = IncludeSite {
            place: at.clone(),
            included: Arc::downgrade(included),
            set_names: SetNames::default(),
        };
        if let Some(sites) = &mut *self.sites() {
            sites.push(site);
        }
    }

    /// Ids that could have been meant.
    fn similar(&self, address: Address<'_>) -> Vec<String> {
        let library = self.include_context.files.library();
        let of_items = |kind: ItemType| -> Vec<String> {
            let spaces = library.spaces();
            let walk = |space| spaces.walk(kind, space).unwrap_or_default();
            spaces.all().iter().flat_map(walk).map(|item| item.id.to_string()).collect()
        };
        let known = match address.kind {
            Kind::Prompt => {
                if let Some(section) = address.section
                    && let Ok(Some(found)) = self.include_context.files.choose_if_any(address.id)
                {
                    let IncludeContext { files, defaults, dialects, .. } = &*self.include_context;
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
struct IncludeTarget {
    key: String,
    what: TargetKind,
}

enum TargetKind {
    Prompt(Box<crate::library::Found>),
    Directive(Box<Item>),
    Knowledge(Box<Item>),
}

impl IncludeTarget {
    fn item(item: Item, what: impl FnOnce(Box<Item>) -> TargetKind) -> IncludeTarget {
        IncludeTarget { key: item.located.name.clone(), what: what(Box::new(item)) }
    }
}

impl Loader for IncludeLoader {
    fn load(&self, name: &str, parent: &str) -> Result<Option<Arc<Source>>> {
        if Address::of(name).is_some() {
            return Ok(None);
        }
        let found = self.include_context.files.load(name, parent)?;
        match self.include_context.mode {
            Mode::DespiteErrors => Ok(found.or_else(|| Some(Source::new(name, "")))),
            Mode::Lenient | Mode::Strict => Ok(found),
        }
    }

    fn load_computed(&self, name: &str, parent: &str) -> Result<Option<Arc<Source>>> {
        // What is included by its address must be known before values are: a value chooses among files at most.
        match Address::of(name) {
            Some(_) => Ok(None),
            None => self.include_context.files.load_computed(name, parent),
        }
    }

    fn included(&self, name: &str, at: &Place) -> Result<Option<Arc<dyn Compiled>>> {
        let Some(address) = Address::of(name) else { return Ok(None) };
        let missing = || match self.include_context.mode {
            Mode::DespiteErrors => {
                Some(Arc::new(EmptyInclude(Texts::of(&Source::new(name, "")))) as Arc<dyn Compiled>)
            }
            Mode::Lenient | Mode::Strict => None,
        };
        let found = self.find(address).map_err(|error| match error.diagnostic().place {
            Some(_) => error,
            None => {
                let mut reported = error.diagnostic().clone().at(at.clone());
                if reported.code == Code::InvalidId {
                    // Where a command takes an id or a path, an include has an address for the one and a name for the other.
                    reported = reported.hint(
                        "write an id after `prompt:`, as in {% include \"prompt:greeting\" %}; include a file without \
                             it, as in {% include \"partials/legal.md\" %}",
                    );
                }
                error.replaced(reported)
            }
        });
        let Some(wanted) = found? else { return Ok(missing()) };
        let key = wanted.key.clone();
        let known = self
            .include_context
            .known()
            .get(&key)
            .and_then(|(included, height)| Some((included.upgrade()?, *height)));
        let height = known.as_ref().map_or(1, |(_, height)| *height);
        self.refuse(&wanted, height, at)?;
        if let Some((included, height)) = known {
            self.tallest.fetch_max(height, Ordering::Relaxed);
            self.note(&included, at);
            return Ok(Some(included));
        }
        let before = self.tallest.swap(0, Ordering::Relaxed);
        let invited = self
            .include(name, address, wanted, at)
            .map_err(|error| error.map(|reported| reported.included(at)))?;
        let height = self.tallest.fetch_max(before, Ordering::Relaxed);
        let Some(included) = invited else { return Ok(missing()) };
        let included = Arc::new(included);
        self.include_context.known().insert(key, (Arc::downgrade(&included), height.max(1)));
        self.note(&included, at);
        Ok(Some(included))
    }

    fn note_set_names(&self, at: &Place, set_names: &SetNames) {
        for site in self.sites().iter_mut().flatten().filter(|site| site.place.is_same(at)) {
            site.set_names = set_names.clone();
        }
    }

    fn suggestions(&self, name: &str) -> Vec<String> {
        match Address::of(name) {
            Some(address) => self.similar(address),
            None => self.include_context.files.suggestions(name),
        }
    }
}

/// What is missing, where that is reported later.
struct EmptyInclude(Arc<Texts>);

impl Compiled for EmptyInclude {
    fn render(&self, _: &Arc<Scope>, _: usize) -> Result<Output> {
        Ok(Output { text: String::new(), pieces: Vec::new(), units: self.0.units.clone().into() })
    }

    fn outline(&self) -> Arc<dyn Outline> {
        self.0.clone()
    }
}
