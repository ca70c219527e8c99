//! A row of the output: the columns of the data, what the prompt renders to, what the model said, what it cost, and what went wrong.

use serde_json::{Map, Value as Json, json};

use crate::chain::ModelAnswer;
use crate::kinds::Kind;
use crate::problem::Problem;
use crate::rows::Row;

/// A row of the output, whose columns have an order.
pub(crate) type Line = Map<String, Json>;

/// The columns that Cuebook adds, in front of whose names a prefix may stand.
pub(crate) struct LineMaker<'a> {
    pub(crate) prefix: &'a str,
    /// Whether the columns of the data are part of the output.
    pub(crate) keeps_inputs: bool,
    /// Whether it says which sentences a row uses.
    pub(crate) has_sources: bool,
}

/// What a prompt renders to.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// The column and its value: the text, the messages or the body of a request.
    pub(crate) form: Option<(&'static str, Json)>,
    pub(crate) hash: Option<String>,
    /// The hash of the sentences that it uses.
    pub(crate) sources: Option<String>,
}

/// What one judge said, and the name of its columns.
pub(crate) struct Judged<'a> {
    pub(crate) name: &'a str,
    pub(crate) outputs: &'a [String],
    pub(crate) model_answer: Option<ModelAnswer>,
}

impl LineMaker<'_> {
    pub(crate) fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The beginning of a line: its number, and the columns of the data.
    pub(crate) fn begin(&self, row: &Row) -> Line {
        let mut line = Map::new();
        line.insert(self.name("row"), json!(row.number));
        if self.keeps_inputs {
            line.extend(row.values.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        line
    }

    pub(crate) fn shown(&self, line: &mut Line, shown: Shown) {
        if let Some((name, value)) = shown.form {
            line.insert(self.name(name), value);
        }
        line.insert(self.name("render_hash"), json!(shown.hash));
        if self.has_sources {
            line.insert(self.name("sources"), json!(shown.sources));
        }
    }

    /// What the model said.
    pub(crate) fn model_answer(&self, line: &mut Line, model_answer: &ModelAnswer, outputs: &[String]) {
        line.insert(self.name("answer"), json!(model_answer.answer));
        self.outputs(line, "answer", model_answer, outputs);
    }

    fn outputs(&self, line: &mut Line, name: &str, model_answer: &ModelAnswer, outputs: &[String]) {
        for output in outputs {
            let value = model_answer.outputs.as_ref().and_then(|values| values.get(output));
            line.insert(self.name(&format!("{name}_{output}")), value.cloned().unwrap_or(Json::Null));
        }
        if outputs.is_empty()
            && let Some(values) = &model_answer.outputs
        {
            line.insert(self.name(&format!("{name}_outputs")), values.clone());
        }
    }

    /// What a judge said of it.
    pub(crate) fn judged(&self, line: &mut Line, judged: &Judged<'_>) {
        let (name, none) = (judged.name, ModelAnswer::default());
        let model_answer = judged.model_answer.as_ref().unwrap_or(&none);
        if judged.outputs.is_empty() {
            line.insert(self.name(name), json!(model_answer.answer));
        }
        self.outputs(line, name, model_answer, judged.outputs);
        line.insert(self.name(&format!("{name}_cost")), model_answer.cost.to_json());
        let error = model_answer.problem.as_ref().map(|problem| problem.code.clone());
        line.insert(self.name(&format!("{name}_error")), json!(error));
    }

    /// What it took.
    pub(crate) fn used(&self, line: &mut Line, model_answer: &ModelAnswer) {
        for (name, value) in [
            ("model", json!(model_answer.model)),
            ("finish", json!(model_answer.finish)),
            ("input_tokens", json!(model_answer.input_tokens)),
            ("output_tokens", json!(model_answer.output_tokens)),
            ("cached_tokens", json!(model_answer.cached_tokens)),
            ("cost", model_answer.cost.to_json()),
            ("seconds", json!(model_answer.milliseconds as f64 / 1000.0)),
        ] {
            line.insert(self.name(name), value);
        }
    }

    /// Notes that an earlier row has counted this answer: of the model, or of a judge.
    pub(crate) fn shared(&self, line: &mut Line, judge: Option<&str>) {
        let names = match judge {
            Some(judge) => vec![format!("{judge}_cost")],
            None => ["input_tokens", "output_tokens", "cached_tokens", "cost", "seconds"]
                .map(str::to_owned)
                .to_vec(),
        };
        for name in names {
            if let Some(value) = line.get_mut(&self.name(&name)) {
                *value = if value.is_f64() { json!(0.0) } else { json!(0) };
            }
        }
    }

    /// What went wrong; both columns are there in each line.
    pub(crate) fn problem(&self, line: &mut Line, problem: Option<&Problem>) {
        line.insert(self.name("error"), json!(problem.map(|problem| &problem.code)));
        line.insert(self.name("error_message"), json!(problem.map(|problem| &problem.message)));
    }

    /// The columns of a whole output and their types, in order.
    pub(crate) fn kinds(
        &self,
        inputs: Vec<(String, Kind)>,
        form: Option<&str>,
        answers: Option<&[(String, Kind)]>,
        judges: &[(&str, Vec<(String, Kind)>)],
    ) -> Vec<(String, Kind)> {
        let mut kinds = vec![(self.name("row"), Kind::Integer)];
        if self.keeps_inputs {
            kinds.extend(inputs);
        }
        if let Some(answers) = answers {
            kinds.push((self.name("answer"), Kind::Text));
            kinds.extend(self.output_kinds("answer", answers));
            for (name, judged) in judges {
                kinds.extend(self.judge_kinds(name, judged));
            }
            let used = [
                ("model", Kind::Text),
                ("finish", Kind::Text),
                ("input_tokens", Kind::Integer),
                ("output_tokens", Kind::Integer),
                ("cached_tokens", Kind::Integer),
                ("cost", Kind::Number),
                ("seconds", Kind::Number),
            ];
            kinds.extend(used.map(|(name, kind)| (self.name(name), kind)));
        }
        if let Some(form) = form {
            kinds.push((self.name(form), if form == "text" { Kind::Text } else { Kind::Json }));
        }
        kinds.push((self.name("render_hash"), Kind::Text));
        if self.has_sources {
            kinds.push((self.name("sources"), Kind::Text));
        }
        kinds.extend(["error", "error_message"].map(|name| (self.name(name), Kind::Text)));
        kinds
    }

    fn output_kinds(&self, name: &str, outputs: &[(String, Kind)]) -> Vec<(String, Kind)> {
        match outputs {
            [] => vec![(self.name(&format!("{name}_outputs")), Kind::Json)],
            _ => {
                outputs.iter().map(|(output, kind)| (self.name(&format!("{name}_{output}")), *kind)).collect()
            }
        }
    }

    /// The columns of a judge and their types, in order.
    pub(crate) fn judge_kinds(&self, name: &str, outputs: &[(String, Kind)]) -> Vec<(String, Kind)> {
        let own = outputs.is_empty().then(|| (self.name(name), Kind::Text));
        let ends = [("cost", Kind::Number), ("error", Kind::Text)]
            .map(|(end, kind)| (self.name(&format!("{name}_{end}")), kind));
        own.into_iter().chain(self.output_kinds(name, outputs)).chain(ends).collect()
    }

    /// The names that it adds. None of them may be the name of a column of the data.
    pub(crate) fn names(
        &self,
        form: Option<&str>,
        answers: Option<&[String]>,
        judges: &[(&str, &[String])],
    ) -> Vec<String> {
        let mut names: Vec<String> =
            ["row", "render_hash", "error", "error_message"].map(str::to_owned).to_vec();
        names.extend(form.map(str::to_owned));
        names.extend(self.has_sources.then(|| "sources".to_owned()));
        if let Some(outputs) = answers {
            let used = [
                "answer",
                "answer_outputs",
                "model",
                "finish",
                "input_tokens",
                "output_tokens",
                "cached_tokens",
                "cost",
                "seconds",
            ];
            names.extend(used.map(str::to_owned));
            names.extend(outputs.iter().map(|output| format!("answer_{output}")));
        }
        for (name, outputs) in judges {
            names.extend(["cost", "error", "outputs"].map(|end| format!("{name}_{end}")));
            names.push((*name).to_owned());
            names.extend(outputs.iter().map(|output| format!("{name}_{output}")));
        }
        names.into_iter().map(|name| self.name(&name)).collect()
    }
}
