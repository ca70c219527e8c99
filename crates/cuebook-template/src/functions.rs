//! Jinja2's functions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::error::{Error, ErrorKind, Exceeded, Result};
use crate::origin::Origin;
use crate::render::Spans::Keeps;
use crate::render::{ANYTHING, Args, Call, Definition, Render, row};
use crate::value::{Counter, Dict, Key, Range, Special, Val, Value, type_error};

/// The functions, in the order of their names.
pub(crate) static FUNCTIONS: [Definition; 5] = [
    row(
        "cycler",
        ANYTHING,
        Keeps,
        "Items that come one after the other, again and again: `next()`, `current`, `reset()`.",
        ("{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}", "aba"),
        cycler,
    ),
    row(
        "dict",
        ANYTHING,
        Keeps,
        "A dict of pairs, of another dict, and of named values.",
        ("{{ dict(a=1, b=2) }}", "{'a': 1, 'b': 2}"),
        dict,
    ),
    row(
        "joiner",
        ANYTHING,
        Keeps,
        "A separator that is empty the first time.",
        ("{% set j = joiner(' / ') %}{% for x in [1, 2] %}{{ j() }}{{ x }}{% endfor %}", "1 / 2"),
        joiner,
    ),
    row(
        "namespace",
        ANYTHING,
        Keeps,
        "A value whose attributes `set` can change inside loops.",
        (
            "{% set ns = namespace(n=0) %}{% for x in [1, 2] %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}",
            "3",
        ),
        namespace,
    ),
    row(
        "range",
        ANYTHING,
        Keeps,
        "Numbers from `start` to the one before `stop`: `range(stop)`, `range(start, stop, step)`.",
        ("{{ range(1, 6, 2)|list }}", "[1, 3, 5]"),
        range,
    ),
];

fn special<'r>(special: Special<'r>) -> Result<Val<'r>> {
    Ok(Value::Special(Rc::new(special)).into())
}

fn dict<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    dict_from(call.render, std::mem::take(&mut call.rest))
}

fn namespace<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let mut entries: Vec<(Rc<str>, Val<'r>)> = Vec::new();
    let made = dict(call)?;
    for (key, value) in call.render.pairs(&made)?.unwrap_or_default() {
        entries.push((call.render.text_of(&key)?.as_str().into(), value));
    }
    let space = Rc::new(Special::Namespace(RefCell::new(entries)));
    call.render.namespaces.borrow_mut().push(Rc::downgrade(&space));
    Ok(Value::Special(space).into())
}

fn cycler<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let args = std::mem::take(&mut call.rest);
    no_names("cycler", &args)?;
    if args.positional.is_empty() {
        return Err(type_error("`cycler` needs at least one item"));
    }
    special(Special::Cycler { items: args.positional, at: Counter::new(0) })
}

fn joiner<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let mut args = std::mem::take(&mut call.rest);
    let named = args.take_named("sep");
    let separator = args.positional.into_iter().next().or(named);
    let separator = separator.unwrap_or_else(|| Val::text(", ", Origin::AUTHOR));
    special(Special::Joiner { separator, used: Cell::new(false) })
}

fn range<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let args = std::mem::take(&mut call.rest);
    no_names("range", &args)?;
    let numbers: Vec<i64> = args
        .positional
        .iter()
        .map(|value| value.value.need_integer("an argument of `range`"))
        .collect::<Result<_>>()?;
    let (start, stop, step) = match numbers.as_slice() {
        [stop] => (0, *stop, 1),
        [start, stop] => (*start, *stop, 1),
        [start, stop, step] => (*start, *stop, *step),
        _ => return Err(type_error("`range` takes one to three arguments")),
    };
    if step == 0 {
        return Err(Error::new(ErrorKind::Runtime, "the step of `range` cannot be 0"));
    }
    let span =
        if step > 0 { i128::from(stop) - i128::from(start) } else { i128::from(start) - i128::from(stop) };
    let width = i128::from(step).abs();
    let length = if span <= 0 { 0 } else { (span + width - 1) / width };
    let most = call.render.env.limits.range;
    if length > most as i128 {
        return Err(Error::limit(Exceeded::Size, format!("a range has more than {most} items")));
    }
    let origin = call.render.origins.mix_all(args.positional.iter().map(|value| value.origin));
    Ok(Val::new(Value::Range(Rc::new(Range { start, stop, step, length: length as usize })), origin))
}

fn dict_from<'r>(render: &Render<'r>, args: Args<'r>) -> Result<Val<'r>> {
    let mut dict = Dict::default();
    match args.positional.as_slice() {
        [] => {}
        [Val { value: Value::Undefined(missing), .. }] => return Err(missing.error()),
        [from] => match render.pairs(from)? {
            Some(pairs) => {
                for (key, value) in pairs {
                    dict.insert(render.key_of(&key.value)?, key, value);
                }
            }
            None => {
                for item in render.item_list(from)? {
                    let pair = render.item_list(&item)?;
                    let [key, value] = <[Val<'r>; 2]>::try_from(pair)
                        .map_err(|_| type_error("`dict` takes a dict, pairs, or named values"))?;
                    dict.insert(render.key_of(&key.value)?, key, value);
                }
            }
        },
        _ => return Err(type_error("`dict` takes one argument and named values")),
    }
    for (name, value) in args.named {
        let key = Key::Text(name.as_ref().to_owned());
        dict.insert(key, Val::text(name.as_ref().to_owned(), Origin::AUTHOR), value);
    }
    Ok(Value::Dict(dict.into()).into())
}

fn no_names(function: &str, args: &Args<'_>) -> Result<()> {
    match args.named.first() {
        Some((name, _)) => Err(type_error(format!("`{function}` has no argument `{name}`"))),
        None => Ok(()),
    }
}
