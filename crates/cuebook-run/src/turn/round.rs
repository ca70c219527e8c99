//! The calls of one answer: looked at one by one, made one by one or at once, reported in their order.
//!
//! Nothing that a tool does ends the run: its panic is a failure that is reported to the model. What a stop leaves behind is reported as
//! well, so that a conversation never loses the result of a call that was made.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use cuebook::chat::Message;
use cuebook::chat::reply::{ToolCall, parse_arguments};
use cuebook::error::catch_panic;
use cuebook::{Code, Diagnostic, Error, ErrorKind};
use serde_json::{Map, Value as Json};

use super::{Halt, Performed, Permit, Ports, Step, spans, tool_message};

/// So many calls run at once; a model that asks for more has the others wait.
const MAX_AT_ONCE: usize = 64;
/// What a thread that makes a call has for its stack. Memory is taken only as far as it is used, and a stack that is too small
/// ends the whole program.
const STACK: usize = 2 << 20;

/// Makes the calls of one answer that are not settled yet, and tells the model in their order what came of all of them.
/// Returns the result of the run if one of the calls ends it.
pub(super) fn round(
    ports: &dyn Ports,
    calls: &[ToolCall],
    mut settled: HashMap<String, Message>,
    conversation: &mut Vec<Message>,
) -> Result<Option<Json>, Halt> {
    let open: Vec<ToolCall> = calls.iter().filter(|call| !settled.contains_key(&call.id)).cloned().collect();
    ports.accept(&open)?;
    let (performed, halted) = match ports.concurrent() && open.len() > 1 {
        true => together(ports, &open),
        false => one_by_one(ports, &open),
    };
    let mut performed = performed.into_iter();
    let mut ends = None;
    for call in calls {
        if let Some(message) = settled.remove(&call.id) {
            conversation.push(message);
            continue;
        }
        // Behind the first call without a result nothing is reported: results keep the order of the calls.
        // Nor is an unknown result: the process that finds it out reports it to the model.
        let Some(performed) = performed.next().filter(|performed| !performed.unknown) else { break };
        if let Some((count, prompt)) = performed.prompt {
            drop(conversation.splice(..count.min(conversation.len()), prompt));
        }
        let message = tool_message(call, &performed.text, performed.is_error);
        let noted = ports.note(&Step::ToolReturned { call, message: &message });
        conversation.push(message);
        if halted.is_none() {
            noted?;
        }
        ends = ends.or(performed.ends);
    }
    if let Some(halt) = halted {
        return Err(halt);
    }
    ports.note(&Step::Updated { conversation })?;
    Ok(ends)
}

/// What came of the first calls, and why there are no others.
type CallResults = (Vec<Performed>, Option<Halt>);

/// A call that may be made, with its arguments, or what the model gets instead.
enum CallCheck {
    Go(Map<String, Json>),
    Instead(Performed),
}

fn look(ports: &dyn Ports, call: &ToolCall) -> Result<CallCheck, Halt> {
    ports.note(&Step::Called { call })?;
    let mut arguments = match parse_arguments(&call.arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let why = error.field("reason").and_then(Json::as_str).unwrap_or(&error.diagnostic().message);
            let performed = Performed {
                error_kind: Some("invalid_arguments".into()),
                ..Performed::failure(format!("Error: Invalid JSON in tool arguments: {why}"))
            };
            return Ok(CallCheck::Instead(performed));
        }
    };
    ports.complete(call, &mut arguments);
    ports.note(&Step::Permission { call })?;
    let permit = ports.permit(call, &arguments);
    ports.note(&Step::Permitted { call, permit: &permit })?;
    Ok(match permit {
        Permit::Denied(text) => CallCheck::Instead(Performed {
            error_kind: Some("permission_denied".into()),
            ..Performed::failure(text)
        }),
        Permit::Allowed => CallCheck::Go(arguments),
    })
}

fn one_by_one(ports: &dyn Ports, calls: &[ToolCall]) -> CallResults {
    let mut all = Vec::with_capacity(calls.len());
    for call in calls {
        let made = ports.between().and_then(|()| look(ports, call)).and_then(|look| match look {
            CallCheck::Instead(performed) => Ok((performed, false)),
            CallCheck::Go(arguments) => {
                ports.note(&Step::Performing { call, arguments: &arguments })?;
                ports.barrier()?;
                Ok((spans::performing(ports, call, &arguments, || safely(ports, call, &arguments)), true))
            }
        });
        let (performed, ran) = match made {
            Ok(made) => made,
            Err(halt) => return (all, Some(halt)),
        };
        let halted = noted(ports, call, &performed, ran);
        all.push(performed);
        if halted.is_some() {
            return (all, halted);
        }
    }
    (all, None)
}

fn together(ports: &dyn Ports, calls: &[ToolCall]) -> CallResults {
    let looks = match look_at_all(ports, calls) {
        Ok(looks) => looks,
        // None was made.
        Err(halt) => return (Vec::new(), Some(halt)),
    };
    let made = at_once(ports, calls, looks);
    let mut halted = None;
    for (call, (performed, ran)) in calls.iter().zip(&made) {
        let halt = noted(ports, call, performed, *ran);
        halted = halted.or(halt);
    }
    (made.into_iter().map(|(performed, _)| performed).collect(), halted)
}

/// Looks at all calls, and says which of them are about to be made only when it is certain that they are.
fn look_at_all(ports: &dyn Ports, calls: &[ToolCall]) -> Result<Vec<CallCheck>, Halt> {
    ports.between()?;
    let looks: Vec<CallCheck> = calls.iter().map(|call| look(ports, call)).collect::<Result<_, Halt>>()?;
    ports.between()?;
    for (call, look) in calls.iter().zip(&looks) {
        if let CallCheck::Go(arguments) = look {
            ports.note(&Step::Performing { call, arguments })?;
        }
    }
    ports.barrier()?;
    Ok(looks)
}

/// Makes all calls at the same time, except for those that are made alone, which come first. Each worker takes the next free call; the caller's thread is one of them,
/// so that calls are made even where no thread can be started.
fn at_once(ports: &dyn Ports, calls: &[ToolCall], looks: Vec<CallCheck>) -> Vec<(Performed, bool)> {
    let mut done: Vec<Mutex<Option<(Performed, bool)>>> = Vec::with_capacity(calls.len());
    let mut waiting: Vec<(usize, Map<String, Json>)> = Vec::new();
    let left = AtomicUsize::new(looks.iter().filter(|look| matches!(look, CallCheck::Go(_))).count());
    let perform = |call: &ToolCall, arguments: &Map<String, Json>| {
        let performed = spans::performing(ports, call, arguments, || safely(ports, call, arguments));
        // The last one is noted at once anyway.
        if left.fetch_sub(1, Ordering::SeqCst) > 1 {
            ports.ended(call, &performed);
        }
        performed
    };
    for (index, (look, call)) in looks.into_iter().zip(calls).enumerate() {
        match look {
            CallCheck::Instead(performed) => done.push(Mutex::new(Some((performed, false)))),
            CallCheck::Go(arguments) if ports.alone(call) => {
                done.push(Mutex::new(Some((perform(call, &arguments), true))));
            }
            CallCheck::Go(arguments) => {
                waiting.push((index, arguments));
                done.push(Mutex::new(None));
            }
        }
    }
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((index, arguments)) = waiting.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (Some(call), Some(place)) = (calls.get(*index), done.get(*index)) else { break };
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some((perform(call, arguments), true));
        }
    };
    let context = spans::Context::here();
    thread::scope(|scope| {
        for _ in 1..waiting.len().min(MAX_AT_ONCE) {
            let (work, context) = (&work, &context);
            let worker = thread::Builder::new().name("tool".into()).stack_size(STACK);
            if worker.spawn_scoped(scope, move || context.within(work)).is_err() {
                break;
            }
        }
        work();
    });
    let lost = || (Performed::failure("Error: the tool was not run"), false);
    done.into_iter()
        .map(|place| place.into_inner().unwrap_or_else(PoisonError::into_inner).unwrap_or_else(lost))
        .collect()
}

/// Makes a call; a panic is a failure like any other.
fn safely(ports: &dyn Ports, call: &ToolCall, arguments: &Map<String, Json>) -> Performed {
    catch_panic(|| ports.perform(call, arguments))
        .unwrap_or_else(|panic| Performed::failed(&call.name, &panic))
}

/// Notes the result of a call. A call with an unknown effect ends the run.
fn noted(ports: &dyn Ports, call: &ToolCall, performed: &Performed, ran: bool) -> Option<Halt> {
    if let Err(halt) = ports.note(&Step::PerformedCall { call, performed, ran }) {
        return Some(halt);
    }
    performed.unknown.then(|| {
        let message = format!("it is unknown whether the tool {:?} finished", call.name);
        let hint = format!(
            "check the result of the call {:?}, and report it to the model when the run continues",
            call.id
        );
        let diagnostic = Diagnostic::new(Code::ToolFailed, message).hint(hint);
        Halt::Indeterminate(Error::new(ErrorKind::Execute, diagnostic).with("call_id", &call.id))
    })
}
