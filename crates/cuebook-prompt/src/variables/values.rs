//! Values by name, as a caller or an agent gives them.

use std::sync::Arc;

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value as Json};

use super::serialize::{self, Fault};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::json::Document;
use crate::node::{Data, to_object};
use crate::source::Source;
use crate::yaml;

/// Values by name. Cheap to clone; any number of renders can use them.
///
/// ```
/// use cuebook::Variables;
/// use serde_json::json;
///
/// let variables = Variables::new()
///     .set("agent_name", "Rumi")
///     .set("tools", json!([{"name": "grep", "description": "Search files"}]));
/// assert_eq!(variables.len(), 2);
/// assert_eq!(variables.names().collect::<Vec<_>>(), ["agent_name", "tools"]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Variables(Option<Arc<Values>>);

#[derive(Debug, Clone, Default)]
struct Values {
    by_name: IndexMap<String, Json, RandomState>,
    /// Why a name has no value although the caller gave it one. A render refuses these.
    faults: IndexMap<String, String>,
}

impl Values {
    fn insert(&mut self, name: String, value: Result<Json, Fault>) {
        match value {
            Ok(json) => {
                self.faults.shift_remove(&name);
                self.by_name.insert(name, json);
            }
            Err(fault) => {
                self.by_name.shift_remove(&name);
                self.faults.insert(name, fault.0);
            }
        }
    }
}

/// Whether a text is YAML.
fn is_yaml(source: &Source) -> bool {
    let name = source.name().to_ascii_lowercase();
    let ends = |end: &str| name.ends_with(end);
    match (ends(".yaml") || ends(".yml"), ends(".json")) {
        (true, _) => true,
        (_, true) => false,
        _ => !source.text().trim_start().starts_with(['{', '[', '"']) && !source.text().trim().is_empty(),
    }
}

/// So many names are looked through faster than a hash is made.
const FEW: usize = 8;

impl Variables {
    /// No values.
    pub fn new() -> Variables {
        Variables::default()
    }

    /// The values of a JSON object.
    pub fn from_json(object: &Map<String, Json>) -> Variables {
        let copied = |(name, value): (&String, &Json)| {
            (name.clone(), serialize::check_depth(value).map(|()| value.clone()))
        };
        Variables::kept(object.iter().map(copied))
    }

    /// The fields of a struct, or the entries of a map.
    ///
    /// ```
    /// #[derive(serde::Serialize)]
    /// struct Greeting {
    ///     name: &'static str,
    ///     languages: Vec<&'static str>,
    /// }
    ///
    /// let greeting = Greeting { name: "Ada", languages: vec!["en", "de"] };
    /// let variables = cuebook::Variables::from_serialize(&greeting)?;
    /// assert_eq!(variables.get("name").unwrap(), "Ada");
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `CB401` for anything that has no names, for a number that is not finite, and for values that nest too deep.
    pub fn from_serialize<T: Serialize + ?Sized>(values: &T) -> Result<Variables> {
        let why = match serialize::to_json(values) {
            Ok(Json::Object(object)) => return Ok(object.into()),
            Ok(other) => format!("the variables are {}, but must have names", crate::json::kind_of(&other)),
            Err(fault) => format!("one of the variables {fault}"),
        };
        let diagnostic =
            Diagnostic::new(Code::InvalidVariables, why).hint("give a struct or a map of names and values");
        Err(Error::new(ErrorKind::PromptValidation, diagnostic))
    }

    /// Reads a JSON or YAML file whose one object gives the values.
    pub fn read(source: &Arc<Source>) -> Result<Variables> {
        Ok(Variables::from_json(&Variables::read_object(source)?))
    }

    /// Reads the object of a JSON or YAML file. The end of its name says which it is, or else its first character does: a text
    /// that begins with a bracket or a quote is JSON.
    ///
    /// ```
    /// use cuebook::Variables;
    /// use cuebook::source::Source;
    ///
    /// let object = Variables::read_object(&Source::new("values.yaml", "name: Ada\nlangs: [en, ja]\n"))?;
    /// assert_eq!(object["langs"][1], "ja");
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn read_object(source: &Arc<Source>) -> Result<Map<String, Json>> {
        let (code, kind) = (Code::BadInput, ErrorKind::PromptValidation);
        if !is_yaml(source) {
            let document = Document::parse(source, code, kind).map_err(|error| {
                let hint = "this file is read as JSON; a YAML file ends in .yaml";
                error.map(|found| if found.hint.is_none() { found.hint(hint) } else { found })
            });
            return document?.object().cloned();
        }
        let root = yaml::Document::parse(source, 0..source.text().len(), code, kind)?.into_root();
        match &root.data {
            Data::Map(entries) => Ok(to_object(entries)),
            _ => {
                let diagnostic = Diagnostic::new(code, "names with values were expected")
                    .at(root.opening())
                    .label(format!("this is {}", root.describe()))
                    .hint("write a line for each, as in `name: value`");
                Err(Error::new(kind, diagnostic))
            }
        }
    }

    /// Reads one value that is written as JSON.
    #[doc(hidden)]
    pub fn read_value(source: &Arc<Source>) -> Result<Json> {
        Ok(Document::parse(source, Code::BadInput, ErrorKind::PromptValidation)?.into_value())
    }

    /// The same values and one more; an earlier value of that name is replaced. A value that JSON cannot hold, such as `NaN`, is
    /// refused by the render.
    pub fn set(mut self, name: impl Into<String>, value: impl Serialize) -> Variables {
        let value = serialize::to_json(&value);
        Arc::make_mut(self.0.get_or_insert_default()).insert(name.into(), value);
        self
    }

    fn kept(values: impl Iterator<Item = (String, Result<Json, Fault>)>) -> Variables {
        let mut kept = Values::default();
        values.for_each(|(name, value)| kept.insert(name, value));
        let is_empty = kept.by_name.is_empty() && kept.faults.is_empty();
        Variables((!is_empty).then(|| Arc::new(kept)))
    }

    /// Refuses values that could not be kept.
    #[doc(hidden)]
    pub fn refuse_faults(&self) -> Result<()> {
        let faults = self.0.iter().flat_map(|values| &values.faults);
        let finding = |(name, fault): (&String, &String)| {
            Diagnostic::new(Code::InvalidVariables, format!("the variable `{name}` {fault}"))
        };
        let findings: Vec<Diagnostic> = faults.map(finding).collect();
        match findings.is_empty() {
            true => Ok(()),
            false => Err(Error::all(ErrorKind::PromptValidation, findings)),
        }
    }

    /// The same values and those of others; of two with one name, the first is kept.
    #[doc(hidden)]
    pub fn and(mut self, others: Variables) -> Variables {
        let Some(more) = others.0 else { return self };
        if self.0.is_none() {
            return Variables(Some(more));
        }
        let values = Arc::make_mut(self.0.get_or_insert_default());
        for (name, value) in &more.by_name {
            values.by_name.entry(name.clone()).or_insert_with(|| value.clone());
        }
        for (name, fault) in &more.faults {
            values.faults.entry(name.clone()).or_insert_with(|| fault.clone());
        }
        self
    }

    /// The same values without those that are null and of which `drops` says so.
    #[doc(hidden)]
    pub fn without_nulls(mut self, drops: impl Fn(&str) -> bool) -> Variables {
        let Some(values) = &mut self.0 else { return self };
        if values.by_name.iter().any(|(name, value)| value.is_null() && drops(name)) {
            Arc::make_mut(values).by_name.retain(|name, value| !value.is_null() || !drops(name));
        }
        self
    }

    /// A value as JSON.
    pub fn get(&self, name: &str) -> Option<Json> {
        self.value(name).cloned()
    }

    #[doc(hidden)]
    pub fn value(&self, name: &str) -> Option<&Json> {
        let values = &self.0.as_deref()?.by_name;
        match values.len() <= FEW {
            true => values.iter().find(|(known, _)| *known == name).map(|(_, value)| value),
            false => values.get(name),
        }
    }

    /// The values in the order of [`names`](Variables::names), to write others in their places: the memory of texts is used again.
    /// Values that a render still holds are copied first. A value that nests deeper than a render allows must not be written.
    #[doc(hidden)]
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Json> {
        self.0.iter_mut().flat_map(|values| Arc::make_mut(values).by_name.values_mut())
    }

    /// The names, in the order in which they were given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|values| values.by_name.keys()).map(String::as_str)
    }

    /// All values by name, as JSON.
    pub fn to_json(&self) -> Json {
        let entry = |name: &str| Some((name.to_owned(), self.get(name)?));
        Json::Object(self.names().filter_map(entry).collect())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |values| values.by_name.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Map<String, Json>> for Variables {
    fn from(object: Map<String, Json>) -> Variables {
        object.into_iter().collect()
    }
}

impl FromIterator<(String, Json)> for Variables {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(values: I) -> Self {
        Variables::kept(values.into_iter().map(|(name, value)| {
            let checked = serialize::check_depth(&value).map(|()| value);
            (name, checked)
        }))
    }
}

impl<K: Into<String>, V: Serialize, const N: usize> From<[(K, V); N]> for Variables {
    fn from(values: [(K, V); N]) -> Variables {
        values.into_iter().fold(Variables::new(), |all, (name, value)| all.set(name, value))
    }
}

impl Serialize for Variables {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (name, value) in self.0.iter().flat_map(|values| &values.by_name) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// [`Variables`](crate::Variables) by name. A name alone stands for the local variable of that name.
///
/// ```
/// use cuebook::variables;
///
/// let name = "Ada";
/// let given = variables! { name, count: 3, tags: ["a", "b"] };
/// assert_eq!(given.get("tags").unwrap()[1], "b");
/// assert_eq!(given.len(), 3);
/// ```
#[macro_export]
macro_rules! variables {
    ($($name:ident $(: $value:expr)?),* $(,)?) => {
        $crate::Variables::new()$(.set(stringify!($name), $crate::variables!(@value $name $($value)?)))*
    };
    (@value $name:ident) => { &$name };
    (@value $name:ident $value:expr) => { $value };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_values_holds_one_object() {
        let read = |text: &str| Variables::read(&Source::new("vars.json", text));
        assert_eq!(read("{\"n\": 1}").unwrap().get("n"), Some(Json::from(1)));
        assert_eq!(
            crate::json::shown(read("[1]").unwrap_err().diagnostics()),
            "\
error vars.json:1:1: expected a JSON object [CB407]
  at [ -- this is an array
  help: start with { and end with }
"
        );
    }
}
