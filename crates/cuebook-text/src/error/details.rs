//! What an error carries, as Rust types. The JSON form has the same fields.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Code, Error};

/// What an error of some codes carries.
pub trait Details: DeserializeOwned {
    /// The codes of these errors.
    const CODES: &'static [Code];
}

/// No prompt has an id.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct NotFound {
    /// The id that was asked for.
    pub prompt_id: String,
    /// The ids that are most like it.
    #[serde(default)]
    pub nearest: Vec<String>,
    /// The places that were searched.
    #[serde(default)]
    pub searched: Vec<String>,
}

impl Details for NotFound {
    const CODES: &'static [Code] = &[Code::PromptNotFound];
}

/// Several prompts have one id, or the recorded choice does not fit.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Conflict {
    /// The id.
    pub prompt_id: String,
    /// The candidates, as scripts see them. Each has a `source`.
    pub candidates: Vec<Value>,
    /// The recorded choice.
    #[serde(default)]
    pub recorded: Option<String>,
}

impl Details for Conflict {
    const CODES: &'static [Code] = &[Code::PromptConflict, Code::StaleResolution];
}

impl Conflict {
    /// The sources of the candidates: one of them resolves the conflict.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.candidates.iter().filter_map(|candidate| candidate["source"].as_str())
    }
}

/// Variables are missing or have the wrong type.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct InvalidVariables {
    /// The prompt.
    pub prompt_id: String,
    /// Required variables without a value.
    pub missing: Vec<String>,
    /// What is wrong with the others.
    pub invalid: Vec<InvalidVariable>,
}

/// A variable of the wrong type.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct InvalidVariable {
    /// Its name.
    pub name: String,
    /// Everything that is known of it, as scripts see it.
    #[serde(flatten)]
    pub more: serde_json::Map<String, Value>,
}

impl Details for InvalidVariables {
    const CODES: &'static [Code] = &[Code::InvalidVariables];
}

/// A variable that the prompt does not have.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct UnknownVariable {
    /// The name that was given.
    pub variable: String,
    /// The names that are most like it.
    #[serde(default)]
    pub nearest: Vec<String>,
}

impl Details for UnknownVariable {
    const CODES: &'static [Code] = &[Code::UnknownVariable];
}

/// A hook or a provider failed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct HookFailed {
    /// The function: `pre_render`, `post_render` or `provide`.
    pub hook: String,
    /// Whose it is, in words.
    pub of: String,
}

impl Details for HookFailed {
    const CODES: &'static [Code] = &[Code::HookFailed];
}

/// A provider's reply reports an error.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ProviderFailed {
    /// What the provider says.
    pub provider_message: String,
    /// Its name for the error, such as `rate_limit_error`.
    #[serde(default)]
    pub provider_type: Option<String>,
    /// Its code for the error.
    #[serde(default)]
    pub provider_code: Option<String>,
}

impl Details for ProviderFailed {
    const CODES: &'static [Code] = &[Code::ProviderFailed];
}

impl Error {
    /// What the error carries, as a type of this module; `None` for errors of other codes.
    ///
    /// ```
    /// use cuebook_text::error::details::NotFound;
    /// use cuebook_text::error::{Code, Diagnostic, Error, ErrorKind};
    ///
    /// let finding = Diagnostic::new(Code::PromptNotFound, "no prompt `greeet`");
    /// let error = Error::new(ErrorKind::PromptNotFound, finding).with("prompt_id", "greeet").with("nearest", ["greet"]);
    /// assert_eq!(error.details::<NotFound>().unwrap().nearest, ["greet"]);
    /// ```
    pub fn details<T: Details>(&self) -> Option<T> {
        let fits = T::CODES.contains(&self.code());
        fits.then(|| serde_json::from_value(Value::Object(self.0.fields.clone())).ok()).flatten()
    }
}
