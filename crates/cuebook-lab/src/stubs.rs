//! Typed prompts: modules of other languages that know the prompts of a project, their variables and their outputs.

mod python;
mod typescript;

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::book::Book;
use crate::error::Result;

pub use python::python;
pub use typescript::typescript;

/// The definitions of the prompts that can be read.
fn definitions(book: &Book) -> Result<Vec<Json>> {
    let listed = book.list_prompts(None, None)?;
    Ok(listed.iter().filter_map(|one| book.get_definition(&one.id).ok()).collect())
}

fn id(definition: &Json) -> &str {
    definition["id"].as_str().unwrap_or_default()
}

fn list(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}

fn name_of(variable: &Json) -> &str {
    variable["name"].as_str().unwrap_or_default()
}

/// The names that the templates of a prompt read, without namespaces.
fn other_names(definition: &Json) -> BTreeSet<&str> {
    let spaces: BTreeSet<&str> =
        list(&definition["names"]["namespaces"]).iter().filter_map(Json::as_str).collect();
    let read = list(&definition["names"]["variables"]).iter().filter_map(Json::as_str);
    let roots = read.filter_map(|path| path.split(['.', '[']).next());
    roots.filter(|name| !spaces.contains(name) && *name != "system").collect()
}

/// A text of Python or TypeScript.
fn quoted(text: &str) -> String {
    // The texts of JSON are texts of both.
    Json::from(text).to_string()
}
