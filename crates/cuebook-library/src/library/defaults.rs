//! `defaults.json`: defaults for all prompts of a library.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value as Json};

use crate::error::{Code, ErrorKind, Result, did_you_mean, nearest};
use crate::json::Step::{self, Key};
use crate::json::{Document, Problems, quoted};
use crate::prompt::Limits;
use crate::source::Source;
use crate::variables::Variables;

/// What holds for every prompt that does not say otherwise. Permissions are not among it: each prompt asks for its own.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
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
const LIMIT_KEYS: [&str; 2] = ["max_output_size", "max_execution_time"];

impl Defaults {
    /// Reads the file.
    pub fn read(source: &Arc<Source>) -> Result<Defaults> {
        let document = Document::parse(source, Code::BadDefaults, ErrorKind::Config)?;
        let mut problems = Problems::new(&document);
        let mut defaults = Defaults::default();
        for (key, value) in document.object()? {
            if !KEYS.contains(&key.as_str()) {
                unknown(&mut problems, &[Key(key)], key, &KEYS);
                continue;
            }
            let Json::Object(members) = value else {
                let hint = "write {\"name\": value, …}";
                problems.wrong_type(&[Key(key)], value, &quoted(key), "an object", hint);
                continue;
            };
            match key.as_str() {
                "variables" => defaults.variables = Variables::from_json(members),
                "metadata" => defaults.metadata = members.clone(),
                _ => defaults.read_limits(members, &mut problems),
            }
        }
        problems.or(defaults)
    }

    fn read_limits(&mut self, limits: &Map<String, Json>, problems: &mut Problems<'_>) {
        for (key, value) in limits {
            let path = [Key("limits"), Key(key)];
            match (key.as_str(), value.as_f64()) {
                ("max_output_size", Some(size)) if size >= 1.0 && size.fract() == 0.0 => {
                    self.max_output_size = Some(size as usize);
                }
                ("max_execution_time", Some(seconds))
                    if seconds > 0.0 && seconds <= Limits::LONGEST.as_secs_f64() =>
                {
                    self.max_execution_time = Duration::try_from_secs_f64(seconds).ok();
                }
                ("max_output_size", _) => {
                    let message = "`max_output_size` must be a whole number above zero";
                    problems.wrong(&path, message, "write the number of characters, as in 50000");
                }
                ("max_execution_time", _) => {
                    let message = "`max_execution_time` must be a number above zero, and at most one day";
                    problems.wrong(&path, message, "write the number of seconds, as in 5");
                }
                _ => unknown(problems, &path, key, &LIMIT_KEYS),
            }
        }
    }
}

fn unknown(problems: &mut Problems<'_>, path: &[Step<'_>], key: &str, known: &[&str]) {
    let near = did_you_mean(&nearest(key, known.iter().copied()));
    let hint = near.unwrap_or_else(|| format!("known: {}", known.join(", ")));
    problems.wrong_key(path, format!("unknown key {}", quoted(key)), hint);
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

    #[test]
    fn everything_that_is_wrong_is_underlined() {
        let text = "{\"variables\": [],\n \"limits\": {\"max_output_size\": 0, \"time\": 1}}";
        let error = Defaults::read(&Source::new("defaults.json", text)).unwrap_err();
        assert_eq!(
            crate::json::shown(error.diagnostics()),
            "\
error defaults.json:1:15: `variables` must be an object [CB108]
  at [ -- this is an array
  help: write {\"name\": value, …}
error defaults.json:2:32: `max_output_size` must be a whole number above zero [CB108]
  at 0 -- (no label)
  help: write the number of characters, as in 50000
error defaults.json:2:35: unknown key `time` [CB108]
  at \"time\" -- (no label)
  help: did you mean `max_execution_time`?
"
        );
    }
}
