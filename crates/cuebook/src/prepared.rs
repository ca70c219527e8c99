//! A prompt that has been found, read and compiled, and can be rendered.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use crate::dialect;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::library::{Config, Defaults, Found, Library, LibraryLoader, VariableProvider};
use crate::prompt::{Prompt, Variable};
use crate::render::Rendered;
use crate::source::{Place, Source};
use crate::template::jinja::names::{Read, ReferenceKind};
use crate::template::jinja::{Loader, Template};
use crate::variables::{Clock, Context, Declared, Scope, Variables, validation_error};

/// A prompt that has been found, read and compiled.
pub struct Prepared {
    prompt: Prompt,
    found: Found,
    template: Template,
    loader: Arc<LibraryLoader>,
    declared: Arc<Declared>,
    config: Arc<Config>,
    defaults: Arc<Defaults>,
    /// The parents by METADATA, nearest first.
    parents: Vec<String>,
    /// Variable providers of packs whose namespace the templates use.
    providers: Vec<(String, VariableProvider, Place)>,
    notes: Vec<Diagnostic>,
}

/// How a prompt is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// What is absent prints as nothing.
    Lenient,
    /// Printing something that is absent is an error.
    Strict,
    /// A template that is missing counts as an empty one, so that what is wrong with the others can be told as well.
    DespiteMissing,
}

/// A loader that has every template: those that are missing are empty.
struct WithEmpty(Arc<LibraryLoader>);

impl Loader for WithEmpty {
    fn load(&self, name: &str, parent: &str) -> Result<Option<Arc<Source>>> {
        Ok(self.0.load(name, parent)?.or_else(|| Some(Source::new(name, ""))))
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("prompt", &self.prompt.id).finish_non_exhaustive()
    }
}

impl Prepared {
    pub(crate) fn new(
        library: &Library,
        found: Found,
        loader: Arc<LibraryLoader>,
        config: Arc<Config>,
        mode: Mode,
        clock: Arc<dyn Clock>,
    ) -> Result<Prepared> {
        let defaults = library.defaults()?;
        let read = dialect::template::read(&found.id, &found.candidate, &loader, &defaults)?;
        let mut prompt = read.prompt;
        let parents = inherit(&mut prompt, read.extends, &loader, &defaults)?;
        let templates: Arc<dyn Loader> = match mode {
            Mode::DespiteMissing => Arc::new(WithEmpty(loader.clone())),
            Mode::Lenient | Mode::Strict => loader.clone(),
        };
        let settings = config.template_settings(mode == Mode::Strict);
        let template = Template::compile(prompt.template.clone(), templates, &settings)?;
        let declared = Arc::new(Declared::new(&prompt, &defaults.variables, clock));
        let mut prepared = Prepared {
            prompt,
            found,
            template,
            loader,
            declared,
            config,
            defaults,
            parents,
            providers: Vec::new(),
            notes: read.notes,
        };
        prepared.providers = prepared.find_providers()?;
        Ok(prepared)
    }

    /// Whether everything that it was made from is as it was.
    pub(crate) fn is_unchanged(&self, config: &Arc<Config>, find: impl FnOnce() -> Result<Found>) -> bool {
        (Arc::ptr_eq(config, &self.config) || **config == *self.config)
            && find().is_ok_and(|found| {
                found.candidate.source == self.found.candidate.source && found.reason == self.found.reason
            })
            && self.loader.is_unchanged(&self.defaults)
    }

    /// The definition.
    pub fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    /// Where it was found, and why there.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The prompts that it inherits variables from, nearest first.
    pub fn parents(&self) -> &[String] {
        &self.parents
    }

    /// What is odd about its files without keeping it from working.
    pub(crate) fn notes(&self) -> &[Diagnostic] {
        &self.notes
    }

    pub(crate) fn template(&self) -> &Template {
        &self.template
    }

    /// Every variable that its templates read from outside, with the place that reads it.
    pub(crate) fn reads(&self) -> Vec<(Read, Place)> {
        let program = self.template.program();
        let mut reads = Vec::new();
        for (unit, names) in program.units().iter().zip(program.names()) {
            for read in &names.reads {
                reads.push((read.clone(), unit.source().place(read.range.clone())));
            }
        }
        reads
    }

    /// Whether a template is included whose name is only known while it runs.
    pub(crate) fn has_computed_references(&self) -> bool {
        let program = self.template.program();
        program.names().iter().any(|names| names.references.iter().any(|reference| reference.names.is_none()))
    }

    /// Whether the prompt has a variable of this name: declared, read by a template, or supplied by the system.
    pub fn knows(&self, name: &str) -> bool {
        self.known_names().contains(name) || self.has_computed_references() || !self.prompt.hooks.is_empty()
    }

    /// The names of all its variables.
    pub fn known_names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.reads().into_iter().map(|(read, _)| read.root).collect();
        names.extend(self.prompt.variables.iter().map(|variable| variable.name.clone()));
        names.insert("system".into());
        names
    }

    /// The values for one render.
    pub fn scope(&self, variables: &Variables, context: &Arc<Context>) -> Arc<Scope> {
        Scope::new(self.declared.clone(), variables.clone(), context.clone(), Variables::new())
    }

    /// Renders it.
    pub fn render(&self, variables: &Variables, context: &Arc<Context>) -> Result<Rendered> {
        let scope = self.scope(variables, context);
        if !context.without_hooks {
            self.refuse_hooks(&scope)?;
        }
        validation_error(&self.prompt, &scope)?;
        let limit = self.prompt.limits.max_output_size;
        let output = self.template.render(|| minijinja::Value::from_dyn_object(scope.clone()), limit)?;
        Ok(Rendered::new(output, scope))
    }

    /// A prompt that asks for hooks or providers is not rendered without them, unless the caller says so.
    fn refuse_hooks(&self, scope: &Scope) -> Result<()> {
        if let Some(hook) = self.prompt.hooks.first() {
            let computed: BTreeSet<String> = self
                .reads()
                .into_iter()
                .map(|(read, _)| read.root)
                .filter(|root| root != "system" && self.prompt.variable(root).is_none())
                .collect();
            let pass: Vec<String> = computed.iter().map(|name| format!("--var {name}=…")).collect();
            let values = if pass.is_empty() {
                String::new()
            } else {
                format!(", and pass what the hook would compute: {}", pass.join(" "))
            };
            let message =
                format!("`{}` has the hook `{}`, and nothing here can run hooks", self.prompt.id, hook.name);
            let diagnostic = Diagnostic::new(Code::HooksUnavailable, message)
                .at(hook.place.clone())
                .hint(format!("render without the hooks on purpose: --no-hooks{values}"));
            return Err(
                Error::new(ErrorKind::PromptRender, diagnostic).with("hooks", hook_names(&self.prompt))
            );
        }
        for (pack, provider, place) in &self.providers {
            if scope.layer(&provider.namespace).is_none() && !provider.optional {
                let namespace = &provider.namespace;
                let message = format!(
                    "`{namespace}` comes from the provider {} of the pack `{pack}`, and nothing here can run providers",
                    provider.file
                );
                let diagnostic = Diagnostic::new(Code::ProviderUnavailable, message).at(place.clone()).hint(format!(
                    "pass the values yourself: --var {namespace}:='{{…}}', or render without them on purpose: --no-hooks"
                ));
                return Err(Error::new(ErrorKind::PromptRender, diagnostic).with("namespace", namespace));
            }
        }
        Ok(())
    }

    /// Providers of packs whose namespace the templates use. Manifests are looked at only if a name is not otherwise known.
    fn find_providers(&self) -> Result<Vec<(String, VariableProvider, Place)>> {
        let unknown: Vec<(Read, Place)> = self
            .reads()
            .into_iter()
            .filter(|(read, _)| read.root != "system" && self.prompt.variable(&read.root).is_none())
            .collect();
        if unknown.is_empty() {
            return Ok(Vec::new());
        }
        let mut providers = Vec::new();
        for (pack, provider) in self.loader.providers()? {
            if let Some((_, place)) = unknown.iter().find(|(read, _)| read.root == provider.namespace) {
                providers.push((pack, provider, place.clone()));
            }
        }
        Ok(providers)
    }

    /// The definition as scripts see it, with the names that its templates mention.
    pub fn to_json(&self) -> Json {
        let mut object = self.prompt.to_json();
        let program = self.template.program();
        let variables: BTreeSet<String> = self.reads().into_iter().map(|(read, _)| read.path).collect();
        let mut includes = BTreeSet::new();
        let mut extends = Vec::new();
        for names in program.names() {
            for reference in &names.references {
                for name in reference.names.iter().flatten() {
                    if reference.kind == ReferenceKind::Extends {
                        extends.push(name.clone());
                    } else {
                        includes.insert(name.clone());
                    }
                }
            }
        }
        let blocks: BTreeSet<&str> =
            program.names().iter().flat_map(|names| &names.blocks).map(|block| block.name.as_str()).collect();
        let namespaces: BTreeSet<&str> =
            self.providers.iter().map(|(_, provider, _)| provider.namespace.as_str()).collect();
        let files: Vec<&str> = program.units().iter().map(|unit| unit.source().name()).collect();
        object["parents"] = json!(self.parents);
        object["pack_id"] = json!(self.found.candidate.pack_id);
        object["names"] = json!({
            "variables": variables,
            "namespaces": namespaces,
            "includes": includes,
            "extends": extends,
            "blocks": blocks,
            "files": files,
        });
        object
    }
}

fn hook_names(prompt: &Prompt) -> Vec<&str> {
    prompt.hooks.iter().map(|hook| hook.name.as_str()).collect()
}

/// Adds the variables of the parents by METADATA; the child's win by name. Returns the parents, nearest first.
fn inherit(
    prompt: &mut Prompt,
    extends: Option<(String, Place)>,
    loader: &LibraryLoader,
    defaults: &Defaults,
) -> Result<Vec<String>> {
    let mut chain = vec![prompt.id.clone()];
    let mut next = extends;
    while let Some((parent, place)) = next {
        let found = loader.choose(&parent).map_err(|error| match error.code() {
            Code::PromptNotFound | Code::NoTemplate => {
                let shown = chain.iter().chain([&parent]).cloned().collect::<Vec<_>>().join(" → ");
                let diagnostic = Diagnostic::new(
                    Code::MissingParent,
                    format!("the parent `{parent}` does not exist ({shown})"),
                )
                .at(place.clone())
                .hint_opt(error.diagnostic().hint.clone());
                Error::new(ErrorKind::PromptRead, diagnostic)
            }
            _ => error,
        })?;
        if chain.contains(&found.id) {
            let shown = chain.iter().chain([&found.id]).cloned().collect::<Vec<_>>().join(" → ");
            let diagnostic =
                Diagnostic::new(Code::ParentCycle, format!("prompts extend each other in a circle: {shown}"))
                    .at(place)
                    .hint("remove one of the `extends`");
            return Err(Error::new(ErrorKind::PromptRead, diagnostic));
        }
        let read = dialect::template::read(&found.id, &found.candidate, loader, defaults)?;
        // What is odd about a parent's files is reported where the parent is checked, not here.
        for variable in read.prompt.variables {
            if prompt.variable(&variable.name).is_none() {
                prompt.variables.push(Variable { inherited_from: Some(found.id.clone()), ..variable });
            }
        }
        chain.push(found.id);
        next = read.extends;
    }
    chain.remove(0);
    Ok(chain)
}
