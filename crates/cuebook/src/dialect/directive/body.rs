//! A directive that has been read: how it is verified and rendered.

use std::cell::OnceCell;
use std::sync::Arc;

use serde_json::Value as Json;

use super::{Composed, Directive, File, SurroundingTexts, Wording};
use crate::dialect::prompty::Environment;
use crate::dialect::{Body, Rendering, Texts, Writing};
use crate::error::{Code, Diagnostic, Hint, Result, Severity, shell_word};
use crate::items::{Item, ItemId, ItemType, SpaceKind};
use crate::library::{Config, Library, LibraryLoader};
use crate::render::Rendered;
use crate::template::engine::{Outline, Output};
use crate::template::input::{self, Values};
use crate::trust::Trust;
use crate::variables::{Context, Layer, SYSTEM, Scope, Variables};

/// A directive, and the item that it was read from if it lies in a space.
pub struct DirectiveBody {
    directive: Directive,
    item: Option<Item>,
    outline: Arc<Texts>,
}

/// Values of a scope, for the body of a directive.
struct OfScope<'s> {
    scope: &'s Scope,
    /// The directive if it is part of a prompt: there it takes only what it declares.
    declared: Option<&'s Directive>,
    signed: Signed<'s>,
}

/// Whether the text of a directive is signed. Only signed text may read any environment variable. It is asked once, and only by a
/// text that reads one.
struct Signed<'s> {
    directive: &'s Directive,
    item: Option<&'s Item>,
    library: &'s Library,
    known: OnceCell<bool>,
}

impl Signed<'_> {
    fn is_certain(&self) -> bool {
        *self.known.get_or_init(|| {
            let trust = self.library.trust();
            self.item.is_some_and(|item| trust.verify(item).is_ok())
                && self.directive.verify_included(trust).is_ok()
        })
    }
}

impl Values for OfScope<'_> {
    fn input(&self, key: &str) -> Option<String> {
        let takes = self.declared.is_none_or(|directive| directive.takes(key));
        takes.then(|| given(self.scope, key)).flatten().map(|value| input::text_of(&value))
    }

    fn env(&self, name: &str) -> Option<String> {
        match self.signed.is_certain() {
            true => input::environment(name),
            false => self.signed.library.environment().get(name),
        }
    }
}

/// A value that was given or that is a default. What the system knows is no input.
fn given(scope: &Scope, key: &str) -> Option<Json> {
    let (layer, value) = scope.find(key)?;
    (key != SYSTEM || layer != Layer::System).then(|| value.into_owned())
}

impl DirectiveBody {
    pub(crate) fn new(file: File, is_included: bool) -> DirectiveBody {
        let File { directive, item } = file;
        let (mut units, mut names) = (directive.units(), vec![directive.template().names()]);
        let included = directive.included_texts();
        if !included.0.is_empty() {
            units = Arc::new(units.iter().cloned().chain(included.0).collect());
            names.extend(included.1);
        }
        if is_included {
            // Nothing can give it what it does not take.
            names.iter_mut().for_each(|names| names.reads.retain(|read| directive.takes(&read.root)));
        }
        let outline = Arc::new(Texts { units, names });
        DirectiveBody { directive, item, outline }
    }

    /// The directive.
    pub fn directive(&self) -> &Directive {
        &self.directive
    }

    /// The item that it was read from, if it lies in a space.
    pub fn item(&self) -> Option<&Item> {
        self.item.as_ref()
    }

    fn values<'s>(&'s self, scope: &'s Scope, library: &'s Library, is_included: bool) -> OfScope<'s> {
        let (directive, item) = (&self.directive, self.item.as_ref());
        let signed = Signed { directive, item, library, known: OnceCell::new() };
        OfScope { scope, declared: is_included.then_some(directive), signed }
    }

    /// What it is together with those that it extends, under an id. A prompt depends on every file that this looks for.
    pub(crate) fn compose(&self, id: &ItemId, files: &LibraryLoader) -> Result<Composed> {
        let library = files.library();
        let composed = self.directive.compose(id, library.spaces(), library.trust())?;
        if self.directive.is_composed() {
            let parents = composed.chain.iter().skip(1).map(|id| (ItemType::Directive, id.as_str()));
            let knowledge = composed.context.knowledge().map(|id| (ItemType::Knowledge, id.as_str()));
            for (kind, id) in parents.chain(knowledge) {
                files.depend_on_item(kind, id);
            }
        }
        Ok(composed)
    }

    /// Whether it is signed with a trusted key. An unsigned one of the project is still being written: it can be shown, with a
    /// finding, and cannot be executed.
    pub(crate) fn verify_to_show(&self, trust: &Trust) -> Result<Option<Diagnostic>> {
        let Some(item) = &self.item else { return Ok(None) };
        let error = match trust.verify(item) {
            // What is signed shows nothing that is not.
            Ok(_) => return self.directive.verify_included(trust).map(|()| None),
            Err(error) => error,
        };
        if error.code() == Code::Unsigned && item.located.space == SpaceKind::Project {
            // What it includes may be unsigned as well, while it is written; anything worse may not.
            if let Err(error) = self.directive.verify_included(trust)
                && error.code() != Code::Unsigned
            {
                return Err(error);
            }
            let id = shell_word(item.located.id.as_str());
            let hint = Hint::run("sign it before you run it", format!("cuebook sign directive {id}"));
            let finding = error.diagnostic().clone().severity(Severity::Warning).hint(hint);
            return Ok(Some(finding));
        }
        Err(error)
    }

    /// Refuses inputs that do not fit, in the order of the seed.
    fn check_inputs(&self, variables: &Variables, scope: &Scope) -> Result<()> {
        let directive = &self.directive;
        directive
            .refuse_unknown(variables.names())
            .and_then(|()| directive.refuse_missing(|name| given(scope, name).is_some()))
            .and_then(|()| {
                directive.refuse_mistyped(|name| {
                    given(scope, name).filter(|_| scope.layer(name) != Some(Layer::Optional))
                })
            })
            .and_then(|()| directive.refuse_defaults(|name| scope.layer(name) == Some(Layer::Optional)))
    }
}

impl Body for DirectiveBody {
    fn outline(&self) -> Arc<dyn Outline> {
        self.outline.clone()
    }

    fn write(&self, writing: &Writing<'_>) -> Result<Output> {
        let values = self.values(writing.scope, writing.library(), true);
        let output = self.directive.body_output(&values, writing.limit, true);
        output.map_err(|_| self.directive.template().too_large(writing.limit))
    }

    fn render(&self, rendering: &Rendering<'_>) -> Result<Rendered> {
        let Writing { scope, limit, files, .. } = rendering.writing;
        let (directive, context) = (&self.directive, scope.context());
        directive.refuse_unfollowed()?;
        let composed = match &self.item {
            Some(item) => self.compose(&item.located.id, files)?,
            None => self.compose(&ItemId::new(&rendering.prompt.id)?, files)?,
        };
        let around = SurroundingTexts::new(&composed, &context.hook_texts);
        let values = self.values(scope, files.library(), false);
        let output = directive
            .write_prompt(&wording(rendering.config, context), &values, &around, limit)
            .map_err(|_| directive.template().too_large(limit))?;
        let permissions = composed.permissions.map(|(permissions, _)| permissions.capabilities);
        let tools = rendering
            .offer
            .map(|offer| offer.tools(permissions.as_deref().unwrap_or_default(), &directive.outputs));
        let missing = composed
            .missing
            .into_iter()
            .map(|finding| finding.severity(Severity::Warning).label("left out of the prompt"));
        Ok(rendering.finish(output).of_thread(&context.hook_texts, tools).with_notes(missing.collect()))
    }

    fn admit(&self, variables: &Variables, rendering: &Rendering<'_>) -> Result<Vec<Diagnostic>> {
        let unsigned = self.verify_to_show(rendering.writing.library().trust())?;
        self.check_inputs(variables, rendering.writing.scope)
            .map_err(|error| error.with("prompt_id", &rendering.prompt.id))?;
        Ok(Vec::from_iter(unsigned))
    }

    fn items(&self) -> Vec<&Item> {
        self.item.iter().chain(self.directive.included_items()).collect()
    }

    fn verify(&self, trust: &Trust) -> Result<()> {
        if let Some(item) = &self.item {
            trust.verify(item)?;
        }
        self.directive.verify_included(trust)
    }

    fn directive(&self) -> Option<&DirectiveBody> {
        Some(self)
    }
}

/// The words of the engine: the project's, unless the caller says otherwise.
pub(crate) fn wording(config: &Config, context: &Context) -> Wording {
    let mut wording = config.directives.clone();
    if let Some(returns) = context.returns {
        wording.returns = returns;
    }
    wording
}
