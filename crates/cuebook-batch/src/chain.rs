//! The questions of one row, one after the other: the prompt's own, reminders where an answer does not have the right form, and the
//! judges of the answer.

use cuebook::chat::{Message, Role};
use cuebook::{Rendered, Result};
use cuebook_run::{Money, PromptModel, Settled};
use serde_json::Value as Json;

use crate::answer_source::{AnswerSource, QuestionResult};
use crate::journal::Answered;
use crate::key::Key;
use crate::problem::Problem;

/// How often a model may pause in one answer.
const MAX_PAUSES: u32 = 16;

/// What the model said to one prompt, or why it did not.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelAnswer {
    /// Its words.
    pub(crate) answer: Option<String>,
    /// Its typed outputs, if the prompt declares some.
    pub(crate) outputs: Option<Json>,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cached_tokens: u64,
    pub(crate) cost: Money,
    pub(crate) milliseconds: u64,
    pub(crate) finish: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) problem: Option<Problem>,
    /// Where the journal's index has its first question: rows with the same place share all answers.
    pub(crate) slot: Option<usize>,
    /// Whether questions of it have no answer yet.
    pub(crate) is_open: bool,
}

impl ModelAnswer {
    /// Nothing was said, because of this.
    pub(crate) fn of_problem(error: &cuebook::Error) -> ModelAnswer {
        ModelAnswer::default().failed(Problem::of(error))
    }

    fn failed(mut self, problem: Problem) -> ModelAnswer {
        self.problem = Some(problem);
        self
    }

    fn add(&mut self, answered: &Answered) {
        let usage = &answered.usage;
        self.input_tokens += usage.input.unwrap_or(0);
        self.output_tokens += usage.output.unwrap_or(0);
        self.cached_tokens += usage.cached.unwrap_or(0);
        self.cost = self.cost + answered.cost;
        self.milliseconds += answered.milliseconds;
        self.finish.clone_from(&answered.finish);
        self.model = answered.model.clone().or_else(|| self.model.take());
    }
}

/// Asks a prompt for one row.
pub(crate) fn converse(
    model: &PromptModel,
    rendered: &Rendered,
    answer_source: &dyn AnswerSource,
) -> Result<ModelAnswer> {
    let mut result = ModelAnswer::default();
    let mut conversation = match model.messages(rendered) {
        Ok(messages) => messages,
        Err(error) => return Ok(result.failed(Problem::of(&error))),
    };
    let (mut reminders, mut pauses) = (0, 0);
    let mut begun = String::new();
    loop {
        let question = match model.question(&conversation) {
            Ok(question) => question,
            Err(error) => return Ok(result.failed(Problem::of(&error))),
        };
        let key = Key::of(model.chosen(), &question);
        let (asked, slot) = answer_source.ask_at(model, key, &conversation, &question)?;
        result.slot = result.slot.or(slot);
        let answered = match asked {
            QuestionResult::Answered(answered) => answered,
            QuestionResult::Failed(problem, cost) => {
                result.cost = result.cost + cost;
                return Ok(result.failed(problem));
            }
            QuestionResult::Open => {
                result.is_open = true;
                return Ok(result);
            }
        };
        result.add(&answered);
        let text: String = answered.message.texts().collect();
        if answered.is_paused() && pauses < MAX_PAUSES {
            pauses += 1;
            begun.push_str(&text);
            conversation.push(answered.message.clone());
            continue;
        }
        result.answer = Some(std::mem::take(&mut begun) + &text);
        match model.settle(&answered.reply, answered.finish.as_deref(), reminders) {
            Ok(Settled::Done(outputs)) => {
                result.outputs = outputs;
                return Ok(result);
            }
            Ok(Settled::Again(reminder)) => {
                reminders += 1;
                conversation.push(answered.message.clone());
                conversation.push(Message::text(Role::User, reminder));
            }
            Err(error) => return Ok(result.failed(Problem::of(&error))),
        }
    }
}
