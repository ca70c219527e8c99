//! Completions: what an argument could be, from what is known of it.

use cuebook::Book;
use cuebook::items::{ItemType, Spaces};
use cuebook::prompt::Type;
use rmcp::model::{ArgumentInfo, CompleteResult, CompletionContext, CompletionInfo, ErrorData, Reference};

use crate::faults::{fault, invalid};
use crate::{knowledge, prompts, uri};

/// Completes an argument of a prompt, or the id in an address of knowledge.
pub(crate) fn complete(
    book: &Book,
    spaces: &Spaces,
    reference: &Reference,
    argument: &ArgumentInfo,
    context: Option<&CompletionContext>,
) -> Result<CompleteResult, ErrorData> {
    let values = match reference {
        Reference::Prompt(prompt) => {
            let id = prompts::id_of(book, &prompt.name).map_err(|error| fault(&error))?;
            of_prompt(book, spaces, &id, argument, context)?
        }
        Reference::Resource(resource) if resource.uri == uri::TEMPLATE && argument.name == "id" => {
            item_ids(spaces, ItemType::Knowledge)?
        }
        Reference::Resource(resource) if resource.uri == uri::TEMPLATE => {
            let message = format!("`{}` has no argument `{}`", uri::TEMPLATE, argument.name);
            return Err(invalid(message, "its one argument is `id`"));
        }
        Reference::Resource(resource) => {
            let message = format!("unknown resource template {:?}", resource.uri);
            return Err(invalid(message, &format!("the template is {}", uri::TEMPLATE)));
        }
        _ => {
            return Err(invalid("unknown kind of reference", "complete for ref/prompt or ref/resource"));
        }
    };
    Ok(CompleteResult::new(fitting(values, &argument.value)))
}

fn of_prompt(
    book: &Book,
    spaces: &Spaces,
    id: &str,
    argument: &ArgumentInfo,
    context: Option<&CompletionContext>,
) -> Result<Vec<String>, ErrorData> {
    let prepared = prompts::prepare(book, id).map_err(|error| fault(&error))?;
    if !prepared.knows(&argument.name) {
        return Err(fault(&prompts::unknown_argument(&prepared, &argument.name)));
    }
    if let Some(variable) = prepared.prompt().variable(&argument.name) {
        if !variable.choices.is_empty() {
            return Ok(variable.choices.iter().map(prompts::text).collect());
        }
        if variable.kind == Type::Boolean && variable.rich.is_none() {
            return Ok(vec!["true".to_owned(), "false".to_owned()]);
        }
    }
    let ids = |kind| item_ids(spaces, kind);
    let mut values = match argument.name.as_str() {
        "prompt" | "prompt_id" | "prompt_name" => prompts::ids(book).map_err(|error| fault(&error))?,
        "directive" | "directive_id" | "directive_name" => ids(ItemType::Directive)?,
        "tool" | "tool_id" | "tool_name" => ids(ItemType::Tool)?,
        "knowledge" | "knowledge_id" | "knowledge_name" => ids(ItemType::Knowledge)?,
        "item_type" => ItemType::ALL.map(|kind| kind.as_str().to_owned()).to_vec(),
        "item_id" => {
            let chosen = context.and_then(|context| context.get_argument("item_type"));
            match chosen.and_then(|name| ItemType::named(name)) {
                Some(kind) => ids(kind)?,
                None => Vec::new(),
            }
        }
        _ => Vec::new(),
    };
    // The value without any setting is worth offering, unless it may not be shown.
    if values.is_empty()
        && let Some(variable) = prepared.prompt().variable(&argument.name)
        && let Some(default) = &variable.default
        && variable.shown(default) == *default
    {
        values.push(prompts::text(default));
    }
    Ok(values)
}

fn item_ids(spaces: &Spaces, kind: ItemType) -> Result<Vec<String>, ErrorData> {
    if kind == ItemType::Knowledge {
        let all = knowledge::all(spaces).map_err(|error| fault(&error))?;
        return Ok(all.into_values().map(|located| located.id.as_str().to_owned()).collect());
    }
    let mut ids = Vec::new();
    for space in spaces.all() {
        let found = spaces.walk(kind, space).map_err(|error| fault(&error))?;
        ids.extend(found.into_iter().map(|located| located.id.as_str().to_owned()));
    }
    ids.sort();
    ids.dedup();
    Ok(ids)
}

/// The values that begin with what was typed, and after them those that contain it, at most as many as an answer may have.
fn fitting(values: Vec<String>, typed: &str) -> CompletionInfo {
    let typed = typed.to_lowercase();
    let (mut fit, others): (Vec<String>, Vec<String>) =
        values.into_iter().partition(|value| value.to_lowercase().starts_with(&typed));
    fit.extend(others.into_iter().filter(|value| value.to_lowercase().contains(&typed)));
    let total = fit.len();
    fit.truncate(CompletionInfo::MAX_VALUES);
    let more = fit.len() < total;
    CompletionInfo::with_pagination(fit, u32::try_from(total).ok(), more).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_that_begin_so_come_first() {
        let values = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let found = fitting(values(&["recap", "Cap", "other", "capable"]), "cap");
        assert_eq!(found.values, ["Cap", "capable", "recap"]);
        assert_eq!((found.total, found.has_more), (Some(3), Some(false)));
        let many = fitting((0..250).map(|number| format!("a{number}")).collect(), "a");
        assert_eq!((many.values.len(), many.total, many.has_more), (100, Some(250), Some(true)));
    }
}
