//! The tables of what templates can name, by style.

use crate::chat;
use crate::environment::Style;
use crate::filters::FILTERS;
use crate::functions::FUNCTIONS;
use crate::methods;
use crate::render::Library;
use crate::tests::TESTS;

static PYTHON: Library = Library {
    filters: &FILTERS,
    tests: &TESTS,
    functions: &FUNCTIONS,
    more_filters: &[],
    more_functions: &[],
    method: methods::find,
    methods: methods::names,
};

static CHAT: Library = Library {
    filters: &FILTERS,
    tests: &TESTS,
    functions: &FUNCTIONS,
    more_filters: &chat::FILTERS,
    more_functions: &chat::FUNCTIONS,
    method: methods::find,
    methods: methods::names,
};

pub(crate) fn library(style: Style) -> &'static Library {
    match style {
        Style::Python | Style::Portable => &PYTHON,
        Style::Chat => &CHAT,
    }
}
