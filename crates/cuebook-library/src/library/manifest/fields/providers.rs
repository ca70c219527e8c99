//! `variable_providers` of `pack.json`: files of Python that give variables, and what they may do.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::super::VariableProvider;
use super::{ManifestReader, field_name, joined};
use crate::error::{Code, Diagnostic};
use crate::json::Step::{Index, Key};
use crate::json::{MAX_FINDINGS, Step, quoted};
use crate::prompt::{Limits, Permissions};

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

impl<'d> ManifestReader<'d> {
    pub(super) fn providers(&mut self, root: &'d Map<String, Value>) -> Vec<VariableProvider> {
        let Some(value) = self.field(root, "variable_providers") else { return Vec::new() };
        let Value::Array(items) = value else {
            self.wrong_type(&[Key("variable_providers")], value, "an array of objects");
            return Vec::new();
        };
        let mut first: HashMap<String, usize> = HashMap::new();
        let mut providers = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = [Key("variable_providers"), Index(index)];
            let Some(provider) = self.provider(item, &path) else { continue };
            if let Some(earlier) = first.get(&provider.namespace) {
                let place = |index| [Key("variable_providers"), Index(index), Key("namespace")];
                if self.problems.len() < MAX_FINDINGS {
                    let message = format!("duplicate provider namespace `{}`", provider.namespace);
                    let diagnostic = Diagnostic::new(Code::BadManifest, message)
                        .at(self.document.place(&place(index)))
                        .label("second one here")
                        .related(self.document.place(&place(*earlier)), "first one here")
                        .hint("rename one of them");
                    self.problems.push(diagnostic);
                }
                continue;
            }
            first.insert(provider.namespace.clone(), index);
            providers.push(provider);
        }
        providers
    }

    fn provider(&mut self, item: &'d Value, path: &[Step<'_>]) -> Option<VariableProvider> {
        let map = self.object(item, path, Some(PROVIDER_FIELDS))?;
        let file = self.needed(map, "file", path, "the path of a .py file in the pack");
        let file = file.filter(|file| self.pack_path(&joined(path, "file"), file, ".py"));
        let namespace = self.needed(map, "namespace", path, "the name that templates use");
        let namespace = namespace.filter(|name| self.namespace(&joined(path, "namespace"), name));
        let description = self.prose(map, "description", path);
        let optional = self.boolean(map, "optional", path);
        let permissions = self.permissions(map, path);
        let limits = self.limits(map, path);
        let (file, namespace) = (file?.to_owned(), namespace?.to_owned());
        Some(VariableProvider { file, namespace, description, optional, permissions, limits })
    }

    /// A string that an object must have.
    fn needed(
        &mut self,
        map: &'d Map<String, Value>,
        key: &str,
        path: &[Step<'_>],
        what: &str,
    ) -> Option<&'d str> {
        if let Some(value) = map.get(key) {
            return self.string(value, &joined(path, key));
        }
        self.lacking(path, || {
            (format!("{} has no `{key}`", field_name(path)), format!("add `{key}`: {what}"))
        });
        None
    }

    fn namespace(&mut self, path: &[Step<'_>], name: &str) -> bool {
        let mut characters = name.chars();
        let identifier = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|character| character.is_ascii_alphanumeric() || character == '_');
        if !identifier {
            self.wrong(path, || {
                let message = format!("invalid namespace {}", quoted(name));
                let label = "templates cannot use this name".to_owned();
                (message, label, "use letters, digits and `_`, starting with a letter".into())
            });
            return false;
        }
        if RESERVED_NAMESPACES.contains(&name) {
            self.wrong(path, || {
                let message = format!("reserved namespace {}", quoted(name));
                let label = "templates already use this name".to_owned();
                (message, label, format!("choose another name, for example `{}_info`", name.to_lowercase()))
            });
            return false;
        }
        true
    }

    fn boolean(&mut self, map: &'d Map<String, Value>, key: &str, path: &[Step<'_>]) -> bool {
        match self.field(map, key) {
            None => false,
            Some(Value::Bool(value)) => *value,
            Some(other) => {
                self.wrong_type(&joined(path, key), other, "true or false");
                false
            }
        }
    }

    fn permissions(&mut self, map: &'d Map<String, Value>, path: &[Step<'_>]) -> Permissions {
        let path = joined(path, "permissions");
        let value = self.field(map, "permissions");
        let Some(map) = value.and_then(|value| self.object(value, &path, Some(PERMISSION_FIELDS))) else {
            return Permissions::default();
        };
        Permissions {
            read_file: self.boolean(map, "read_file", &path),
            http_request: self.boolean(map, "http_request", &path),
            llm_call: self.boolean(map, "llm_call", &path),
            session_state: self.boolean(map, "session_state", &path),
        }
    }

    fn limits(&mut self, map: &'d Map<String, Value>, path: &[Step<'_>]) -> Limits {
        let path = joined(path, "limits");
        let mut limits = Limits::default();
        let value = self.field(map, "limits");
        let Some(map) = value.and_then(|value| self.object(value, &path, Some(LIMIT_FIELDS))) else {
            return limits;
        };
        if let Some(value) = self.field(map, "max_execution_time") {
            let time = value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            match time.filter(|time| !time.is_zero() && *time <= Limits::LONGEST) {
                Some(time) => limits.max_execution_time = time,
                None => {
                    self.wrong_type(
                        &joined(&path, "max_execution_time"),
                        value,
                        "a number of seconds above zero, and at most one day",
                    );
                }
            }
        }
        if let Some(value) = self.field(map, "max_output_size") {
            match value.as_u64().and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0) {
                Some(size) => limits.max_output_size = size,
                None => {
                    self.wrong_type(
                        &joined(&path, "max_output_size"),
                        value,
                        "a whole number of characters above zero",
                    );
                }
            }
        }
        limits
    }
}
