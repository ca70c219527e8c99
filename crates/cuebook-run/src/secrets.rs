//! The keys of providers and the password of the store, which are part of no event, no answer and no environment of a tool.

use cuebook::chat::Message;
use serde_json::Value as Json;

/// The keys that this process knows, by the names of their variables; those that stand in files have none.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<(Option<String>, String)>);

/// What stands in the place of a key.
const HIDDEN: &str = "[secret]";
/// What is shorter would be found in innocent words. It is still kept from tools.
const SHORTEST: usize = 8;

impl Secrets {
    /// The keys in the environment, of variables with these names.
    pub(crate) fn of_environment(names: impl IntoIterator<Item = String>) -> Secrets {
        let key = |name: String| {
            let value = std::env::var(&name).ok()?.trim().to_owned();
            (!value.is_empty()).then_some((Some(name), value))
        };
        Secrets(names.into_iter().filter_map(key).collect()).sorted()
    }

    /// And secrets that no variable holds.
    pub(crate) fn and(mut self, values: impl IntoIterator<Item = String>) -> Secrets {
        self.0.extend(values.into_iter().map(|value| (None, value)));
        self.sorted()
    }

    /// A key that begins like another one must not leave its end behind.
    fn sorted(mut self) -> Secrets {
        self.0.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        self
    }

    /// Those that can be distinguished from innocent words.
    fn values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, value)| value.as_str()).filter(|value| value.len() >= SHORTEST)
    }

    /// Lets no trace tell them either.
    pub(crate) fn kept(self) -> Secrets {
        cuebook::redact::keep(self.values());
        self
    }

    /// The names of the variables.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|(name, _)| name.as_deref())
    }

    /// Whether a text holds one of them.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.values().any(|value| text.contains(value))
    }

    /// Takes the keys out of a text.
    pub(crate) fn scrub_text(&self, text: &mut String) {
        for value in self.values() {
            if text.contains(value) {
                *text = text.replace(value, HIDDEN);
            }
        }
    }

    /// Takes the keys out of messages.
    pub(crate) fn scrub_messages(&self, messages: &mut [Message]) {
        for message in messages {
            let mut json = message.to_json();
            let before = json.clone();
            self.scrub(&mut json);
            if json != before
                && let Ok(scrubbed) = Message::from_json(&json)
            {
                *message = scrubbed;
            }
        }
    }

    /// Takes the keys out of every text of a value.
    pub(crate) fn scrub(&self, value: &mut Json) {
        match value {
            _ if self.0.is_empty() => {}
            Json::String(text) => self.scrub_text(text),
            Json::Array(items) => items.iter_mut().for_each(|item| self.scrub(item)),
            Json::Object(members) => {
                if members.keys().any(|name| self.values().any(|value| name.contains(value))) {
                    let named = std::mem::take(members).into_iter().map(|(mut name, value)| {
                        self.scrub_text(&mut name);
                        (name, value)
                    });
                    *members = named.collect();
                }
                members.values_mut().for_each(|member| self.scrub(member));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_is_masked_at_every_place() {
        let secrets = Secrets::default().and(["sk-12345678".into(), "sk-12345678-long".into()]);
        let mut value =
            json!({"x sk-12345678": ["a sk-12345678-long b", {"y": "sk-12345678sk-12345678"}], "n": 1});
        secrets.scrub(&mut value);
        assert_eq!(value, json!({"x [secret]": ["a [secret] b", {"y": "[secret][secret]"}], "n": 1}));
    }
}
