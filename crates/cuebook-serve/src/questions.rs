//! Questions to the user of a client: elicitation.
//!
//! Until 2025-11-25 the server sends a request and waits. Since 2026-07-28 it answers with the question and an opaque state, and the
//! client repeats its call with the state and what the user said. What belongs to a state is kept here, so a client can change
//! nothing of it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitationSchema, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value as Json;

use crate::calls::Call;
use crate::items::{Arguments, Question};

/// The questions that wait for an answer, of all clients; more push out the oldest.
const MAX_WAITING: usize = 256;
/// The name of the one question of an answer.
pub(crate) const KEY: &str = "question";

/// How a client is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionMethod {
    /// Its user cannot be asked.
    Never,
    /// With a request of the server.
    Request,
    /// With an answer, after which the client repeats its call.
    Answer,
}

impl QuestionMethod {
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> QuestionMethod {
        let elicitation = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
        // A client that names no kind of question has forms.
        let has_forms = elicitation.is_some_and(|known| known.form.is_some() || known.url.is_none());
        match (has_forms, is_modern(context)) {
            (false, _) => QuestionMethod::Never,
            (true, false) => QuestionMethod::Request,
            (true, true) => QuestionMethod::Answer,
        }
    }
}

/// Whether a request is one of 2026-07-28 or later, which have neither a handshake nor requests of the server.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// A question in the form of the protocol; none if its form is not one.
pub(crate) fn request(question: &Question) -> Option<ElicitRequest> {
    let requested_schema: ElicitationSchema = serde_json::from_value(question.form.clone()).ok()?;
    let message = question.message.clone();
    Some(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema,
    }))
}

/// The same inside of an answer or a task.
pub(crate) fn input(question: &Question) -> Option<InputRequest> {
    request(question).map(InputRequest::Elicitation)
}

/// What the user filled in, if they accepted.
pub(crate) fn accepted(result: &Json) -> Option<Arguments> {
    (result["action"] == "accept").then(|| result["content"].as_object().cloned().unwrap_or_default())
}

/// What the user answered to the question of an earlier answer.
pub(crate) fn response(responses: Option<&InputResponses>) -> Option<Arguments> {
    responses.and_then(|responses| responses.get(KEY)).and_then(accepted)
}

/// Calls that wait until their clients come back with an answer.
#[derive(Default)]
pub(crate) struct WaitingCalls(Mutex<VecDeque<(String, Call, Json)>>);

impl WaitingCalls {
    /// Keeps a call and its answer so far, and gives what the client gets.
    pub(crate) fn keep(&self, call: Call, answer: Json, question: &Question) -> Option<InputRequiredResult> {
        let request = input(question)?;
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        let state = cuebook::sha256::hex(&bytes);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_WAITING {
            all.pop_front();
        }
        all.push_back((state.clone(), call, answer));
        let requests = InputRequests::from([(KEY.to_owned(), request)]);
        Some(InputRequiredResult::new(Some(requests), Some(state)))
    }

    /// The call of a state, once.
    pub(crate) fn take(&self, state: &str) -> Option<(Call, Json)> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|(known, ..)| known == state)?;
        all.remove(at).map(|(_, call, answer)| (call, answer))
    }
}
