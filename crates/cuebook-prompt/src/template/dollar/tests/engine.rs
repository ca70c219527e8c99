//! A whole prompt of this engine.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::object;
use crate::error::{Code, ErrorKind, Result};
use crate::source::Source;
use crate::template::engine::{Compiled, Engines, Job, Loader};
use crate::template::jinja::Settings;

struct Nothing;

impl Loader for Nothing {
    fn load(&self, _: &str, _: &str) -> Result<Option<Arc<Source>>> {
        Ok(None)
    }
}

fn compile(text: &str, options: Json) -> Result<Box<dyn Compiled>> {
    let engines = Engines::default();
    let options = object(options);
    engines.get("dollar", None)?.compile(Job {
        source: Source::new("note.prompty", text),
        loader: Arc::new(Nothing),
        settings: &Settings::default(),
        options: &options,
        place: None,
    })
}

#[test]
fn the_outline_has_the_keys_that_are_read() {
    let compiled = compile("\n  Hi $name", json!({})).unwrap();
    let outline = compiled.outline();
    assert_eq!(outline.units().len(), 1);
    assert_eq!(outline.names()[0].reads[0].path, "name");
    assert!(outline.jinja().is_none());
}

#[test]
fn a_missing_value_is_an_error_or_its_name_is_kept() {
    for options in [json!({}), json!({"missing": "error"}), json!({"missing": "keep"})] {
        assert!(compile("$a", options).is_ok());
    }
    let error = compile("$a", json!({"missing": "empty"})).err().unwrap();
    assert_eq!((error.kind(), error.code()), (ErrorKind::PromptRead, Code::BadPrompty));
    assert_eq!(error.diagnostic().message, "`missing` is \"empty\", but must be \"error\" or \"keep\"");
}
