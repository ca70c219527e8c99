//! Columns of a table, whose values are read one by one as JSON.

use jiff::tz::TimeZone;
use serde_json::{Map, Number, Value as Json};

use super::interface::{ArrowArray, ArrowSchema, Plain};
use super::times::{self, Unit};

/// How deep lists and structs may be nested.
const DEEPEST: usize = 32;
/// The most digits after the point of a decimal number. A table can name any number, and all of them would be written out.
const MAX_SCALE: usize = 1000;

/// A column of one batch.
pub struct Column<'a> {
    offset: usize,
    length: usize,
    /// A bit for each value that is not null; empty if none is.
    validity: &'a [u8],
    values: Values<'a>,
}

enum Values<'a> {
    Nothing,
    Truths(&'a [u8]),
    Whole(Whole<'a>),
    Singles(&'a [f32]),
    Doubles(&'a [f64]),
    Decimals(&'a [[u8; 16]], usize),
    Texts(Offsets<'a>, &'a [u8]),
    Views(&'a [[u8; 16]], Vec<&'a [u8]>),
    Days(&'a [i32]),
    Moments(&'a [i64], Unit, Option<TimeZone>),
    Times(Whole<'a>, Unit),
    Lists(Offsets<'a>, Box<Column<'a>>),
    FixedLists(usize, Box<Column<'a>>),
    Structs(Vec<(&'a str, Column<'a>)>),
    Dictionary(Whole<'a>, Box<Column<'a>>),
}

/// Whole numbers of any width.
enum Whole<'a> {
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
}

enum Offsets<'a> {
    Small(&'a [i32]),
    Large(&'a [i64]),
}

/// The problem of a value, for the error of its row.
type Fault = String;

impl<'a> Column<'a> {
    /// The column of a schema and its array; the error says what cannot be read.
    pub fn new(schema: &'a ArrowSchema, array: &'a ArrowArray) -> Result<Column<'a>, String> {
        Column::at(schema, array, 0)
    }

    fn at(schema: &'a ArrowSchema, array: &'a ArrowArray, depth: usize) -> Result<Column<'a>, String> {
        if depth > DEEPEST {
            return Err(format!("lists are nested more than {DEEPEST} levels deep"));
        }
        let (offset, length) = (array.offset(), array.length());
        let end = offset.checked_add(length).ok_or("its length is wrong")?;
        let values = match schema.dictionary() {
            Some(kind) => {
                let keys = whole(schema.format(), array, end).ok_or("its keys are not whole numbers")?;
                let entries = array.dictionary().ok_or("its dictionary is missing")?;
                Values::Dictionary(keys, Box::new(Column::at(kind, entries, depth + 1)?))
            }
            None => values(schema, array, end, depth)?,
        };
        let has_validity = !matches!(values, Values::Nothing) && array.null_count != 0;
        let validity = if has_validity { array.buffer(0, end.div_ceil(8)) } else { &[] };
        Ok(Column { offset, length, validity, values })
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Writes a value. A text is written into the text that is there.
    pub fn write(&self, row: usize, into: &mut Json) -> Result<(), Fault> {
        let at = self.offset + row;
        if !self.validity.is_empty() && !bit(self.validity, at) {
            *into = Json::Null;
            return Ok(());
        }
        match &self.values {
            Values::Texts(offsets, bytes) => {
                let (start, end) = offsets.range(at)?;
                return text(into, bytes.get(start..end).ok_or_else(damaged)?);
            }
            Values::Views(views, buffers) => return text(into, view(views, buffers, at)?),
            Values::Dictionary(keys, entries) => {
                let key = keys
                    .get(at)
                    .and_then(|key| usize::try_from(key).ok())
                    .filter(|key| *key < entries.length);
                return entries.write(key.ok_or_else(damaged)?, into);
            }
            other => *into = self.read(other, row, at)?,
        }
        Ok(())
    }

    /// A value.
    fn value(&self, row: usize) -> Result<Json, Fault> {
        let mut value = Json::Null;
        self.write(row, &mut value).map(|()| value)
    }

    fn read(&self, values: &Values<'_>, row: usize, at: usize) -> Result<Json, Fault> {
        Ok(match values {
            Values::Truths(bits) => Json::Bool(bit(bits, at)),
            Values::Whole(Whole::U64(numbers)) => one(numbers, at)?.into(),
            Values::Whole(numbers) => numbers.get(at).ok_or_else(damaged)?.into(),
            // The shortest digits of the single, not those of the double that it becomes.
            Values::Singles(numbers) => float(one(numbers, at)?.to_string().parse().unwrap_or(f64::NAN))?,
            Values::Doubles(numbers) => float(one(numbers, at)?)?,
            Values::Decimals(numbers, scale) => {
                decimal(i128::from_le_bytes(one(numbers, at)?), *scale).into()
            }
            Values::Days(days) => dated(times::day(one(days, at)?.into()))?,
            Values::Moments(moments, unit, zone) => {
                dated(times::moment(one(moments, at)?, *unit, zone.as_ref()))?
            }
            Values::Times(moments, unit) => dated(times::time(moments.get(at).ok_or_else(damaged)?, *unit))?,
            Values::Lists(offsets, items) => {
                let (start, end) = offsets.range(at)?;
                list(items, start, end)?
            }
            Values::FixedLists(size, items) => {
                let start = at.checked_mul(*size).ok_or_else(damaged)?;
                list(items, start, start.checked_add(*size).ok_or_else(damaged)?)?
            }
            Values::Structs(fields) => {
                // Fields begin where the struct's own offset says, in addition to their own.
                let member = |(name, column): &(&str, Column<'_>)| {
                    Ok(((*name).to_owned(), column.value(self.offset + row)?))
                };
                Json::Object(fields.iter().map(member).collect::<Result<Map<_, _>, Fault>>()?)
            }
            Values::Nothing | Values::Texts(..) | Values::Views(..) | Values::Dictionary(..) => Json::Null,
        })
    }
}

fn values<'a>(
    schema: &'a ArrowSchema,
    array: &'a ArrowArray,
    end: usize,
    depth: usize,
) -> Result<Values<'a>, String> {
    let format = schema.format();
    if let Some(numbers) = whole(format, array, end) {
        return Ok(Values::Whole(numbers));
    }
    let child = |at: usize| {
        let kind = schema.children().nth(at).ok_or("a part is missing")?;
        Column::at(kind, array.child(at).ok_or("a part is missing")?, depth + 1)
    };
    Ok(match format {
        "n" => Values::Nothing,
        "b" => Values::Truths(array.buffer(1, end.div_ceil(8))),
        "f" => Values::Singles(array.buffer(1, end)),
        "g" => Values::Doubles(array.buffer(1, end)),
        "u" | "U" => {
            let offsets = Offsets::new(array, format == "U", end);
            let last = offsets.last()?;
            Values::Texts(offsets, array.buffer(2, last))
        }
        "vu" => {
            // The last buffer has the lengths of those before it, of which the first two are the validity and the views.
            let count = array.buffers().saturating_sub(3);
            let lengths: &[i64] = array.buffer(count + 2, count);
            let buffer = |(at, length): (usize, &i64)| {
                array.buffer(at + 2, usize::try_from(*length).unwrap_or_default())
            };
            Values::Views(array.buffer(1, end), lengths.iter().enumerate().map(buffer).collect())
        }
        "tdD" => Values::Days(array.buffer(1, end)),
        "tdm" => Values::Moments(array.buffer(1, end), Unit::of("m").ok_or("its unit is unknown")?, None),
        "+l" | "+L" => {
            let offsets = Offsets::new(array, format == "+L", end);
            offsets.last()?;
            Values::Lists(offsets, Box::new(child(0)?))
        }
        "+s" => {
            let names = schema.children().map(ArrowSchema::name).enumerate();
            Values::Structs(names.map(|(at, name)| Ok((name, child(at)?))).collect::<Result<_, String>>()?)
        }
        _ => return parameterized(format, array, end, &child),
    })
}

/// Types whose format has parameters.
fn parameterized<'a>(
    format: &str,
    array: &'a ArrowArray,
    end: usize,
    child: &dyn Fn(usize) -> Result<Column<'a>, String>,
) -> Result<Values<'a>, String> {
    if let Some(rest) = format.strip_prefix("ts")
        && let Some((unit, zone)) = rest.split_once(':')
    {
        let unit = Unit::of(unit).ok_or("its unit is unknown")?;
        return Ok(Values::Moments(array.buffer(1, end), unit, times::zone(zone)?));
    }
    if let Some(unit) = format.strip_prefix("tt").and_then(Unit::of) {
        let is_small = matches!(format, "tts" | "ttm");
        let moments =
            if is_small { Whole::I32(array.buffer(1, end)) } else { Whole::I64(array.buffer(1, end)) };
        return Ok(Values::Times(moments, unit));
    }
    if let Some(size) = format.strip_prefix("+w:").and_then(|size| size.parse().ok()) {
        return Ok(Values::FixedLists(size, Box::new(child(0)?)));
    }
    if let Some(rest) = format.strip_prefix("d:") {
        let parts: Vec<&str> = rest.split(',').collect();
        if let [_, scale] | [_, scale, "128"] = parts[..]
            && let Ok(scale) = scale.parse()
            && scale <= MAX_SCALE
        {
            return Ok(Values::Decimals(array.buffer(1, end), scale));
        }
    }
    Err(format!("its type has the Arrow format `{format}`, which no template can print"))
}

fn whole<'a>(format: &str, array: &'a ArrowArray, end: usize) -> Option<Whole<'a>> {
    Some(match format {
        "c" => Whole::I8(array.buffer(1, end)),
        "C" => Whole::U8(array.buffer(1, end)),
        "s" => Whole::I16(array.buffer(1, end)),
        "S" => Whole::U16(array.buffer(1, end)),
        "i" => Whole::I32(array.buffer(1, end)),
        "I" => Whole::U32(array.buffer(1, end)),
        "l" => Whole::I64(array.buffer(1, end)),
        "L" => Whole::U64(array.buffer(1, end)),
        _ => return None,
    })
}

impl Whole<'_> {
    fn get(&self, at: usize) -> Option<i64> {
        match self {
            Whole::I8(all) => all.get(at).copied().map(i64::from),
            Whole::I16(all) => all.get(at).copied().map(i64::from),
            Whole::I32(all) => all.get(at).copied().map(i64::from),
            Whole::I64(all) => all.get(at).copied(),
            Whole::U8(all) => all.get(at).copied().map(i64::from),
            Whole::U16(all) => all.get(at).copied().map(i64::from),
            Whole::U32(all) => all.get(at).copied().map(i64::from),
            Whole::U64(all) => all.get(at).copied().and_then(|number| number.try_into().ok()),
        }
    }
}

impl<'a> Offsets<'a> {
    fn new(array: &'a ArrowArray, large: bool, end: usize) -> Offsets<'a> {
        if large {
            Offsets::Large(array.buffer(1, end + 1))
        } else {
            Offsets::Small(array.buffer(1, end + 1))
        }
    }

    /// Where the last value ends.
    fn last(&self) -> Result<usize, String> {
        let last = match self {
            Offsets::Small(all) => all.last().copied().map_or(0, i64::from),
            Offsets::Large(all) => all.last().copied().unwrap_or_default(),
        };
        usize::try_from(last).map_err(|_| damaged())
    }

    fn range(&self, at: usize) -> Result<(usize, usize), Fault> {
        let pair = match self {
            Offsets::Small(all) => all.get(at..at + 2).map(|pair| (i64::from(pair[0]), i64::from(pair[1]))),
            Offsets::Large(all) => all.get(at..at + 2).map(|pair| (pair[0], pair[1])),
        };
        let (start, end) = pair.ok_or_else(damaged)?;
        let known = |offset: i64| usize::try_from(offset).map_err(|_| damaged());
        Ok((known(start)?, known(end)?))
    }
}

fn bit(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

fn one<T: Plain + Copy>(all: &[T], at: usize) -> Result<T, Fault> {
    all.get(at).copied().ok_or_else(damaged)
}

fn view<'v>(views: &'v [[u8; 16]], buffers: &[&'v [u8]], at: usize) -> Result<&'v [u8], Fault> {
    let view = views.get(at).ok_or_else(damaged)?;
    let part = |at: usize| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&view[at..at + 4]);
        usize::try_from(i32::from_le_bytes(bytes)).map_err(|_| damaged())
    };
    let length = part(0)?;
    // A short text is in the view.
    if length <= 12 {
        return Ok(&view[4..4 + length]);
    }
    let (buffer, start) = (buffers.get(part(8)?).ok_or_else(damaged)?, part(12)?);
    buffer.get(start..start + length).ok_or_else(damaged)
}

fn text(into: &mut Json, bytes: &[u8]) -> Result<(), Fault> {
    let text = str::from_utf8(bytes).map_err(|error| format!("is not valid UTF-8: {error}"))?;
    match into {
        Json::String(there) => {
            there.clear();
            there.push_str(text);
        }
        other => *other = Json::String(text.to_owned()),
    }
    Ok(())
}

fn float(number: f64) -> Result<Json, Fault> {
    Number::from_f64(number).map(Json::Number).ok_or_else(|| format!("is {number}, which is not a number"))
}

fn dated(text: Option<String>) -> Result<Json, Fault> {
    text.map(Json::String).ok_or_else(|| "is a date before the year -9999 or after 9999".to_owned())
}

/// A number with so many digits after the point.
fn decimal(number: i128, scale: usize) -> String {
    let (sign, digits) = (if number < 0 { "-" } else { "" }, number.unsigned_abs().to_string());
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (before, after) = digits.split_at(digits.len() - scale);
    if scale == 0 { format!("{sign}{before}") } else { format!("{sign}{before}.{after}") }
}

fn list(items: &Column<'_>, start: usize, end: usize) -> Result<Json, Fault> {
    if start > end || end > items.length {
        return Err(damaged());
    }
    (start..end).map(|row| items.value(row)).collect()
}

fn damaged() -> Fault {
    "has damaged Arrow buffers".to_owned()
}
