//! The server for the protocol's conformance suite: a Cuebook server of a project, with the tools, resources and prompts that the
//! suite expects under fixed names (`fixtures.rs`, `rounds.rs`, `jobs.rs`). Everything else is Cuebook's own.
//!
//! `cuebook-serve-suite PROJECT ADDRESS VARIABLE`: the variable holds the token.

#![allow(deprecated, reason = "older revisions have logging and sampling, and the suite tries them")]

mod fixtures;
mod jobs;
mod rounds;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cuebook::Book;
use cuebook::items::Spaces;
use cuebook_serve::{Http, LocalItems, Server, Token, serve_http_with};
use rmcp::ServerHandler;
use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use serde_json::{Value as Json, json};

type Context = RequestContext<RoleServer>;
type Answer<T> = Result<T, ErrorData>;

/// A server with the fixtures of the suite.
#[derive(Clone)]
struct Suite(Server);

/// A pause between two notifications, as the suite wants it.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// A value of the protocol that is written as JSON.
fn read<T: serde::de::DeserializeOwned>(json: Json) -> Answer<T> {
    serde_json::from_value(json).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

impl Suite {
    /// What one of the suite's tools answers; none if it is not one of them.
    async fn fixture(
        &self,
        request: &CallToolRequestParams,
        context: &Context,
    ) -> Answer<Option<CallToolResponse>> {
        let name = &*request.name;
        if let Some(content) = fixtures::content(name) {
            return Ok(Some(CallToolResult::success(read(content)?).into()));
        }
        if let Some(answer) = rounds::call(name, request, context)? {
            return Ok(Some(answer));
        }
        if let Some(answer) = jobs::call(request, context).await? {
            return Ok(Some(answer));
        }
        let argument = |name: &str| {
            let found = request.arguments.as_ref().and_then(|arguments| arguments.get(name));
            found.and_then(Json::as_str).unwrap_or_default().to_owned()
        };
        let result = match name {
            "test_error_handling" => CallToolResult::error(vec![ContentBlock::text(
                "This tool intentionally returns an error for testing",
            )]),
            "test_tool_with_logging" | "test_logging_tool" => self.log(context).await,
            "test_tool_with_progress" => progress(context).await,
            "test_reconnection" => {
                pause().await;
                text("Reconnection test completed successfully")
            }
            "test_sampling" => sample(context, argument("prompt")).await?,
            "test_elicitation" => elicit(context, argument("message"), fixtures::person()).await?,
            "test_elicitation_sep1034_defaults" => {
                elicit(context, "Defaults".into(), fixtures::defaults()).await?
            }
            "test_elicitation_sep1330_enums" => {
                elicit(context, "Choices".into(), fixtures::choices()).await?
            }
            "test_missing_capability" => {
                let able = context.client_capabilities().is_some_and(|able| able.sampling.is_some());
                if !able {
                    let needed = ClientCapabilities::builder().enable_sampling().build();
                    return Err(ErrorData::missing_required_client_capability(needed));
                }
                text("the client has sampling")
            }
            "test_header" | "json_schema_2020_12_tool" => text("ok"),
            _ => return Ok(None),
        };
        Ok(Some(result.into()))
    }

    async fn log(&self, context: &Context) -> CallToolResult {
        let is_old = context.protocol_version().is_none_or(|version| version.as_str() < "2026-07-28");
        for said in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
            if is_old {
                let param = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(said));
                let _ = context.peer.notify_logging_message(param).await;
            }
            pause().await;
        }
        text("logged")
    }
}

async fn progress(context: &Context) -> CallToolResult {
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let mut param = ProgressNotificationParam::new(token, done);
            param.total = Some(100.0);
            let _ = context.peer.notify_progress(param).await;
        }
        pause().await;
    }
    text("done")
}

async fn sample(context: &Context, prompt: String) -> Answer<CallToolResult> {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    let params = read(json!({"messages": [message], "maxTokens": 100}))?;
    let said = context.peer.create_message(params).await;
    let said = said.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(text(format!("LLM response: {}", json!(said)["content"]["text"].as_str().unwrap_or_default())))
}

async fn elicit(context: &Context, message: String, schema: Json) -> Answer<CallToolResult> {
    let params = read(json!({"mode": "form", "message": message, "requestedSchema": schema}))?;
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
    let said = context.peer.send_request(request).await;
    let said = json!(said.map_err(|error| ErrorData::internal_error(error.to_string(), None))?);
    let action = said["action"].as_str().unwrap_or_default();
    Ok(text(format!("User response: action={action}, content={}", said["content"])))
}

impl ServerHandler for Suite {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.0.get_info();
        info.capabilities.logging = Some(JsonObject::new());
        if let Some(resources) = &mut info.capabilities.resources {
            resources.subscribe = Some(true);
        }
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: Context,
    ) -> Answer<InitializeResult> {
        let mut result = self.0.initialize(request, context).await?;
        result.capabilities = self.get_info().capabilities;
        Ok(result)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.0.on_initialized(context).await;
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.0.accepted_subscription_filter(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Answer<()> {
        self.0.listen(context).await
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Answer<()> {
        Ok(())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Answer<()> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Answer<()> {
        Ok(())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Answer<ListPromptsResult> {
        let mut result = self.0.list_prompts(request, context).await?;
        result.prompts.push(Prompt::new(rounds::PROMPT, Some("Asks for its context"), None));
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Answer<GetPromptResponse> {
        match rounds::prompt(&request)? {
            Some(answer) => Ok(answer),
            None => self.0.get_prompt(request, context).await,
        }
    }

    async fn complete(&self, request: CompleteRequestParams, context: Context) -> Answer<CompleteResult> {
        self.0.complete(request, context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Answer<ListResourcesResult> {
        let mut result = self.0.list_resources(request, context).await?;
        result.resources.extend(read::<Vec<Resource>>(fixtures::resources())?);
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Answer<ListResourceTemplatesResult> {
        let mut result = self.0.list_resource_templates(request, context).await?;
        result.resource_templates.push(read(fixtures::template())?);
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Answer<ReadResourceResponse> {
        match fixtures::resource(&request.uri) {
            Some(contents) => Ok(ReadResourceResult::new(vec![read(contents)?]).into()),
            None => self.0.read_resource(request, context).await,
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Answer<ListToolsResult> {
        let mut result = self.0.list_tools(request, context).await?;
        result.tools.extend(read::<Vec<Tool>>(fixtures::tools())?);
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let tools: Vec<Tool> = read(fixtures::tools()).ok()?;
        tools.into_iter().find(|tool| tool.name == name).or_else(|| self.0.get_tool(name))
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: Context) -> Answer<CallToolResponse> {
        match self.fixture(&request, &context).await? {
            Some(answer) => Ok(answer),
            None => self.0.call_tool(request, context).await,
        }
    }

    async fn get_task(&self, request: GetTaskParams, context: Context) -> Answer<GetTaskResult> {
        match jobs::TASKS.get_task(&request.task_id) {
            Ok(task) => Ok(GetTaskResult::new(task)),
            Err(_) => self.0.get_task(request, context).await,
        }
    }

    async fn update_task(&self, request: UpdateTaskParams, context: Context) -> Answer<()> {
        match jobs::TASKS.get_task(&request.task_id) {
            Ok(_) => jobs::TASKS.update_task(&request.task_id, request.input_responses),
            Err(_) => self.0.update_task(request, context).await,
        }
    }

    async fn cancel_task(&self, request: CancelTaskParams, context: Context) -> Answer<()> {
        match jobs::TASKS.get_task(&request.task_id) {
            Ok(_) => jobs::TASKS.cancel_task(&request.task_id),
            Err(_) => self.0.cancel_task(request, context).await,
        }
    }

    async fn on_custom_request(&self, request: CustomRequest, context: Context) -> Answer<CustomResult> {
        self.0.on_custom_request(request, context).await
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    cuebook_run::launch_if_asked();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [project, address, variable] = &words[..] else {
        return Err("usage: cuebook-serve-suite PROJECT ADDRESS VARIABLE".into());
    };
    let project = Path::new(project);
    let spaces = Spaces::new(project, None);
    let items = Arc::new(LocalItems::new(spaces.clone()));
    let server = Server::new(Arc::new(Book::open(project)), spaces, Some(items));
    let http = Http { address: address.clone(), token: Token::from_env(variable)?, origins: Vec::new() };
    serve_http_with(server, http, Suite, |url| println!("{url}"))?;
    Ok(())
}
