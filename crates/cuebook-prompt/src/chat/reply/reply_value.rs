//! Looking into a reply: values that know the path that led to them, so that a message can say where something is wrong.
//!
//! A path is a chain of borrows and becomes text on the way to an error only.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};

use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use crate::json::kind_of;

/// A value inside a reply.
#[derive(Clone, Copy)]
pub(super) struct ReplyValue<'p, 'v> {
    pub(super) value: &'v Json,
    from: Option<(&'p ReplyValue<'p, 'v>, Step)>,
}

#[derive(Clone, Copy)]
enum Step {
    Key(&'static str),
    Index(usize),
}

impl<'p, 'v> ReplyValue<'p, 'v> {
    /// The whole reply.
    pub(super) fn new(value: &'v Json) -> ReplyValue<'p, 'v> {
        ReplyValue { value, from: None }
    }

    /// The value of a key; `null` is the same as absent.
    pub(super) fn get(&'p self, key: &'static str) -> Option<ReplyValue<'p, 'v>> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(ReplyValue { value, from: Some((self, Step::Key(key))) })
    }

    /// The value of a key that has to be there.
    pub(super) fn need(&'p self, key: &'static str) -> Result<ReplyValue<'p, 'v>> {
        if !self.value.is_object() {
            return Err(self.wrong("an object"));
        }
        self.get(key).ok_or_else(|| {
            let missing = ReplyValue { value: &Json::Null, from: Some((self, Step::Key(key))) };
            bad(format!("`{}` is missing", missing.path())).with("path", missing.path())
        })
    }

    /// The elements of a list.
    pub(super) fn items(&'p self) -> Result<impl DoubleEndedIterator<Item = ReplyValue<'p, 'v>>> {
        let items = self.value.as_array().ok_or_else(|| self.wrong("an array"))?;
        let look = move |(index, value)| ReplyValue { value, from: Some((self, Step::Index(index))) };
        Ok(items.iter().enumerate().map(look))
    }

    /// The elements of the list that a key has; none if it has no value.
    pub(super) fn list(&'p self, key: &'static str) -> Result<Vec<&'v Json>> {
        let Some(list) = self.get(key) else { return Ok(Vec::new()) };
        Ok(list.items()?.map(|item| item.value).collect())
    }

    /// A text.
    pub(super) fn text(&self) -> Result<&'v str> {
        self.value.as_str().ok_or_else(|| self.wrong("a string"))
    }

    /// The text of a key, if it has a value.
    pub(super) fn text_of(&self, key: &'static str) -> Result<Option<&'v str>> {
        match self.value.get(key).filter(|value| !value.is_null()) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(value) => Err(ReplyValue { value, from: Some((self, Step::Key(key))) }.wrong("a string")),
        }
    }

    /// An object.
    pub(super) fn object(&self) -> Result<&'v Map<String, Json>> {
        self.value.as_object().ok_or_else(|| self.wrong("an object"))
    }

    /// The text of a key, where anything else does not matter: an id, the name of a model.
    pub(super) fn note(&self, key: &str) -> Option<String> {
        self.value.get(key).and_then(Json::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// That this value is of another type than was expected.
    pub(super) fn wrong(&self, wanted: &str) -> Error {
        let path = self.path();
        let what = if path.is_empty() { "the reply".to_owned() } else { format!("`{path}`") };
        bad(format!("{what} must be {wanted}, but is {}", kind_of(self.value))).with("path", path)
    }

    /// The way to it, as in `choices[0].message`; empty for the whole reply.
    pub(super) fn path(&self) -> String {
        let mut steps = Vec::new();
        let mut at = self;
        while let Some((up, step)) = at.from {
            steps.push(step);
            at = up;
        }
        let mut path = String::new();
        for step in steps.into_iter().rev() {
            match step {
                Step::Key(key) if path.is_empty() => path.push_str(key),
                Step::Key(key) => path.extend([".", key]),
                Step::Index(index) => {
                    // Writing to a string does not fail.
                    let _ = write!(path, "[{index}]");
                }
            }
        }
        path
    }
}

/// A reply that cannot be understood.
pub(super) fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Reply, Diagnostic::new(Code::BadReply, message))
}

/// A reply that says that the provider failed.
pub(super) fn failed(message: impl Into<String>, hint: Option<Hint>) -> Error {
    Error::new(ErrorKind::Reply, Diagnostic::new(Code::ProviderFailed, message).hint_opt(hint))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_has_the_path_and_the_value_there() {
        let reply = json!({"choices": [{"message": 5}]});
        let reply = ReplyValue::new(&reply);
        let choices = reply.need("choices").unwrap();
        let first = choices.items().unwrap().next().unwrap();
        let message = first.need("message").unwrap();
        let error = message.need("content").err().unwrap();
        assert_eq!(
            error.to_string(),
            "ReplyError: `choices[0].message` must be an object, but is a number [CB605]"
        );
        assert_eq!(error.field("path"), Some(&json!("choices[0].message")));
        assert_eq!(first.need("delta").err().unwrap().diagnostic().message, "`choices[0].delta` is missing");
        assert_eq!(
            reply.text().unwrap_err().diagnostic().message,
            "the reply must be a string, but is an object"
        );
    }

    #[test]
    fn null_is_the_same_as_absent() {
        let reply = json!({"content": null});
        let reply = ReplyValue::new(&reply);
        assert!(reply.get("content").is_none());
        assert_eq!(reply.text_of("content").unwrap(), None);
        assert!(reply.list("content").unwrap().is_empty());
    }
}
