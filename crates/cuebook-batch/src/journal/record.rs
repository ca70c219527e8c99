//! What the journal keeps of a question.

use cuebook::chat::Message;
use cuebook::chat::reply::{Answer, Reply, Usage, is_paused};
use cuebook_run::{Money, turn};
use serde_json::{Map, Value as Json, json};

use crate::key::Key;
use crate::problem::Problem;

/// What is known of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionRecord {
    /// Its answer.
    Answered(Box<Answered>),
    /// Why it has none.
    Failed(Failed),
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The message that it is in the conversation.
    pub message: Message,
    /// What kind of answer it is, and what its text does not say.
    pub reply: Reply,
    /// How much was read and written.
    pub usage: Usage,
    /// Whether the usage was counted here, because the provider does not say it.
    pub is_estimate: bool,
    /// What it cost.
    pub cost: Money,
    /// Milliseconds from the question to the end of the answer, repetitions included.
    pub milliseconds: u64,
    /// Why the answer ended, in the provider's words.
    pub finish: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
}

/// A question without an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Failed {
    /// Why.
    pub problem: Problem,
    /// What it may have cost all the same.
    pub cost: Money,
    /// The run in which it failed.
    pub run: u64,
}

impl Answered {
    /// What is kept of a model's answer.
    pub(crate) fn of(answer: &Answer, usage: Usage, cost: Money) -> Answered {
        let mut message = turn::assistant_message(&answer.reply);
        answer.carry_into(&mut message);
        Answered {
            message,
            reply: answer.reply.clone(),
            usage,
            is_estimate: false,
            cost,
            milliseconds: 0,
            finish: answer.finish.clone(),
            model: answer.model.clone(),
        }
    }

    /// Whether the model has paused, and continues when it sees its answer again.
    pub(crate) fn is_paused(&self) -> bool {
        is_paused(&self.message)
    }

    pub(super) fn to_json(&self, key: Key) -> Json {
        let kind = match &self.reply {
            Reply::Text(_) => "text",
            Reply::Structured { .. } => "structured",
            Reply::Refusal(_) => "refusal",
            _ => "other",
        };
        let mut json = json!({
            "key": key.to_string(),
            "answer": self.message.to_json(),
            "kind": kind,
            "usage": self.usage.to_json(),
            "cost": self.cost.nanos(),
            "ms": self.milliseconds,
            "finish": self.finish,
            "model": self.model,
        });
        if self.is_estimate {
            json["estimate"] = json!(true);
        }
        json
    }

    fn read(line: &Json) -> Option<Answered> {
        let message = Message::from_json(line.get("answer")?).ok()?;
        let text: String = message.texts().collect();
        let reply = match line["kind"].as_str()? {
            "text" => Reply::Text(text),
            "structured" => Reply::Structured { value: serde_json::from_str(&text).ok()?, raw: text },
            "refusal" => Reply::Refusal(text),
            _ => Reply::ToolCalls { calls: Vec::new(), text: Some(text) },
        };
        let usage = &line["usage"];
        let amount = |name: &str| usage[name].as_u64();
        let text = |name: &str| line[name].as_str().map(str::to_owned);
        Some(Answered {
            message,
            reply,
            usage: Usage {
                input: amount("inputTokens"),
                output: amount("outputTokens"),
                total: amount("totalTokens"),
                cached: amount("cachedTokens"),
                reasoning: amount("reasoningTokens"),
            },
            is_estimate: line["estimate"] == true,
            cost: Money::from_nanos(line["cost"].as_i64().unwrap_or_default()),
            milliseconds: line["ms"].as_u64().unwrap_or_default(),
            finish: text("finish"),
            model: text("model"),
        })
    }
}

impl Failed {
    pub(super) fn to_json(&self, key: Key, run: u64) -> Json {
        let mut json = Map::new();
        json.insert("key".into(), json!(key.to_string()));
        json.insert("failed".into(), self.problem.to_json());
        json.insert("cost".into(), json!(self.cost.nanos()));
        json.insert("run".into(), json!(run));
        Json::Object(json)
    }

    fn read(line: &Json) -> Option<Failed> {
        Some(Failed {
            problem: Problem::from_json(line.get("failed")?)?,
            cost: Money::from_nanos(line["cost"].as_i64().unwrap_or_default()),
            run: line["run"].as_u64().unwrap_or_default(),
        })
    }
}

impl QuestionRecord {
    pub(super) fn read(line: &Json) -> Option<QuestionRecord> {
        match line.get("answer") {
            Some(_) => Answered::read(line).map(Box::new).map(QuestionRecord::Answered),
            None => Failed::read(line).map(QuestionRecord::Failed),
        }
    }

    /// Whether it still counts: a failure of an earlier run is asked again.
    pub(super) fn counts_in(&self, run: u64) -> bool {
        match self {
            QuestionRecord::Answered(_) => true,
            QuestionRecord::Failed(failed) => failed.run == run,
        }
    }
}
