//! Check, test, attack, compare and convert prompts.

use cuebook::{Book as Prompts, Result, Variables};
use cuebook_lab::BookExt;
use cuebook_lab::cases::CaseFile;
use cuebook_lab::convert::{BuiltIn, Target};
use cuebook_lab::diff::{self, Version};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value as Json, json};

use crate::book::{Book, inputs};
use crate::context::unknown;
use crate::errors::{self, Raise};
use crate::json::to_python;

fn dialect(name: &str) -> Result<BuiltIn> {
    let known = BuiltIn::ALL.map(BuiltIn::as_str);
    let found = BuiltIn::ALL.into_iter().find(|dialect| dialect.as_str() == name);
    found.ok_or_else(|| unknown("the list of dialects", name, &known))
}

fn run_file(book: &Prompts, file: &CaseFile) -> Json {
    let head = |key: &str, value: Json| json!({"prompt": file.prompt, "file": file.name, key: value});
    match book.run_cases(file, |_| {}) {
        Ok(outcomes) => head("cases", outcomes.iter().map(cuebook_lab::cases::Outcome::to_json).collect()),
        Err(error) => {
            let mut document = error.to_json();
            document["error"]["report"] = json!(cuebook::error::report(error.diagnostics(), false));
            head("error", document["error"].take())
        }
    }
}

#[pymethods]
impl Book {
    /// Checks prompts: the findings and the number of prompts.
    fn check(&self, py: Python<'_>, targets: Vec<String>) -> PyResult<Py<PyAny>> {
        let book = self.with_paths().clone();
        let report = self.waits(py, move || book.check(&targets, |_| {}))?;
        let findings: Json = report.findings.iter().map(|finding| Json::Object(finding.to_json())).collect();
        let text = cuebook::error::report(&report.findings, false);
        to_python(py, &json!({"findings": findings, "prompts": report.prompts, "report": text}))
    }

    /// The Python module with the types of the prompts.
    fn stubs(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| cuebook_lab::stubs::python(self.prompts())).or_raise(py)
    }

    /// The files of cases that exist for prompts.
    fn case_files(&self, py: Python<'_>, targets: Vec<String>) -> PyResult<Py<PyAny>> {
        let files = py.detach(|| self.with_paths().case_files(&targets)).or_raise(py)?;
        let files = files.iter().filter(|file| file.exists());
        to_python(py, &files.map(|file| json!({"prompt": file.prompt, "file": file.name})).collect())
    }

    /// Runs the cases next to prompts.
    fn test(&self, py: Python<'_>, targets: Vec<String>) -> PyResult<Py<PyAny>> {
        let book = self.with_paths().clone();
        let done = self.waits(py, move || {
            let files = book.case_files(&targets)?;
            Ok(files.iter().filter(|file| file.exists()).map(|file| run_file(&book, file)).collect())
        })?;
        to_python(py, &done)
    }

    /// Tries injection strings in every input of a prompt.
    fn attack(
        &self,
        py: Python<'_>,
        prompt: String,
        variables: &Bound<'_, PyDict>,
        context: &Bound<'_, PyDict>,
    ) -> PyResult<Py<PyAny>> {
        let inputs = inputs(py, variables, context)?;
        let book = self.prompts().clone();
        let attack =
            self.waits(py, move || book.attack(&prompt, &inputs.variables, &inputs.context, |_, _| {}))?;
        to_python(py, &attack.to_json())
    }

    /// Compares two prompts.
    fn diff(
        &self,
        py: Python<'_>,
        before: String,
        after: String,
        variables: &Bound<'_, PyDict>,
        context: &Bound<'_, PyDict>,
    ) -> PyResult<Py<PyAny>> {
        let inputs = inputs(py, variables, context)?;
        let book = self.with_paths().clone();
        let compared = self.waits(py, move || {
            let clock = diff::stopped_clock();
            let version = |wanted: &str| -> Result<Version<'_>> {
                let version = Version::find(&book, wanted, &inputs.context, &clock)?;
                let known = inputs
                    .variables
                    .names()
                    .filter(|name| version.prepared().knows(name) || version.prepared().takes_any_name());
                let known: Variables =
                    known.filter_map(|name| Some((name.to_owned(), inputs.variables.get(name)?))).collect();
                Ok(version.with(known, inputs.context.clone()))
            };
            Ok(diff::compare(&version(&before)?, &version(&after)?).to_json())
        })?;
        to_python(py, &compared)
    }

    /// A prompt in another notation.
    fn convert(
        &self,
        py: Python<'_>,
        prompt: &str,
        to: &str,
        name: Option<String>,
        category: String,
        strict: bool,
    ) -> PyResult<Py<PyAny>> {
        let converted = py.detach(|| {
            let target = Target { name, category, ..Target::new(dialect(to)?) };
            let conversion = self.prompts().convert(prompt, &target)?;
            if strict {
                conversion.strictly()?;
            }
            Ok(conversion.to_json())
        });
        converted.map_err(|error| errors::to_python(py, &error)).and_then(|json| to_python(py, &json))
    }
}
