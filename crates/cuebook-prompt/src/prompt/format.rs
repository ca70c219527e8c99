//! How the text of a prompt is written, and how it is to be taken apart.

use serde_json::{Map, Value as Json};

use crate::source::Place;

/// How the text of a prompt is written, and how it is to be taken apart.
#[derive(Debug, Clone)]
pub struct Format {
    /// The key of the template engine.
    pub engine: String,
    /// Where the engine is named.
    pub engine_place: Option<Place>,
    /// What the prompt says to its engine.
    pub options: Map<String, Json>,
    /// The key of the parser that makes messages of the text; `None` if all of it is one message.
    pub parser: Option<String>,
    /// Where the parser is named.
    pub parser_place: Option<Place>,
    /// What the prompt says to its parser.
    pub parser_options: Map<String, Json>,
}

impl Format {
    /// A Jinja2 template whose text is one message, as template prompts are.
    pub fn plain() -> Format {
        Format {
            engine: "jinja2".into(),
            engine_place: None,
            options: Map::new(),
            parser: None,
            parser_place: None,
            parser_options: Map::new(),
        }
    }
}
