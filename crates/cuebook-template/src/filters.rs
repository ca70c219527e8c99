//! Jinja2's filters.

mod html;
mod numbers;
mod pretty;
mod sequences;
mod texts;

pub(crate) use self::texts::{bounds, padded, replaced};

use crate::error::Result;
use crate::json::{Form, written};
use crate::render::{Call, Definition};
use crate::text::Text;
use crate::value::{Val, Value, type_error, type_name};

const fn filter(
    name: &'static str,
    parameters: &'static [&'static str],
    required: usize,
    run: for<'a, 'r> fn(&mut Call<'a, 'r>) -> Result<Val<'r>>,
) -> Definition {
    Definition { name, parameters: Some(parameters), required, run }
}

const fn open(name: &'static str, run: for<'a, 'r> fn(&mut Call<'a, 'r>) -> Result<Val<'r>>) -> Definition {
    Definition { name, parameters: None, required: 0, run }
}

/// The filters, in the order of their names.
pub(crate) static FILTERS: [Definition; 54] = [
    filter("abs", &[], 0, numbers::abs),
    filter("attr", &["name"], 1, attr),
    filter("batch", &["linecount", "fill_with"], 1, sequences::batch),
    filter("capitalize", &[], 0, texts::capitalize),
    filter("center", &["width"], 0, texts::center),
    filter("count", &[], 0, length),
    filter("d", &["default_value", "boolean"], 0, default),
    filter("default", &["default_value", "boolean"], 0, default),
    filter("dictsort", &["case_sensitive", "by", "reverse"], 0, sequences::dictsort),
    filter("e", &[], 0, html::escape),
    filter("escape", &[], 0, html::escape),
    filter("filesizeformat", &["binary"], 0, numbers::filesizeformat),
    filter("first", &[], 0, sequences::first),
    filter("float", &["default"], 0, numbers::float),
    filter("forceescape", &[], 0, html::forceescape),
    open("format", texts::format),
    filter("groupby", &["attribute", "default", "case_sensitive"], 1, sequences::groupby),
    filter("indent", &["width", "first", "blank"], 0, texts::indent),
    filter("int", &["default", "base"], 0, numbers::int),
    filter("items", &[], 0, sequences::items),
    filter("join", &["d", "attribute"], 0, sequences::join),
    filter("last", &[], 0, sequences::last),
    filter("length", &[], 0, length),
    filter("list", &[], 0, sequences::list),
    filter("lower", &[], 0, texts::lower),
    open("map", sequences::map),
    filter("max", &["case_sensitive", "attribute"], 0, sequences::max),
    filter("min", &["case_sensitive", "attribute"], 0, sequences::min),
    filter("pprint", &[], 0, pretty::pprint),
    filter("random", &[], 0, sequences::random),
    open("reject", sequences::reject),
    open("rejectattr", sequences::rejectattr),
    filter("replace", &["old", "new", "count"], 2, texts::replace),
    filter("reverse", &[], 0, sequences::reverse),
    filter("round", &["precision", "method"], 0, numbers::round),
    filter("safe", &[], 0, html::safe),
    open("select", sequences::select),
    open("selectattr", sequences::selectattr),
    filter("slice", &["slices", "fill_with"], 1, sequences::slice),
    filter("sort", &["reverse", "case_sensitive", "attribute"], 0, sequences::sort),
    filter("string", &[], 0, string),
    filter("striptags", &[], 0, html::striptags),
    filter("sum", &["attribute", "start"], 0, sequences::sum),
    filter("title", &[], 0, texts::title),
    filter("tojson", &["indent"], 0, tojson),
    filter("trim", &["chars"], 0, texts::trim),
    filter("truncate", &["length", "killwords", "end", "leeway"], 0, texts::truncate),
    filter("unique", &["case_sensitive", "attribute"], 0, sequences::unique),
    filter("upper", &[], 0, texts::upper),
    filter("urlencode", &[], 0, html::urlencode),
    filter("urlize", &["trim_url_limit", "nofollow", "target", "rel", "extra_schemes"], 0, html::urlize),
    filter("wordcount", &[], 0, texts::wordcount),
    filter("wordwrap", &["width", "break_long_words", "wrapstring", "break_on_hyphens"], 0, texts::wordwrap),
    filter("xmlattr", &["autospace"], 0, html::xmlattr),
];

fn attr<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    if let Value::Undefined(missing) = &call.value.value {
        return Err(missing.error());
    }
    let name = call.text_arg(0, "")?;
    let found = call.render.own_attribute(&call.value, name.as_str())?;
    Ok(found.unwrap_or_else(|| call.render.no_attribute(&call.value, name.as_str(), "")))
}

/// JSON that is safe inside HTML, as Jinja2 writes it.
fn tojson<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let form = Form { ascii: true, html: true, sorted: true, indent: call.indent(0)?, separators: None };
    let out = written(call.render, &call.value, form)?;
    Ok(Val::text(Text::from(out).safe(true), call.origin()))
}

fn length<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    if let (Value::Undefined(missing), true) = (&call.value.value, call.render.env.strict) {
        return Err(missing.error());
    }
    if call.render.is_portable() && call.value.value.is_none() {
        return Ok(Val::new(Value::Int(0), call.value.origin));
    }
    match call.value.value.length() {
        Some(length) => Ok(Val::new(Value::Int(length as i64), call.value.origin)),
        None => Err(type_error(format!("{} has no length", type_name(&call.value.value)))),
    }
}

fn default<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let absent = call.render.is_portable() && call.value.value.is_none();
    let missing =
        absent || call.value.value.is_undefined() || (call.flag(1, false)? && !call.value.value.is_true());
    if !missing {
        return Ok(call.value.clone());
    }
    // What shows instead of a variable still depends on that variable.
    let mut value = call.arg(0).cloned().unwrap_or_else(|| Val::from(Value::Text(Text::from(""))));
    if value.origin.is_author() {
        value.origin = call.value.origin;
    }
    Ok(value)
}

fn string<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    Ok(Val::text(call.text()?, call.origin()))
}
