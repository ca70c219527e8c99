//! The server: what a client may ask, and who answers it.
//!
//! This is the protocol's side only. Every answer is worked out elsewhere, on the pool for blocking work.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use cuebook::error::nearest;
use cuebook::items::Spaces;
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind};
use cuebook_run::Action;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
    CustomRequest, CustomResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult,
    InitializeResultMethod, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ServerCapabilities, ServerConfig, ServerRequest, SubscriptionFilter, Tool,
    UpdateTaskParams,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, RoleServer, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::calls::{Call, MAX_QUESTIONS};
use crate::changes::Changes;
use crate::faults::{fault, invalid, no_resource};
use crate::items::{Arguments, Items, Question, Watch};
use crate::questions::{QuestionMethod, WaitingCalls};
use crate::request_slots::RequestSlots;
use crate::tasks::TaskSettings;
use crate::tools::Served;
use crate::work::{at_once, blocking, gave_up, turn, watched};
use crate::{completion, knowledge, prompts, questions, skills, tasks, tools};

/// Entries of a list that go into one answer.
const PAGE: usize = 1000;

/// Skills that go into one answer: every file of theirs is read.
const PAGE_OF_SKILLS: usize = 100;

/// How often it is looked whether a client that hears of changes is still there.
const STILL_THERE: Duration = Duration::from_secs(60);

/// What clients get about this server, for their model.
const INSTRUCTIONS: &str = "This server offers the prompts and skills of a Cuebook library, and the project's knowledge items as resources.";

/// Added if there are tools.
const ABOUT_TOOLS: &str = " rye_search finds directives, tools and knowledge; rye_execute returns the instructions of a directive, or runs a tool that the user allowed; rye_load reads the file of an item.";

/// A server of one project. Clones are the same server, for the same client.
#[derive(Clone)]
pub struct Server(Arc<Inner>, RequestSlots);

struct Inner {
    book: Arc<Book>,
    spaces: Spaces,
    items: Option<Arc<dyn Items>>,
    /// Serves prompts and resources only; items are verified and not used.
    is_read_only: bool,
    tools: Vec<Tool>,
    tasks: TaskManager,
    /// Calls whose clients were asked something.
    waiting: WaitingCalls,
    changes: Arc<Changes>,
    /// Cancelled when the process is asked to end: a conversation over HTTP outlives the request that it began with, and nothing
    /// that belongs to a request says that the server ends.
    stop: CancellationToken,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("root", &self.0.book.library().root()).finish_non_exhaustive()
    }
}

impl Server {
    /// A server of a project's prompts and of the knowledge in its spaces; with items, also of the four tools, as far as
    /// clients may use them.
    pub fn new(book: Arc<Book>, spaces: Spaces, items: Option<Arc<dyn Items>>) -> Server {
        Server::with(book, spaces, items, false)
    }

    /// A server of prompts and resources only. The items say which resources may be shown; clients cannot use them.
    pub fn read_only(book: Arc<Book>, spaces: Spaces, items: Arc<dyn Items>) -> Server {
        Server::with(book, spaces, Some(items), true)
    }

    fn with(book: Arc<Book>, spaces: Spaces, items: Option<Arc<dyn Items>>, is_read_only: bool) -> Server {
        let project = book.library().root().to_string_lossy().into_owned();
        let used = items.as_ref().filter(|_| !is_read_only);
        let tools = used.map_or_else(Vec::new, |items| {
            Action::ALL.into_iter().filter_map(|action| action.tool(&project, items.allowance())).collect()
        });
        let changes = Changes::new(book.clone(), spaces.clone());
        let stop = CancellationToken::new();
        let (tasks, waiting) = (TaskManager::new(), WaitingCalls::default());
        let inner = Inner { book, spaces, items, is_read_only, tools, tasks, waiting, changes, stop };
        Server(Arc::new(inner), RequestSlots::new())
    }

    /// The same server for another client.
    pub(crate) fn for_client(&self) -> Server {
        Server(self.0.clone(), self.1.of_another())
    }

    /// What tells the calls under way to stop.
    pub(crate) fn stop(&self) -> CancellationToken {
        self.0.stop.clone()
    }

    /// Begins to look for changes of the library. Must be called on a runtime.
    pub(crate) fn begin(&self) {
        let changes = self.0.changes.clone();
        tokio::spawn(async move { changes.begin().await });
    }

    /// Does the work of a call when it is its turn.
    async fn work(
        &self,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(&dyn Watch) -> Json + Send + 'static,
    ) -> Result<Json, ErrorData> {
        match turn(context, &self.0.stop, &self.1).await? {
            Ok(turn) => watched(context, &self.0.stop, turn, work).await,
            Err(error) => Ok(Action::refusal(&error)),
        }
    }

    /// Answers a call. If its user can let it go on, they are asked first.
    async fn settle(
        &self,
        context: &RequestContext<RoleServer>,
        call: Call,
        mut answer: Json,
    ) -> Result<CallToolResponse, ErrorData> {
        let way = QuestionMethod::of(context);
        for _ in 0..MAX_QUESTIONS {
            let Some(question) = call.question(&answer).filter(|_| way != QuestionMethod::Never) else {
                break;
            };
            if way == QuestionMethod::Answer {
                return Ok(match self.0.waiting.keep(call, answer.clone(), &question) {
                    Some(asked) => asked.into(),
                    None => tools::answer(answer).into(),
                });
            }
            let Some(form) = self.ask(context, &question).await? else { break };
            let going_on = call.clone();
            answer = self.work(context, move |watch| going_on.go_on(&answer, &form, watch)).await?;
        }
        Ok(tools::answer(answer).into())
    }

    /// Asks the user of a client, and waits as long as the client does. Gives what they filled in, if they accepted.
    async fn ask(
        &self,
        context: &RequestContext<RoleServer>,
        question: &Question,
    ) -> Result<Option<Arguments>, ErrorData> {
        let Some(request) = questions::request(question) else { return Ok(None) };
        tokio::select! {
            said = context.peer.send_request(ServerRequest::ElicitRequest(request)) => {
                // A client that cannot ask after all answers as one that declines.
                let said = said.ok().and_then(|said| serde_json::to_value(said).ok());
                Ok(said.as_ref().and_then(questions::accepted))
            }
            () = context.ct.cancelled() => Err(gave_up()),
            () = self.0.stop.cancelled() => Err(gave_up()),
        }
    }

    /// Tells a client of every change until it is gone.
    async fn send_changes(self, peer: Peer<RoleServer>) {
        let mut changes = self.0.changes.listen();
        loop {
            let changed = tokio::select! {
                changed = changes.next() => changed,
                () = tokio::time::sleep(STILL_THERE) => {
                    if peer.is_transport_closed() {
                        return;
                    }
                    continue;
                }
            };
            let Some(changed) = changed else { return };
            let mut reported = true;
            if changed.prompts {
                reported &= peer.notify_prompt_list_changed().await.is_ok();
            }
            if changed.knowledge {
                reported &= peer.notify_resource_list_changed().await.is_ok();
            }
            if !reported && peer.is_transport_closed() {
                return;
            }
        }
    }
}

/// The part of a list that a cursor stands for, and the cursor of the next part. A cursor is the last name that was given, so a
/// list that changes between two parts loses nothing that was there all the time.
fn page(
    names: Vec<String>,
    request: Option<PaginatedRequestParams>,
    most: usize,
) -> Result<(Vec<String>, Option<String>), ErrorData> {
    let cursor = request.and_then(|request| request.cursor);
    let after = match &cursor {
        None => None,
        Some(cursor) => match cursor.strip_prefix("after:") {
            Some(name) => Some(name),
            None => {
                return Err(invalid("unknown cursor", "request the list from its start"));
            }
        },
    };
    let mut rest = names.into_iter().filter(|name| after.is_none_or(|after| name.as_str() > after));
    let part: Vec<String> = rest.by_ref().take(most).collect();
    let next = rest.next().and(part.last()).map(|last| format!("after:{last}"));
    Ok((part, next))
}

impl ServerHandler for Server {
    #[expect(deprecated, reason = "older clients set a level of the log")]
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_completions()
            .enable_extensions_with(skills::capability());
        let has_tools = !self.0.tools.is_empty();
        let capabilities =
            if has_tools { capabilities.enable_tools().enable_tasks().build() } else { capabilities.build() };
        let instructions = format!("{INSTRUCTIONS}{}", if has_tools { ABOUT_TOOLS } else { "" });
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("cuebook", env!("CARGO_PKG_VERSION")).with_title("Cuebook"))
            .with_instructions(instructions)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        // A change that comes right after the answer is one that the client hears of.
        self.0.changes.begin().await;
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    // Cuebook sends clients no log, so it accepts every level. The newest version of the protocol has no logging.
    #[expect(deprecated, reason = "older clients set a level of the log")]
    async fn set_level(
        &self,
        _: rmcp::model::SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        tokio::spawn(self.clone().send_changes(context.peer));
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.0.changes.begin().await;
        let mut changes = self.0.changes.listen();
        let (sink, accepted) = (context.sink(), context.accepted());
        loop {
            let changed = tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = changes.next() => changed,
            };
            let Some(changed) = changed else { return Ok(()) };
            let mut reported = Ok(());
            if changed.prompts && accepted.prompts_list_changed == Some(true) {
                reported = sink.notify_prompt_list_changed().await;
            }
            if changed.knowledge && accepted.resources_list_changed == Some(true) {
                reported = reported.and(sink.notify_resource_list_changed().await);
            }
            if reported.is_err() {
                return Ok(());
            }
        }
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let book = self.0.book.clone();
        blocking(&self.1, move || {
            let (ids, next) = page(prompts::ids(&book).map_err(|error| fault(&error))?, request, PAGE)?;
            let mut result =
                ListPromptsResult::with_all_items(ids.iter().map(|id| prompts::listed(&book, id)).collect());
            result.next_cursor = next;
            Ok(result)
        })
        .await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let book = self.0.book.clone();
        blocking(&self.1, move || {
            let arguments = request.arguments.unwrap_or_default();
            let result = prompts::get(&book, &request.name, &arguments).map_err(|error| fault(&error))?;
            Ok(result.into())
        })
        .await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let server = self.clone();
        blocking(&self.1, move || {
            let Inner { book, spaces, .. } = &*server.0;
            completion::complete(book, spaces, &request.r#ref, &request.argument, request.context.as_ref())
        })
        .await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let server = self.clone();
        blocking(&self.1, move || {
            let all = knowledge::all(&server.0.spaces).map_err(|error| fault(&error))?;
            let skills = skills::all(&server.0.book).map_err(|error| fault(&error))?;
            let (uris, next) = page(all.keys().cloned().chain(skills).collect(), request, PAGE)?;
            let listed = uris.iter().filter_map(|uri| match all.get(uri) {
                Some(located) => Some(knowledge::listed(located)),
                None => skills::listed(&server.0.book, uri),
            });
            let listed = listed.collect();
            let mut result = ListResourcesResult::with_all_items(listed);
            result.next_cursor = next;
            Ok(result)
        })
        .await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![knowledge::template(), skills::template()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let server = self.clone();
        blocking(&self.1, move || {
            let uri = &request.uri;
            let failed = |error: Error| match error.kind() {
                ErrorKind::ItemNotFound => no_resource(&error, uri),
                _ => fault(&error),
            };
            if skills::is_address(uri) {
                let contents = skills::read(&server.0.book, uri).map_err(failed)?;
                return Ok(ReadResourceResult::new(vec![contents]).into());
            }
            let item = knowledge::find(&server.0.spaces, uri).map_err(failed)?;
            if let Some(items) = &server.0.items {
                items.verify(&item).map_err(|error| fault(&error))?;
            }
            Ok(ReadResourceResult::new(vec![knowledge::contents(uri, &item)]).into())
        })
        .await
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.0.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let called = self.0.items.clone().zip(Action::named(&request.name));
        if called.is_some() && self.0.is_read_only {
            return Ok(tools::denied(&only_reads(&request.name)).into());
        }
        let Some((items, action)) = called else {
            let names = self.0.tools.iter().map(|tool| &*tool.name);
            let message = format!("Unknown tool: {}", request.name);
            let data = json!({"nearest": nearest(&request.name, names)});
            return Err(ErrorData::invalid_params(message, Some(data)));
        };
        let mut arguments = request.arguments.unwrap_or_default();
        if let Some(allowance) = items.allowance()
            && let Err(error) = allowance.check(action, &arguments)
        {
            return Ok(tools::denied(&error).into());
        }
        if let Some(tool) = self.get_tool(action.name())
            && let Some(why) = tools::misfit(&tool.input_schema, &arguments)
        {
            return Ok(tools::refused(&why).into());
        }
        if let Some(state) = &request.request_state {
            let Some((call, answer)) = self.0.waiting.take(state) else {
                let hint = "repeat the call without `requestState`";
                return Err(invalid("this question is already answered, or has expired", hint));
            };
            let Some(form) = questions::response(request.input_responses.as_ref()) else {
                return Ok(tools::answer(answer).into());
            };
            let going_on = call.clone();
            let answer = self.work(&context, move |watch| going_on.go_on(&answer, &form, watch)).await?;
            return self.settle(&context, call, answer).await;
        }
        let project = || self.0.book.library().root().to_string_lossy().into();
        arguments.entry("project_path").or_insert_with(project);
        let is_quick = action.is_quick(&arguments);
        let call = Call { items, action, arguments: Arc::new(arguments) };
        if is_quick {
            return Ok(at_once(|watch| tools::answer(call.make(watch)))?.into());
        }
        let has_tasks =
            context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks());
        if has_tasks && call.is_thread() {
            let place = TaskSettings {
                request_slots: self.1.clone(),
                stop: self.0.stop.clone(),
                way: QuestionMethod::of(&context),
            };
            return Ok(tasks::begin(&self.0.tasks, call, place).into());
        }
        let made = call.clone();
        let answer = self.work(&context, move |watch| made.make(watch)).await?;
        self.settle(&context, call, answer).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.0.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.tasks.cancel_task(&request.task_id)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == "initialize" && questions::is_modern(&context) {
            return Err(ErrorData::method_not_found::<InitializeResultMethod>());
        }
        let book = self.0.book.clone();
        let params = request.params;
        let result = match request.method.as_str() {
            "skills/list" => {
                let page = |names, request| page(names, request, PAGE_OF_SKILLS);
                blocking(&self.1, move || skills::list(&book, params, page)).await
            }
            "skills/get" => blocking(&self.1, move || skills::get(&book, params.as_ref())).await,
            method => Err(not_understood(method)),
        };
        result.map(CustomResult::new)
    }
}

/// `CB805`, for a tool of a server that has none.
fn only_reads(tool: &str) -> Error {
    let message = format!("MCP clients cannot use `{tool}`: this server serves only prompts and resources");
    let hint = "the user decides: `read_only` under `[mcp]` in ~/.ai/config/cuebook.toml, or how the server is started";
    Error::new(ErrorKind::Execute, Diagnostic::new(Code::NotAllowedOverMcp, message).hint(hint))
}

/// The error for any other request. A method of the protocol comes here if its parameters have a wrong shape.
pub(crate) fn not_understood(method: &str) -> ErrorData {
    const METHODS: [&str; 16] = [
        "initialize",
        "server/discover",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "skills/get",
        "skills/list",
        "subscriptions/listen",
        "tasks/cancel",
        "tasks/get",
        "tasks/update",
        "tools/call",
        "tools/list",
        "completion/complete",
    ];
    let shown: String = method.chars().take(100).collect();
    if METHODS.contains(&method) {
        let message = format!("invalid parameters of {shown}");
        return invalid(message, "see the protocol's schema of this request");
    }
    let data = json!({"nearest": nearest(method, METHODS)});
    let message: Cow<'static, str> = format!("unknown method {shown}").into();
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, Some(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_comes_in_parts_that_join_without_a_gap() {
        let names: Vec<String> = (0..2500).map(|number| format!("p{number:05}")).collect();
        let mut all = Vec::new();
        let mut request = None;
        loop {
            let (part, next) = page(names.clone(), request, PAGE).unwrap();
            assert!(part.len() <= PAGE);
            all.extend(part);
            let Some(next) = next else { break };
            request = Some(PaginatedRequestParams::default().with_cursor(Some(next)));
        }
        assert_eq!(all, names);
        let foreign = PaginatedRequestParams::default().with_cursor(Some("42".into()));
        assert_eq!(page(names, Some(foreign), PAGE).unwrap_err().code, ErrorCode::INVALID_PARAMS);
    }
}
