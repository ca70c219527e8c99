//! Template engines that are functions of Python.

use std::sync::Arc;

use cuebook::Result;
use cuebook::chat::{self, ParseOptions, Run};
use cuebook::source::Source;
use cuebook::template::engine::{Compiled, Engine, Job, Outline, Output};
use cuebook::template::page::{Page, StandaloneOutline};
use cuebook::variables::Scope;
use pyo3::prelude::*;
use serde_json::{Map, Value as Json, json};

use crate::errors::Raise;
use crate::{calls, json};

/// A function that gets a template and the variables, and returns the text.
#[derive(Debug, Clone)]
pub struct Function {
    pub name: String,
    pub function: Arc<Py<PyAny>>,
}

struct Template {
    function: Function,
    source: Arc<Source>,
}

impl Engine for Function {
    fn compile(&self, job: Job<'_>) -> Result<Box<dyn Compiled>> {
        Ok(Box::new(Template { function: self.clone(), source: job.source }))
    }
}

impl Compiled for Template {
    fn render(&self, scope: &Arc<Scope>, limit: usize) -> Result<Output> {
        let names = scope.names();
        let values: Map<String, Json> =
            names.iter().filter_map(|name| Some((name.clone(), scope.shown(name)?))).collect();
        let what = format!("the template engine `{}`", self.function.name);
        let arguments = [json!(self.source.text()), values.into()];
        let answer = calls::call(&self.function.function, &what, &arguments);
        let Json::String(text) = answer.map_err(|words| calls::failed(&what, &words))? else {
            return Err(calls::wrong_return(&what, "a str"));
        };
        let mut page = Page::new(&self.source, limit);
        // The function does not say which part came from where: all of it came from the template and all of its variables.
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        page.value(0..self.source.text().len(), &names, &text)?;
        Ok(page.finish())
    }

    fn outline(&self) -> Arc<dyn Outline> {
        Arc::new(StandaloneOutline::new(&self.source, []))
    }
}

/// The messages of a text, all of which counts as the author's: a line such as `user:` begins a message.
#[pyfunction]
pub fn parse_messages(py: Python<'_>, text: &str) -> PyResult<Py<PyAny>> {
    let whole =
        Run { range: 0..text.len(), literal: true, hook: false, role: false, mark: None, rich: Vec::new() };
    let messages = chat::parse(text, &[whole], &ParseOptions::default()).or_raise(py)?;
    json::to_python(py, &messages.iter().map(cuebook::Message::to_json).collect())
}
