//! `variable_providers` of `pack.json`: files of Python that give variables, and what they may do.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Number;

use super::super::VariableProvider;
use super::{Field, ManifestReader};
use crate::error::{Code, Diagnostic};
use crate::json::quoted;
use crate::node::Data;
use crate::prompt::{Limits, Permissions};
use crate::source::Place;

const PROVIDER_FIELDS: &[&str] = &["file", "namespace", "description", "optional", "permissions", "limits"];
const PERMISSION_FIELDS: &[&str] = &["read_file", "http_request", "llm_call", "session_state"];
const LIMIT_FIELDS: &[&str] = &["max_execution_time", "max_output_size"];

/// Names that mean something else in every template.
const RESERVED_NAMESPACES: &[&str] = &[
    "system",
    "loop",
    "self",
    "super",
    "caller",
    "varargs",
    "kwargs",
    "true",
    "false",
    "none",
    "True",
    "False",
    "None",
    "and",
    "or",
    "not",
    "in",
    "is",
    "if",
    "else",
    "elif",
    "for",
    "range",
    "dict",
    "lipsum",
    "cycler",
    "joiner",
    "namespace",
    "debug",
];

impl ManifestReader {
    pub(super) fn providers(&mut self, root: &Field<'_>) -> Vec<VariableProvider> {
        let Some(field) = root.get("variable_providers") else { return Vec::new() };
        let Some(items) = field.items() else {
            self.wrong_type(&field, "an array of objects");
            return Vec::new();
        };
        let mut first: HashMap<String, Place> = HashMap::new();
        let mut providers = Vec::new();
        for item in items {
            let Some(provider) = self.provider(&item) else { continue };
            let place = item.get("namespace").map_or(item.place(), |field| field.place()).clone();
            if let Some(earlier) = first.get(&provider.namespace) {
                let message = format!("duplicate provider namespace `{}`", provider.namespace);
                let diagnostic = Diagnostic::new(Code::BadManifest, message)
                    .at(place)
                    .label("second one here")
                    .related(earlier.clone(), "first one here")
                    .hint("rename one of them");
                self.values.problem(diagnostic);
                continue;
            }
            first.insert(provider.namespace.clone(), place);
            providers.push(provider);
        }
        providers
    }

    fn provider(&mut self, item: &Field<'_>) -> Option<VariableProvider> {
        if !self.is_object(item, Some(PROVIDER_FIELDS)) {
            return None;
        }
        let file = self.needed(item, "file", "the path of a .py file in the pack");
        let file = file.filter(|(field, file)| self.pack_path(field, file, ".py"));
        let namespace = self.needed(item, "namespace", "the name that templates use");
        let namespace = namespace.filter(|(field, name)| self.namespace(field, name));
        let description = self.prose(item, "description");
        let optional = self.boolean(item, "optional");
        let permissions = self.permissions(item);
        let limits = self.limits(item);
        let (file, namespace) = (file?.1.to_owned(), namespace?.1.to_owned());
        Some(VariableProvider { file, namespace, description, optional, permissions, limits })
    }

    /// A string that an object must have.
    fn needed<'n>(&mut self, object: &Field<'n>, key: &str, what: &str) -> Option<(Field<'n>, &'n str)> {
        if let Some(field) = object.entry(key) {
            return self.string(&field).map(|text| (field, text));
        }
        let message = format!("{} has no `{key}`", object.shown());
        self.lacking(object, message, format!("add `{key}`: {what}"));
        None
    }

    fn namespace(&mut self, field: &Field<'_>, name: &str) -> bool {
        let mut characters = name.chars();
        let identifier = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|character| character.is_ascii_alphanumeric() || character == '_');
        if !identifier {
            let message = format!("invalid namespace {}", quoted(name));
            let label = "templates cannot use this name".to_owned();
            let hint = "use letters, digits and `_`, starting with a letter".to_owned();
            self.wrong(field.place(), (message, label, hint));
            return false;
        }
        if RESERVED_NAMESPACES.contains(&name) {
            let message = format!("reserved namespace {}", quoted(name));
            let label = "templates already use this name".to_owned();
            let hint = format!("choose another name, for example `{}_info`", name.to_lowercase());
            self.wrong(field.place(), (message, label, hint));
            return false;
        }
        true
    }

    fn boolean(&mut self, object: &Field<'_>, key: &str) -> bool {
        let Some(field) = object.get(key) else { return false };
        match &field.node.data {
            Data::Bool(value) => *value,
            _ => {
                self.wrong_type(&field, "true or false");
                false
            }
        }
    }

    fn permissions(&mut self, item: &Field<'_>) -> Permissions {
        let field = item.get("permissions").filter(|field| self.is_object(field, Some(PERMISSION_FIELDS)));
        let Some(map) = &field else { return Permissions::default() };
        Permissions {
            read_file: self.boolean(map, "read_file"),
            http_request: self.boolean(map, "http_request"),
            llm_call: self.boolean(map, "llm_call"),
            session_state: self.boolean(map, "session_state"),
        }
    }

    fn limits(&mut self, item: &Field<'_>) -> Limits {
        let mut limits = Limits::default();
        let field = item.get("limits").filter(|field| self.is_object(field, Some(LIMIT_FIELDS)));
        let Some(map) = &field else { return limits };
        if let Some(field) = map.get("max_execution_time") {
            let seconds = number(&field).and_then(Number::as_f64);
            let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            match time.filter(|time| !time.is_zero() && *time <= Limits::LONGEST) {
                Some(time) => limits.max_execution_time = time,
                None => {
                    self.wrong_type(&field, "a number of seconds above zero, and at most one day");
                }
            }
        }
        if let Some(field) = map.get("max_output_size") {
            let size = number(&field).and_then(Number::as_u64).and_then(|size| usize::try_from(size).ok());
            match size.filter(|size| *size > 0) {
                Some(size) => limits.max_output_size = size,
                None => self.wrong_type(&field, "a whole number of characters above zero"),
            }
        }
        limits
    }
}

fn number<'n>(field: &Field<'n>) -> Option<&'n Number> {
    match &field.node.data {
        Data::Number(number) => Some(number),
        _ => None,
    }
}
