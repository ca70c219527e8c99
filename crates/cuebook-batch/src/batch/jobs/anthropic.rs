//! Anthropic's batch interface: a job that holds its questions, and one file of results.

use cuebook::{Error, Result};
use cuebook_run::PromptModel;
use cuebook_run::provider::{Exchange, Stop};
use serde_json::{Value as Json, json};

use super::{Job, State, call, name_in, refused};
use crate::key::Key;

/// How many of the newest jobs are looked at for one whose name is not known.
const NEWEST: usize = 100;

pub(super) fn line(key: Key, body: Json) -> Json {
    json!({"custom_id": key.to_string(), "params": body})
}

pub(super) fn submit(model: &PromptModel, lines: &[u8], stop: &Stop) -> Result<String> {
    let mut body = b"{\"requests\":[".to_vec();
    for (index, line) in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(line);
    }
    body.extend_from_slice(b"]}");
    let job = call(model, &Exchange::post("/messages/batches", &body), stop)?;
    name_in(&job, "id", model)
}

/// A job that may be the one whose name is not known: it has as many questions, and no other job of the batch is it. If its results have
/// no key of the batch, it is another one.
pub(super) fn find(model: &PromptModel, job: &Job, known: &[Job], stop: &Stop) -> Result<Option<String>> {
    let listed = call(model, &Exchange::get(&format!("/messages/batches?limit={NEWEST}")), stop)?;
    let count = |job: &Json| -> u64 {
        let counts = job["request_counts"].as_object().into_iter().flatten();
        counts.filter_map(|(_, count)| count.as_u64()).sum()
    };
    let mut jobs = listed["data"].as_array().into_iter().flatten();
    let found = jobs.find(|listed| {
        let Some(id) = listed["id"].as_str() else { return false };
        let is_known = known.iter().any(|known| known.id.as_deref() == Some(id));
        count(listed) == job.keys.len() as u64 && !is_known && !job.not.iter().any(|not| not == id)
    });
    Ok(found.and_then(|job| job["id"].as_str()).map(str::to_owned))
}

pub(super) fn state(model: &PromptModel, id: &str, stop: &Stop) -> Result<State> {
    let job = call(model, &Exchange::get(&format!("/messages/batches/{id}")), stop)?;
    match job["processing_status"].as_str() {
        // The address of the results is computed: another one could be anyone's, and would get the key.
        Some("ended") => {
            Ok(State::Over { results: vec![format!("/messages/batches/{id}/results")], why: None })
        }
        _ => Ok(State::Working),
    }
}

pub(super) fn result(line: &Json) -> Result<&Json, Error> {
    let result = &line["result"];
    match result["type"].as_str() {
        Some("succeeded") => Ok(&result["message"]),
        kind => {
            let said = result.pointer("/error/error/message").or_else(|| result.pointer("/error/message"));
            let said = said.and_then(Json::as_str).unwrap_or("no reason was given");
            let kind = kind.unwrap_or("unknown result");
            Err(refused(format!("the provider did not answer this row ({kind}): {said}")))
        }
    }
}
