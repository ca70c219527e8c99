//! A prompt that is rendered and asked for each row: the one of the batch, or a judge.

use std::sync::Arc;

use cuebook::{Book, Context, Prepared, Rendered, Result, UnknownVariables, Variables};
use cuebook_run::{Engine, PromptModel};
use serde_json::{Value as Json, json};

use crate::answer_source::AnswerSource;
use crate::chain::{ModelAnswer, converse};
use crate::columns::Columns;
use crate::key::short_hash;
use crate::kinds::Kind;
use crate::plan::JudgePlan;
use crate::rows::Row;

/// The prompt of a batch.
pub(crate) struct RowPrompt {
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) context: Arc<Context>,
    pub(crate) model: Option<PromptModel>,
    pub(crate) columns: Columns,
    pub(crate) variables: Variables,
    is_rich: bool,
}

impl RowPrompt {
    pub(crate) fn new(
        book: &Book,
        (prompt, wanted): (&str, Option<&str>),
        context: &Context,
        assigned: &[(String, String)],
        variables: Variables,
        engine: Option<&Engine>,
    ) -> Result<RowPrompt> {
        let context = Context { unknown: UnknownVariables::Ignore, ..(*book.complete(context)?).clone() };
        let prepared = book.prepare(prompt, &context)?;
        let wanted = wanted.or(context.model.as_deref());
        let model = engine.map(|engine| engine.prompt_model(book, &prepared, wanted)).transpose()?;
        let asked = model.as_ref().map(|model| model.chosen().model.clone());
        let context = Context { model: asked.or_else(|| wanted.map(str::to_owned)), ..context };
        let columns = Columns::new(&prepared, assigned, &variables)?;
        let is_rich = prepared.prompt().variables.iter().any(|variable| variable.rich.is_some());
        Ok(RowPrompt { prepared, context: Arc::new(context), model, columns, variables, is_rich })
    }

    fn values(&self, row: &Row, are_texts: bool) -> Result<Variables> {
        match &row.fault {
            Some(fault) => Err(fault.clone()),
            None => self.columns.variables(row, &self.variables, are_texts),
        }
    }

    pub(crate) fn render(&self, row: &Row, are_texts: bool) -> Result<Rendered> {
        self.prepared.render(&self.values(row, are_texts)?, &self.context)
    }

    /// The text alone, without where it came from.
    pub(crate) fn render_text(&self, row: &Row, are_texts: bool) -> Result<String> {
        self.prepared.render_text(&self.values(row, are_texts)?, &self.context)
    }

    /// The hash of what a row renders to.
    pub(crate) fn hash(&self, rendered: &Rendered) -> Result<String> {
        if !self.is_rich {
            return Ok(short_hash(&[rendered.text().as_bytes()]));
        }
        // What stands for an image in the text is another word in each render.
        let messages: Json = rendered.messages()?.iter().map(cuebook::Message::to_json).collect();
        Ok(short_hash(&[messages.to_string().as_bytes()]))
    }

    /// The outputs that the prompt declares, with their types.
    pub(crate) fn output_kinds(&self) -> Vec<(String, Kind)> {
        let Some(model) = &self.model else { return Vec::new() };
        model.output_shapes().map(|(name, shape)| (name.to_owned(), Kind::of_shape(shape))).collect()
    }

    pub(crate) fn outputs(&self) -> Vec<String> {
        self.output_kinds().into_iter().map(|(name, _)| name).collect()
    }
}

/// A prompt that judges answers.
pub(crate) struct Judge {
    pub(crate) name: String,
    pub(crate) outputs: Vec<String>,
    row_prompt: RowPrompt,
}

impl Judge {
    pub(crate) fn new(book: &Book, plan: &JudgePlan, context: &Context, engine: &Engine) -> Result<Judge> {
        // The message of the user belongs to the prompt that is judged.
        let context = Context { message: None, model: None, ..context.clone() };
        let prompt = (plan.prompt.as_str(), plan.model.as_deref());
        let row_prompt = RowPrompt::new(book, prompt, &context, &[], Variables::new(), Some(engine))?;
        Ok(Judge { name: plan.name.clone(), outputs: row_prompt.outputs(), row_prompt })
    }

    pub(crate) fn output_kinds(&self) -> Vec<(String, Kind)> {
        self.row_prompt.output_kinds()
    }

    pub(crate) fn reads(&self, column: &str) -> bool {
        self.row_prompt.columns.reads(column)
    }

    pub(crate) fn model(&self) -> Option<&PromptModel> {
        self.row_prompt.model.as_ref()
    }

    /// Judges an answer. The judge's variables are the columns of the row, and `prompt`, `answer` and `outputs`.
    pub(crate) fn judge(
        &self,
        row: &Row,
        are_texts: bool,
        (prompt, model_answer): (&Rendered, &ModelAnswer),
        answer_source: &dyn AnswerSource,
    ) -> Result<ModelAnswer> {
        let failed = |error: &cuebook::Error| ModelAnswer::of_problem(error);
        let rendered = match self.render(row, are_texts, prompt, model_answer) {
            Ok(rendered) => rendered,
            Err(error) => return Ok(failed(&error)),
        };
        match &self.row_prompt.model {
            Some(model) => converse(model, &rendered, answer_source),
            None => Ok(ModelAnswer::default()),
        }
    }

    pub(crate) fn render(
        &self,
        row: &Row,
        are_texts: bool,
        prompt: &Rendered,
        model_answer: &ModelAnswer,
    ) -> Result<Rendered> {
        let mut values = self.row_prompt.values(row, are_texts)?;
        for (name, value) in [
            ("prompt", json!(prompt.text())),
            ("answer", json!(model_answer.answer)),
            ("outputs", model_answer.outputs.clone().unwrap_or(Json::Null)),
        ] {
            if self.row_prompt.prepared.known_names().contains(name) {
                values = values.set(name, value);
            }
        }
        self.row_prompt.prepared.render(&values, &self.row_prompt.context)
    }
}
