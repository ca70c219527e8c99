//! Which models there are, and what is known about them.

use cuebook::chat::models::{self, ModelInfo};
use serde_json::Value as Json;

use super::Case;
use crate::board::read;
use crate::compare::equals;

fn text<'c>(case: &'c Case<'_>, key: &str) -> &'c str {
    case.vector[key].as_str().or(case.input()[key].as_str()).unwrap_or_default()
}

pub fn map_model(case: &Case<'_>) -> Result<(), String> {
    let model = models::map_model(text(case, "provider"), text(case, "shape"), case.input());
    equals(case.expected(), &model.map_err(|error| error.to_string())?.to_json())
}

pub fn enrich(case: &Case<'_>) -> Result<(), String> {
    let given = |key: &str| case.input()[key].as_str().map(str::to_owned);
    let list = |key: &str| {
        let kinds = case.input()[key].as_array()?;
        Some(kinds.iter().map(|kind| kind.as_str().unwrap().to_owned()).collect())
    };
    let model = ModelInfo {
        id: given("id").ok_or("there is no id")?,
        display_name: given("displayName"),
        owned_by: given("ownedBy"),
        context_window: case.input()["contextWindow"].as_u64(),
        input_modalities: list("inputModalities"),
        output_modalities: list("outputModalities"),
        additional_properties: case.input()["additionalProperties"].as_object().cloned(),
    };
    equals(case.expected(), &models::enrich(text(case, "provider"), model).to_json())?;
    known_families(case)
}

/// Every family of the data that comes with the cases has the same figures here.
fn known_families(case: &Case<'_>) -> Result<(), String> {
    let data = read(&case.folder.join("model_capabilities.json"));
    for (provider, families) in data["providers"].as_object().unwrap() {
        for family in families.as_array().unwrap() {
            let prefix = family["prefix"].as_str().unwrap();
            for id in [prefix.to_owned(), format!("{prefix}-2099-01-01")] {
                let mut expected = family.clone();
                expected.as_object_mut().unwrap().remove("prefix");
                expected["id"] = Json::from(id.as_str());
                equals(&expected, &models::enrich(provider, ModelInfo::new(id)).to_json())?;
            }
        }
    }
    Ok(())
}
