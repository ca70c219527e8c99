//! Secrets that were seen, and are taken out wherever they turn up again.
//!
//! An input called `apiKey` is redacted by its name, but a template may write it into the middle of a text, where it has
//! neither a name nor a look of its own. So what was redacted once is remembered for as long as one trace lasts.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

use serde_json::Value;

use super::{DEEPEST, REDACTED, walk};

/// Shorter values are not looked for in texts: `auth: "none"` must not black out every "none".
const SHORTEST: usize = 6;
/// More are not remembered; a value with thousands of secrets is not a set of settings.
const MAX: usize = 512;
/// Words that settings with a secret's name hold instead of a secret.
const MODES: [&str; 14] = [
    "api_key",
    "api-key",
    "apikey",
    "bearer",
    "oauth2",
    "default",
    "anonymous",
    "required",
    "optional",
    "enabled",
    "disabled",
    "managed_identity",
    "system",
    "session",
];

/// What is a secret to the whole process, whichever trace it turns up in: the keys that it holds.
static OF_PROCESS: RwLock<Secrets> = RwLock::new(Secrets { seen: Vec::new() });

/// Remembers secrets of the whole process, such as the keys of providers: they have no name where they turn up in an answer, and
/// often no look. From now on, no span of the engine and no backend of a trace tells them.
///
/// ```
/// use cuebook_text::redact::{keep, scrub_kept};
/// use serde_json::json;
///
/// keep(["violet-4711"]);
/// let mut answer = json!(["the key is violet-4711"]);
/// scrub_kept(&mut answer);
/// assert_eq!(answer, json!(["the key is [REDACTED]"]));
/// ```
pub fn keep<'v>(values: impl IntoIterator<Item = &'v str>) {
    let known = |value: &&str| {
        let kept = OF_PROCESS.read().unwrap_or_else(PoisonError::into_inner);
        kept.seen.iter().any(|seen| seen == value.trim())
    };
    for value in values.into_iter().filter(|value| !known(value)) {
        OF_PROCESS.write().unwrap_or_else(PoisonError::into_inner).keep(value);
    }
}

/// Takes the secrets of the process out of a value.
pub fn scrub_kept(value: &mut Value) {
    OF_PROCESS.read().unwrap_or_else(PoisonError::into_inner).scrub(value);
}

/// The secrets of one trace.
///
/// ```
/// use cuebook_text::redact::Secrets;
/// use serde_json::json;
///
/// let mut secrets = Secrets::new();
/// let mut inputs = json!({"apiKey": "violet-42"});
/// secrets.field("inputs", &mut inputs);
/// assert_eq!(inputs, json!({"apiKey": "[REDACTED]"}));
///
/// let mut result = json!("Log in with violet-42, then ask.");
/// secrets.field("result", &mut result);
/// assert_eq!(result, json!("Log in with [REDACTED], then ask."));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    /// Longest first, so that a secret that begins with another one goes whole.
    seen: Vec<String>,
}

impl Secrets {
    /// No secrets yet.
    pub fn new() -> Secrets {
        Secrets::default()
    }

    /// Redacts a field as [`field`](super::field) does, remembers what went because of its name, and takes out what
    /// went before.
    pub fn field(&mut self, name: &str, value: &mut Value) {
        walk(Some(name), value, DEEPEST, &mut |taken| self.remember(taken));
        self.scrub(value);
    }

    /// What is remembered, the longest first; with escapes too where JSON has some.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.seen.iter().map(String::as_str)
    }

    /// Takes every remembered secret out of a value.
    pub fn scrub(&self, value: &mut Value) {
        if self.seen.is_empty() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(scrubbed) = self.scrub_text(text) {
                    *text = scrubbed;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.scrub(item)),
            Value::Object(members) => {
                members.values_mut().for_each(|member| self.scrub(member));
                if members.keys().any(|name| matches!(self.scrub_text(name), Cow::Owned(_))) {
                    let old = std::mem::take(members);
                    members
                        .extend(old.into_iter().map(|(name, it)| (self.scrub_text(&name).into_owned(), it)));
                }
            }
            // A number that is a secret's digits would be found by name; elsewhere it is a coincidence.
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Takes every remembered secret out of a text.
    pub fn scrub_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.seen {
            if text.contains(secret.as_str()) {
                text = Cow::Owned(text.replace(secret.as_str(), REDACTED));
            }
        }
        text
    }

    fn remember(&mut self, taken: &Value) {
        match taken {
            Value::String(text) => {
                self.keep(text);
                // `Bearer abc`, `user:abc`: the part alone is as secret as the whole.
                if let Some((_, last)) = text.rsplit_once([' ', ':']) {
                    self.keep(last);
                }
            }
            Value::Number(number) => self.keep(&number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.remember(item)),
            Value::Object(members) => members.values().for_each(|member| self.remember(member)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn keep(&mut self, text: &str) {
        let text = text.trim();
        let mode = MODES.iter().any(|mode| mode.eq_ignore_ascii_case(text));
        if text.len() < SHORTEST || mode || REDACTED.contains(text) || self.seen.len() >= MAX {
            return;
        }
        self.insert(text.to_owned());
        // Inside of JSON text it stands with its escapes.
        let quoted = Value::String(text.to_owned()).to_string();
        self.insert(quoted.trim_matches('"').to_owned());
    }

    fn insert(&mut self, text: String) {
        let place = self.seen.partition_point(|it| (it.len(), it.as_str()) > (text.len(), text.as_str()));
        if self.seen.get(place) != Some(&text) {
            self.seen.insert(place, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_is_taken_out_of_everything_that_follows() {
        let mut secrets = Secrets::new();
        secrets.field(
            "inputs",
            &mut json!({"login": {"password": "a \"b\" c-1"}, "auth": {"key": "violet-42"}}),
        );
        let mut result =
            json!({"violet-42": ["x violet-42 y"], "raw": json!({"p": "a \"b\" c-1"}).to_string()});
        secrets.field("result", &mut result);
        let text = result.to_string();
        assert!(!text.contains("violet-42") && !text.contains("c-1"), "{text}");
    }

    #[test]
    fn a_secret_that_begins_with_another_goes_whole() {
        let mut secrets = Secrets::new();
        secrets.field("inputs", &mut json!({"password": "violet", "token": "violet-42-long"}));
        assert_eq!(secrets.scrub_text("violet-42-long and violet"), "[REDACTED] and [REDACTED]");
    }

    #[test]
    fn the_token_behind_its_scheme_is_a_secret_too() {
        let mut secrets = Secrets::new();
        secrets.field("inputs", &mut json!({"authorization": "Bearer blue-green"}));
        assert_eq!(secrets.scrub_text("it was blue-green."), "it was [REDACTED].");
    }

    #[test]
    fn short_values_and_modes_do_not_black_out_words() {
        let mut secrets = Secrets::new();
        secrets.field("inputs", &mut json!({"auth": "none", "auth_mode": "required", "max_tokens": 1000000}));
        assert_eq!(secrets.scrub_text("none is required of 1000000"), "none is required of 1000000");
    }
}
