//! The batch interfaces of OpenAI and Anthropic: jobs of many requests that are answered together, later.
//!
//! Each request of a job gets the next reply of the script, when the job was asked about so often that it is done. A reply with a status is
//! an error of its request. A reply that hangs up has no result: the time of the job was over before its turn.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::api::Api;
use crate::http::Incoming;
use crate::request::Request;
use crate::script::Script;
use crate::wire;

/// What a server knows of files and jobs.
#[derive(Default)]
pub(crate) struct Jobs {
    files: BTreeMap<String, String>,
    jobs: BTreeMap<String, Job>,
    count: usize,
}

struct Job {
    api: Api,
    /// The names of the requests, and what they ask.
    requests: Vec<(String, String, Json)>,
    /// How often it is asked about before it is done.
    left: usize,
    metadata: Json,
    /// Its results, once it is done.
    results: Option<String>,
    /// Whether its time was over before all requests had an answer.
    is_expired: bool,
}

/// What is answered: a status, and a body of JSON or of lines of it.
pub(crate) struct JobReply {
    pub status: u16,
    pub body: String,
    pub kind: &'static str,
    /// The requests of a job, for the list of those that came.
    pub asked: Vec<Request>,
}

impl JobReply {
    fn of(json: Json) -> Option<JobReply> {
        let body = json.to_string();
        Some(JobReply { status: 200, body, kind: "application/json", asked: Vec::new() })
    }

    fn lines(body: String) -> Option<JobReply> {
        Some(JobReply { status: 200, body, kind: "application/jsonl", asked: Vec::new() })
    }

    fn missing(what: &str) -> Option<JobReply> {
        let body = json!({"error": {"type": "not_found_error", "message": format!("there is no {what}")}});
        Some(JobReply { status: 404, ..JobReply::of(body)? })
    }
}

impl Jobs {
    /// Answers what is about files and jobs; `None` for anything else.
    pub(crate) fn answer(&mut self, incoming: &Incoming, script: &mut Script) -> Option<JobReply> {
        let path = incoming.path.split('?').next().unwrap_or_default();
        let (before, id) = path.rsplit_once('/').unwrap_or(("", path));
        match (incoming.method.as_str(), before, id) {
            ("POST", _, "files") => self.upload(incoming),
            ("GET", files, "content") => {
                let id = files.rsplit('/').next().unwrap_or_default();
                match self.files.get(id) {
                    Some(text) => JobReply::lines(text.clone()),
                    None => JobReply::missing(&format!("file {id}")),
                }
            }
            ("POST", messages, "batches") if messages.ends_with("/messages") => {
                let body: Json = serde_json::from_slice(&incoming.body).unwrap_or_default();
                let requests = body["requests"].as_array().cloned().unwrap_or_default();
                let named = |request: Json| {
                    let name = request["custom_id"].as_str().unwrap_or_default().to_owned();
                    (name, "/messages".to_owned(), request["params"].clone())
                };
                self.begin(Api::Anthropic, requests.into_iter().map(named).collect(), Json::Null, script)
            }
            ("POST", _, "batches") => self.begin_openai(incoming, script),
            ("GET", _, "batches") => {
                let all: Vec<Json> = self.jobs.iter().map(|(id, job)| job.to_json(id)).collect();
                JobReply::of(json!({"data": all, "has_more": false}))
            }
            ("GET", job, "results") => {
                let id = job.rsplit('/').next().unwrap_or_default();
                match self.jobs.get(id).and_then(|job| job.results.clone()) {
                    Some(results) => JobReply::lines(results),
                    None => JobReply::missing(&format!("result of {id}")),
                }
            }
            ("GET", batches, id) if batches.ends_with("/batches") => self.look(id, script),
            _ => None,
        }
    }

    /// The file of a form.
    fn upload(&mut self, incoming: &Incoming) -> Option<JobReply> {
        let text = String::from_utf8_lossy(&incoming.body);
        let boundary = incoming.header("content-type")?.split("boundary=").nth(1)?;
        let part = text.split(&format!("--{boundary}")).find(|part| part.contains("name=\"file\""))?;
        let content = part.split_once("\r\n\r\n")?.1.trim_end_matches("\r\n").to_owned();
        self.count += 1;
        let id = format!("file-{}", self.count);
        self.files.insert(id.clone(), content);
        JobReply::of(json!({"id": id, "object": "file", "purpose": "batch"}))
    }

    fn begin_openai(&mut self, incoming: &Incoming, script: &Script) -> Option<JobReply> {
        let body: Json = serde_json::from_slice(&incoming.body).unwrap_or_default();
        let Some(text) = body["input_file_id"].as_str().and_then(|id| self.files.get(id)) else {
            return JobReply::missing("input file");
        };
        let requests = text.lines().filter_map(|line| {
            let line: Json = serde_json::from_str(line).ok()?;
            Some((
                line["custom_id"].as_str()?.to_owned(),
                line["url"].as_str()?.to_owned(),
                line["body"].clone(),
            ))
        });
        let requests: Vec<_> = requests.collect();
        let api = requests.first().and_then(|(_, url, _)| Api::of_path(url)).unwrap_or(Api::OpenAiChat);
        self.begin(api, requests, body["metadata"].clone(), script)
    }

    fn begin(
        &mut self,
        api: Api,
        requests: Vec<(String, String, Json)>,
        metadata: Json,
        script: &Script,
    ) -> Option<JobReply> {
        self.count += 1;
        let id = format!("batch_{}", self.count);
        let job = Job { api, requests, left: script.polls, metadata, results: None, is_expired: false };
        let reply = JobReply::of(job.to_json(&id));
        self.jobs.insert(id, job);
        reply
    }

    /// Tells how a job is. The last look but none finds it done.
    fn look(&mut self, id: &str, script: &mut Script) -> Option<JobReply> {
        let Some(job) = self.jobs.get_mut(id) else { return JobReply::missing(&format!("batch {id}")) };
        let mut asked = Vec::new();
        if job.left > 0 {
            job.left -= 1;
        } else if job.results.is_none() {
            let mut lines = String::new();
            for (name, url, body) in &job.requests {
                let request = Request {
                    method: "POST".to_owned(),
                    path: url.clone(),
                    headers: Vec::new(),
                    body: body.clone(),
                    api: Some(job.api),
                    stream: false,
                    at: std::time::Instant::now(),
                };
                let reply = script.next(&request);
                if reply.hang_up {
                    job.is_expired = true;
                    if job.api == Api::Anthropic {
                        lines.push_str(&format!(
                            "{}\n",
                            json!({"custom_id": name, "result": {"type": "expired"}})
                        ));
                    }
                    continue;
                }
                let (status, body) = match &reply.instead {
                    Some((status, body, _)) => (*status, serde_json::from_slice(body).unwrap_or_default()),
                    None => (200, wire::whole(job.api, &request, &reply)),
                };
                lines.push_str(&result(job.api, name, status, body).to_string());
                lines.push('\n');
                asked.push(request);
            }
            self.files.insert(format!("{id}-output"), lines.clone());
            job.results = Some(lines);
        }
        let reply = JobReply::of(job.to_json(id))?;
        Some(JobReply { asked, ..reply })
    }
}

fn result(api: Api, name: &str, status: u16, body: Json) -> Json {
    match (api, status) {
        (Api::Anthropic, 200) => {
            json!({"custom_id": name, "result": {"type": "succeeded", "message": body}})
        }
        (Api::Anthropic, _) => json!({"custom_id": name, "result": {"type": "errored", "error": body}}),
        _ => json!({"id": "batch_req", "custom_id": name, "error": null,
            "response": {"status_code": status, "request_id": "r", "body": body}}),
    }
}

impl Job {
    fn to_json(&self, id: &str) -> Json {
        let total = self.requests.len();
        let is_done = self.results.is_some();
        let status = match (is_done, self.is_expired) {
            (false, _) => "in_progress",
            (true, false) => "completed",
            (true, true) => "expired",
        };
        match self.api {
            Api::Anthropic => json!({
                "id": id, "type": "message_batch",
                "processing_status": if is_done { "ended" } else { "in_progress" },
                "request_counts": {
                    "processing": if is_done { 0 } else { total }, "succeeded": if is_done { total } else { 0 },
                    "errored": 0, "canceled": 0, "expired": 0,
                },
                "created_at": "2026-01-01T00:00:00Z",
                "results_url": is_done.then(|| format!("/messages/batches/{id}/results")),
            }),
            _ => json!({
                "id": id, "object": "batch", "endpoint": "/v1/chat/completions",
                "status": status,
                "output_file_id": is_done.then(|| format!("{id}-output")),
                "request_counts": {"total": total, "completed": if is_done { total } else { 0 }, "failed": 0},
                "metadata": self.metadata,
            }),
        }
    }
}
