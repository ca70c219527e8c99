//! One entry of a provider's list of models.

use serde_json::{Map, Value as Json};

use super::ModelInfo;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, did_you_mean, nearest};
use crate::json::{kind_of, quoted};

/// The providers whose lists are understood.
const PROVIDERS: [&str; 6] = ["openai", "anthropic", "foundry", "azure", "gemini", "google"];

/// Understands one entry of a provider's list. Foundry has several lists, and `shape` says which: `catalog` has what could
/// be deployed, `deployment` what is. Other providers have one, and any `shape` will do.
pub fn map_model(provider: &str, shape: &str, raw: &Json) -> Result<ModelInfo> {
    if !PROVIDERS.contains(&provider) {
        let known = nearest(provider, PROVIDERS);
        let diagnostic = Diagnostic::new(Code::UnknownWire, format!("unknown provider {}", quoted(provider)))
            .hint("use `openai` for providers with an OpenAI-compatible API")
            .hint_opt(did_you_mean(&known));
        return Err(Error::new(ErrorKind::Invoker, diagnostic));
    }
    let Json::Object(entry) = raw else {
        return Err(wrong(format!("a model in the list must be an object, but is {}", kind_of(raw))));
    };
    let mut model = match provider {
        "anthropic" => anthropic(entry),
        "gemini" | "google" => gemini(entry),
        "foundry" | "azure" if shape == "deployment" || is_deployment(entry) => deployment(entry, raw),
        _ => listed(entry),
    }?;
    model.additional_properties = Some(entry.clone());
    Ok(model)
}

/// An entry in the form of OpenAI's list, of Foundry's catalogue, or of a gateway that says more than OpenAI does.
fn listed(entry: &Map<String, Json>) -> Result<ModelInfo> {
    Ok(ModelInfo {
        id: need(entry, "id")?,
        display_name: first_text(entry, &["display_name", "displayName"]),
        owned_by: first_text(entry, &["owned_by", "ownedBy", "publisher"]),
        context_window: first_number(
            entry,
            &["context_window", "context_length", "maxContextLength", "max_context_length", "max_model_len"],
        ),
        ..modalities(entry)
    })
}

fn anthropic(entry: &Map<String, Json>) -> Result<ModelInfo> {
    let mut model = ModelInfo {
        id: need(entry, "id")?,
        display_name: first_text(entry, &["display_name"]),
        owned_by: Some("anthropic".to_owned()),
        context_window: first_number(entry, &["context_length", "context_window", "max_input_tokens"]),
        ..modalities(entry)
    };
    let sees = entry.get("capabilities").and_then(|all| all.pointer("/image_input/supported")?.as_bool());
    if let (None, Some(sees)) = (&model.input_modalities, sees) {
        let kinds: &[&str] = if sees { &["text", "image"] } else { &["text"] };
        model.input_modalities = Some(kinds.iter().map(|kind| (*kind).to_owned()).collect());
    }
    Ok(model)
}

/// Google names its models like paths; requests take the last part.
fn gemini(entry: &Map<String, Json>) -> Result<ModelInfo> {
    let name = need(entry, "name")?;
    Ok(ModelInfo {
        id: name.strip_prefix("models/").unwrap_or(&name).to_owned(),
        display_name: first_text(entry, &["displayName"]),
        owned_by: Some("google".to_owned()),
        context_window: first_number(entry, &["inputTokenLimit"]),
        ..modalities(entry)
    })
}

/// Whether an entry of Foundry's says which model was deployed.
fn is_deployment(entry: &Map<String, Json>) -> bool {
    let nested = entry.get("properties").and_then(|properties| properties.get("model"));
    entry.contains_key("modelName") || nested.is_some()
}

/// What was deployed: a request names the deployment, people want to know the model. The project's own list is flat,
/// that of the resource manager keeps the model under `properties.model`, and one of Azure OpenAI has a plain `model`.
fn deployment(entry: &Map<String, Json>, raw: &Json) -> Result<ModelInfo> {
    let deep = |path: &str| {
        raw.pointer(path).and_then(Json::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let id = match first_text(entry, &["name"]) {
        Some(name) => name,
        // The id of a resource is the path to it.
        None => need(entry, "id")?.rsplit('/').next().unwrap_or_default().to_owned(),
    };
    Ok(ModelInfo {
        id,
        display_name: deep("/modelName")
            .or_else(|| deep("/properties/model/name"))
            .or_else(|| deep("/properties/modelName"))
            .or_else(|| deep("/model/name"))
            .or_else(|| deep("/model")),
        owned_by: deep("/modelPublisher")
            .or_else(|| deep("/properties/model/publisher"))
            .or_else(|| deep("/properties/model/format"))
            .or_else(|| deep("/properties/modelPublisher"))
            .or_else(|| deep("/model/publisher"))
            .or_else(|| deep("/model/format"))
            .or_else(|| deep("/owned_by").or_else(|| deep("/owner"))),
        context_window: parts(entry)
            .iter()
            .find_map(|part| first_number(part, &["maxContextLength", "context_length", "context_window"])),
        ..parts(entry).into_iter().map(modalities).reduce(filled).unwrap_or_default()
    })
}

/// The parts of a deployment that may say what its model can do, the nearest first.
fn parts(entry: &Map<String, Json>) -> Vec<&Map<String, Json>> {
    let mut parts = vec![entry];
    for outer in [Some(entry), entry.get("properties").and_then(Json::as_object)].into_iter().flatten() {
        parts.extend(["model", "capabilities"].into_iter().filter_map(|name| outer.get(name)?.as_object()));
    }
    parts
}

/// What one part says, and where it says nothing what another does.
fn filled(one: ModelInfo, other: ModelInfo) -> ModelInfo {
    ModelInfo {
        input_modalities: one.input_modalities.or(other.input_modalities),
        output_modalities: one.output_modalities.or(other.output_modalities),
        ..one
    }
}

/// What goes in and comes out, under any of the names for it.
fn modalities(entry: &Map<String, Json>) -> ModelInfo {
    let list = |names: [&str; 3]| {
        let architecture = entry.get("architecture");
        let found = names.iter().find_map(|name| entry.get(*name).or_else(|| architecture?.get(*name)));
        let kinds = found?.as_array()?.iter().map(|kind| kind.as_str().map(str::to_owned));
        kinds.collect::<Option<Vec<String>>>()
    };
    ModelInfo {
        input_modalities: list(["input_modalities", "inputModalities", "supportedInputModalities"]),
        output_modalities: list(["output_modalities", "outputModalities", "supportedOutputModalities"]),
        ..ModelInfo::default()
    }
}

fn need(entry: &Map<String, Json>, key: &str) -> Result<String> {
    match entry.get(key) {
        Some(Json::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(Json::String(_)) => Err(wrong(format!("`{key}` of a model in the list is empty"))),
        None | Some(Json::Null) => Err(wrong(format!("`{key}` of a model in the list is missing"))),
        Some(other) => {
            Err(wrong(format!("`{key}` of a model in the list must be a string, but is {}", kind_of(other))))
        }
    }
}

fn first_text(entry: &Map<String, Json>, keys: &[&str]) -> Option<String> {
    let text = |key: &&str| entry.get(*key)?.as_str().filter(|text| !text.is_empty());
    keys.iter().find_map(text).map(str::to_owned)
}

fn first_number(entry: &Map<String, Json>, keys: &[&str]) -> Option<u64> {
    keys.iter().find_map(|key| entry.get(*key)?.as_u64())
}

fn wrong(message: String) -> Error {
    let diagnostic = Diagnostic::new(Code::BadReply, message)
        .hint("pass one entry of the list, with the provider that it came from");
    Error::new(ErrorKind::Reply, diagnostic)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::chat::reply::any_json;

    fn mapped(provider: &str, shape: &str, raw: Json) -> Json {
        let mut model = map_model(provider, shape, &raw).unwrap().to_json();
        assert_eq!(model.as_object_mut().unwrap().remove("additionalProperties"), Some(raw));
        model
    }

    #[test]
    fn openai_gives_ids_and_owners() {
        let raw = json!({"id": "o3-mini", "object": "model", "created": 1, "owned_by": "system"});
        assert_eq!(mapped("openai", "model", raw), json!({"id": "o3-mini", "ownedBy": "system"}));
        assert_eq!(mapped("openai", "", json!({"id": "ft:x"})), json!({"id": "ft:x"}));
    }

    #[test]
    fn gateways_say_more_than_openai() {
        let raw = json!({"id": "meta/llama", "context_length": 131_072,
            "architecture": {"input_modalities": ["text"], "output_modalities": []}});
        assert_eq!(
            mapped("openai", "model", raw),
            json!({"id": "meta/llama", "contextWindow": 131_072, "inputModalities": ["text"], "outputModalities": []})
        );
        assert_eq!(
            mapped("openai", "model", json!({"id": "x", "max_model_len": 4096}))["contextWindow"],
            4096
        );
    }

    #[test]
    fn anthropic_is_the_owner_and_says_what_a_model_sees() {
        let raw = json!({"id": "claude-x", "display_name": "Claude X", "type": "model", "max_input_tokens": 200_000,
            "capabilities": {"image_input": {"supported": true}}});
        assert_eq!(
            mapped("anthropic", "model", raw),
            json!({"id": "claude-x", "displayName": "Claude X", "ownedBy": "anthropic", "contextWindow": 200_000,
                "inputModalities": ["text", "image"]})
        );
        let silent = json!({"id": "claude-x", "capabilities": null});
        assert_eq!(mapped("anthropic", "model", silent), json!({"id": "claude-x", "ownedBy": "anthropic"}));
    }

    #[test]
    fn foundry_lists_a_catalogue_and_deployments_in_three_forms() {
        let expected = json!({"id": "prod", "displayName": "gpt-4o", "ownedBy": "OpenAI"});
        for raw in [
            json!({"name": "prod", "type": "ModelDeployment", "modelName": "gpt-4o", "modelPublisher": "OpenAI"}),
            json!({"id": "/subscriptions/1/deployments/prod", "name": "prod", "sku": {"name": "Standard"},
                "properties": {"model": {"format": "OpenAI", "name": "gpt-4o", "version": "2024-08-06"}}}),
            json!({"id": "/subscriptions/1/deployments/prod",
                "properties": {"model": {"format": "Other", "publisher": "OpenAI", "name": "gpt-4o"}}}),
        ] {
            assert_eq!(mapped("foundry", "deployment", raw.clone()), expected);
            assert_eq!(mapped("foundry", "", raw), expected);
        }
        let old =
            json!({"id": "prod", "model": "gpt-4o", "owner": "organization-owner", "object": "deployment"});
        assert_eq!(
            mapped("azure", "deployment", old),
            json!({"id": "prod", "displayName": "gpt-4o", "ownedBy": "organization-owner"})
        );
        let catalogue = json!({"id": "gpt-4", "owned_by": "openai", "maxContextLength": 8192});
        assert_eq!(
            mapped("foundry", "catalog", catalogue),
            json!({"id": "gpt-4", "ownedBy": "openai", "contextWindow": 8192})
        );
    }

    #[test]
    fn google_names_models_like_paths() {
        let raw = json!({"name": "models/gemini-2.5-pro", "displayName": "Gemini 2.5 Pro", "inputTokenLimit": 1_048_576});
        assert_eq!(
            mapped("gemini", "model", raw),
            json!({"id": "gemini-2.5-pro", "displayName": "Gemini 2.5 Pro", "ownedBy": "google", "contextWindow": 1_048_576})
        );
        assert_eq!(mapped("gemini", "", json!({"name": "tunedModels/mine"}))["id"], "tunedModels/mine");
    }

    #[test]
    fn mistakes_in_a_list_of_models_are_errors() {
        let message = |provider: &str, raw: Json| {
            map_model(provider, "model", &raw).unwrap_err().diagnostic().message.clone()
        };
        assert_eq!(message("openai", json!([])), "a model in the list must be an object, but is an array");
        assert_eq!(message("openai", json!({})), "`id` of a model in the list is missing");
        assert_eq!(
            message("anthropic", json!({"id": 5})),
            "`id` of a model in the list must be a string, but is a number"
        );
        assert_eq!(message("gemini", json!({"name": ""})), "`name` of a model in the list is empty");
        let error = map_model("antropic", "model", &json!({})).unwrap_err();
        assert_eq!(error.code(), Code::UnknownWire);
        assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `anthropic`?"));
    }

    #[test]
    fn figures_and_lists_of_another_type_are_not_taken() {
        let raw = json!({"id": "x", "context_length": "many", "input_modalities": "text", "output_modalities": [1]});
        assert_eq!(mapped("openai", "model", raw), json!({"id": "x"}));
    }

    proptest! {
        #[test]
        fn no_entry_makes_it_panic(provider in prop::sample::select(&PROVIDERS[..]), raw in any_json()) {
            if let Ok(model) = map_model(provider, "deployment", &raw) {
                super::super::enrich(provider, model);
            }
        }
    }
}
