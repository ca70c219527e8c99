//! `defaults.json`: defaults for all prompts of a library.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value as Json};

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, did_you_mean, nearest};
use crate::source::Source;
use crate::variables::Variables;

/// What holds for every prompt that does not say otherwise. Permissions are not among it: each prompt asks for its own.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// Values, below those of every other layer.
    pub variables: Variables,
    /// `version`, `type` and further metadata.
    pub metadata: Map<String, Json>,
    /// Characters of a rendered text.
    pub max_output_size: Option<usize>,
    /// How long a hook may take.
    pub max_execution_time: Option<Duration>,
}

const KEYS: [&str; 3] = ["variables", "metadata", "limits"];

impl Defaults {
    /// Reads the file.
    pub fn read(source: &Arc<Source>) -> Result<Defaults> {
        let wrong = |message: String, hint: String| {
            let diagnostic = Diagnostic::new(Code::BadDefaults, message).file(source.name()).hint(hint);
            Error::new(ErrorKind::Config, diagnostic)
        };
        let json: Json = serde_json::from_str(source.text()).map_err(|error| {
            wrong(format!("not valid JSON: {error}"), "mend the JSON at the place that is named".into())
        })?;
        let Json::Object(object) = json else {
            return Err(wrong("a JSON object was expected".into(), "begin with { and end with }".into()));
        };
        let mut defaults = Defaults::default();
        for (key, value) in &object {
            let Json::Object(value) = value else {
                return Err(wrong(format!("`{key}` must be an object"), "write {\"name\": value, …}".into()));
            };
            match key.as_str() {
                "variables" => defaults.variables = Variables::from_json(value),
                "metadata" => defaults.metadata = value.clone(),
                "limits" => defaults
                    .read_limits(value)
                    .map_err(|message| wrong(message, "limits are positive numbers".into()))?,
                _ => {
                    let hint = did_you_mean(&nearest(key, KEYS))
                        .unwrap_or_else(|| format!("known: {}", KEYS.join(", ")));
                    return Err(wrong(format!("`{key}` is not known here"), hint));
                }
            }
        }
        Ok(defaults)
    }

    fn read_limits(&mut self, limits: &Map<String, Json>) -> Result<(), String> {
        for (key, value) in limits {
            match (key.as_str(), value.as_f64()) {
                ("max_output_size", Some(size)) if size >= 1.0 && size.fract() == 0.0 => {
                    self.max_output_size = Some(size as usize);
                }
                ("max_execution_time", Some(seconds))
                    if seconds > 0.0 && Duration::try_from_secs_f64(seconds).is_ok() =>
                {
                    self.max_execution_time = Duration::try_from_secs_f64(seconds).ok();
                }
                ("max_output_size" | "max_execution_time", _) => {
                    return Err(format!("`limits.{key}` cannot be {value}"));
                }
                _ => return Err(format!("`limits.{key}` is not known")),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_metadata_and_limits_are_read() {
        let text = r#"{"variables": {"tone": "calm"}, "metadata": {"author": "us"},
                       "limits": {"max_output_size": 10, "max_execution_time": 1.5}}"#;
        let defaults = Defaults::read(&Source::new("defaults.json", text)).unwrap();
        assert_eq!(defaults.variables.get("tone"), Some(Json::from("calm")));
        assert_eq!(
            (defaults.max_output_size, defaults.max_execution_time),
            (Some(10), Some(Duration::from_millis(1500)))
        );
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest() {
        let error = Defaults::read(&Source::new("defaults.json", r#"{"varables": {}}"#)).unwrap_err();
        assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `variables`?"));
    }
}
