//! Compares two prompts with roles message by message: who speaks, and what.

use serde_json::Value as Json;

use super::own_text::Mask;
use super::samples::{Sample, samples};
use super::{Bench, Compared, difference};
use crate::chat::{Message, Role};
use crate::convert::OutFile;
use crate::convert::draft::Draft;
use crate::convert::report::Report;
use crate::convert::reported_differences::ComparisonRules;
use crate::error::Result;

impl Bench<'_> {
    /// Renders both and compares the roles and contents of their messages. What differs is reported.
    pub(in crate::convert) fn check_messages(
        &self,
        draft: &Draft,
        files: &[OutFile],
        report: &mut Report,
    ) -> Result<Compared> {
        let result = match self.read_result(draft, files, report)? {
            Ok(result) => result,
            Err(compared) => return Ok(compared),
        };
        let terms = ComparisonRules::new(report.reported_differences(), draft);
        let nothing = (Default::default(), Default::default());
        let mask = Mask { shown: &nothing.0, written: &nothing.1 };
        let (of_source, of_result) = (self.of_source(draft, &terms, mask), self.of_result(mask));
        let (mut compared, mut failure, mut keeps_empty) = (Compared::default(), None, false);
        for sample in samples(draft, &terms) {
            let before: Sample =
                sample.iter().map(|(name, value)| (draft.name_before(name), value.clone())).collect();
            let expected = match of_source.messages(self.source, &before) {
                Ok(expected) => expected,
                // The values were made up, and do not fit.
                Err(error) => {
                    failure = Some(error);
                    continue;
                }
            };
            let change = match of_result.messages(&result, &sample) {
                Err(error) => {
                    let why = &error.diagnostic().message;
                    Some(("text", format!("the result fails with values that the source accepts: {why}")))
                }
                Ok(found) => {
                    keeps_empty |= found.len() > expected.len() && found.iter().any(is_empty);
                    change(&found, &expected, &terms)
                }
            };
            if let Some((about, message)) = change {
                let hint = super::compare_both();
                report.changed(about, message).hint(hint);
                let why_not = Some("the renders differ".to_owned());
                return Ok(Compared { why_not, differs: true, ..Compared::default() });
            }
            compared.renders += 1;
        }
        if keeps_empty {
            report.changed("messages", "a message without text is kept: Prompty 1 skips it");
        }
        if compared.renders == 0 {
            compared.why_not = failure.map(|error| super::not_compared(&error, report));
        }
        compared.without = terms.reported;
        Ok(compared)
    }
}

fn is_empty(message: &Message) -> bool {
    let is_blank = |part: &Json| part["kind"] == "text" && part["value"].as_str().is_some_and(str::is_empty);
    message.to_json()["content"].as_array().is_none_or(|parts| parts.iter().all(is_blank))
}

/// The first message that differs, without those that are empty.
fn change(
    found: &[Message],
    expected: &[Message],
    terms: &ComparisonRules,
) -> Option<(&'static str, String)> {
    let spoken = |messages: &[Message]| -> Vec<(Role, String)> {
        let spoken = messages.iter().filter(|message| !is_empty(message));
        spoken.map(|message| (message.role.clone(), text(message))).collect()
    };
    let (found, expected) = (spoken(found), spoken(expected));
    let roles = |messages: &[(Role, String)]| {
        messages.iter().map(|(role, _)| role.as_str()).collect::<Vec<_>>().join(", ")
    };
    if roles(&found) != roles(&expected) {
        let message =
            format!("the roles of the messages are {}, but were {}", roles(&found), roles(&expected));
        return Some(("roles", message));
    }
    found.iter().zip(&expected).enumerate().find_map(|(index, ((_, found), (_, expected)))| {
        let what = difference(found, expected, terms)?;
        Some(("text", format!("message {} differs: {what}", index + 1)))
    })
}

/// The text of a message; parts that are not text as JSON.
fn text(message: &Message) -> String {
    let content = message.to_json();
    let parts = content["content"].as_array().into_iter().flatten();
    parts
        .map(|part| match part["value"].as_str().filter(|_| part["kind"] == "text") {
            Some(text) => text.to_owned(),
            None => part.to_string(),
        })
        .collect()
}
