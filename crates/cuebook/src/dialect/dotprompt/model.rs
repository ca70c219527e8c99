//! The model of a prompt, and its settings.

use serde_json::Value as Json;

use super::schema::map_of;
use super::{Front, wrong};
use crate::error::Result;
use crate::node::{Data, Node};
use crate::prompt::{Model, ModelOptions};

/// The providers that names of models begin with, as dotprompt writes them and as Cuebook knows them.
const PROVIDERS: [(&str, &str); 5] = [
    ("googleai", "gemini"),
    ("google", "gemini"),
    ("vertexai", "gemini"),
    ("openai", "openai"),
    ("anthropic", "anthropic"),
];

/// The model and its `config`; nothing if the file has neither.
pub(super) fn read(front: &Front) -> Result<Option<Model>> {
    let mut model = match front.root.get("model") {
        None | Some(Node { data: Data::Null, .. }) => Model::default(),
        Some(Node { data: Data::Text(id), place, .. }) => {
            let known = id.split_once('/').and_then(|(name, id)| {
                PROVIDERS.iter().find(|(known, _)| *known == name).map(|(_, provider)| (id, *provider))
            });
            match known {
                Some((id, provider)) => Model {
                    id: id.to_owned(),
                    provider: Some(provider.to_owned()),
                    provider_place: Some(place.clone()),
                    ..Model::default()
                },
                None => Model { id: id.clone(), ..Model::default() },
            }
        }
        Some(node) => {
            let message = format!("`model` must be a name, but is {}", node.describe());
            return Err(wrong(node.opening(), message, "write `model: googleai/gemini-2.5-flash`"));
        }
    };
    if let Some(config) = map_of(&front.root, "config")? {
        model.options = options(config)?;
    }
    let is_empty = model.id.is_empty() && model.options == ModelOptions::default();
    Ok((!is_empty).then_some(model))
}

fn options(config: &Node) -> Result<ModelOptions> {
    let mut options = ModelOptions::default();
    let Data::Map(entries) = &config.data else { return Ok(options) };
    for (key, node) in entries {
        let number = match key.name.as_str() {
            "temperature" => &mut options.temperature,
            "maxOutputTokens" => &mut options.max_output_tokens,
            "topP" => &mut options.top_p,
            "topK" => &mut options.top_k,
            "frequencyPenalty" => &mut options.frequency_penalty,
            "presencePenalty" => &mut options.presence_penalty,
            "seed" => &mut options.seed,
            "stopSequences" => {
                let texts =
                    |items: &[Node]| items.iter().map(|item| item.text().map(str::to_owned)).collect();
                let found: Option<Vec<String>> = match &node.data {
                    Data::List(items) => texts(items),
                    Data::Text(text) => Some(vec![text.clone()]),
                    Data::Null => Some(Vec::new()),
                    _ => None,
                };
                let Some(found) = found else {
                    let message = "`config.stopSequences` must be a list of texts";
                    return Err(wrong(node.opening(), message, "write `stopSequences: [\"END\"]`"));
                };
                options.stop_sequences = found;
                continue;
            }
            _ => {
                options.additional_properties.insert(key.name.clone(), node.to_json());
                continue;
            }
        };
        *number = match node.to_json() {
            Json::Number(found) => Some(found),
            Json::Null => None,
            _ => {
                let message = format!("`config.{}` must be a number, but is {}", key.name, node.describe());
                return Err(wrong(node.opening(), message, "write a number"));
            }
        };
    }
    Ok(options)
}
