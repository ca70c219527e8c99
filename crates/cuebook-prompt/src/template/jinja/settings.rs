//! How templates are read and how far they may go.

use cuebook_template::{Environment, Style as Printing, Whitespace};
use serde_json::{Map, Value as Json};

use super::extensions::Extensions;
use super::fence;
use super::style::Style;

/// How templates are read and how far they may go.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How values print, compare and go missing.
    pub style: Style,
    /// Instructions that a template may take, and as many items that it may touch.
    pub fuel: u64,
    /// Seconds that a whole render may take.
    pub seconds: u64,
    /// Nesting of macro calls, includes and blocks.
    pub recursion: usize,
    /// Templates that may include each other in a row.
    pub include_depth: usize,
    /// The longest string, in bytes, that a template may build.
    pub string_bytes: usize,
    /// The longest list that a template may build.
    pub items: usize,
    /// Whether printing something that is not there is an error.
    pub strict: bool,
    /// Whether the newline behind a block tag goes.
    pub trim_blocks: bool,
    /// Whether white space before a block tag goes.
    pub lstrip_blocks: bool,
    /// Whether a template's last newline stays.
    pub keep_trailing_newline: bool,
    /// Whether a tag that prints nothing leaves a piece of the text, of length zero: it tells where a value could stand.
    pub keep_empty: bool,
    /// Whether tags that cannot be read are left out, so that the rest of the template can be looked at.
    pub salvage: bool,
    /// What a program adds to templates.
    pub extensions: Extensions,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            style: Style::Python,
            fuel: 5_000_000,
            seconds: 10,
            recursion: 500,
            include_depth: 32,
            string_bytes: 8 << 20,
            items: 1_000_000,
            strict: false,
            trim_blocks: false,
            lstrip_blocks: false,
            keep_trailing_newline: false,
            keep_empty: false,
            salvage: false,
            extensions: Extensions::default(),
        }
    }
}

impl Settings {
    /// The same limits in the portable style, with the white space of `.prompty` files: nothing of it goes unless a tag
    /// says so, and every tag leaves a piece.
    pub fn portable(self) -> Settings {
        Settings {
            style: Style::Portable,
            trim_blocks: false,
            lstrip_blocks: false,
            keep_trailing_newline: true,
            keep_empty: true,
            ..self
        }
    }

    /// The same limits for a chat template of a model, with the white space that the library `transformers` leaves.
    pub fn chat(self) -> Settings {
        Settings {
            style: Style::Chat,
            trim_blocks: true,
            lstrip_blocks: true,
            keep_trailing_newline: false,
            ..self
        }
    }

    /// The environment that templates run in.
    pub(super) fn environment(&self) -> Environment {
        // The same inputs give the same bytes.
        let chance = |_: &[Json], _: &Map<String, Json>| Err("it would make two renders differ".to_owned());
        let environment = fence::register(Environment::new()).filter("random", chance);
        let mut environment = self.extensions.register(environment);
        environment.whitespace = self.whitespace();
        environment.style = match self.style {
            Style::Python => Printing::Python,
            Style::Portable => Printing::Portable,
            Style::Chat => Printing::Chat,
        };
        environment.strict = self.strict;
        // Asking whether something is there stays allowed: `{% if x %}` is how templates handle what is optional.
        environment.testable = true;
        environment.silent_callables = self.style != Style::Chat;
        environment.limits.fuel = self.fuel;
        environment.limits.string_bytes = self.string_bytes;
        environment.limits.items = self.items;
        environment.limits.depth = self.recursion;
        environment
    }

    pub(super) fn whitespace(&self) -> Whitespace {
        Whitespace {
            trim_blocks: self.trim_blocks,
            lstrip_blocks: self.lstrip_blocks,
            keep_trailing_newline: self.keep_trailing_newline,
        }
    }
}
