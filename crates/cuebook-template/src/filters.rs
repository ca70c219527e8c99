//! Jinja2's filters.

mod html;
mod numbers;
mod pretty;
mod sequences;
mod texts;

pub(crate) use self::texts::{bounds, padded, replaced};

use crate::error::Result;
use crate::json::{Form, written};
use crate::render::Kind::{Any, Flag, Integer, Text as Words};
use crate::render::Spans::{Keeps, Maps, Mixes};
use crate::render::{ANYTHING, Call, Definition, may, need, row};
use crate::text::Text;
use crate::value::{Val, Value, type_error, type_name};

/// The filters, in the order of their names.
pub(crate) static FILTERS: [Definition; 54] = [
    row("abs", &[], Mixes, "The absolute value of a number.", ("{{ -2|abs }}", "2"), numbers::abs),
    row(
        "attr",
        &[need("name", Words)],
        Keeps,
        "An attribute and never an item, unlike `value.name`.",
        ("{{ (1.5|attr('is_integer'))() }}", "False"),
        attr,
    ),
    row(
        "batch",
        &[need("linecount", Integer), may("fill_with", Any, "none")],
        Keeps,
        "Lists of `linecount` items each; `fill_with` completes the last one.",
        ("{{ [1, 2, 3]|batch(2, '-')|list }}", "[[1, 2], [3, '-']]"),
        sequences::batch,
    ),
    row(
        "capitalize",
        &[],
        Maps,
        "The first character in upper case, all others in lower case.",
        ("{{ 'hello WORLD'|capitalize }}", "Hello world"),
        texts::capitalize,
    ),
    row(
        "center",
        &[may("width", Integer, "80")],
        Maps,
        "The text in the middle of a field of that width.",
        ("[{{ 'hi'|center(6) }}]", "[  hi  ]"),
        texts::center,
    ),
    row("count", &[], Mixes, "The same as `length`.", ("{{ 'abc'|count }}", "3"), length),
    row(
        "d",
        &[may("default_value", Any, "''"), may("boolean", Flag, "false")],
        Keeps,
        "The same as `default`.",
        ("{{ missing|d('none yet') }}", "none yet"),
        default,
    ),
    row(
        "default",
        &[may("default_value", Any, "''"), may("boolean", Flag, "false")],
        Keeps,
        "Another value where the first one is undefined, or false with `boolean`.",
        ("{{ ''|default('empty', true) }}", "empty"),
        default,
    ),
    row(
        "dictsort",
        &[may("case_sensitive", Flag, "false"), may("by", Words, "'key'"), may("reverse", Flag, "false")],
        Keeps,
        "The pairs of a dict, in the order of the keys or values.",
        ("{{ {'b': 1, 'a': 2}|dictsort }}", "[('a', 2), ('b', 1)]"),
        sequences::dictsort,
    ),
    row("e", &[], Maps, "The same as `escape`.", ("{{ '<b>'|e }}", "&lt;b&gt;"), html::escape),
    row(
        "escape",
        &[],
        Maps,
        "The text with `&`, `<`, `>`, `'` and `\"` as HTML writes them, unless it is safe.",
        ("{{ '<b>'|escape }}", "&lt;b&gt;"),
        html::escape,
    ),
    row(
        "filesizeformat",
        &[may("binary", Flag, "false")],
        Mixes,
        "A number of bytes with a unit, in steps of 1000, or of 1024 with `binary`.",
        ("{{ 12345|filesizeformat }}", "12.3 kB"),
        numbers::filesizeformat,
    ),
    row("first", &[], Keeps, "The first item.", ("{{ [1, 2]|first }}", "1"), sequences::first),
    row(
        "float",
        &[may("default", Any, "0.0")],
        Mixes,
        "The value as a number with a fraction, or the default if it is not a number.",
        ("{{ '2.5'|float + 1 }}", "3.5"),
        numbers::float,
    ),
    row(
        "forceescape",
        &[],
        Maps,
        "The same as `escape`, for safe text too.",
        ("{{ '<b>'|safe|forceescape }}", "&lt;b&gt;"),
        html::forceescape,
    ),
    row(
        "format",
        ANYTHING,
        Maps,
        "The text as a format of `%`, filled with the arguments.",
        ("{{ '%s of %d'|format('one', 3) }}", "one of 3"),
        texts::format,
    ),
    row(
        "groupby",
        &[need("attribute", Any), may("default", Any, "none"), may("case_sensitive", Flag, "false")],
        Keeps,
        "Groups of items that share an attribute: pairs of `grouper` and `list`.",
        (
            "{% for g in [{'k': 1}, {'k': 1}]|groupby('k') %}{{ g.grouper }}: {{ g.list|length }}{% endfor %}",
            "1: 2",
        ),
        sequences::groupby,
    ),
    row(
        "indent",
        &[may("width", Any, "4"), may("first", Flag, "false"), may("blank", Flag, "false")],
        Maps,
        "The text with its lines moved to the right. `width` is a number of spaces, or a text.",
        ("{{ 'a\\nb'|indent(2) }}", "a\n  b"),
        texts::indent,
    ),
    row(
        "int",
        &[may("default", Any, "0"), may("base", Integer, "10")],
        Mixes,
        "The value as an integer, or the default if it is not a number.",
        ("{{ '42'|int + 1 }}", "43"),
        numbers::int,
    ),
    row(
        "items",
        &[],
        Keeps,
        "The pairs of a dict; none if it is undefined.",
        ("{{ {'a': 1}|items|list }}", "[('a', 1)]"),
        sequences::items,
    ),
    row(
        "join",
        &[may("d", Any, "''"), may("attribute", Any, "none")],
        Maps,
        "The items as one text, with `d` between them.",
        ("{{ [1, 2]|join(', ') }}", "1, 2"),
        sequences::join,
    ),
    row("last", &[], Keeps, "The last item.", ("{{ [1, 2]|last }}", "2"), sequences::last),
    row(
        "length",
        &[],
        Mixes,
        "How many items or characters a value has.",
        ("{{ 'abc'|length }}", "3"),
        length,
    ),
    row("list", &[], Keeps, "A list of the items.", ("{{ 'ab'|list }}", "['a', 'b']"), sequences::list),
    row("lower", &[], Maps, "The text in lower case.", ("{{ 'ABC'|lower }}", "abc"), texts::lower),
    row(
        "map",
        ANYTHING,
        Keeps,
        "A filter or an attribute of every item.",
        ("{{ ['a', 'b']|map('upper')|list }}", "['A', 'B']"),
        sequences::map,
    ),
    row(
        "max",
        &[may("case_sensitive", Flag, "false"), may("attribute", Any, "none")],
        Keeps,
        "The largest item.",
        ("{{ [1, 3, 2]|max }}", "3"),
        sequences::max,
    ),
    row(
        "min",
        &[may("case_sensitive", Flag, "false"), may("attribute", Any, "none")],
        Keeps,
        "The smallest item.",
        ("{{ [2, 1, 3]|min }}", "1"),
        sequences::min,
    ),
    row(
        "pprint",
        &[],
        Mixes,
        "The value as Python writes it, over several lines if it is long.",
        ("{{ {'b': 1, 'a': 'x'}|pprint }}", "{'a': 'x', 'b': 1}"),
        pretty::pprint,
    ),
    row(
        "random",
        &[],
        Keeps,
        "One of the items, for programs that pass a seed. In a prompt it is an error: two renders would differ.",
        ("{{ [7]|random }}", "7"),
        sequences::random,
    ),
    row(
        "reject",
        ANYTHING,
        Keeps,
        "The items for which a test is false.",
        ("{{ [1, 2, 3]|reject('odd')|list }}", "[2]"),
        sequences::reject,
    ),
    row(
        "rejectattr",
        ANYTHING,
        Keeps,
        "The items for which a test of an attribute is false.",
        ("{{ [{'a': 1}, {'a': 0}]|rejectattr('a')|list }}", "[{'a': 0}]"),
        sequences::rejectattr,
    ),
    row(
        "replace",
        &[need("old", Any), need("new", Any), may("count", Integer, "none")],
        Maps,
        "The text with one part replaced by another: everywhere, or `count` times.",
        ("{{ 'a-a'|replace('a', 'b', 1) }}", "b-a"),
        texts::replace,
    ),
    row(
        "reverse",
        &[],
        Mixes,
        "The items, or the characters of a text, from the last to the first.",
        ("{{ 'abc'|reverse }}", "cba"),
        sequences::reverse,
    ),
    row(
        "round",
        &[may("precision", Integer, "0"), may("method", Words, "'common'")],
        Mixes,
        "A number with `precision` digits after the point. `method` is `common`, `ceil` or `floor`.",
        ("{{ 2.567|round(1) }}", "2.6"),
        numbers::round,
    ),
    row(
        "safe",
        &[],
        Keeps,
        "The text, marked as safe in HTML.",
        ("{{ '<b>'|safe|escape }}", "<b>"),
        html::safe,
    ),
    row(
        "select",
        ANYTHING,
        Keeps,
        "The items for which a test is true, or that are true.",
        ("{{ [1, 2, 3]|select('odd')|list }}", "[1, 3]"),
        sequences::select,
    ),
    row(
        "selectattr",
        ANYTHING,
        Keeps,
        "The items for which a test of an attribute is true.",
        ("{{ [{'a': 1}, {'a': 0}]|selectattr('a')|list }}", "[{'a': 1}]"),
        sequences::selectattr,
    ),
    row(
        "slice",
        &[need("slices", Integer), may("fill_with", Any, "none")],
        Keeps,
        "The items in `slices` lists of about the same length.",
        ("{{ [1, 2, 3]|slice(2)|list }}", "[[1, 2], [3]]"),
        sequences::slice,
    ),
    row(
        "sort",
        &[may("reverse", Flag, "false"), may("case_sensitive", Flag, "false"), may("attribute", Any, "none")],
        Keeps,
        "The items in order.",
        ("{{ ['b', 'A']|sort }}", "['A', 'b']"),
        sequences::sort,
    ),
    row("string", &[], Keeps, "The value as text.", ("{{ 1|string ~ 2 }}", "12"), string),
    row(
        "striptags",
        &[],
        Mixes,
        "The text without HTML tags; white space becomes single spaces.",
        ("{{ '<p>Hi  <b>you</b></p>'|striptags }}", "Hi you"),
        html::striptags,
    ),
    row(
        "sum",
        &[may("attribute", Any, "none"), may("start", Any, "0")],
        Mixes,
        "The sum of the items.",
        ("{{ [1, 2, 3]|sum }}", "6"),
        sequences::sum,
    ),
    row(
        "title",
        &[],
        Maps,
        "The first letter of every word in upper case.",
        ("{{ 'hello world'|title }}", "Hello World"),
        texts::title,
    ),
    row(
        "tojson",
        &[may("indent", Any, "none")],
        Mixes,
        "The value as JSON that is safe in HTML, with sorted keys.",
        ("{{ {'b': [true, none], 'a': '<'}|tojson }}", "{\"a\": \"\\u003c\", \"b\": [true, null]}"),
        tojson,
    ),
    row(
        "trim",
        &[may("chars", Any, "none")],
        Keeps,
        "The text without white space, or other characters, at both ends.",
        ("{{ '  hi '|trim }}", "hi"),
        texts::trim,
    ),
    row(
        "truncate",
        &[
            may("length", Integer, "255"),
            may("killwords", Flag, "false"),
            may("end", Any, "'...'"),
            may("leeway", Integer, "none"),
        ],
        Keeps,
        "The beginning of a text that is too long, followed by `end`.",
        ("{{ 'one two three four'|truncate(12) }}", "one two..."),
        texts::truncate,
    ),
    row(
        "unique",
        &[may("case_sensitive", Flag, "false"), may("attribute", Any, "none")],
        Keeps,
        "The items without repetitions.",
        ("{{ [1, 2, 1]|unique|list }}", "[1, 2]"),
        sequences::unique,
    ),
    row("upper", &[], Maps, "The text in upper case.", ("{{ 'abc'|upper }}", "ABC"), texts::upper),
    row(
        "urlencode",
        &[],
        Maps,
        "The text, or the pairs of a dict, as a URL writes them.",
        ("{{ 'a b&c'|urlencode }}", "a%20b%26c"),
        html::urlencode,
    ),
    row(
        "urlize",
        &[
            may("trim_url_limit", Integer, "none"),
            may("nofollow", Flag, "false"),
            may("target", Any, "none"),
            may("rel", Any, "none"),
            may("extra_schemes", Any, "none"),
        ],
        Mixes,
        "The text with links around web and mail addresses.",
        (
            "{{ 'see example.org'|urlize }}",
            "see <a href=\"https://example.org\" rel=\"noopener\">example.org</a>",
        ),
        html::urlize,
    ),
    row(
        "wordcount",
        &[],
        Mixes,
        "How many words a text has.",
        ("{{ 'two words'|wordcount }}", "2"),
        texts::wordcount,
    ),
    row(
        "wordwrap",
        &[
            may("width", Integer, "79"),
            may("break_long_words", Flag, "true"),
            may("wrapstring", Any, "none"),
            may("break_on_hyphens", Flag, "true"),
        ],
        Mixes,
        "The text in lines of at most that width.",
        ("{{ 'one two three'|wordwrap(7) }}", "one two\nthree"),
        texts::wordwrap,
    ),
    row(
        "xmlattr",
        &[may("autospace", Flag, "true")],
        Mixes,
        "The pairs of a dict as attributes of HTML.",
        ("<p{{ {'class': 'a', 'id': none}|xmlattr }}>", "<p class=\"a\">"),
        html::xmlattr,
    ),
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
    call.render.refuse_missing(&call.value)?;
    if call.render.is_portable() && call.value.value.is_none() {
        return Ok(Val::new(Value::Int(0), call.value.origin));
    }
    match call.value.value.length() {
        // A text can have other origins inside; those of the items of a list do not count.
        Some(length) if call.value.value.as_str().is_some() => {
            Ok(Val::new(Value::Int(length as i64), call.origin()))
        }
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
