//! What sections are filled with: types of parameters, and values of them.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::fields::fields;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::prompt::{Described, Record};
use crate::variables::{LateScope, Scope, Variables};

/// A type of parameters: a name, and the fields that its values have.
#[derive(Debug, Clone)]
pub struct ParamsType {
    /// Its name. Two types of one name are the same type.
    pub name: String,
    /// What its values look like.
    pub record: Arc<Record>,
    /// Whether templates may ask for names that it does not declare: the inputs of a file are more than it lists.
    pub open: bool,
    /// Names whose values are shown between tags that they cannot close, and the names of the tags.
    pub fences: BTreeMap<String, String>,
}

/// A Rust type that fills sections: a struct that can be serialized and described. With the feature `schemas` a type that derives
/// `schemars::JsonSchema` is described.
pub trait Params: Serialize + Described + Send + Sync + 'static {}

impl<T: Serialize + Described + Send + Sync + 'static> Params for T {}

impl ParamsType {
    /// The type of a Rust struct.
    pub fn of<P: Params>() -> Result<Arc<ParamsType>> {
        let record = Record::of::<P>()?;
        let (name, fences) = (std::any::type_name::<P>().to_owned(), BTreeMap::new());
        Ok(Arc::new(ParamsType { name, record, open: false, fences }))
    }

    /// The name of the tags around the values of a field, if they are fenced.
    pub fn fence(&self, name: &str) -> Option<&str> {
        self.fences.get(name).map(String::as_str)
    }

    /// Whether its values have a field of this name.
    pub fn has(&self, name: &str) -> bool {
        self.open || self.record.fields.iter().any(|field| field.name == name)
    }

    /// A value made of nothing but defaults, if every field has one.
    pub(super) fn default_value(&self) -> Option<BoundParams> {
        let fields =
            self.record.fields.iter().map(|field| Some((field.name.clone(), field.default.clone()?)));
        let values: Map<String, Json> = fields.collect::<Option<_>>()?;
        Some(BoundParams::new(self.name.clone(), &values))
    }
}

/// A value of a type of parameters.
#[derive(Clone)]
pub struct BoundParams {
    type_name: Cow<'static, str>,
    values: Values,
    rust: Option<Arc<dyn Any + Send + Sync>>,
}

#[derive(Clone)]
enum Values {
    Own(Variables),
    Scope(Arc<Scope>),
}

impl std::fmt::Debug for BoundParams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bound").field("type", &self.type_name).finish_non_exhaustive()
    }
}

impl BoundParams {
    /// A value by the name of its type.
    pub fn new(type_name: impl Into<String>, values: &Map<String, Json>) -> BoundParams {
        let values = Values::Own(Variables::from_json(values));
        BoundParams { type_name: Cow::Owned(type_name.into()), values, rust: None }
    }

    /// A Rust value.
    pub fn of<P: Params>(value: P) -> Result<BoundParams> {
        let type_name = Cow::Borrowed(std::any::type_name::<P>());
        if let Ok(fields) = fields(&value) {
            return Ok(BoundParams { type_name, values: Values::Own(fields), rust: Some(Arc::new(value)) });
        }
        let json = serde_json::to_value(&value).map_err(|error| {
            let message = format!("cannot read a value of `{}`: {error}", std::any::type_name::<P>());
            Error::new(ErrorKind::PromptValidation, Diagnostic::new(Code::BadInput, message))
        })?;
        let Json::Object(values) = json else {
            let message = "Prompt expects dataclass instances.";
            let hint = "bind a struct with named fields";
            let diagnostic = Diagnostic::new(Code::BadInput, message).hint(hint);
            return Err(Error::new(ErrorKind::PromptValidation, diagnostic));
        };
        Ok(BoundParams { type_name, values: Values::Own(values.into()), rust: Some(Arc::new(value)) })
    }

    /// The values of a scope, with their layers.
    pub fn of_scope(type_name: &str, scope: Arc<Scope>) -> BoundParams {
        let type_name = Cow::Owned(type_name.to_owned());
        BoundParams { type_name, values: Values::Scope(scope), rust: None }
    }

    /// The name of its type.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// A field.
    pub fn get(&self, name: &str) -> Option<Json> {
        match &self.values {
            Values::Own(values) => values.get(name),
            Values::Scope(scope) => scope.get(name).map(|(_, value)| value),
        }
    }

    /// A field that it holds itself, and need not look for.
    pub(super) fn held(&self, name: &str) -> Option<&Json> {
        match &self.values {
            Values::Own(values) => values.value(name),
            Values::Scope(_) => None,
        }
    }

    pub(crate) fn scope(&self) -> Arc<Scope> {
        match &self.values {
            Values::Own(values) => Scope::of_values(values.clone()),
            Values::Scope(scope) => scope.clone(),
        }
    }

    /// The names of its fields.
    pub fn names(&self) -> Vec<String> {
        match &self.values {
            Values::Own(values) => values.names().map(str::to_owned).collect(),
            Values::Scope(scope) => scope.names(),
        }
    }

    /// The values that spans speak of where these are bound.
    pub(super) fn late_scope(bound: &[BoundParams]) -> LateScope {
        match bound {
            [BoundParams { values: Values::Scope(scope), .. }] => scope.clone().into(),
            several => LateScope::of_values(several.iter().map(BoundParams::variables).collect()),
        }
    }

    fn variables(&self) -> Variables {
        match &self.values {
            Values::Own(values) => values.clone(),
            Values::Scope(scope) => scope
                .names()
                .into_iter()
                .filter_map(|name| Some((name.clone(), scope.get(&name)?.1)))
                .collect(),
        }
    }

    /// The Rust value, if it is one of this type.
    pub fn rust<P: Params>(&self) -> Option<&P> {
        self.rust.as_ref()?.downcast_ref()
    }
}
