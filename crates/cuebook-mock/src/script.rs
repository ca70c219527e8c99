//! Replies in order, or made for each request.

use std::collections::VecDeque;
use std::fmt;

use serde_json::{Value as Json, json};

use crate::{Reply, Request};

type Maker = Box<dyn FnMut(&Request) -> Reply + Send>;

/// What the server answers.
#[derive(Default)]
pub struct Script {
    replies: VecDeque<Reply>,
    maker: Option<Maker>,
    forever: bool,
    pub(crate) forgetful: bool,
    /// How often a job is asked about before it is done.
    pub(crate) polls: usize,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("replies", &self.replies).finish_non_exhaustive()
    }
}

impl Script {
    /// A script without replies.
    pub fn new() -> Script {
        Script::default()
    }

    /// Replies that are made for each request, after those of the list.
    pub fn answer(maker: impl FnMut(&Request) -> Reply + Send + 'static) -> Script {
        Script { maker: Some(Box::new(maker)), ..Script::default() }
    }

    /// The next reply.
    pub fn reply(mut self, reply: Reply) -> Script {
        self.replies.push_back(reply);
        self
    }

    /// The next reply, as often as this.
    pub fn times(self, count: usize, reply: Reply) -> Script {
        (0..count).fold(self, |script, _| script.reply(reply.clone()))
    }

    /// The next reply is this text.
    pub fn text(self, text: impl Into<String>) -> Script {
        self.reply(Reply::text(text))
    }

    /// The next reply calls a tool.
    pub fn call(self, id: impl Into<String>, name: impl Into<String>, arguments: Json) -> Script {
        self.reply(Reply::call(id, name, arguments))
    }

    /// The next reply is a status and a body.
    pub fn status(self, status: u16, body: Json) -> Script {
        self.reply(Reply::status(status, body))
    }

    /// The last reply makes a further call.
    pub fn and_call(self, id: impl Into<String>, name: impl Into<String>, arguments: Json) -> Script {
        self.last(|reply| reply.and_call(id, name, arguments))
    }

    /// What the model of the last reply thought.
    pub fn thinking(self, thinking: impl Into<String>) -> Script {
        self.last(|reply| reply.thinking(thinking))
    }

    /// The tokens of the last reply.
    pub fn usage(self, input: u64, output: u64) -> Script {
        self.last(|reply| reply.usage(input, output))
    }

    /// A header of the last reply.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Script {
        self.last(|reply| reply.header(name, value))
    }

    /// The last reply answers all further requests.
    pub fn forever(mut self) -> Script {
        self.forever = true;
        self
    }

    /// Jobs of batch interfaces are done when they were asked about more often than this.
    pub fn polls(mut self, polls: usize) -> Script {
        self.polls = polls;
        self
    }

    /// Requests are not remembered: a benchmark would fill the memory with them.
    pub fn forget_requests(mut self) -> Script {
        self.forgetful = true;
        self
    }

    /// Changes the last reply; without one nothing happens.
    pub fn last(mut self, change: impl FnOnce(Reply) -> Reply) -> Script {
        if let Some(reply) = self.replies.pop_back() {
            self.replies.push_back(change(reply));
        }
        self
    }

    /// A script from JSON: a list of replies, each an object with `text`, `thinking`, `calls` (`id`, `name`, `arguments`),
    /// `usage` (`input`, `output`), `status`, `body`, `headers`, `first_byte_ms`, `pause_ms`, `pieces`, `close_after`,
    /// `truncate`. An unknown key is an error.
    pub fn from_json(json: &Json) -> Result<Script, String> {
        let replies = json.as_array().ok_or("a script is a list of replies")?;
        let mut script = Script::new();
        for (number, entry) in replies.iter().enumerate() {
            let reply = entry.as_object().ok_or_else(|| format!("reply {} is not an object", number + 1))?;
            script = script.reply(from_entry(reply).map_err(|why| format!("reply {}: {why}", number + 1))?);
        }
        Ok(script)
    }

    pub(crate) fn next(&mut self, request: &Request) -> Reply {
        if self.forever && self.replies.len() == 1 && self.maker.is_none() {
            return self.replies[0].clone();
        }
        match (self.replies.pop_front(), &mut self.maker) {
            (Some(reply), _) => reply,
            (None, Some(maker)) => maker(request),
            // Not 500, which clients repeat.
            (None, None) => Reply::error(400, "the mock server's script has no more replies"),
        }
    }

    pub(crate) fn left(&self) -> usize {
        self.replies.len()
    }
}

fn from_entry(entry: &serde_json::Map<String, Json>) -> Result<Reply, String> {
    use std::time::Duration;
    let mut reply = Reply::default();
    let number = |key: &str, value: &Json| {
        value.as_u64().ok_or_else(|| format!("`{key}` must be a whole number of 0 or more"))
    };
    let text = |key: &str, value: &Json| {
        value.as_str().map(str::to_owned).ok_or_else(|| format!("`{key}` must be a string"))
    };
    for (key, value) in entry {
        reply = match key.as_str() {
            "text" => reply.and_text(text(key, value)?),
            "thinking" => reply.thinking(text(key, value)?),
            "finish" => reply.finish(text(key, value)?),
            "calls" => {
                let calls = value.as_array().ok_or("`calls` must be a list")?;
                calls.iter().enumerate().try_fold(reply, |reply, (at, call)| {
                    let id = call["id"].as_str().map_or_else(|| format!("call_{at}"), str::to_owned);
                    let name = call["name"].as_str().ok_or("a call needs a `name`")?;
                    let arguments = call.get("arguments").cloned().unwrap_or_else(|| json!({}));
                    Ok::<_, String>(reply.and_call(id, name, arguments))
                })?
            }
            "usage" => reply
                .usage(number("usage.input", &value["input"])?, number("usage.output", &value["output"])?),
            "status" => {
                let status = u16::try_from(number(key, value)?).map_err(|_| "`status` is too large")?;
                let body = entry.get("body").cloned().unwrap_or_else(|| json!({}));
                Reply { instead: Reply::status(status, body).instead, ..reply }
            }
            "body" if entry.contains_key("status") => reply,
            "headers" => {
                let headers = value.as_object().ok_or("`headers` must be an object")?;
                headers.iter().try_fold(reply, |reply, (name, value)| {
                    Ok::<_, String>(reply.header(name.clone(), text(name, value)?))
                })?
            }
            "hang_up" => {
                let hang_up = value.as_bool().ok_or("`hang_up` must be true or false")?;
                Reply { hang_up, ..reply }
            }
            "first_byte_ms" => reply.first_byte_after(Duration::from_millis(number(key, value)?)),
            "pause_ms" => reply.pause(Duration::from_millis(number(key, value)?)),
            "pieces" => reply.pieces(usize::try_from(number(key, value)?).unwrap_or(usize::MAX)),
            "close_after" => reply.close_after(usize::try_from(number(key, value)?).unwrap_or(usize::MAX)),
            "truncate" => reply.truncate(usize::try_from(number(key, value)?).unwrap_or(usize::MAX)),
            _ => return Err(format!("unknown key `{key}`")),
        };
    }
    Ok(reply)
}
