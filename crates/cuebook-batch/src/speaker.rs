//! A prompt that is rendered and asked for each row: the one of the batch, or a judge.

use std::sync::Arc;

use cuebook::{Book, Context, Prepared, Rendered, Result, UnknownVariables, Variables};
use cuebook_run::{Engine, PromptModel};
use serde_json::{Value as Json, json};

use crate::asker::Asker;
use crate::chain::{Spoken, converse};
use crate::columns::Columns;
use crate::key::short_hash;
use crate::kinds::Kind;
use crate::plan::JudgePlan;
use crate::rows::Row;

/// The prompt of a batch.
pub(crate) struct Speaker {
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) context: Arc<Context>,
    pub(crate) model: Option<PromptModel>,
    pub(crate) columns: Columns,
    pub(crate) variables: Variables,
    is_rich: bool,
}

impl Speaker {
    pub(crate) fn new(
        book: &Book,
        (prompt, wanted): (&str, Option<&str>),
        context: &Context,
        assigned: &[(String, String)],
        variables: Variables,
        engine: Option<&Engine>,
    ) -> Result<Speaker> {
        let context = Context { unknown: UnknownVariables::Ignore, ..(*book.complete(context)?).clone() };
        let prepared = book.prepare(prompt, &context)?;
        let wanted = wanted.or(context.model.as_deref());
        let model = engine.map(|engine| engine.prompt_model(book, &prepared, wanted)).transpose()?;
        let asked = model.as_ref().map(|model| model.chosen().model.clone());
        let context = Context { model: asked.or_else(|| wanted.map(str::to_owned)), ..context };
        let columns = Columns::new(&prepared, assigned, &variables)?;
        let is_rich = prepared.prompt().variables.iter().any(|variable| variable.rich.is_some());
        Ok(Speaker { prepared, context: Arc::new(context), model, columns, variables, is_rich })
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
    speaker: Speaker,
}

impl Judge {
    pub(crate) fn new(book: &Book, plan: &JudgePlan, context: &Context, engine: &Engine) -> Result<Judge> {
        // The message of the user belongs to the prompt that is judged.
        let context = Context { message: None, model: None, ..context.clone() };
        let prompt = (plan.prompt.as_str(), plan.model.as_deref());
        let speaker = Speaker::new(book, prompt, &context, &[], Variables::new(), Some(engine))?;
        Ok(Judge { name: plan.name.clone(), outputs: speaker.outputs(), speaker })
    }

    pub(crate) fn output_kinds(&self) -> Vec<(String, Kind)> {
        self.speaker.output_kinds()
    }

    pub(crate) fn reads(&self, column: &str) -> bool {
        self.speaker.columns.reads(column)
    }

    pub(crate) fn model(&self) -> Option<&PromptModel> {
        self.speaker.model.as_ref()
    }

    /// Judges an answer. The judge's variables are the columns of the row, and `prompt`, `answer` and `outputs`.
    pub(crate) fn judge(
        &self,
        row: &Row,
        are_texts: bool,
        (prompt, spoken): (&Rendered, &Spoken),
        asker: &dyn Asker,
    ) -> Result<Spoken> {
        let failed = |error: &cuebook::Error| Spoken::of_problem(error);
        let rendered = match self.render(row, are_texts, prompt, spoken) {
            Ok(rendered) => rendered,
            Err(error) => return Ok(failed(&error)),
        };
        match &self.speaker.model {
            Some(model) => converse(model, &rendered, asker),
            None => Ok(Spoken::default()),
        }
    }

    pub(crate) fn render(
        &self,
        row: &Row,
        are_texts: bool,
        prompt: &Rendered,
        spoken: &Spoken,
    ) -> Result<Rendered> {
        let mut values = self.speaker.values(row, are_texts)?;
        for (name, value) in [
            ("prompt", json!(prompt.text())),
            ("answer", json!(spoken.answer)),
            ("outputs", spoken.outputs.clone().unwrap_or(Json::Null)),
        ] {
            if self.speaker.prepared.known_names().contains(name) {
                values = values.set(name, value);
            }
        }
        self.speaker.prepared.render(&values, &self.speaker.context)
    }
}
