//! A directive that has been found and read: how it is verified and rendered.

use std::cell::OnceCell;
use std::sync::Arc;

use serde_json::Value as Json;

use super::{Body, Prepared};
use crate::dialect::directive::{Composed, Directive, File, Surroundings, Wording};
use crate::dialect::prompty::Environment;
use crate::error::{Code, Diagnostic, Error, Result, Severity};
use crate::items::{Item, ItemId, ItemType, SpaceKind};
use crate::library::Library;
use crate::render::Rendered;
use crate::template::engine::Outline;
use crate::template::input::{self, Values};
use crate::template::jinja::names::Names;
use crate::template::unit::Unit;
use crate::variables::{Context, Layer, SYSTEM, Scope, Variables, validation_error};

/// A directive, and the item that it was read from.
pub(super) struct DirectiveBody {
    directive: Directive,
    item: Option<Item>,
    outline: Arc<Texts>,
}

/// The one text of a directive.
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

/// Values of a scope, for the body of a directive.
pub(super) struct OfScope<'s> {
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

impl<'s> OfScope<'s> {
    pub(super) fn new(
        scope: &'s Scope,
        directive: &'s Directive,
        item: Option<&'s Item>,
        library: &'s Library,
    ) -> OfScope<'s> {
        let signed = Signed { directive, item, library, known: OnceCell::new() };
        OfScope { scope, declared: None, signed }
    }

    /// The same for a directive that is part of a prompt.
    pub(super) fn included(mut self) -> OfScope<'s> {
        self.declared = Some(self.signed.directive);
        self
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

/// A value that somebody gave or that is a default. What the system knows is no input.
fn given(scope: &Scope, key: &str) -> Option<Json> {
    let (layer, value) = scope.find(key)?;
    (key != SYSTEM || layer != Layer::System).then(|| value.into_owned())
}

impl DirectiveBody {
    pub(super) fn new(file: File) -> DirectiveBody {
        let File { directive, item } = file;
        let (mut units, mut names) = (directive.units(), vec![directive.template().names()]);
        let included = directive.included_texts();
        if !included.0.is_empty() {
            units = Arc::new(units.iter().cloned().chain(included.0).collect());
            names.extend(included.1);
        }
        let outline = Arc::new(Texts { units, names });
        DirectiveBody { directive, item, outline }
    }

    pub(super) fn outline(&self) -> Arc<dyn Outline> {
        self.outline.clone()
    }
}

impl Prepared {
    /// The directive, if it is one.
    pub fn directive(&self) -> Option<&Directive> {
        match &self.body {
            Body::Directive(body) => Some(&body.directive),
            _ => None,
        }
    }

    /// What it is together with those that it extends, if it is a directive that lies in a space.
    pub fn compose(&self) -> Option<Result<Composed>> {
        let Body::Directive(body) = &self.body else { return None };
        let item = body.item.as_ref()?;
        Some(self.compose_as(&body.directive, &item.located.id))
    }

    /// Composes a directive under an id. A prompt depends on every file that this looks for.
    fn compose_as(&self, directive: &Directive, id: &ItemId) -> Result<Composed> {
        let library = self.loader.library();
        let composed = directive.compose(id, library.spaces(), library.trust())?;
        if directive.is_composed() {
            let parents = composed.chain.iter().skip(1).map(|id| (ItemType::Directive, id.as_str()));
            let knowledge = composed.context.knowledge().map(|id| (ItemType::Knowledge, id.as_str()));
            for (kind, id) in parents.chain(knowledge) {
                self.loader.depend_on_item(kind, id);
            }
        }
        Ok(composed)
    }

    /// Checks the signatures of a directive and of what it includes. A prompt that is no directive needs none.
    ///
    /// # Errors
    ///
    /// `CB220` to `CB226` for a directive that is unsigned, was changed, or whose signer is not trusted.
    pub fn verify_signature(&self) -> Result<()> {
        let Body::Directive(body) = &self.body else { return Ok(()) };
        let Some(item) = &body.item else { return Ok(()) };
        let trust = self.loader.library().trust();
        trust.verify(item)?;
        body.directive.verify_included(trust)
    }

    /// Whether a directive is what somebody trusted has signed. `Ok` with a finding if that cannot be said and need not be: one
    /// of the project that nobody has signed yet is being written, and can be looked at; it cannot be executed.
    pub fn verify(&self) -> Result<Option<Diagnostic>> {
        let Body::Directive(body) = &self.body else { return Ok(None) };
        let Some(item) = &body.item else { return Ok(None) };
        let trust = self.loader.library().trust();
        let error = match trust.verify(item) {
            // What is signed shows nothing that is not.
            Ok(_) => return body.directive.verify_included(trust).map(|()| None),
            Err(error) => error,
        };
        if error.code() == Code::Unsigned && item.located.space == SpaceKind::Project {
            // What it includes may be unsigned as well, while it is written; anything worse may not.
            if let Err(error) = body.directive.verify_included(trust)
                && error.code() != Code::Unsigned
            {
                return Err(error);
            }
            let hint = format!("sign it before you run it: cuebook sign directive {}", item.located.id);
            let finding = error.diagnostic().clone().severity(Severity::Warning).hint(hint);
            return Ok(Some(finding));
        }
        Err(error)
    }

    /// What is known of the signature on a directive's file, in a few words; `None` for what is no directive of a space.
    pub fn signature(&self) -> Option<String> {
        let Body::Directive(body) = &self.body else { return None };
        Some(self.signed(body.item.as_ref()?))
    }

    /// The same of any file that its text is made from: its own, or what it includes.
    pub fn signature_of(&self, file: &str) -> Option<String> {
        let mut items: Vec<&Item> = Vec::new();
        if let Body::Directive(body) = &self.body {
            items.extend(body.item.iter().chain(body.directive.included_items()));
        }
        items.extend(self.guests.iter().flat_map(|guest| guest.items()));
        items.into_iter().find(|item| item.located.name == file).map(|item| self.signed(item))
    }

    fn signed(&self, item: &Item) -> String {
        match self.loader.library().trust().verify(item) {
            Ok(verified) if verified.fingerprint.is_empty() => "part of the program".to_owned(),
            Ok(verified) => match verified.owner {
                Some(owner) => format!("signed by {owner} ({})", verified.fingerprint),
                None => format!("signed by {}", verified.fingerprint),
            },
            Err(error) if error.code() == Code::Unsigned => "not signed".to_owned(),
            Err(error) => error.diagnostic().message.clone(),
        }
    }

    /// Renders a directive, if it may be shown.
    pub(super) fn render_verified(
        &self,
        body: &DirectiveBody,
        variables: &Variables,
        context: &Arc<Context>,
    ) -> Result<Rendered> {
        let unsigned = self.verify()?;
        let scope = self.scope(variables, context);
        self.check_inputs(body, variables, &scope)?;
        let rendered = if self.runs_code(context) {
            super::hooked::render(self, variables, context)?
        } else {
            validation_error(&self.prompt, &scope)?;
            self.render_template(&scope)?
        };
        Ok(match unsigned {
            Some(finding) => rendered.with_notes(vec![finding]),
            None => rendered,
        })
    }

    /// Refuses inputs that do not fit, in the order of the seed.
    pub(super) fn check_inputs(
        &self,
        body: &DirectiveBody,
        variables: &Variables,
        scope: &Scope,
    ) -> Result<()> {
        let directive = &body.directive;
        let checked = directive
            .refuse_unknown(variables.names())
            .and_then(|()| directive.refuse_missing(|name| given(scope, name).is_some()))
            .and_then(|()| {
                directive.refuse_mistyped(|name| {
                    given(scope, name).filter(|_| scope.layer(name) != Some(Layer::Optional))
                })
            })
            .and_then(|()| directive.refuse_defaults(|name| scope.layer(name) == Some(Layer::Optional)));
        checked.map_err(|error| error.with("prompt_id", &self.prompt.id))
    }

    pub(super) fn render_directive(&self, body: &DirectiveBody, scope: &Arc<Scope>) -> Result<Rendered> {
        let limit = self.prompt.limits.max_output_size;
        let (directive, context) = (&body.directive, scope.context());
        directive.refuse_unfollowed()?;
        let composed = self.compose_as(directive, &self.item_id(body)?)?;
        let around = Surroundings::new(&composed, &context.hook_texts);
        let values = OfScope::new(scope, directive, body.item.as_ref(), self.loader.library());
        let output = directive
            .write_prompt(&self.wording(context), &values, &around, limit)
            .map_err(|_| directive.template().too_large(limit))?;
        let permissions = composed.permissions.map(|(permissions, _)| permissions.capabilities);
        let tools = self
            .offer
            .as_ref()
            .map(|offer| offer.tools(permissions.as_deref().unwrap_or_default(), &directive.outputs));
        let missing = composed
            .missing
            .into_iter()
            .map(|finding| finding.severity(Severity::Warning).label("left out of the prompt"));
        Ok(Rendered::new(output, scope.clone(), self.prompt.clone())
            .of_thread(&context.hook_texts, tools)
            .with_notes(missing.collect()))
    }

    fn item_id(&self, body: &DirectiveBody) -> Result<ItemId> {
        match &body.item {
            Some(item) => Ok(item.located.id.clone()),
            None => ItemId::new(&self.prompt.id),
        }
    }

    /// The words of the engine: the project's, unless the caller says otherwise.
    pub fn wording(&self, context: &Context) -> Wording {
        let mut wording = self.config.directives.clone();
        if let Some(returns) = context.returns {
            wording.returns = returns;
        }
        wording
    }
}

/// Everything that keeps a directive from being executed, for `check`.
pub fn findings(prepared: &Prepared) -> Vec<Diagnostic> {
    let mut findings = match prepared.verify() {
        Ok(finding) => Vec::from_iter(finding),
        Err(error) => error.into_diagnostics(),
    };
    match prepared.compose() {
        Some(Ok(composed)) => findings.extend(composed.missing),
        Some(Err(error)) => findings.extend(Error::into_diagnostics(error)),
        None => {}
    }
    findings.extend(prepared.directive().and_then(|directive| misplaced(prepared, directive)));
    findings
}

/// A directive whose name or category is not that of its place cannot be signed, and would not be believed.
fn misplaced(prepared: &Prepared, directive: &Directive) -> Option<Diagnostic> {
    let Body::Directive(body) = &prepared.body else { return None };
    let id: &ItemId = &body.item.as_ref()?.located.id;
    let wrong = |what: &str, said: Option<&crate::dialect::directive::Written>, is: &str| {
        let message = format!("the {what} is {:?}, but its path says {is:?}", said.map_or("", |said| said));
        let diagnostic = Diagnostic::new(Code::ItemMoved, message).severity(Severity::Warning);
        let diagnostic = match said {
            Some(said) => diagnostic.at(said.place()),
            None => diagnostic.file(directive.source.name()),
        };
        diagnostic.hint(format!("write {is:?}, or move the file; otherwise it cannot be signed"))
    };
    let name = directive.name.as_ref();
    if name.map(|name| name.as_str()) != Some(id.name()) {
        return Some(wrong("name", name, id.name()));
    }
    let category = directive.category.as_ref();
    (category.map_or("", |category| category.as_str()) != id.category())
        .then(|| wrong("category", category, id.category()))
}
