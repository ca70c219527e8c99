//! The hooks of a directive: what is to happen at certain moments of a thread. They are read here and run by whoever runs threads.

use roxmltree::Node;
use serde_json::{Map, Value as Json};

use super::PRIMARIES;
use super::element::Reader;
use super::metadata::coerced;
use super::opaque::OPAQUE;
use super::xml::{elements, name};

impl Reader<'_> {
    /// One hook: its attributes, and what stands in it by the names of the elements.
    pub(super) fn hook(&mut self, node: Node<'_, '_>) -> Map<String, Json> {
        let mut hook = self.attributes(node);
        if let Some(text) = self.xml.stripped(node) {
            hook.insert("content".into(), text.as_str().into());
        }
        for child in elements(node) {
            match name(child) {
                "condition" => {
                    let mut condition = self.attributes(child);
                    if let Some(value) = condition.get_mut("value")
                        && let Some(text) = value.as_str()
                    {
                        *value = coerced(text);
                    }
                    hook.insert("condition".into(), Json::Object(condition));
                }
                "action" => {
                    let several: Vec<Json> = elements(child)
                        .filter(|inside| PRIMARIES.contains(&name(*inside)))
                        .map(|inside| {
                            let mut action = self.attributes(inside);
                            action.insert("primary".into(), name(inside).into());
                            self.params(&mut action, inside, false);
                            Json::Object(action)
                        })
                        .collect();
                    if several.is_empty() {
                        let mut action = self.attributes(child);
                        self.params(&mut action, child, false);
                        hook.insert("action".into(), Json::Object(action));
                    } else {
                        hook.insert("actions".into(), Json::Array(several));
                    }
                }
                "inputs" => {
                    let inputs: Map<String, Json> = elements(child)
                        .map(|input| {
                            let key = input.attribute("name").unwrap_or(name(input));
                            let text = self.xml.stripped(input);
                            (key.to_owned(), text.map(|text| text.to_string()).unwrap_or_default().into())
                        })
                        .collect();
                    hook.insert("inputs".into(), Json::Object(inputs));
                }
                known if OPAQUE.contains(&known) => {}
                other => {
                    if let Some(text) = self.xml.text(child) {
                        hook.insert(other.to_owned(), text.stripped().as_str().into());
                    }
                }
            }
        }
        hook
    }
}
