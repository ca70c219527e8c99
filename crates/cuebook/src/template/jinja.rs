//! Jinja templates, as Jinja2 3.1.6 runs them in its sandbox.

pub(crate) mod compat;
