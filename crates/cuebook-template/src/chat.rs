//! What chat templates of models have beyond Jinja2, as the library `transformers` defines it.

use jiff::Zoned;
use jiff::fmt::strtime;

use crate::error::{Error, ErrorKind, Result};
use crate::json::{Form, written};
use crate::render::Kind::{Any, Flag};
use crate::render::Spans::Mixes;
use crate::render::{Call, Definition, may, need, row};
use crate::value::{Val, type_error};

pub(crate) static FILTERS: [Definition; 1] = [row(
    "tojson",
    &[
        may("ensure_ascii", Flag, "false"),
        may("indent", Any, "none"),
        may("separators", Any, "none"),
        may("sort_keys", Flag, "false"),
    ],
    Mixes,
    "The value as JSON, its keys as they are, nothing escaped for HTML.",
    ("{{ {'b': 'ü', 'a': '<'}|tojson }}", "{\"b\": \"ü\", \"a\": \"<\"}"),
    tojson,
)];

/// In the order of the names.
pub(crate) static FUNCTIONS: [Definition; 2] = [
    row(
        "raise_exception",
        &[need("message", Any)],
        Mixes,
        "Ends the render with an error of the template's author.",
        ("{% if false %}{{ raise_exception('no system message') }}{% endif %}fine", "fine"),
        raise_exception,
    ),
    row(
        "strftime_now",
        &[need("format", Any)],
        Mixes,
        "The time of the render.",
        ("{{ strftime_now('%Y')|length }}", "4"),
        strftime_now,
    ),
];

fn tojson<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let mut form = Form {
        ascii: call.flag(0, false)?,
        html: false,
        sorted: call.flag(3, false)?,
        indent: call.indent(1)?,
        separators: None,
    };
    if let Some(given) = call.some(2) {
        let parts = call.render.item_list(given)?;
        let [item, key] = parts.as_slice() else {
            return Err(type_error("`separators` are two strings: between items, and after a key"));
        };
        let text = |part: &Val<'r>| call.render.text_of(part).map(|text| text.as_str().to_owned());
        form.separators = Some((text(item)?, text(key)?));
    }
    let out = written(call.render, &call.value, form)?;
    Ok(Val::text(out, call.origin()))
}

fn raise_exception<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let message = call.text_arg(0, "")?;
    Err(Error::new(ErrorKind::Raised, message.as_str())
        .help("the author of the template raises this error: look at the condition around it"))
}

fn strftime_now<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let format = call.text_arg(0, "")?;
    let now = call.render.env.now.clone().unwrap_or_else(Zoned::now);
    let text = strtime::format(format.as_str(), &now)
        .map_err(|error| type_error(format!("`strftime_now` cannot use this format: {error}")))?;
    Ok(Val::text(text, call.arg(0).map(|format| call.render.origin_of(format)).unwrap_or_default()))
}
