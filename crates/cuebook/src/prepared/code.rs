//! The code that takes part in the renders of a prompt: where it lies, whether it may run, and what it is given.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Prepared;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, shell_word};
use crate::files;
use crate::hooks::{Hooks, Script, ScriptEngine, Subject, Values, Workspace};
use crate::library::{
    HooksConfig, Library, PROMPT_FILE, ScriptFile, ScriptRead, VariableProvider, provider_key,
    provider_source,
};
use crate::prompt::{Hook, Limits, Permissions};
use crate::render::Rendered;
use crate::source::Place;
use crate::template::engine::Loader;
use crate::template::jinja::Template;
use crate::template::meter;
use crate::trust;
use crate::variables::{Context, RichInputs, Scope};

/// A pack's provider of a namespace.
#[derive(Debug, Clone)]
pub struct Provider {
    /// The id of its pack.
    pub pack: String,
    /// What the manifest says of it.
    pub provider: VariableProvider,
}

impl Prepared {
    pub(crate) fn hooks(&self) -> &Hooks {
        &self.book.hooks
    }

    /// What runs Python files, if anything does and it is not turned off.
    pub(crate) fn engine(&self) -> Option<&Arc<dyn ScriptEngine>> {
        self.book.hooks.engine.as_ref().filter(|_| self.files.config.hooks.enabled)
    }

    /// How hooks run here.
    pub(crate) fn hook_settings(&self) -> &HooksConfig {
        &self.files.config.hooks
    }

    pub(crate) fn subject(&self) -> Subject {
        Subject::Prompt { id: self.prompt.id.clone() }
    }

    pub(crate) fn grants(&self) -> (Permissions, Limits) {
        (self.prompt.permissions, self.prompt.limits)
    }

    /// The namespaces that the templates use and a pack provides.
    #[doc(hidden)]
    pub fn namespaces(&self) -> impl Iterator<Item = String> + '_ {
        self.names.namespaces.keys().cloned()
    }

    /// Every namespace that some pack provides, for hints.
    pub(crate) fn provided_namespaces(&self) -> Vec<String> {
        let (providers, _) = self.files.loader.providers().unwrap_or_default();
        providers.into_iter().map(|(_, provider)| provider.namespace).collect()
    }

    /// The pack's provider of a namespace: the only one, or the one that was chosen.
    pub(crate) fn provider(&self, namespace: &str) -> Result<Option<Provider>> {
        let (mut offers, _) = self.files.loader.providers()?;
        offers.retain(|(_, provider)| provider.namespace == namespace);
        let place = self.names.namespaces.get(namespace);
        let chosen = choose_provider(self.files.loader.library(), namespace, offers, place)?;
        Ok(chosen.map(|(pack, provider)| Provider { pack, provider }))
    }

    /// A script as it is now, if it may run.
    pub(crate) fn script(&self, file: &ScriptFile) -> Result<Arc<Script>> {
        self.book.scripts.get(self.files.loader.library(), file)
    }

    /// The file of the prompt's own hooks. What the hook's place is for is messages, and both hooks stand in one file.
    pub(crate) fn script_file(&self, hook: &Hook) -> Result<&ScriptFile> {
        if let Some(known) = self.code.script_file.get() {
            return Ok(known);
        }
        let file = self.find_script_file(hook)?;
        Ok(self.code.script_file.get_or_init(|| file))
    }

    /// Whose code it is depends on where the file really lies, and not on the way that led to it.
    fn find_script_file(&self, hook: &Hook) -> Result<ScriptFile> {
        let candidate = &self.files.found.candidate;
        let relative = candidate.file(PROMPT_FILE);
        let (Some(path), Some(code)) = (candidate.root.path(&relative), &self.prompt.code) else {
            return Err(self.hooks_unavailable(hook));
        };
        let library = self.files.loader.library();
        let name = candidate.root.file_name(&relative);
        let real = std::fs::canonicalize(&path).map_err(|error| files::io_error(&name, &error))?;
        let pack = library.pack_that_holds(&real);
        if pack.is_none() {
            refuse_uninstalled_pack(&real, library.root(), hook)?;
        }
        let folder = match &pack {
            Some(pack) => library.packs_folder().join(pack),
            None => path.parent().unwrap_or(&path).to_owned(),
        };
        let read = ScriptRead::Script(code.clone());
        Ok(ScriptFile { path, name, folder, pack, read, place: hook.place.clone() })
    }

    /// The folders of all code that can take part in its renders.
    #[doc(hidden)]
    pub fn code_folders(&self) -> Vec<PathBuf> {
        let hooks = self.prompt.hooks.first().and_then(|hook| self.script_file(hook).ok());
        let mut folders: Vec<PathBuf> = hooks.map(|file| file.folder.clone()).into_iter().collect();
        let packs = self.namespaces().filter_map(|namespace| self.provider(&namespace).ok().flatten());
        folders.extend(packs.map(|provider| self.files.loader.library().packs_folder().join(provider.pack)));
        folders
    }

    /// The file of a pack's provider.
    pub(crate) fn provider_file(
        &self,
        pack: &str,
        provider: &VariableProvider,
        namespace: &str,
    ) -> ScriptFile {
        let folder = self.files.loader.library().packs_folder().join(pack);
        let path = folder.join(&provider.file);
        ScriptFile {
            name: self.files.loader.library().name(&path),
            path,
            folder,
            pack: Some(pack.to_owned()),
            read: ScriptRead::Manifest(provider.clone()),
            // A hook may ask for a namespace that no template uses.
            place: self
                .names
                .namespaces
                .get(namespace)
                .cloned()
                .unwrap_or_else(|| self.prompt.template.place(0..0)),
        }
    }

    /// The folder that hooks work in: the one that the caller names, or the project's.
    pub(crate) fn workspace(&self, context: &Context) -> Result<Workspace> {
        let library = self.files.loader.library();
        let given = context.workspace_path.as_deref();
        let path = match given {
            Some(given) => std::path::absolute(given).unwrap_or_else(|_| PathBuf::from(given)),
            None => library.root().to_owned(),
        };
        let refuse = |message: String, hint: Hint| {
            let diagnostic =
                Diagnostic::new(Code::BadWorkspace, message).file(path.to_string_lossy()).hint(hint);
            Err(Error::new(ErrorKind::Hook, diagnostic))
        };
        let name_one = Hint::option("name a folder", "--context workspace_path=DIR")
            .for_programs("set `workspace_path` in the context to a folder");
        let folder = match self.code.workspace.get(&path) {
            Ok(folder) if folder.is_dir() => folder,
            Ok(_) => return refuse("the workspace is not a folder".into(), name_one),
            Err(error) => return refuse(format!("cannot open the workspace: {error}"), name_one),
        };
        if folder.parent().is_none() {
            let message =
                "the root of the file system cannot be a workspace: hooks could read everything".into();
            return refuse(message, name_one);
        }
        if folder.to_str().is_none() {
            return refuse("the path of the workspace is not UTF-8".into(), name_one);
        }
        if OCCUPIED.iter().any(|taken| folder == Path::new(taken)) {
            let message = "hooks cannot use this folder: the sandbox replaces it".into();
            return refuse(message, name_one);
        }
        Ok(Workspace::new(folder, self.files.config.limits.file_size))
    }

    /// No code sees the home folder, a folder above it, or the user's keys: neither as its workspace nor as its own folder.
    pub(crate) fn refuse_home(&self, workspace: &Workspace, script: Option<&Script>) -> Result<()> {
        let spaces = self.files.loader.library().spaces();
        let folders = [Some(workspace.folder()), script.map(|script| script.folder.as_path())];
        match folders.into_iter().flatten().find(|folder| trust::holds_secrets(spaces, folder)) {
            Some(folder) => Err(shows_keys(folder)),
            None => Ok(()),
        }
    }

    /// Renders the template with these values, all of it before one deadline.
    pub(crate) fn render_template(&self, scope: &Arc<Scope>) -> Result<Rendered> {
        meter::render(self.files.config.limits.render_seconds, || self.render_in_time(scope))
    }

    fn render_in_time(&self, scope: &Arc<Scope>) -> Result<Rendered> {
        let scope = if self.names.is_rich {
            &scope.with_rich(RichInputs::new(&self.prompt, scope, &*self.book.nonces)?)
        } else {
            scope
        };
        let rendered = self.body.render(&self.rendering(scope))?;
        if self.names.has_strict_inputs {
            rendered.refuse_forgeries()?;
        }
        Ok(rendered)
    }

    /// Renders a template that the prompt could include: with the given values, or with those of the render.
    pub(crate) fn render_partial(
        &self,
        name: &str,
        values: Option<&Values>,
        scope: &Arc<Scope>,
    ) -> Result<String> {
        let known = self.partials().get(name).cloned();
        let template = match known {
            Some(template) => template,
            None => {
                let parent = self.prompt.template.name();
                let Some(source) = self.files.loader.load(name, parent)? else {
                    let message = format!("no template `{name}` exists");
                    return Err(Error::new(
                        ErrorKind::PromptRead,
                        Diagnostic::new(Code::MissingInclude, message),
                    ));
                };
                let template =
                    Arc::new(Template::compile(source, self.includes.templates.clone(), &self.settings)?);
                self.partials().insert(name.to_owned(), template.clone());
                template
            }
        };
        let scope = match values {
            Some(values) => scope.only(values),
            None => scope.clone(),
        };
        let limit = self.prompt.limits.max_output_size;
        Ok(template.render_in(&scope, limit)?.text)
    }

    /// A prompt that asks for hooks is not rendered without them, unless the caller says so.
    pub(crate) fn hooks_unavailable(&self, hook: &Hook) -> Error {
        let computed: std::collections::BTreeSet<String> = self
            .reads()
            .into_iter()
            .map(|(read, _)| read.root)
            .filter(|root| root != "system" && !self.is_session(root) && self.prompt.variable(root).is_none())
            .collect();
        let pass: Vec<String> = computed.iter().map(|name| format!("--var {name}=…")).collect();
        let values = if pass.is_empty() {
            String::new()
        } else {
            format!(", and pass the values that the hook computes: {}", pass.join(" "))
        };
        let message =
            format!("`{}` has the hook `{}`, but {}", self.prompt.id, hook.name, self.why_nothing_runs());
        let diagnostic = Diagnostic::new(Code::HooksUnavailable, message).at(hook.place.clone()).hint(
            Hint::command_line(format!("render without hooks: --no-hooks{values}"))
                .for_programs("give the book hooks that can run, or set `without_hooks` in the context"),
        );
        let names: Vec<&str> = self.prompt.hooks.iter().map(|hook| hook.name.as_str()).collect();
        Error::new(ErrorKind::Hook, diagnostic).with("hooks", names)
    }

    pub(crate) fn provider_unavailable(
        &self,
        pack: &str,
        provider: &VariableProvider,
        namespace: &str,
    ) -> Error {
        let message = format!(
            "`{namespace}` comes from the provider {} of the pack `{pack}`, but {}",
            provider.file,
            self.why_nothing_runs()
        );
        let advice = format!("give `{namespace}` a value, or set `without_hooks` in the context");
        let hint = Hint::command_line(format!(
            "pass the values: --var {namespace}:='{{…}}', or render without them: --no-hooks"
        ));
        let diagnostic = Diagnostic::new(Code::ProviderUnavailable, message).hint(hint.for_programs(advice));
        let diagnostic = match self.names.namespaces.get(namespace) {
            Some(place) => diagnostic.at(place.clone()),
            None => diagnostic,
        };
        Error::new(ErrorKind::Hook, diagnostic).with("namespace", namespace)
    }

    fn why_nothing_runs(&self) -> &'static str {
        match self.files.config.hooks.enabled {
            false => "hooks are disabled (`hooks.enabled` in cuebook.toml)",
            true => "this program cannot run hooks",
        }
    }
}

/// Folders that a sandbox has of its own.
const OCCUPIED: [&str; 4] = ["/tmp", "/dev", "/proc", "/sys"];

/// The error for a folder that would show the user's keys to code.
fn shows_keys(folder: &Path) -> Error {
    let message = "code in this folder could read your home folder or your keys";
    let diagnostic = Diagnostic::new(Code::BadWorkspace, message).file(folder.to_string_lossy()).hint(
        Hint::option("name a separate folder", "--context workspace_path=DIR")
            .for_programs("set `workspace_path` in the context to a separate folder"),
    );
    Error::new(ErrorKind::Hook, diagnostic)
}

/// Code of a pack that is not installed has no approval. A project that is itself being made into a pack is the user's.
fn refuse_uninstalled_pack(script: &Path, root: &Path, hook: &Hook) -> Result<()> {
    let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let holds_pack = |above: &&Path| above.join("pack.json").is_file();
    let Some(pack) = script.ancestors().skip(1).take_while(|above| **above != root).find(holds_pack) else {
        return Ok(());
    };
    let message = "this code belongs to a pack that is not installed, so it cannot be approved";
    let diagnostic = Diagnostic::new(Code::ApprovalRequired, message).at(hook.place.clone()).hint(Hint::run(
        "install the pack, then review and approve its code",
        format!("cuebook pack install {}", pack.display()),
    ));
    Err(Error::new(ErrorKind::PromptApprovalRequired, diagnostic))
}

/// Chooses between the packs that provide a namespace: the only one, or the recorded one.
pub fn choose_provider(
    library: &Library,
    namespace: &str,
    mut offers: Vec<(String, VariableProvider)>,
    place: Option<&Place>,
) -> Result<Option<(String, VariableProvider)>> {
    let sources: Vec<String> = offers.iter().map(|(pack, offer)| provider_source(pack, offer)).collect();
    let Some(recorded) = library.resolutions()?.get(&provider_key(namespace)) else {
        return match offers.len() {
            0 | 1 => Ok(offers.pop()),
            count => Err(provider_conflict(
                namespace,
                format!("{count} packs provide `{namespace}`"),
                &sources,
                place,
            )),
        };
    };
    let known = recorded.candidates.unwrap_or_default();
    let new = sources.iter().find(|source| **source != recorded.source && !known.contains(source));
    match (sources.iter().position(|source| *source == recorded.source), new) {
        (Some(position), None) => Ok(Some(offers.swap_remove(position))),
        (Some(_), Some(new)) => {
            let message = format!("another pack provides `{namespace}` since the choice: {new}");
            Err(provider_conflict(namespace, message, &sources, place))
        }
        (None, _) => {
            let message =
                format!("the recorded choice for `{namespace}`, {}, no longer exists", recorded.source);
            Err(provider_conflict(namespace, message, &sources, place))
        }
    }
}

fn provider_conflict(namespace: &str, message: String, sources: &[String], place: Option<&Place>) -> Error {
    let key = provider_key(namespace);
    let choice = |source: &String| format!("cuebook resolve {} {}", shell_word(&key), shell_word(source));
    let choices: Vec<String> = sources.iter().map(choice).collect();
    let hint = if choices.is_empty() {
        format!("install the pack again, or remove the entry `{key}` from resolution.json").into()
    } else {
        Hint::choose("choose one; Cuebook records the choice", choices)
    };
    let diagnostic = Diagnostic::new(Code::ProviderConflict, message).hint(hint);
    let diagnostic = match place {
        Some(place) => diagnostic.at(place.clone()),
        None => diagnostic,
    };
    Error::new(ErrorKind::PromptConflict, diagnostic).with("namespace", namespace).with("candidates", sources)
}
