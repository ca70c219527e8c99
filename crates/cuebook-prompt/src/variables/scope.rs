//! All values for one render.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use cuebook_template::Given;
use foldhash::fast::RandomState;
use serde_json::{Map, Value as Json};

use super::changes::{Changes, Values};
use super::rich::{RichInput, RichInputs};
use super::system::{self, System};
use super::{Clock, Context, Layer, Supplier, SystemClock, Variables};
use crate::prompt::{Need, Prompt};

/// The name under which templates find what the system knows.
pub const SYSTEM: &str = "system";
/// The name under which sections find what the caller says of the session.
pub const SESSION: &str = "session";

/// Jinja2's functions, which every template finds.
#[doc(hidden)]
pub const FUNCTIONS: [&str; 6] = ["range", "dict", "namespace", "cycler", "joiner", "lipsum"];

/// What a prompt itself brings to every scope: its defaults, those of `defaults.json`, and the clock. Made once per prompt.
#[derive(Debug)]
pub struct Declared {
    defaults: HashMap<String, (Layer, Json), RandomState>,
    /// Variables that several included prompts declare, each in its own way: a default of one of them is none of the others.
    contested: Vec<String>,
    /// Variables that the system supplies under their own name.
    from_system: Vec<String>,
    /// Whether templates find the caller's session under the name `session`, as in trees of sections and what includes them.
    has_session: bool,
    /// Whether `system` is an input of the prompt's own, as it may be in a `.prompty` file.
    declares_system: bool,
    /// Declared names that Jinja2 has functions of. Without a value they are nothing, and not those functions.
    shadowed: Vec<&'static str>,
    /// The workspace of a render whose caller names none.
    project: Option<Arc<Path>>,
    clock: Arc<dyn Clock>,
}

impl Declared {
    #[doc(hidden)]
    pub fn new(prompt: &Prompt, library_defaults: &Variables, clock: Arc<dyn Clock>) -> Declared {
        let mut defaults: HashMap<String, (Layer, Json), RandomState> = library_defaults
            .names()
            .filter_map(|name| Some((name.to_owned(), (Layer::Defaults, library_defaults.get(name)?))))
            .collect();
        for variable in &prompt.variables {
            let layer = match variable.need {
                Need::Custom => Layer::Custom,
                Need::Optional | Need::Required => Layer::Optional,
            };
            if let Some(default) = &variable.default {
                defaults.insert(variable.name.clone(), (layer, default.clone()));
            }
        }
        let from_system =
            prompt.variables.iter().filter(|v| v.from_system).map(|variable| variable.name.clone()).collect();
        let declares_system = prompt.variable(SYSTEM).is_some();
        let shadowed = FUNCTIONS.into_iter().filter(|name| prompt.variable(name).is_some()).collect();
        let has_session = prompt.dialect.is_tree;
        let contested = Vec::new();
        Declared {
            defaults,
            contested,
            from_system,
            has_session,
            declares_system,
            shadowed,
            project: None,
            clock,
        }
    }

    /// Gives namespaces that nothing provides an empty value, so that a template can ask about them.
    #[doc(hidden)]
    pub fn add_namespaces<'n>(&mut self, names: impl IntoIterator<Item = &'n String>) {
        for name in names {
            let nothing = || (Layer::Defaults, Json::Object(Map::new()));
            self.defaults.entry(name.clone()).or_insert_with(nothing);
        }
    }

    /// The same with the workspace of a render whose caller names none.
    #[doc(hidden)]
    pub fn with_project(mut self, folder: Option<&Path>) -> Declared {
        self.project = folder.map(Arc::from);
        self
    }

    /// The same for a prompt whose included prompts declare these names differently.
    #[doc(hidden)]
    pub fn with_contested(mut self, names: Vec<String>) -> Declared {
        self.contested = names;
        self
    }

    /// The same for a prompt that includes sections.
    #[doc(hidden)]
    pub fn with_session(mut self, has_session: bool) -> Declared {
        self.has_session |= has_session;
        self
    }
}

/// What variable providers gave, and which.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Provided {
    /// The values by name.
    pub values: Variables,
    #[doc(hidden)]
    pub suppliers: HashMap<String, Supplier>,
}

/// What hooks did to the values before the template.
#[derive(Debug, Clone, Default)]
struct HookChanges {
    changed: HashMap<String, (Json, Supplier)>,
    removed: HashSet<String>,
}

/// All values for one render, looked up by name in the order of the layers.
#[derive(Debug)]
pub struct Scope {
    caller: Variables,
    context: Arc<Context>,
    /// Boxed: most prompts have no providers.
    provided: Option<Box<Provided>>,
    /// Boxed: most prompts have no hooks.
    hooked: Option<Box<HookChanges>>,
    /// Made on first use: most renders do not need it.
    system: OnceLock<Arc<System>>,
    declared: Arc<Declared>,
    /// Boxed: most prompts have no rich inputs.
    rich: Option<Box<RichInputs>>,
    /// What a template has set where it includes another prompt; that one sees it before everything else. `None` is undefined.
    set_names: Option<Arc<HashMap<String, Option<Json>>>>,
}

impl Scope {
    #[doc(hidden)]
    pub fn new(
        declared: Arc<Declared>,
        caller: Variables,
        context: Arc<Context>,
        provided: Option<Box<Provided>>,
    ) -> Arc<Scope> {
        Arc::new(Scope {
            caller,
            context,
            provided,
            hooked: None,
            system: OnceLock::new(),
            declared,
            rich: None,
            set_names: None,
        })
    }

    /// Takes other values of a caller, for the next render. A scope that something still holds takes none.
    #[doc(hidden)]
    pub fn give(self: &mut Arc<Self>, caller: Variables) -> bool {
        let Some(scope) = Arc::get_mut(self) else { return false };
        scope.caller = caller;
        // The next render has its own time.
        scope.system.take();
        true
    }

    /// A scope of these values and nothing else.
    #[doc(hidden)]
    pub fn of_values(values: Variables) -> Arc<Scope> {
        static NOTHING: OnceLock<(Arc<Declared>, Arc<Context>)> = OnceLock::new();
        let (declared, context) = NOTHING.get_or_init(|| {
            let declared = Declared {
                defaults: HashMap::default(),
                contested: Vec::new(),
                from_system: Vec::new(),
                has_session: false,
                declares_system: false,
                shadowed: Vec::new(),
                project: None,
                clock: Arc::new(SystemClock),
            };
            (Arc::new(declared), Arc::default())
        });
        Scope::new(declared.clone(), values, context.clone(), None)
    }

    /// The scope after a hook. Nothing takes `system` away.
    #[doc(hidden)]
    pub fn after_hook(&self, changes: &Changes, by: &Supplier) -> Arc<Scope> {
        let mut hooked = self.hooked.clone().unwrap_or_default();
        for (name, value) in &changes.set {
            hooked.removed.remove(name);
            hooked.changed.insert(name.clone(), (value.clone(), by.clone()));
        }
        for name in changes.removed.iter().filter(|name| *name != SYSTEM) {
            hooked.changed.remove(name);
            hooked.removed.insert(name.clone());
        }
        Arc::new(Scope {
            caller: self.caller.clone(),
            context: self.context.clone(),
            provided: self.provided.clone(),
            hooked: Some(hooked),
            system: self.system.clone(),
            declared: self.declared.clone(),
            rich: self.rich.clone(),
            set_names: self.set_names.clone(),
        })
    }

    /// The same values, of which templates see nonces instead of the rich ones.
    #[doc(hidden)]
    pub fn with_rich(self: &Arc<Self>, rich: RichInputs) -> Arc<Scope> {
        Arc::new(Scope {
            caller: self.caller.clone(),
            context: self.context.clone(),
            provided: self.provided.clone(),
            hooked: self.hooked.clone(),
            system: self.system.clone(),
            declared: self.declared.clone(),
            rich: Some(Box::new(rich)),
            set_names: self.set_names.clone(),
        })
    }

    /// The same values, and before them others that a template has set.
    #[doc(hidden)]
    pub fn with_set_values(&self, values: impl IntoIterator<Item = (String, Option<Json>)>) -> Arc<Scope> {
        let mut set_names = self.set_names.as_deref().cloned().unwrap_or_default();
        set_names.extend(values);
        Arc::new(Scope {
            caller: self.caller.clone(),
            context: self.context.clone(),
            provided: self.provided.clone(),
            hooked: self.hooked.clone(),
            system: self.system.clone(),
            declared: self.declared.clone(),
            rich: self.rich.clone(),
            set_names: Some(Arc::new(set_names)),
        })
    }

    /// What a template has set under a name where it includes another prompt; `Some(None)` if that is undefined.
    #[doc(hidden)]
    pub fn set_names(&self, name: &str) -> Option<Option<&Json>> {
        self.set_names.as_ref()?.get(name).map(Option::as_ref)
    }

    /// Whether a name has nothing but the default of one of several included prompts, which declare it differently.
    #[doc(hidden)]
    pub fn is_contested_default(&self, name: &str) -> bool {
        self.declared.contested.iter().any(|contested| contested == name)
            && self.set_names(name).is_none()
            && self.layer(name).is_some_and(|layer| matches!(layer, Layer::Custom | Layer::Optional))
    }

    /// Whether a value is what templates see instead of a rich one.
    pub(crate) fn is_nonce(&self, value: &Json) -> bool {
        self.rich_inputs().any(|input| value.as_str() == Some(&input.nonce))
    }

    /// The rich inputs of this render.
    pub fn rich_inputs(&self) -> impl Iterator<Item = &RichInput> {
        self.rich.iter().flat_map(|rich| rich.iter())
    }

    /// A scope with these values and what the system knows, and nothing else.
    #[doc(hidden)]
    pub fn only(&self, values: &Values) -> Arc<Scope> {
        let mut context = (*self.context).clone();
        context.agent.variables = Variables::new();
        Arc::new(Scope {
            caller: Variables::from_json(values),
            context: Arc::new(context),
            provided: None,
            hooked: None,
            system: self.system.clone(),
            declared: Arc::new(Declared {
                defaults: HashMap::default(),
                contested: Vec::new(),
                from_system: Vec::new(),
                has_session: self.declared.has_session,
                declares_system: false,
                shadowed: Vec::new(),
                project: self.declared.project.clone(),
                clock: self.declared.clock.clone(),
            }),
            rich: None,
            set_names: None,
        })
    }

    /// All values as a hook gets them, with `system` among them if it has a use for that.
    #[doc(hidden)]
    pub fn values(&self, with_system: bool) -> Values {
        let mut values: Values = self
            .names()
            .into_iter()
            .filter_map(|name| {
                let (_, value) = self.get(&name)?;
                Some((name, value))
            })
            .collect();
        if with_system {
            values.insert(SYSTEM.into(), self.system().to_json());
        }
        values
    }

    /// Who exactly supplied a value, where the layer does not say.
    pub fn supplier(&self, name: &str) -> Option<&Supplier> {
        if let Some((_, supplier)) = self.hooked.as_ref().and_then(|hooked| hooked.changed.get(name)) {
            return Some(supplier);
        }
        match self.layer(name) {
            Some(Layer::Provider) => self.provided.as_ref()?.suppliers.get(name),
            _ => None,
        }
    }

    fn system(&self) -> &Arc<System> {
        self.system.get_or_init(|| {
            let declared = &self.declared;
            Arc::new(System::new(self.context.clone(), declared.clock.clone(), declared.project.clone()))
        })
    }

    /// What a template sees under a name.
    pub(crate) fn given_to_template(&self, name: &str) -> Option<Given<'_>> {
        if self.set_names(name).is_none()
            && let Some(input) = self.rich_inputs().find(|input| input.name == name)
        {
            return Some(match input.value {
                Some(_) => Given::Owned(Json::from(input.nonce.as_str())),
                None => Given::Placeholder(&input.nonce),
            });
        }
        match self.find(name) {
            Some((_, Cow::Borrowed(value))) => Some(Given::Borrowed(value)),
            Some((_, Cow::Owned(value))) => Some(Given::Owned(value)),
            None => {
                let is_hidden = self.set_names(name).is_some() || self.declared.shadowed.contains(&name);
                is_hidden.then_some(Given::Undefined)
            }
        }
    }

    /// The value of a name and the layer that supplies it. Given values are not cloned; those of the system are made anew.
    #[doc(hidden)]
    pub fn find(&self, name: &str) -> Option<(Layer, Cow<'_, Json>)> {
        if let Some(value) = self.set_names(name) {
            // A name that was set to an undefined value hides what the caller gave, as it does in the template itself.
            return value.map(|value| (Layer::Caller, Cow::Borrowed(value)));
        }
        if let Some(hooked) = &self.hooked {
            if let Some((value, _)) = hooked.changed.get(name) {
                return Some((Layer::Hook, Cow::Borrowed(value)));
            }
            if hooked.removed.contains(name) {
                return None;
            }
        }
        if let Some(value) = self.caller.value(name) {
            return Some((Layer::Caller, Cow::Borrowed(value)));
        }
        if let Some(value) = self.context.agent.variables.value(name) {
            return Some((Layer::Agent, Cow::Borrowed(value)));
        }
        if let Some(value) = self.provided.as_ref().and_then(|provided| provided.values.value(name)) {
            return Some((Layer::Provider, Cow::Borrowed(value)));
        }
        let made = |value| Some((Layer::System, Cow::Owned(value)));
        if name == SYSTEM && !self.declared.declares_system {
            return made(self.system().to_json());
        }
        if name == SESSION && self.declared.has_session {
            return made(Json::Object(self.context.session_values()));
        }
        if self.declared.from_system.iter().any(|declared| declared == name)
            && let Some(value) = self.system().get(name)
        {
            return made(value);
        }
        self.declared.defaults.get(name).map(|(layer, value)| (*layer, Cow::Borrowed(value)))
    }

    /// The layer that gives a variable the name of the system's own ones, and the value.
    pub(super) fn given_as_system(&self) -> Option<(Layer, &Json)> {
        if self.declared.declares_system {
            return None;
        }
        if let Some((value, _)) = self.hooked.as_ref().and_then(|hooked| hooked.changed.get(SYSTEM)) {
            return Some((Layer::Hook, value));
        }
        let provided = self.provided.as_ref().map(|provided| (Layer::Provider, &provided.values));
        [(Layer::Caller, &self.caller), (Layer::Agent, &self.context.agent.variables)]
            .into_iter()
            .chain(provided)
            .find_map(|(layer, variables)| Some((layer, variables.value(SYSTEM)?)))
            .or_else(|| self.declared.defaults.get(SYSTEM).map(|(layer, value)| (*layer, value)))
    }

    /// The layer that supplies a variable.
    pub fn layer(&self, name: &str) -> Option<Layer> {
        self.find(name).map(|(layer, _)| layer)
    }

    /// A variable's value and layer, for people and scripts.
    pub fn get(&self, name: &str) -> Option<(Layer, Json)> {
        self.find(name).map(|(layer, value)| (layer, value.into_owned()))
    }

    /// What a template shows for a name: the value, or the nonce of a rich one.
    pub fn shown(&self, name: &str) -> Option<Json> {
        match self.given_to_template(name)? {
            Given::Borrowed(value) => Some(value.clone()),
            Given::Owned(value) => Some(value),
            Given::Placeholder(nonce) => Some(Json::from(nonce)),
            _ => None,
        }
    }

    /// Every name that has a value, the caller's first.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut seen = HashSet::new();
        let mut declared: Vec<&String> =
            self.declared.defaults.keys().chain(&self.declared.from_system).collect();
        declared.sort_unstable();
        let given = self
            .caller
            .names()
            .chain(self.context.agent.variables.names())
            .chain(self.provided.iter().flat_map(|provided| provided.values.names()));
        for name in given.chain(declared.into_iter().map(String::as_str)) {
            if seen.insert(name.to_owned()) {
                names.push(name.to_owned());
            }
        }
        if let Some(hooked) = &self.hooked {
            names.retain(|name| !hooked.removed.contains(name));
            let mut new: Vec<&String> = hooked.changed.keys().filter(|name| !seen.contains(*name)).collect();
            new.sort_unstable();
            names.extend(new.into_iter().cloned());
        }
        names
    }

    /// The circumstances.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// What the caller gave.
    #[doc(hidden)]
    pub fn given(&self) -> Variables {
        self.caller.clone()
    }

    /// The model that the render is for, if that was said.
    pub fn model(&self) -> Option<&str> {
        self.context.model.as_deref().or(self.context.agent.model.as_deref())
    }

    /// The language that templates are chosen by.
    pub fn language(context: &Context) -> &str {
        system::language(context)
    }
}
