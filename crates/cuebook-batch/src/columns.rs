//! Which column fills which variable, and what a text of a CSV file means for it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cuebook::error::{did_you_mean, nearest};
use cuebook::prompt::{Need, Type};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Prepared, Result, Variables};
use serde_json::Value as Json;

use crate::rows::Row;

/// How many names a message lists.
const MAX_LISTED: usize = 10;

/// The way from columns to variables.
#[derive(Debug)]
pub(crate) struct Columns {
    /// Assigned by the user: variables by their columns.
    assigned: HashMap<String, String>,
    /// The variables of the prompt.
    known: BTreeSet<String>,
    takes_any: bool,
    kinds: HashMap<String, Type>,
    required: Vec<String>,
    prompt: String,
}

impl Columns {
    /// The way for a prompt. `given` has values for all rows.
    ///
    /// # Errors
    ///
    /// `CB902` for an assignment to a variable that does not exist, or to one that has two columns.
    pub(crate) fn new(
        prepared: &Prepared,
        assigned: &[(String, String)],
        given: &Variables,
    ) -> Result<Columns> {
        let prompt = prepared.prompt();
        let variables = &prompt.variables;
        let mut columns = Columns {
            assigned: HashMap::new(),
            known: prepared.known_names().clone(),
            takes_any: prepared.takes_any_name(),
            kinds: variables.iter().map(|variable| (variable.name.clone(), variable.kind)).collect(),
            required: variables
                .iter()
                .filter(|variable| variable.need == Need::Required && variable.default.is_none())
                .filter(|variable| given.get(&variable.name).is_none() && !variable.from_system)
                .map(|variable| variable.name.clone())
                .collect(),
            prompt: prompt.id.clone(),
        };
        let mut filled: BTreeMap<&str, &str> = BTreeMap::new();
        for (column, variable) in assigned {
            if !columns.knows(variable) {
                let near = nearest(variable, columns.known.iter().map(String::as_str));
                let hint = did_you_mean(&near).unwrap_or_else(|| columns.listed_variables());
                let message = format!("--map {column}={variable}: the prompt has no variable `{variable}`");
                return Err(bad_columns(message, hint).with("variable", variable));
            }
            if let Some(other) = filled.insert(variable, column) {
                let message = format!("--map: both `{other}` and `{column}` fill the variable `{variable}`");
                return Err(bad_columns(message, "leave out one of them".to_owned()));
            }
            columns.assigned.insert(column.clone(), variable.clone());
        }
        Ok(columns)
    }

    fn knows(&self, variable: &str) -> bool {
        self.takes_any || self.known.contains(variable)
    }

    fn listed_variables(&self) -> String {
        let names: Vec<&str> =
            self.known.iter().map(String::as_str).filter(|name| *name != "system").take(MAX_LISTED).collect();
        match names.is_empty() {
            true => format!("`{}` has no variables", self.prompt),
            false => format!("its variables are {}", names.join(", ")),
        }
    }

    /// The variable that a column fills.
    fn variable<'a>(&'a self, column: &'a str) -> Option<&'a str> {
        if let Some(variable) = self.assigned.get(column) {
            return Some(variable);
        }
        let is_taken = || self.assigned.values().any(|variable| variable == column);
        (self.knows(column) && !is_taken()).then_some(column)
    }

    /// Whether a column fills a variable.
    pub(crate) fn reads(&self, column: &str) -> bool {
        self.variable(column).is_some()
    }

    /// Refuses columns that do not fit: a variable that is required has none, or `--map` names one that does not exist.
    pub(crate) fn check(&self, columns: &[String], file: &str) -> Result<()> {
        let has = |name: &str| columns.iter().any(|column| column == name);
        let near = |name: &str| did_you_mean(&nearest(name, columns.iter().map(String::as_str)));
        if let Some(column) = self.assigned.keys().filter(|column| !has(column)).min() {
            let hint = near(column).unwrap_or_else(|| listed(columns));
            let message = format!("--map {column}: the data has no column `{column}`");
            return Err(bad_columns_of(file, message, hint).with("column", column));
        }
        let filled: BTreeSet<&str> = columns.iter().filter_map(|column| self.variable(column)).collect();
        if let Some(missing) = self.required.iter().find(|name| !filled.contains(name.as_str())) {
            let message = format!("the data has no column for the required variable `{missing}`");
            let hint = match near(missing) {
                Some(_) => {
                    let column = &nearest(missing, columns.iter().map(String::as_str))[0];
                    format!("assign a column: --map {column}={missing}")
                }
                None => format!(
                    "assign a column with --map COLUMN={missing}, or give one value with --var {missing}=…; {}",
                    listed(columns)
                ),
            };
            return Err(bad_columns_of(file, message, hint).with("variable", missing));
        }
        Ok(())
    }

    /// The variables of a row: those of all rows, and those that its columns fill.
    ///
    /// # Errors
    ///
    /// `CB901` for a text that is not what the variable takes.
    pub(crate) fn variables(&self, row: &Row, given: &Variables, are_texts: bool) -> Result<Variables> {
        let mut variables = given.clone();
        for (column, value) in &row.values {
            let Some(name) = self.variable(column) else { continue };
            if !are_texts {
                variables = variables.set(name, value);
                continue;
            }
            let text = value.as_str().unwrap_or_default();
            match meant(text, self.kinds.get(name).copied().unwrap_or_default()) {
                Ok(Some(value)) => variables = variables.set(name, value),
                Ok(None) => {}
                Err(kind) => {
                    let message = format!(
                        "row {}: the column `{column}` must be {kind}: `{}`",
                        row.number,
                        short(text)
                    );
                    let hint = format!("the variable `{name}` takes {kind}");
                    let diagnostic = Diagnostic::new(Code::BadData, message).hint(hint);
                    let error = Error::new(ErrorKind::PromptValidation, diagnostic);
                    return Err(error.with("row", row.number).with("column", column));
                }
            }
        }
        Ok(variables)
    }
}

/// What a text of a CSV file means for a variable of this type; `None` if it is absent.
fn meant(text: &str, kind: Type) -> Result<Option<Json>, &'static str> {
    let trimmed = text.trim();
    let json = |is: fn(&Json) -> bool| serde_json::from_str::<Json>(trimmed).ok().filter(is).map(Some);
    match kind {
        Type::String | Type::Any => Ok(Some(Json::from(text))),
        _ if trimmed.is_empty() => Ok(None),
        Type::Integer => json(|value| value.is_i64() || value.is_u64()).ok_or("a whole number"),
        Type::Number => json(Json::is_number).ok_or("a number"),
        Type::Boolean => match trimmed.to_lowercase().as_str() {
            "true" | "yes" | "1" => Ok(Some(Json::from(true))),
            "false" | "no" | "0" => Ok(Some(Json::from(false))),
            _ => Err("true or false"),
        },
        Type::List => json(Json::is_array).ok_or("a JSON list"),
        Type::Object => json(Json::is_object).ok_or("a JSON object"),
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn listed(columns: &[String]) -> String {
    match columns.split_at_checked(MAX_LISTED) {
        Some((first, more)) if !more.is_empty() => {
            format!("its columns are {} and {} more", first.join(", "), more.len())
        }
        _ => format!("its columns are {}", columns.join(", ")),
    }
}

pub(crate) fn bad_columns(message: String, hint: String) -> Error {
    Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadColumns, message).hint(hint))
}

/// The same for a file; a data set of a program has no name.
pub(crate) fn bad_columns_of(file: &str, message: String, hint: String) -> Error {
    let error = bad_columns(message, hint);
    if file.is_empty() { error } else { error.map(|found| found.file(file)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_means_what_its_variable_takes() {
        assert_eq!(meant("7", Type::Integer), Ok(Some(json!(7))));
        assert_eq!(meant("7", Type::String), Ok(Some(json!("7"))));
        assert_eq!(meant("", Type::String), Ok(Some(json!(""))));
        assert_eq!(meant("", Type::Number), Ok(None));
        assert_eq!(meant("Yes", Type::Boolean), Ok(Some(json!(true))));
        assert_eq!(meant("[1, 2]", Type::List), Ok(Some(json!([1, 2]))));
        assert!(meant("7.5", Type::Integer).is_err());
        assert!(meant("[1]", Type::Object).is_err());
    }
}
