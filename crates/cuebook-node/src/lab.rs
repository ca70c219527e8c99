//! Check, test, attack, compare and convert prompts.

use cuebook::{Result, Variables};
use cuebook_lab::BookExt;
use cuebook_lab::cases::CaseFile;
use cuebook_lab::convert::{BuiltIn, Target};
use cuebook_lab::diff::{self, Version};
use serde_json::{Value as Json, json};

use crate::calls::Arguments;
use crate::context::unknown;
use crate::project::Project;

fn dialect(name: &str) -> Result<BuiltIn> {
    let known = BuiltIn::ALL.map(BuiltIn::as_str);
    let found = BuiltIn::ALL.into_iter().find(|dialect| dialect.as_str() == name);
    found.ok_or_else(|| unknown("the list of dialects", name, &known))
}

impl Project {
    /// Checks prompts: the findings and the number of prompts.
    pub fn check(&self, given: &Arguments) -> Result<Json> {
        let report = self.with_paths().check(&given.texts("targets"), |_| {})?;
        let findings: Json = report.findings.iter().map(|finding| Json::Object(finding.to_json())).collect();
        let text = cuebook::error::report(&report.findings, false);
        Ok(json!({"findings": findings, "prompts": report.prompts, "report": text}))
    }

    /// The files of cases that exist for prompts.
    pub fn case_files(&self, given: &Arguments) -> Result<Json> {
        let files = self.with_paths().case_files(&given.texts("targets"))?;
        let files = files.iter().filter(|file| file.exists());
        Ok(files.map(|file| json!({"prompt": file.prompt, "file": file.name})).collect())
    }

    /// Runs the cases next to prompts.
    pub fn test(&self, given: &Arguments) -> Result<Json> {
        let files = self.with_paths().case_files(&given.texts("targets"))?;
        Ok(files.iter().filter(|file| file.exists()).map(|file| self.run_file(file)).collect())
    }

    fn run_file(&self, file: &CaseFile) -> Json {
        let head = |key: &str, value: Json| json!({"prompt": file.prompt, "file": file.name, key: value});
        match self.with_paths().run_cases(file, |_| {}) {
            Ok(outcomes) => {
                head("cases", outcomes.iter().map(cuebook_lab::cases::Outcome::to_json).collect())
            }
            Err(error) => {
                let mut document = error.to_json();
                document["error"]["report"] = json!(cuebook::error::report(error.diagnostics(), false));
                head("error", document["error"].take())
            }
        }
    }

    /// Tries injection strings in every input of a prompt.
    pub fn attack(&self, given: &Arguments) -> Result<Json> {
        let context = given.context()?;
        let attack = self.prompts().attack(given.text("prompt"), &given.variables(), &context, |_, _| {})?;
        Ok(attack.to_json())
    }

    /// Compares two prompts.
    pub fn diff(&self, given: &Arguments) -> Result<Json> {
        let (book, clock) = (self.with_paths(), diff::stopped_clock());
        let (variables, context) = (given.variables(), given.context()?);
        let version = |wanted: &str| -> Result<Version<'_>> {
            let version = Version::find(book, wanted, &context, &clock)?;
            let known = variables
                .names()
                .filter(|name| version.prepared().knows(name) || version.prepared().takes_any_name());
            let known: Variables =
                known.filter_map(|name| Some((name.to_owned(), variables.get(name)?))).collect();
            Ok(version.with(known, context.clone()))
        };
        Ok(diff::compare(&version(given.text("before"))?, &version(given.text("after"))?).to_json())
    }

    /// A prompt in another notation.
    pub fn convert(&self, given: &Arguments) -> Result<Json> {
        let category = given.text("category").to_owned();
        let target =
            Target { name: given.optional("name"), category, ..Target::new(dialect(given.text("to"))?) };
        let conversion = self.prompts().convert(given.text("prompt"), &target)?;
        if given.is_set("strict") {
            conversion.strictly()?;
        }
        Ok(conversion.to_json())
    }
}
