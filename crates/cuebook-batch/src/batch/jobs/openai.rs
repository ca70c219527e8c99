//! OpenAI's batch interface: a file of questions, a job that reads it, and files of results.

use cuebook::{Error, Result};
use cuebook_run::PromptModel;
use cuebook_run::provider::{Exchange, Method, Stop};
use serde_json::{Value as Json, json};

use super::{State, call, name_in, refused};
use crate::key::{Key, short_hash};

/// How many of the newest jobs are looked at for one whose name is not known.
const NEWEST: usize = 100;

/// The path of questions, as a file of them names it.
fn endpoint(model: &PromptModel) -> String {
    let chosen = model.chosen();
    format!("/v1{}", chosen.profile.api.path(&chosen.model, false))
}

pub(super) fn line(model: &PromptModel, key: Key, body: Json) -> Json {
    json!({"custom_id": key.to_string(), "method": "POST", "url": endpoint(model), "body": body})
}

pub(super) fn submit(model: &PromptModel, own: &str, lines: &[u8], stop: &Stop) -> Result<String> {
    // No line has this text: it is a hash of all of them.
    let boundary = format!("cuebook-{}", short_hash(&[lines]));
    let mut form = format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n\
         --{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"cuebook-{own}.jsonl\"\r\n\
         content-type: application/jsonl\r\n\r\n"
    )
    .into_bytes();
    form.extend_from_slice(lines);
    form.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    let content_type = format!("multipart/form-data; boundary={boundary}");
    let upload = Exchange { method: Method::Post, path: "/files", content_type: &content_type, body: &form };
    let file = name_in(&call(model, &upload, stop)?, "id", model)?;
    let body = json!({
        "input_file_id": file,
        "endpoint": endpoint(model),
        "completion_window": "24h",
        "metadata": {"cuebook": own},
    });
    let job = call(model, &Exchange::post("/batches", body.to_string().as_bytes()), stop)?;
    name_in(&job, "id", model)
}

/// The job of this name, if the provider has it.
pub(super) fn find(model: &PromptModel, own: &str, stop: &Stop) -> Result<Option<String>> {
    let listed = call(model, &Exchange::get(&format!("/batches?limit={NEWEST}")), stop)?;
    let jobs = listed["data"].as_array().into_iter().flatten();
    let found = jobs.filter(|job| job["metadata"]["cuebook"] == own).find_map(|job| job["id"].as_str());
    Ok(found.map(str::to_owned))
}

pub(super) fn state(model: &PromptModel, id: &str, stop: &Stop) -> Result<State> {
    let job = call(model, &Exchange::get(&format!("/batches/{id}")), stop)?;
    let status = job["status"].as_str().unwrap_or_default();
    if !matches!(status, "completed" | "failed" | "expired" | "cancelled") {
        return Ok(State::Working);
    }
    let files = ["output_file_id", "error_file_id"].into_iter().filter_map(|name| job[name].as_str());
    let results = files.map(|file| format!("/files/{file}/content")).collect();
    let said = job.pointer("/errors/data/0/message").and_then(Json::as_str);
    let why = (status != "completed").then(|| match said {
        Some(said) => format!("{status}: {said}"),
        None => status.to_owned(),
    });
    Ok(State::Over { results, why })
}

pub(super) fn result(line: &Json) -> Result<&Json, Error> {
    let response = &line["response"];
    match response["status_code"].as_u64() {
        Some(200..=299) => Ok(&response["body"]),
        status => {
            let said = response.pointer("/body/error/message").or_else(|| line.pointer("/error/message"));
            let said = said.and_then(Json::as_str).unwrap_or("no reason was given");
            let status = status.map(|status| format!(" (status {status})")).unwrap_or_default();
            Err(refused(format!("the provider did not answer this row{status}: {said}")))
        }
    }
}
