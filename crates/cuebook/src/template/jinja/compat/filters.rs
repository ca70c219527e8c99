//! Jinja2's filters, each with Jinja2's parameters and defaults.

mod numbers;
mod pprint;
mod texts;
mod tojson;

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Rest, Tuple, ValueKind, ValueOrKwargs};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, Value};

pub(super) use self::numbers::whole;
use self::numbers::{abs, filesizeformat, float_filter, int, round};
use self::pprint::pprint;
use self::texts::{
    capitalize, center, indent, lower, replace, striptags, title, trim, truncate, upper, urlencode, urlize,
    wordcount, wordwrap, xmlattr,
};
use self::tojson::tojson;
use super::call::{
    self, Call, as_safe_as, hashed, invalid, items_of, refuse_undefined, string_of, text_of, type_name,
};
use super::formatting::{Operands, percent};
use super::limits::{Text, ValueLimits, charged};
use super::operators::add;
use super::ordering::{compare, equal, fold, path, sort};
use super::printing::{self, escape_html};
use crate::template::jinja::fence;
use crate::template::meter;

type Filter = fn(&mut Call<'_, '_, '_>) -> Result<Value, Error>;

/// The filters that take a fixed number of arguments, with the names of their parameters in Jinja2.
const FILTERS: &[(&str, &[&str], Filter)] = &[
    ("abs", &["value"], abs),
    ("attr", &["value", "name"], attr),
    ("batch", &["value", "linecount", "fill_with"], batch),
    ("capitalize", &["s"], capitalize),
    ("center", &["value", "width"], center),
    ("count", &["value"], length),
    ("d", &["value", "default_value", "boolean"], default),
    ("default", &["value", "default_value", "boolean"], default),
    ("dictsort", &["value", "case_sensitive", "by", "reverse"], dictsort),
    ("e", &["value"], escape),
    ("escape", &["value"], escape),
    ("filesizeformat", &["value", "binary"], filesizeformat),
    ("first", &["seq"], first),
    ("float", &["value", "default"], float_filter),
    ("forceescape", &["value"], forceescape),
    ("groupby", &["value", "attribute", "default", "case_sensitive"], groupby),
    ("indent", &["s", "width", "first", "blank"], indent),
    ("int", &["value", "default", "base"], int),
    ("items", &["value"], items),
    ("join", &["value", "d", "attribute"], join),
    ("last", &["seq"], last),
    ("length", &["value"], length),
    ("list", &["value"], list),
    ("lower", &["s"], lower),
    ("max", &["value", "case_sensitive", "attribute"], max),
    ("min", &["value", "case_sensitive", "attribute"], min),
    ("pprint", &["value"], pprint),
    ("random", &["seq"], random),
    ("replace", &["s", "old", "new", "count"], replace),
    ("reverse", &["value"], reverse),
    ("round", &["value", "precision", "method"], round),
    ("slice", &["value", "slices", "fill_with"], slice),
    ("sort", &["value", "reverse", "case_sensitive", "attribute"], sort_filter),
    ("string", &["object"], string),
    ("striptags", &["value"], striptags),
    ("sum", &["iterable", "attribute", "start"], sum),
    ("title", &["s"], title),
    ("tojson", &["value", "indent"], tojson),
    ("trim", &["value", "chars"], trim),
    ("truncate", &["s", "length", "killwords", "end", "leeway"], truncate),
    ("unique", &["value", "case_sensitive", "attribute"], unique),
    ("upper", &["s"], upper),
    ("urlencode", &["value"], urlencode),
    ("urlize", &["value", "trim_url_limit", "nofollow", "target", "rel", "extra_schemes"], urlize),
    ("wordcount", &["s"], wordcount),
    ("wordwrap", &["s", "width", "break_long_words", "wrapstring", "break_on_hyphens"], wordwrap),
    ("xmlattr", &["d", "autospace"], xmlattr),
];

/// Filters of the engine that Jinja2 does not have: a template that uses one would not run elsewhere, and `chain` and
/// `zip` make sequences whose size nothing bounds.
const FOREIGN: &[&str] = &["bool", "chain", "lines", "pluralize", "split", "zip"];

/// The filters that are registered one by one, because they take any number of arguments, or that are the engine's own.
const OTHERS: &[&str] = &["fence", "format", "map", "reject", "rejectattr", "safe", "select", "selectattr"];

/// The names of all filters.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FILTERS.iter().map(|(name, _, _)| *name).chain(OTHERS.iter().copied())
}

/// Registers the filters.
pub(super) fn register(env: &mut Environment<'_>, limits: ValueLimits) {
    for name in FOREIGN {
        env.remove_filter(name);
    }
    for (name, parameters, filter) in FILTERS {
        env.add_filter(*name, move |state: &mut State<'_, '_>, given: Rest<ValueOrKwargs>| {
            let given = given.into_values();
            let value = filter(&mut Call::bind(state, limits, name, parameters, &given)?)?;
            charged(state, limits, value)
        });
    }
    env.add_filter("map", move |state: &mut State<'_, '_>, given: Rest<ValueOrKwargs>| {
        map(state, limits, &given.into_values())
    });
    for (name, by_attribute, kept) in [
        ("select", false, true),
        ("reject", false, false),
        ("selectattr", true, true),
        ("rejectattr", true, false),
    ] {
        env.add_filter(name, move |state: &mut State<'_, '_>, given: Rest<ValueOrKwargs>| {
            select(state, limits, &given.into_values(), by_attribute, kept)
        });
    }
    env.add_filter(fence::NAME, move |state: &mut State<'_, '_>, given: Rest<ValueOrKwargs>| {
        let value = fenced(state, limits, &given.into_values())?;
        charged(state, limits, value)
    });
    env.add_filter("format", move |state: &mut State<'_, '_>, given: Rest<ValueOrKwargs>| {
        let value = format(state, limits, &given.into_values())?;
        charged(state, limits, value)
    });
}

/// `value|fence("label", name=attribute)`: not of Jinja2.
fn fenced(state: &State<'_, '_>, limits: ValueLimits, given: &[Value]) -> Result<Value, Error> {
    let (positional, named) = call::split(given);
    let [value, label @ ..] = positional else { return Err(invalid("`fence` needs a value")) };
    let label = match label {
        [] => fence::LABEL,
        [label] => string_of(label).unwrap_or_default(),
        _ => return Err(invalid("`fence` takes one label; name the attributes, as in `role=\"user\"`")),
    };
    if !fence::is_label(label) {
        return Err(invalid(
            "the label of `fence` must have letters, digits, `_`, `-` and `.`, as in `fence(\"doc\")`",
        ));
    }
    let text = text_of(state, limits, value)?;
    let mut attributes = Vec::with_capacity(named.len());
    for (name, value) in named {
        attributes.push((name, text_of(state, limits, &value)?.into_owned()));
    }
    let bytes: usize = attributes.iter().map(|(name, value)| name.len() + value.len()).sum();
    limits.check_bytes(text.len().saturating_add(bytes))?;
    Ok(fence::fenced(label, &attributes, &text))
}

pub(super) fn autoescapes(state: &State<'_, '_>) -> bool {
    !matches!(state.auto_escape(), AutoEscape::None)
}

fn attr(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let (value, name) = (call.value(0)?, call.text(1)?);
    // Keys of a dict are items, not attributes.
    if value.kind() == ValueKind::Map && !printing::is_namespace(value) && printing::is_dict(value) {
        return Ok(Value::UNDEFINED);
    }
    value.get_attr(&name)
}

fn batch(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let items = call.items(0)?;
    let count = usize::try_from(call.integer(1)?).ok().filter(|count| *count > 0);
    let count = count.ok_or_else(|| invalid("`batch` needs a count larger than 0"))?;
    let mut lines: Vec<Vec<Value>> = items.chunks(count).map(<[Value]>::to_vec).collect();
    if let (Some(fill), Some(last)) = (call.some(2), lines.last_mut()) {
        call.limits.check_items(items.len().saturating_add(count - last.len()))?;
        last.resize(count, fill.clone());
    }
    Ok(lines.into_iter().map(Value::from).collect())
}

fn length(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let value = call.value(0)?;
    refuse_undefined(call.state, value)?;
    if value.is_undefined() || (value.is_none() && call.limits.style.is_portable()) {
        return Ok(Value::from(0));
    }
    value.len().map(Value::from).ok_or_else(|| invalid(format!("{} has no length", type_name(value))))
}

fn default(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let value = call.value(0)?;
    let missing = value.is_undefined() || (value.is_none() && call.limits.style.is_portable());
    let absent = missing || (call.flag(2, false) && !value.is_true());
    Ok(if absent { call.given(1).cloned().unwrap_or_else(|| Value::from("")) } else { value.clone() })
}

fn pairs(value: &Value) -> Result<Vec<(Value, Value)>, Error> {
    let object = value.as_object().filter(|_| value.kind() == ValueKind::Map);
    meter::items(object.and(value.len()).unwrap_or(0))?;
    let pairs = object.and_then(|object| object.try_iter_pairs());
    pairs.map(Iterator::collect).ok_or_else(|| invalid(format!("expected a dict, not {}", type_name(value))))
}

fn pair((key, value): (Value, Value)) -> Value {
    Value::from(Tuple::from([key, value]))
}

fn dictsort(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let case_sensitive = call.flag(1, false);
    let by_value = match call.string_or(2, "key")? {
        "key" => false,
        "value" => true,
        _ => return Err(invalid("`dictsort` sorts by \"key\" or \"value\"")),
    };
    let keyed = pairs(call.value(0)?)?.into_iter().map(|(key, value)| {
        let by = if by_value { value.clone() } else { key.clone() };
        Ok((fold(by, case_sensitive)?, pair((key, value))))
    });
    Ok(Value::from(sort(keyed.collect::<Result<_, Error>>()?, call.flag(3, false))?))
}

fn escape(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let value = call.value(0)?;
    if value.is_safe() {
        return Ok(value.clone());
    }
    forceescape(call)
}

fn forceescape(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    Ok(Value::from_safe_string(escape_html(&call.text(0)?, call.limits)?))
}

fn first(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let value = call.value(0)?;
    refuse_undefined(call.state, value)?;
    if value.is_none() {
        if call.limits.style.is_portable() {
            return Ok(Value::UNDEFINED);
        }
        return Err(invalid("`None` has no first item"));
    }
    value.try_iter()?.checked().next().transpose().map(Option::unwrap_or_default)
}

fn last(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    match string_of(call.value(0)?) {
        Some(text) => Ok(text.chars().next_back().map(Value::from).unwrap_or_default()),
        None => Ok(call.items(0)?.pop().unwrap_or_default()),
    }
}

/// What `|groupby` gives for each group: a pair whose halves have names.
#[derive(Debug)]
pub(super) struct GroupPair {
    grouper: Value,
    list: Value,
}

impl Object for GroupPair {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match (key.as_usize(), key.as_str()) {
            (Some(0), _) | (_, Some("grouper")) => Some(self.grouper.clone()),
            (Some(1), _) | (_, Some("list")) => Some(self.list.clone()),
            _ => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(2)
    }
}

fn groupby(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let attribute = call.value(1)?;
    let case_sensitive = call.flag(3, false);
    let mut keyed = Vec::new();
    for item in call.items(0)? {
        let found = path(&item, attribute)?;
        let key = if found.is_undefined() { call.given(2).cloned().unwrap_or_default() } else { found };
        keyed.push((fold(key.clone(), case_sensitive)?, Value::from(Tuple::from([key, item]))));
    }
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for pair in sort(keyed, false)? {
        let (key, item) = (pair.get_item_by_index(0)?, pair.get_item_by_index(1)?);
        match groups.last_mut() {
            Some((last, items))
                if equal(&fold(last.clone(), case_sensitive)?, &fold(key.clone(), case_sensitive)?)? =>
            {
                items.push(item);
            }
            _ => groups.push((key, vec![item])),
        }
    }
    let pairs = groups.into_iter().map(|(grouper, list)| GroupPair { grouper, list: Value::from(list) });
    Ok(pairs.map(Value::from_object).collect())
}

fn items(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let value = call.value(0)?;
    refuse_undefined(call.state, value)?;
    if value.is_undefined() {
        return Ok(Value::from(Vec::<Value>::new()));
    }
    Ok(pairs(value)?.into_iter().map(pair).collect())
}

fn join(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    // In Python the letters of a text are its items. Runtimes disagree about that, and it is never meant.
    if call.limits.style.is_portable() && string_of(call.value(0)?).is_some() {
        return Err(invalid("`join` needs a list, not a string"));
    }
    let mut items = call.items(0)?;
    if let Some(attribute) = call.some(2) {
        items = items.iter().map(|item| path(item, attribute)).collect::<Result<_, _>>()?;
    }
    let none = Value::from("");
    let separator = call.given(1).unwrap_or(&none);
    let safe = autoescapes(call.state) && (separator.is_safe() || items.iter().any(Value::is_safe));
    let write = |out: &mut Text, value: &Value| -> Result<(), Error> {
        let text = text_of(call.state, call.limits, value)?;
        if safe && !value.is_safe() {
            out.push_str(&escape_html(&text, call.limits)?)
        } else {
            out.push_str(&text)
        }
    };
    let mut out = Text::new(call.limits);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            write(&mut out, separator)?;
        }
        write(&mut out, item)?;
    }
    let text = out.into_string();
    Ok(if safe { Value::from_safe_string(text) } else { Value::from(text) })
}

fn list(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    Ok(Value::from(call.items(0)?))
}

fn extreme(call: &Call<'_, '_, '_>, wanted: Ordering) -> Result<Value, Error> {
    let mut best: Option<(Value, Value)> = None;
    for item in call.items(0)? {
        let key = match call.some(2) {
            Some(attribute) => path(&item, attribute)?,
            None => item.clone(),
        };
        let key = fold(key, call.flag(1, false))?;
        let better = match &best {
            Some((known, _)) => compare(&key, known)? == wanted,
            None => true,
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(best.map(|(_, item)| item).unwrap_or_default())
}

fn max(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    extreme(call, Ordering::Greater)
}

fn min(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    extreme(call, Ordering::Less)
}

fn random(_: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    Err(invalid(
        "`random` is not available: a render must give the same text every time. Choose in your \
             program and pass the choice as a variable",
    ))
}

fn reverse(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let value = call.value(0)?;
    if let Some(text) = string_of(value) {
        return Ok(as_safe_as(value, text.chars().rev().collect()));
    }
    let mut items = call.items(0)?;
    items.reverse();
    Ok(Value::from(items))
}

fn slice(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let items = call.items(0)?;
    let count = usize::try_from(call.integer(1)?).ok().filter(|count| *count > 0);
    let count = count.ok_or_else(|| invalid("`slice` needs a count larger than 0"))?;
    call.limits.check_items(items.len().saturating_add(count))?;
    let (each, with_extra) = (items.len() / count, items.len() % count);
    let mut rest = items.as_slice();
    let mut slices = Vec::with_capacity(count);
    for index in 0..count {
        let (taken, after) = rest.split_at(each + usize::from(index < with_extra));
        rest = after;
        let mut taken = taken.to_vec();
        if index >= with_extra {
            taken.extend(call.some(2).cloned());
        }
        slices.push(Value::from(taken));
    }
    Ok(Value::from(slices))
}

fn sort_filter(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let (reverse, case_sensitive) = (call.flag(1, false), call.flag(2, false));
    let mut keyed = Vec::new();
    for item in call.items(0)? {
        let key = match call.some(3) {
            None => fold(item.clone(), case_sensitive)?,
            Some(attribute) => match string_of(attribute).filter(|attribute| attribute.contains(',')) {
                None => fold(path(&item, attribute)?, case_sensitive)?,
                Some(several) => {
                    let parts = several
                        .split(',')
                        .map(|one| fold(path(&item, &Value::from(one.trim()))?, case_sensitive));
                    Value::from(parts.collect::<Result<Vec<Value>, Error>>()?)
                }
            },
        };
        keyed.push((key, item));
    }
    Ok(Value::from(sort(keyed, reverse)?))
}

fn string(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let value = call.value(0)?;
    if string_of(value).is_some() {
        return Ok(value.clone());
    }
    Ok(Value::from(call.text(0)?.into_owned()))
}

fn sum(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let mut total = call.given(2).cloned().unwrap_or_else(|| Value::from(0));
    for item in call.items(0)? {
        let item = match call.some(1) {
            Some(attribute) => path(&item, attribute)?,
            None => item,
        };
        if string_of(&total).is_some() {
            return Err(invalid("`sum` cannot join strings: use `join`"));
        }
        total = add(call.state, call.limits, &total, &item)?;
    }
    Ok(total)
}

fn unique(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let mut seen = HashSet::new();
    let mut kept = Vec::new();
    for item in call.items(0)? {
        let key = match call.some(2) {
            Some(attribute) => path(&item, attribute)?,
            None => item.clone(),
        };
        let key = fold(key, call.flag(1, false))?;
        if matches!(key.kind(), ValueKind::Map | ValueKind::Iterable)
            || (key.kind() == ValueKind::Seq && !key.is_tuple())
        {
            return Err(invalid(format!("`unique` cannot compare by {}", type_name(&key))));
        }
        // Hashing walks the whole of a value; comparing it with itself shows whether that is bearable.
        equal(&key, &key)?;
        hashed(&key)?;
        if seen.insert(key) {
            kept.push(item);
        }
    }
    Ok(Value::from(kept))
}

/// `|map`, by an attribute or by a filter. What a filter makes of all items together counts as one string, because it
/// is made in one step.
fn map(state: &mut State<'_, '_>, limits: ValueLimits, given: &[Value]) -> Result<Value, Error> {
    call::touch(given)?;
    let (positional, named) = call::split(given);
    let (value, positional) = positional
        .split_first()
        .ok_or_else(|| Error::new(ErrorKind::MissingArgument, "`map` needs a sequence"))?;
    let items = items_of(state, limits, value)?;
    let argument = |wanted: &str| named.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
    let mut mapped = Vec::with_capacity(items.len());
    if let Some(attribute) = argument("attribute").filter(|_| positional.is_empty()) {
        if let Some((other, _)) = named.iter().find(|(name, _)| name != "attribute" && name != "default") {
            return Err(invalid(format!("`map` has no parameter `{other}`")));
        }
        for item in items {
            let found = match (path(&item, attribute), argument("default")) {
                (Ok(found), Some(default)) if found.is_undefined() => default.clone(),
                (Err(_), Some(default)) => default.clone(),
                (found, _) => found?,
            };
            mapped.push(found);
        }
    } else {
        let (filter, arguments) = positional
            .split_first()
            .ok_or_else(|| invalid("`map` needs an attribute or the name of a filter"))?;
        let filter = string_of(filter).ok_or_else(|| invalid("`map` needs the name of a filter"))?.to_owned();
        let mut arguments: Vec<Value> =
            std::iter::once(Value::UNDEFINED).chain(arguments.iter().cloned()).collect();
        arguments.extend(given.last().filter(|last| last.is_kwargs()).cloned());
        let mut bytes = 0usize;
        for item in items {
            arguments[0] = item;
            let made = state.apply_filter(&filter, &arguments)?;
            bytes = bytes.saturating_add(string_of(&made).map_or(0, str::len));
            limits.check_bytes(bytes)?;
            mapped.push(made);
        }
    }
    charged(state, limits, Value::from(mapped))
}

/// `|select` and its kin: the items, or those whose attribute, pass or fail a test.
fn select(
    state: &mut State<'_, '_>,
    limits: ValueLimits,
    given: &[Value],
    by_attribute: bool,
    kept: bool,
) -> Result<Value, Error> {
    call::touch(given)?;
    let (positional, _) = call::split(given);
    let missing = || Error::new(ErrorKind::MissingArgument, "an argument is missing");
    let (value, mut rest) = positional.split_first().ok_or_else(missing)?;
    let mut attribute = None;
    if by_attribute {
        let (first, after) = rest.split_first().ok_or_else(missing)?;
        attribute = Some(first);
        rest = after;
    }
    let test = match rest.split_first() {
        None => None,
        Some((name, arguments)) => {
            let name =
                string_of(name).ok_or_else(|| invalid("the name of a test must be a string"))?.to_owned();
            let mut arguments: Vec<Value> =
                std::iter::once(Value::UNDEFINED).chain(arguments.iter().cloned()).collect();
            arguments.extend(given.last().filter(|last| last.is_kwargs()).cloned());
            Some((name, arguments))
        }
    };
    let mut test = test;
    let mut selected = Vec::new();
    for item in items_of(state, limits, value)? {
        let tested = match attribute {
            Some(attribute) => path(&item, attribute)?,
            None => item.clone(),
        };
        let passed = match &mut test {
            Some((name, arguments)) => {
                arguments[0] = tested;
                state.perform_test(name, arguments)?
            }
            None => tested.is_true(),
        };
        if passed == kept {
            selected.push(item);
        }
    }
    charged(state, limits, Value::from(selected))
}

fn format(state: &mut State<'_, '_>, limits: ValueLimits, given: &[Value]) -> Result<Value, Error> {
    call::touch(given)?;
    let (positional, named) = call::split(given);
    let (template, values) = positional
        .split_first()
        .ok_or_else(|| Error::new(ErrorKind::MissingArgument, "`format` needs a string"))?;
    if !named.is_empty() && !values.is_empty() {
        return Err(invalid("`format` takes positional or named arguments, not both"));
    }
    for value in values {
        refuse_undefined(state, value)?;
    }
    let text = text_of(state, limits, template)?;
    let mapping = Value::from_pairs(named.iter().map(|(name, value)| (name.as_str(), value.clone())));
    let operands = if named.is_empty() { Operands::Tuple(values) } else { Operands::Mapping(&mapping) };
    Ok(as_safe_as(template, percent(&text, &operands, template.is_safe(), limits)?))
}
