//! A prompt that is no directive, as a thread: its model, the items behind its tools, and what it was rendered with.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cuebook::chat::wire::Api;
use cuebook::error::{did_you_mean, nearest};
use cuebook::items::{ItemId, ItemType};
use cuebook::library::is_path;
use cuebook::prompt::{Model, Tool, ToolKind, Visibility};
use cuebook::sections::disclosure;
use cuebook::variables::{Context, UnknownVariables, Variables};
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Hint, Prepared, Result};
use serde_json::{Map, Value as Json, json};

use super::launch::{Launch, ThreadKind};
use super::orchestrator;
use super::prompt_tools::PromptTools;
use super::run::RunRequest;
use super::start;
use crate::engine::{Engine, Project};
use crate::policy::capability::{ACTIONS, Capabilities};
use crate::policy::limits::ThreadLimits;
use crate::provider::{Chosen, ModelPreference, Providers};

impl Engine {
    /// Who answers a prompt: the model that is wanted, or the one that the prompt names.
    pub(super) fn choose_for(
        &self,
        project: &Arc<Project>,
        prepared: &Prepared,
        wanted: Option<&str>,
    ) -> Result<Chosen> {
        let own = prepared.prompt().model.clone().unwrap_or_default();
        let providers = Providers::new(&project.spaces, project.trust())?;
        // Known before the prompt is rendered, which a trace tells of.
        self.secrets_of(&providers);
        let named = own.provider.as_deref().filter(|_| wanted.is_none());
        let is_chosen = self.settings().provider.is_some() || providers.is_named();
        let named = match endpoint(own.connection.as_ref()).filter(|_| !is_chosen) {
            Some((endpoint, written)) => Some(providers.at(&endpoint, &written, own.provider.as_deref())?),
            None => named,
        };
        let id = Some(own.id.as_str()).filter(|id| !id.is_empty());
        let preference = ModelPreference { model: wanted, id, provider: named, ..ModelPreference::default() };
        self.choose(&providers, &preference)
    }

    pub(super) fn launch_prompt(
        &self,
        project: &Arc<Project>,
        prepared: &Arc<Prepared>,
        request: &RunRequest,
        context: Context,
    ) -> Result<(Launch, Chosen, PromptTools<'_>)> {
        let prompt = prepared.prompt();
        let own = prompt.model.clone().unwrap_or_default();
        let wanted = request.model.as_deref().or(context.model.as_deref());
        let chosen = self.choose_for(project, prepared, wanted)?;
        let mut limits =
            ThreadLimits::resolve(&ThreadLimits::defaults(), None, &request.limit_overrides, None)?;
        start::one_currency(&mut limits, &chosen, request.limit_overrides.contains_key(start::CURRENCY))?;
        let mut notes = Vec::new();
        if chosen.price.is_none() {
            start::no_price(&chosen, request.limit_overrides.contains_key("spend"))?;
            notes.push(json!(start::unpriced(&chosen.model)));
        }
        let inputs: Map<String, Json> = request
            .variables
            .names()
            .filter_map(|name| Some((name.to_owned(), request.variables.get(name)?)))
            .collect();
        let context = Context { model: Some(chosen.model.clone()), ..context };
        let (items, mut capabilities) = bound(self, project, prepared, request, &context)?;
        if let Some(allowance) = &self.settings().allowance {
            capabilities = allowance.narrow(&capabilities);
        }
        let thread_tools = PromptTools::new(
            self,
            project.clone(),
            prepared.clone(),
            request.variables.clone(),
            (context.clone(), chosen.profile.api),
            (items.clone(), inputs.clone()),
        )?;
        let (messages, origins) = thread_tools.request()?;
        let launch = Launch {
            kind: ThreadKind::Prompt,
            prompt: prompt.id.clone(),
            project: project.spaces.project().to_owned(),
            parent: None,
            inputs,
            provider: chosen.provider.name.clone(),
            model: Model { id: chosen.model.clone(), options: own.options, ..Model::default() },
            context_window: chosen.context_window,
            unpriced: chosen.price.is_none(),
            limits,
            capabilities,
            outputs: Vec::new(),
            hooks: Vec::new(),
            prompt_messages: messages.len(),
            messages,
            origins,
            prompt_hash: None,
            tools: items.into_iter().map(|(name, item)| (name, item.into())).collect(),
            skills: Vec::new(),
            continuation: None,
            continuation_of: None,
            forked_from: None,
            context: frozen(&context, file_of(&request.prompt)),
            capped: Vec::new(),
            notes,
        };
        Ok((launch, chosen, thread_tools))
    }

    /// The tools of a prompt whose conversation goes on in another thread; a directive's are made anew.
    pub(super) fn continued_tools(
        &self,
        project: &Arc<Project>,
        launch: &Launch,
        api: Api,
        opened: cuebook::sections::VisibilityOverrides,
    ) -> Result<Option<PromptTools<'_>>> {
        match launch.kind {
            ThreadKind::Directive => Ok(None),
            ThreadKind::Prompt => self.prompt_tools(project, launch, (None, api), opened).map(Some),
        }
    }

    /// The tools of a prompt whose thread is taken up.
    pub(super) fn prompt_tools(
        &self,
        project: &Arc<Project>,
        launch: &Launch,
        (book, api): (Option<&Book>, Api),
        opened: cuebook::sections::VisibilityOverrides,
    ) -> Result<PromptTools<'_>> {
        let book = book.unwrap_or_else(|| project.book());
        let context = Context { visibility: opened, ..thawed(&launch.context, &launch.model.id) };
        // One that was named by its file is found by it, from wherever the thread goes on.
        let prepared = match launch.context["file"].as_str() {
            Some(file) => book.prepare_path(Path::new(file), &context)?,
            None => book.prepare(&launch.prompt, &context)?,
        };
        let text = |(name, item): (&String, &Json)| Some((name.clone(), item.as_str()?.to_owned()));
        let items = launch.tools.iter().filter_map(text).collect();
        let variables = Variables::from_json(&launch.inputs);
        let inputs = launch.inputs.clone();
        PromptTools::new(self, project.clone(), prepared, variables, (context, api), (items, inputs))
    }
}

/// The address that a prompt names for its model, and as it is written there. A prompt that names an environment variable which is
/// not set names none.
fn endpoint(connection: Option<&Json>) -> Option<(String, String)> {
    let written = |name: &str| connection?.get(name)?.as_str();
    let written = written("endpoint").or_else(|| written("base_url"))?.trim();
    let reference = written.strip_prefix("${env:").and_then(|rest| rest.strip_suffix('}'));
    let endpoint = match reference.map(|inner| inner.split_once(':').unwrap_or((inner, ""))) {
        Some((name, default)) => std::env::var(name).unwrap_or_else(|_| default.to_owned()),
        None => written.to_owned(),
    };
    (!endpoint.trim().is_empty()).then(|| (endpoint, written.to_owned()))
}

/// The file that a user named instead of the id of a prompt.
pub(super) fn file_of(wanted: &str) -> Option<String> {
    let path = std::path::absolute(wanted).ok().filter(|path| is_path(wanted) && path.exists())?;
    Some(path.to_str()?.to_owned())
}

/// What of a context decides how a prompt is rendered, and can be written down.
fn frozen(context: &Context, file: Option<String>) -> Json {
    json!({
        "file": file,
        "overrides_tag": context.overrides_tag,
        "language": context.language,
        "fit": context.fit,
        "session_id": context.session_id,
        "workspace_path": context.workspace_path,
        "message": context.message,
    })
}

/// The context that [`frozen`] wrote down.
pub(super) fn thawed(json: &Json, model: &str) -> Context {
    let text = |name: &str| json[name].as_str().map(str::to_owned);
    Context {
        model: Some(model.to_owned()),
        overrides_tag: text("overrides_tag"),
        language: text("language"),
        fit: json["fit"].as_u64().and_then(|fit| usize::try_from(fit).ok()),
        session_id: text("session_id"),
        workspace_path: text("workspace_path"),
        message: text("message"),
        // The start of the thread has checked its variables.
        unknown: UnknownVariables::Ignore,
        ..Context::default()
    }
}

/// A permission that can never be used is a mistake, and its author thinks that something is allowed.
fn refuse_idle(patterns: &[String]) -> Result<()> {
    for pattern in patterns {
        let capabilities = Capabilities::new([pattern.clone()]);
        if ACTIONS.iter().any(|action| capabilities.allows_some(action)) {
            continue;
        }
        let message = format!("`{pattern}` is not a permission");
        let meant = match pattern.trim().replace('/', ".") {
            meant if meant.is_empty() || meant.starts_with("rye.") => "my.search".to_owned(),
            meant => meant,
        };
        let words =
            |option: &str| format!("name an action and items, as in {option}rye.execute.tool.{meant}");
        let hint = Hint::command_line(words("--allow ")).for_programs(words(""));
        return Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::NotPermitted, message).hint(hint)));
    }
    Ok(())
}

/// That the item is missing which is to run a tool: the model would learn so in the middle of its work.
fn no_item(project: &Project, id: &ItemId, tool: &Tool, request: &RunRequest) -> Error {
    let error = project.spaces.not_found(ItemType::Tool, id);
    let mut diagnostic = error.diagnostic().clone();
    diagnostic.message = format!("the tool `{}` runs `{id}`, which does not exist", tool.name);
    match &tool.place {
        Some(place) if !request.tools.contains_key(&tool.name) => diagnostic = diagnostic.at(place.clone()),
        _ => {}
    }
    Error::new(ErrorKind::ItemNotFound, diagnostic).with("item_type", "tool").with("item_id", id.as_str())
}

/// The items behind the tools of a prompt, and what the run may do with them.
fn bound(
    engine: &Engine,
    project: &Project,
    prepared: &Prepared,
    request: &RunRequest,
    context: &Context,
) -> Result<(BTreeMap<String, String>, Capabilities)> {
    let mut rendered = prepared.render(&request.variables, &Arc::new(context.clone()))?;
    if let Some(sections) = rendered.sections() {
        // Those of sections that are closed now can be asked for when the model has opened them.
        let mut open = context.clone();
        for section in &sections.sections {
            open.visibility.set(&section.path, Visibility::Full);
        }
        rendered = prepared.render(&request.variables, &Arc::new(Context { fit: None, ..open }))?;
    }
    let tools = rendered.tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    if let Some(unknown) = request.tools.keys().find(|name| !names.contains(&name.as_str())) {
        let message = format!("the prompt `{}` has no tool `{unknown}`", prepared.prompt().id);
        let hint =
            did_you_mean(&nearest(unknown, names.iter().copied())).map(Hint::from).unwrap_or_else(|| {
                match names.is_empty() {
                    true => Hint::option("it has no tools", "leave out --tool"),
                    false => format!("its tools are: {}", names.join(", ")).into(),
                }
            });
        return Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::NoHandler, message).hint(hint)));
    }
    refuse_idle(&request.allow)?;
    let allowed = Capabilities::new(request.allow.iter().cloned());
    let mut capabilities = allowed.clone();
    let mut items = BTreeMap::new();
    let is_ours = |name: &str| disclosure::TOOLS.contains(&name);
    for tool in tools.iter().filter(|tool| !is_ours(&tool.name)) {
        let written = tool.extra.get("runs").and_then(Json::as_str);
        let item = match (request.tools.get(&tool.name), written) {
            (Some(given), _) => given.as_str(),
            (None, _) if engine.function(&tool.name).is_some() => continue,
            (None, Some(written)) => {
                // The author of a prompt does not decide what runs on the user's machine.
                if allowed.check("execute", "tool", written).is_err() {
                    let message = format!("the tool `{}` runs `{written}`, which is not allowed", tool.name);
                    let option = format!("--allow rye.execute.tool.{}", written.replace('/', "."));
                    let hint = Hint::option("allow it", option);
                    return Err(Error::new(
                        ErrorKind::Usage,
                        Diagnostic::new(Code::NotPermitted, message).hint(hint),
                    ));
                }
                written
            }
            (None, None) => {
                let message = format!("the tool `{}` has no item to run", tool.name);
                let mut hint = Hint::option("name an item", format!("--tool {}=my/tool", tool.name));
                if rendered.sections().is_none() {
                    hint = hint.or("or write `runs: my/tool` where it is declared");
                }
                let diagnostic = Diagnostic::new(Code::NoHandler, message).hint(hint);
                let diagnostic = match &tool.place {
                    Some(place) => diagnostic.at(place.clone()),
                    None => diagnostic,
                };
                return Err(Error::new(ErrorKind::Usage, diagnostic));
            }
        };
        if !matches!(tool.kind, ToolKind::Function { .. } | ToolKind::Schema { .. }) {
            let message = format!(
                "the tool `{}` has the kind `{}`, which Cuebook cannot run",
                tool.name,
                tool.kind.as_str()
            );
            let diagnostic = Diagnostic::new(Code::NoHandler, message).hint("declare it as a function");
            return Err(Error::new(ErrorKind::Usage, diagnostic));
        }
        let id = ItemId::new(item)?;
        if orchestrator::named(&id).is_none() && project.spaces.find(ItemType::Tool, &id)?.is_none() {
            return Err(no_item(project, &id, tool, request));
        }
        let item = id.to_string();
        capabilities.add(format!("rye.execute.tool.{}", item.replace('/', ".")));
        items.insert(tool.name.clone(), item);
    }
    Ok((items, capabilities))
}
