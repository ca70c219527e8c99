//! Columns of a batch, whose values are read one by one as JSON.

use jiff::tz::TimeZone;
use serde_json::{Map, Number, Value as Json};

use crate::times::{self, Unit};

/// How deep lists and structs may be nested.
const DEEPEST: usize = 32;
/// The most digits after the point of a decimal number. A table can name any number, and all of them would be written out.
const MAX_SCALE: usize = 1000;
/// The bytes of a view: a short text, or where a long one is.
const VIEW: usize = 16;

/// An array of Arrow with its type, as its owner keeps it. Formats and buffers are those of Arrow's C data interface.
pub trait Source<'a>: Copy {
    /// The format of the values, such as `u` for text. That of a dictionary's column is the format of its keys.
    fn format(self) -> &'a str;
    /// The name of the column or member.
    fn name(self) -> &'a str;
    /// How many values there are.
    fn length(self) -> usize;
    /// The first value in the buffers and parts.
    fn offset(self) -> usize;
    /// The first value in buffers that have a bit for each value.
    fn bit_offset(self) -> usize;
    /// Whether a value may be null.
    fn has_nulls(self) -> bool;
    /// So many bytes of a buffer, or fewer if it ends before: 0 has the validity, 1 the values or offsets, 2 the bytes of texts.
    fn buffer(self, at: usize, bytes: usize) -> &'a [u8];
    /// The buffers of texts outside of their views.
    fn view_buffers(self) -> Vec<&'a [u8]>;
    /// The arrays of lists and structs.
    fn children(self) -> Vec<Self>;
    /// The values of a column that has keys.
    fn dictionary(self) -> Option<Self>;
}

/// A column of one batch.
pub struct Column<'a> {
    offset: usize,
    bit_offset: usize,
    length: usize,
    /// A bit for each value that is not null; empty if none is.
    validity: &'a [u8],
    values: Values<'a>,
}

enum Values<'a> {
    Nothing,
    Truths(&'a [u8]),
    Whole(Whole<'a>),
    Singles(&'a [u8]),
    Doubles(&'a [u8]),
    Decimals(&'a [u8], usize),
    Texts(Offsets<'a>, &'a [u8]),
    Views(&'a [u8], Vec<&'a [u8]>),
    Days(&'a [u8]),
    Moments(&'a [u8], Unit, Option<TimeZone>),
    Times(Whole<'a>, Unit),
    Lists(Offsets<'a>, Box<Column<'a>>),
    FixedLists(usize, Box<Column<'a>>),
    Structs(Vec<(&'a str, Column<'a>)>),
    Dictionary(Whole<'a>, Box<Column<'a>>),
}

/// Whole numbers of any width.
#[derive(Clone, Copy)]
struct Whole<'a> {
    bytes: &'a [u8],
    width: usize,
    signed: bool,
}

/// Where texts and lists begin and end: whole numbers of 4 or 8 bytes.
struct Offsets<'a>(Whole<'a>);

/// The problem of a value, for the error of its row.
type Fault = String;

impl<'a> Column<'a> {
    /// The column of an array; the error says what cannot be read.
    pub fn new(source: impl Source<'a>) -> Result<Column<'a>, String> {
        Column::at(source, 0)
    }

    fn at(source: impl Source<'a>, depth: usize) -> Result<Column<'a>, String> {
        if depth > DEEPEST {
            return Err(format!("lists are nested more than {DEEPEST} levels deep"));
        }
        let (offset, bit_offset, length) = (source.offset(), source.bit_offset(), source.length());
        let too_long = || "its length is wrong".to_owned();
        // No sum below is too large: the widest value has 16 bytes.
        let end = offset.checked_add(length).filter(|end| *end < usize::MAX / 32).ok_or_else(too_long)?;
        let bits = bit_offset.checked_add(length).ok_or_else(too_long)?.div_ceil(8);
        let values = match source.dictionary() {
            Some(entries) => {
                let keys = whole(source, end).ok_or("its keys are not whole numbers")?;
                Values::Dictionary(keys, Box::new(Column::at(entries, depth + 1)?))
            }
            None => values(source, end, bits, depth)?,
        };
        let has_validity = !matches!(values, Values::Nothing) && source.has_nulls();
        let validity = if has_validity { source.buffer(0, bits) } else { &[] };
        Ok(Column { offset, bit_offset, length, validity, values })
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Writes a value. A text is written into the text that is there. The error continues the sentence "the value of X …".
    pub fn write(&self, row: usize, into: &mut Json) -> Result<(), String> {
        let at = self.offset + row;
        if !self.validity.is_empty() && !bit(self.validity, self.bit_offset + row) {
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
            Values::Truths(bits) => Json::Bool(bit(bits, self.bit_offset + row)),
            Values::Whole(Whole { bytes, width: 8, signed: false }) => {
                u64::from_ne_bytes(one(bytes, at)?).into()
            }
            Values::Whole(numbers) => numbers.get(at).ok_or_else(damaged)?.into(),
            // The shortest digits of the single, not those of the double that it becomes.
            Values::Singles(numbers) => {
                let number = f32::from_ne_bytes(one(numbers, at)?);
                float(number.to_string().parse().unwrap_or(f64::NAN))?
            }
            Values::Doubles(numbers) => float(f64::from_ne_bytes(one(numbers, at)?))?,
            Values::Decimals(numbers, scale) => {
                decimal(i128::from_le_bytes(one(numbers, at)?), *scale).into()
            }
            Values::Days(days) => dated(times::day(i32::from_ne_bytes(one(days, at)?).into()))?,
            Values::Moments(moments, unit, zone) => {
                dated(times::moment(i64::from_ne_bytes(one(moments, at)?), *unit, zone.as_ref()))?
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

fn values<'a>(source: impl Source<'a>, end: usize, bits: usize, depth: usize) -> Result<Values<'a>, String> {
    let format = source.format();
    if let Some(numbers) = whole(source, end) {
        return Ok(Values::Whole(numbers));
    }
    let child = || {
        let child = source.children().into_iter().next().ok_or("a part is missing")?;
        Column::at(child, depth + 1).map(Box::new)
    };
    Ok(match format {
        "n" => Values::Nothing,
        "b" => Values::Truths(source.buffer(1, bits)),
        "f" => Values::Singles(source.buffer(1, end * 4)),
        "g" => Values::Doubles(source.buffer(1, end * 8)),
        "u" | "U" => {
            let offsets = Offsets::new(source, format == "U", end);
            let last = offsets.last()?;
            Values::Texts(offsets, source.buffer(2, last))
        }
        "vu" => Values::Views(source.buffer(1, end * VIEW), source.view_buffers()),
        "tdD" => Values::Days(source.buffer(1, end * 4)),
        "tdm" => {
            Values::Moments(source.buffer(1, end * 8), Unit::of("m").ok_or("its unit is unknown")?, None)
        }
        "+l" | "+L" => {
            let offsets = Offsets::new(source, format == "+L", end);
            offsets.last()?;
            Values::Lists(offsets, child()?)
        }
        "+s" => {
            let member = |child| Ok((Source::name(child), Column::at(child, depth + 1)?));
            Values::Structs(source.children().into_iter().map(member).collect::<Result<_, String>>()?)
        }
        _ => return parameterized(source, end, &child),
    })
}

/// Types whose format has parameters.
fn parameterized<'a>(
    source: impl Source<'a>,
    end: usize,
    child: &dyn Fn() -> Result<Box<Column<'a>>, String>,
) -> Result<Values<'a>, String> {
    let format = source.format();
    if let Some(rest) = format.strip_prefix("ts")
        && let Some((unit, zone)) = rest.split_once(':')
    {
        let unit = Unit::of(unit).ok_or("its unit is unknown")?;
        return Ok(Values::Moments(source.buffer(1, end * 8), unit, times::zone(zone)?));
    }
    if let Some(unit) = format.strip_prefix("tt").and_then(Unit::of) {
        let width = if matches!(format, "tts" | "ttm") { 4 } else { 8 };
        return Ok(Values::Times(Whole::new(source, width, true, end), unit));
    }
    if let Some(size) = format.strip_prefix("+w:").and_then(|size| size.parse().ok()) {
        return Ok(Values::FixedLists(size, child()?));
    }
    if let Some(rest) = format.strip_prefix("d:") {
        let parts: Vec<&str> = rest.split(',').collect();
        if let [_, scale] | [_, scale, "128"] = parts[..]
            && let Ok(scale) = scale.parse()
            && scale <= MAX_SCALE
        {
            return Ok(Values::Decimals(source.buffer(1, end * 16), scale));
        }
    }
    Err(format!("its type has the Arrow format `{format}`, which no template can print"))
}

fn whole<'a>(source: impl Source<'a>, end: usize) -> Option<Whole<'a>> {
    let (width, signed) = match source.format() {
        "c" => (1, true),
        "C" => (1, false),
        "s" => (2, true),
        "S" => (2, false),
        "i" => (4, true),
        "I" => (4, false),
        "l" => (8, true),
        "L" => (8, false),
        _ => return None,
    };
    Some(Whole::new(source, width, signed, end))
}

impl<'a> Whole<'a> {
    fn new(source: impl Source<'a>, width: usize, signed: bool, count: usize) -> Whole<'a> {
        Whole { bytes: source.buffer(1, count * width), width, signed }
    }

    fn get(&self, at: usize) -> Option<i64> {
        let bytes = self.bytes;
        Some(match (self.width, self.signed) {
            (1, true) => i8::from_ne_bytes(one(bytes, at).ok()?).into(),
            (1, false) => u8::from_ne_bytes(one(bytes, at).ok()?).into(),
            (2, true) => i16::from_ne_bytes(one(bytes, at).ok()?).into(),
            (2, false) => u16::from_ne_bytes(one(bytes, at).ok()?).into(),
            (4, true) => i32::from_ne_bytes(one(bytes, at).ok()?).into(),
            (4, false) => u32::from_ne_bytes(one(bytes, at).ok()?).into(),
            (_, true) => i64::from_ne_bytes(one(bytes, at).ok()?),
            (_, false) => u64::from_ne_bytes(one(bytes, at).ok()?).try_into().ok()?,
        })
    }
}

impl<'a> Offsets<'a> {
    fn new(source: impl Source<'a>, large: bool, end: usize) -> Offsets<'a> {
        Offsets(Whole::new(source, if large { 8 } else { 4 }, true, end + 1))
    }

    /// Where the last value ends.
    fn last(&self) -> Result<usize, String> {
        match (self.0.bytes.len() / self.0.width).checked_sub(1) {
            Some(last) => self.at(last),
            None => Ok(0),
        }
    }

    fn range(&self, at: usize) -> Result<(usize, usize), Fault> {
        let Whole { bytes, width, .. } = self.0;
        if width != 4 {
            return Ok((self.at(at)?, self.at(at + 1)?));
        }
        let both = at.checked_mul(4).and_then(|start| bytes.get(start..)?.first_chunk::<8>());
        let both = both.ok_or_else(damaged)?;
        Ok((offset(one(both, 0)?)?, offset(one(both, 1)?)?))
    }

    fn at(&self, at: usize) -> Result<usize, Fault> {
        self.0.get(at).and_then(|offset| usize::try_from(offset).ok()).ok_or_else(damaged)
    }
}

fn offset(bytes: [u8; 4]) -> Result<usize, Fault> {
    usize::try_from(i32::from_ne_bytes(bytes)).map_err(|_| damaged())
}

fn bit(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

/// The bytes of a value.
fn one<const WIDTH: usize>(bytes: &[u8], at: usize) -> Result<[u8; WIDTH], Fault> {
    let found = at.checked_mul(WIDTH).and_then(|start| bytes.get(start..start.checked_add(WIDTH)?));
    found.and_then(|bytes| bytes.try_into().ok()).ok_or_else(damaged)
}

fn view<'v>(views: &'v [u8], buffers: &[&'v [u8]], at: usize) -> Result<&'v [u8], Fault> {
    let view = at.checked_mul(VIEW).and_then(|start| views.get(start..start.checked_add(VIEW)?));
    let view = view.ok_or_else(damaged)?;
    // Its four numbers: the length, the first bytes, the buffer and the place in it.
    let part = |at: usize| usize::try_from(i32::from_ne_bytes(one(view, at)?)).map_err(|_| damaged());
    let length = part(0)?;
    // A short text is in the view.
    if length <= 12 {
        return Ok(&view[4..4 + length]);
    }
    let (buffer, start) = (buffers.get(part(2)?).ok_or_else(damaged)?, part(3)?);
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
