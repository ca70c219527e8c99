//! Threads as tasks of the protocol (2026-07-28): a client gets a handle at once, and asks for the state of the task.

use rmcp::model::{CallToolResult, CreateTaskResult};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use serde_json::Value as Json;
use tokio_util::sync::CancellationToken;

use crate::calls::{Call, MAX_QUESTIONS};
use crate::questions::{self, QuestionMethod};
use crate::request_slots::RequestSlots;
use crate::tools;
use crate::work::{Step, in_background};

/// How long a task is kept, and how long it may take: a day, in milliseconds.
const TIME_TO_LIVE: u64 = 24 * 60 * 60 * 1000;

/// Where a task runs.
pub(crate) struct TaskSettings {
    pub(crate) request_slots: RequestSlots,
    pub(crate) stop: CancellationToken,
    /// How its client is asked.
    pub(crate) way: QuestionMethod,
}

/// Begins a call as a task.
pub(crate) fn begin(manager: &TaskManager, call: Call, place: TaskSettings) -> CreateTaskResult {
    let options = TaskOptions::new().with_ttl_ms(TIME_TO_LIVE).with_status_message("the thread runs");
    CreateTaskResult::new(manager.spawn(options, |task| Box::pin(run(task, call, place))))
}

async fn run(task: TaskContext, call: Call, place: TaskSettings) -> Result<CallToolResult, TaskExit> {
    let made = call.clone();
    let mut answer = work(&task, &place, move |watch| made.make(watch)).await?;
    for number in 0..MAX_QUESTIONS {
        let question = call.question(&answer).filter(|_| place.way != QuestionMethod::Never);
        let Some(request) = question.as_ref().and_then(questions::input) else { break };
        let said = task.request_input(format!("{}-{number}", questions::KEY), request).await?;
        let Some(form) = questions::accepted(&said) else { break };
        let going_on = call.clone();
        answer = work(&task, &place, move |watch| going_on.go_on(&answer, &form, watch)).await?;
    }
    Ok(tools::answer(answer))
}

/// Does a part of the work. Its progress is the message of the task.
async fn work(
    task: &TaskContext,
    place: &TaskSettings,
    work: impl FnOnce(&dyn crate::Watch) -> Json + Send + 'static,
) -> Result<Json, TaskExit> {
    let turn = tokio::select! {
        turn = place.request_slots.call() => turn,
        () = task.cancelled() => return Err(TaskExit::Cancelled),
        () = place.stop.cancelled() => return Err(TaskExit::Cancelled),
    };
    let turn = match turn {
        Ok(turn) => turn,
        Err(error) => return Ok(cuebook_run::Action::refusal(&error)),
    };
    let mut running = in_background(true, turn, work);
    loop {
        tokio::select! {
            biased;
            Some(Step { message, .. }) = running.steps.recv() => task.set_status_message(message),
            done = &mut running.work => return done.map_err(|_| TaskExit::Error(crate::work::broken())),
            () = task.cancelled() => return Err(TaskExit::Cancelled),
            () = place.stop.cancelled() => return Err(TaskExit::Cancelled),
        }
    }
}
