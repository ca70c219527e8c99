//! The tables of what Jinja2 has.

use crate::filters::FILTERS;
use crate::functions::FUNCTIONS;
use crate::methods;
use crate::render::Library;
use crate::tests::TESTS;

pub(crate) static LIBRARY: Library =
    Library { filters: &FILTERS, tests: &TESTS, functions: &FUNCTIONS, method: methods::find };
