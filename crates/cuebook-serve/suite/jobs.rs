//! The tools of the suite that become tasks (2026-07-28).

use std::sync::LazyLock;
use std::time::Duration;

use rmcp::model::*;
use rmcp::task_manager::{TaskContext, TaskExit, TaskFuture, TaskManager, TaskOptions};
use serde_json::{Value as Json, json};

use crate::rounds::{form, required};
use crate::{Answer, Context, read, text};

/// The tools, and whether a client must know tasks to call them.
pub const TOOLS: [(&str, bool); 7] = [
    ("greet", false),
    ("slow_compute", false),
    ("failing_job", true),
    ("protocol_error_job", true),
    ("confirm_delete", true),
    ("multi_input", true),
    ("test_tool_with_task", true),
];

/// The tasks of all sessions: a client asks for a task in any of them.
pub static TASKS: LazyLock<TaskManager> = LazyLock::new(TaskManager::new);

/// What a tool answers; none if it is not one of these.
pub async fn call(request: &CallToolRequestParams, context: &Context) -> Answer<Option<CallToolResponse>> {
    let Some((name, needs_tasks)) = TOOLS.into_iter().find(|(name, _)| *name == request.name) else {
        return Ok(None);
    };
    let arguments = request.arguments.clone().unwrap_or_default();
    let seconds = arguments.get("seconds").and_then(Json::as_f64).unwrap_or(1.0).clamp(0.0, 60.0);
    let has_tasks = context.client_capabilities().is_some_and(|able| able.supports_tasks());
    let answer: CallToolResponse = match name {
        "greet" => {
            let name = arguments.get("name").and_then(Json::as_str).unwrap_or("client");
            text(format!("Hello, {name}!")).into()
        }
        "test_tool_with_task" if user_name(request).is_none() => {
            let name = form("What is your name?", "name", "string");
            required(json!({"user_name": name}), None)?.into()
        }
        _ if has_tasks => {
            let user = user_name(request).unwrap_or_default();
            begin(|task| Box::pin(run(task, name, seconds, user)))
        }
        _ if needs_tasks => {
            let needed = ClientCapabilities::builder().enable_tasks().build();
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        _ => {
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            text("computed").into()
        }
    };
    Ok(Some(answer))
}

fn begin(make: impl FnOnce(TaskContext) -> TaskFuture) -> CallToolResponse {
    let options = TaskOptions::new().with_ttl_ms(60_000).with_poll_interval_ms(200);
    CreateTaskResult::new(TASKS.spawn(options, make)).into()
}

/// The name that the client gave in the round before.
fn user_name(request: &CallToolRequestParams) -> Option<String> {
    let given = request.input_responses.as_ref()?.get("user_name")?;
    Some(given["content"].as_object()?.values().find_map(Json::as_str)?.to_owned())
}

async fn run(
    task: TaskContext,
    name: &'static str,
    seconds: f64,
    user: String,
) -> Result<CallToolResult, TaskExit> {
    let question = |message: &str| read::<InputRequest>(form(message, "confirm", "boolean"));
    match name {
        "confirm_delete" => {
            let said =
                task.request_input("confirm", question("Delete it?").map_err(TaskExit::Error)?).await?;
            Ok(text(format!("answered: {said}")))
        }
        "multi_input" => {
            let (first, second) = (question("The first?"), question("The second?"));
            let first = task.request_input("first", first.map_err(TaskExit::Error)?);
            let second = task.request_input("second", second.map_err(TaskExit::Error)?);
            let (first, second) = tokio::join!(first, second);
            Ok(text(format!("answered: {} {}", first?, second?)))
        }
        _ => {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => {}
                () = task.cancelled() => return Err(TaskExit::Cancelled),
            }
            match name {
                "failing_job" => Ok(CallToolResult::error(vec![ContentBlock::text("the job failed")])),
                "protocol_error_job" => {
                    Err(TaskExit::Error(ErrorData::internal_error("the job broke", None)))
                }
                "test_tool_with_task" => Ok(text(format!("Hello, {user}!"))),
                _ => Ok(text("computed")),
            }
        }
    }
}
