//! Python's two ways to format text: `'%05.1f' % x` and `'{:>5}'.format(x)`. The text around the fields keeps its origins.

mod spec;
mod wrap;

use self::spec::{Spec, character_of, check_size, float_digits, integer_digits, size};
pub(crate) use self::wrap::wrap;
use crate::error::Result;
use crate::origin::Origin;
use crate::python;
use crate::render::{Args, Render};
use crate::text::{Builder, Text};
use crate::value::{Key, Printer, Val, Value, type_error as invalid, type_name};

fn to_str<'r>(render: &Render<'r>, value: &Val<'r>) -> Result<String> {
    render.spend_read(value)?;
    Ok(render.text_of(value)?.as_str().to_owned())
}

fn to_repr(render: &Render<'_>, value: &Val<'_>) -> Result<String> {
    let mut printer = Printer::new(render.env.limits.string_bytes);
    printer.repr(&value.value)?;
    render.spend_text(printer.out.len())?;
    Ok(printer.out)
}

fn to_ascii(render: &Render<'_>, value: &Val<'_>) -> Result<String> {
    let text = to_repr(render, value)?;
    let ascii = |character: char| {
        if character.is_ascii() { character.to_string() } else { python::escape(character) }
    };
    Ok(text.chars().map(ascii).collect())
}

/// What Python's `format(value, spec)` gives where there is a format.
fn format_field<'r>(render: &Render<'r>, value: &Val<'r>, spec: &str) -> Result<String> {
    let spec = Spec::parse(spec, render.env.limits.string_bytes)?;
    if let Some(text) = value.value.as_str() {
        if !matches!(spec.letter, None | Some('s')) || spec.sign.is_some() || spec.align == Some('=') {
            return Err(invalid("a string cannot have the format of a number"));
        }
        let cut: String = text.chars().take(spec.precision.unwrap_or(usize::MAX)).collect();
        return Ok(spec.pad(&cut, '<'));
    }
    if let Some(number) = value.value.as_integer() {
        if spec.letter == Some('c') {
            if spec.precision.is_some() || spec.sign.is_some() {
                return Err(invalid("the format of a character has neither sign nor precision"));
            }
            return Ok(spec.pad(&character_of(number)?, '<'));
        }
        if !matches!(spec.letter, Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%')) {
            if spec.precision.is_some() {
                return Err(invalid("the format of an integer has no precision"));
            }
            let (prefix, digits) = integer_digits(number.unsigned_abs(), &spec)?;
            return Ok(spec.pad_number(number < 0, prefix, &digits));
        }
    }
    match value.value.as_number() {
        Some(number) => {
            let negative = number.is_sign_negative() && !number.is_nan();
            Ok(spec.pad_number(negative, "", &float_digits(number, &spec)?))
        }
        None => Err(invalid(format!("{} takes no format", type_name(&value.value)))),
    }
}

/// Where a format gets its named arguments from.
pub(crate) enum Names<'f, 'r> {
    Arguments(&'f Args<'r>),
    Mapping(&'f Val<'r>),
}

impl<'r> Names<'_, 'r> {
    fn get(&self, render: &Render<'r>, name: &str) -> Result<Val<'r>> {
        let found = match self {
            Names::Arguments(args) => {
                render.spend(args.named.len() / 16)?;
                args.named.iter().find(|(known, _)| known.as_ref() == name).map(|(_, value)| value.clone())
            }
            Names::Mapping(Val { value: Value::Dict(dict), .. }) => {
                dict.get(&Key::Text(name.to_owned())).cloned()
            }
            Names::Mapping(mapping) => {
                let value = render.item(mapping, &Val::text(name.to_owned(), Origin::AUTHOR))?;
                (!value.value.is_undefined()).then_some(value)
            }
        };
        found.ok_or_else(|| invalid(format!("argument `{name}` of a format is missing")))
    }
}

/// `str.format`: text with replacement fields in braces.
pub(crate) fn braces<'r>(
    render: &Render<'r>,
    template: &Val<'r>,
    positional: &[Val<'r>],
    names: &Names<'_, 'r>,
) -> Result<Val<'r>> {
    let text = render.text_of(template)?;
    let fields = Fields { render, positional, names, escape: text.is_safe() };
    let mut builder = Builder::new();
    let mut origin = render.origin_of(template);
    fields.format_at(&text, template.origin, &mut Numbering::Unknown, 2, &mut builder, &mut origin)?;
    Ok(builder.finish(origin, text.is_safe()))
}

struct Fields<'f, 'r> {
    render: &'f Render<'r>,
    positional: &'f [Val<'r>],
    names: &'f Names<'f, 'r>,
    /// Whether what is filled in is escaped for HTML, because the text around it is safe.
    escape: bool,
}

impl<'r> Fields<'_, 'r> {
    fn format_at(
        &self,
        template: &Text<'r>,
        base: Origin,
        numbering: &mut Numbering,
        depth: usize,
        out: &mut Builder,
        origin: &mut Origin,
    ) -> Result<()> {
        if depth == 0 {
            return Err(invalid("replacement fields are nested too deeply"));
        }
        let whole = template.as_str();
        let (mut from, mut paid) = (0, 0);
        while let Some(found) = whole[from..].find(['{', '}']) {
            let at = from + found;
            out.push_text(&template.slice(from, at), base);
            let brace = &whole[at..at + 1];
            let rest = &whole[at + 1..];
            if rest.starts_with(brace) {
                out.push_text(&template.slice(at, at + 1), base);
                from = at + 2;
                continue;
            }
            if brace == "}" {
                return Err(invalid("a format has a single `}`"));
            }
            let end = field_end(rest)?;
            let (text, value) = self.field(&rest[..end], numbering, depth)?;
            *origin = self.render.origins.mix(*origin, value);
            out.push_text(&text, value);
            self.render.spend_growth(&mut paid, out.len())?;
            from = at + 1 + end + 1;
        }
        out.push_text(&template.slice(from, whole.len()), base);
        Ok(())
    }

    fn field(&self, field: &str, numbering: &mut Numbering, depth: usize) -> Result<(Text<'r>, Origin)> {
        let mut brackets = 0usize;
        let mut name_end = field.len();
        for (at, character) in field.char_indices() {
            match character {
                '[' => brackets += 1,
                ']' => brackets = brackets.saturating_sub(1),
                ':' | '!' if brackets == 0 => {
                    name_end = at;
                    break;
                }
                _ => {}
            }
        }
        let (name, after) = field.split_at(name_end);
        let (conversion, spec) = match after.strip_prefix('!') {
            Some(after) => {
                let mut characters = after.chars();
                let conversion = characters.next();
                let tail = characters.as_str();
                let spec = tail.strip_prefix(':').or_else(|| tail.is_empty().then_some(""));
                (conversion, spec.ok_or_else(|| invalid("a format expects `:` after a conversion"))?)
            }
            None => (None, after.strip_prefix(':').unwrap_or("")),
        };
        let value = self.lookup(name, numbering)?;
        let mut origin = self.render.origin_of(&value);
        let value = match conversion {
            None => value,
            Some('s') => Val::text(self.render.text_of(&value)?, origin),
            Some('r') => Val::text(to_repr(self.render, &value)?, origin),
            Some('a') => Val::text(to_ascii(self.render, &value)?, origin),
            Some(other) => return Err(invalid(format!("unknown conversion `{other}` in a format"))),
        };
        let spec = if spec.contains(['{', '}']) {
            let mut inner = Builder::new();
            let text = Text::from(spec.to_owned());
            // What fills the room around a value comes from the format, which can have fields itself.
            self.format_at(&text, Origin::AUTHOR, numbering, depth - 1, &mut inner, &mut origin)?;
            inner.into_string()
        } else {
            spec.to_owned()
        };
        let text = match spec.is_empty() {
            true => self.render.text_of(&value)?,
            false => format_field(self.render, &value, &spec)?.into(),
        };
        let escape = self.escape && !value.value.is_safe();
        Ok((if escape { text.map(python::escape_html) } else { text }, origin))
    }

    fn lookup(&self, name: &str, numbering: &mut Numbering) -> Result<Val<'r>> {
        let first_end = name.find(['.', '[']).unwrap_or(name.len());
        let (first, mut rest) = name.split_at(first_end);
        let index = if first.is_empty() { Some(numbering.next()?) } else { first.parse::<usize>().ok() };
        if !first.is_empty() && index.is_some() {
            numbering.given()?;
        }
        let mut value = match index {
            Some(index) => {
                let found = self.positional.get(index).cloned();
                found.ok_or_else(|| invalid(format!("argument {index} of a format is missing")))?
            }
            None => self.names.get(self.render, first)?,
        };
        while !rest.is_empty() {
            let (key, after) = if let Some(after) = rest.strip_prefix('.') {
                let end = after.find(['.', '[']).unwrap_or(after.len());
                if end == 0 {
                    return Err(invalid("a format has a point without a name"));
                }
                after.split_at(end)
            } else {
                let inside = rest.strip_prefix('[').unwrap_or(rest);
                let end = inside.find(']').ok_or_else(|| invalid("a format has `[` without `]`"))?;
                (&inside[..end], &inside[end + 1..])
            };
            value = match key.parse::<i64>() {
                Ok(index) => self.render.item(&value, &Value::Int(index).into())?,
                Err(_) => self.render.item(&value, &Val::text(key.to_owned(), Origin::AUTHOR))?,
            };
            rest = after;
        }
        Ok(value)
    }
}

/// Whether fields name their arguments by number or leave the numbers out; they may not mix.
enum Numbering {
    Unknown,
    Automatic(usize),
    Manual,
}

impl Numbering {
    fn next(&mut self) -> Result<usize> {
        let next = match self {
            Numbering::Unknown => 0,
            Numbering::Automatic(next) => *next,
            Numbering::Manual => return Err(invalid("a format mixes `{}` with numbered fields")),
        };
        *self = Numbering::Automatic(next + 1);
        Ok(next)
    }

    fn given(&mut self) -> Result<()> {
        if matches!(self, Numbering::Automatic(_)) {
            return Err(invalid("a format mixes `{}` with numbered fields"));
        }
        *self = Numbering::Manual;
        Ok(())
    }
}

fn field_end(rest: &str) -> Result<usize> {
    let mut open = 1usize;
    for (at, character) in rest.char_indices() {
        match character {
            '{' => open += 1,
            '}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Ok(at);
        }
    }
    Err(invalid("a format has a single `{`"))
}

/// `template % operands`.
pub(crate) fn percent<'r>(render: &Render<'r>, template: &Val<'r>, operands: &Val<'r>) -> Result<Val<'r>> {
    match &operands.value {
        Value::Tuple(_) => percent_with(render, template, operands),
        // Python leaves it open whether a list was meant as the one argument or as arguments by name.
        Value::List(_) | Value::Array(_) | Value::Range(_) | Value::Undefined(_) => {
            percent_with(render, template, operands)
        }
        value if value.is_mapping() => percent_with(render, template, operands),
        _ => percent_with(render, template, &Val::tuple(vec![operands.clone()])),
    }
}

/// The same with operands that are a tuple or a dict.
pub(crate) fn percent_with<'r>(
    render: &Render<'r>,
    template: &Val<'r>,
    operands: &Val<'r>,
) -> Result<Val<'r>> {
    let text = render.text_of(template)?;
    let mut run = Percent { render, operands, taken: 0, escape: text.is_safe() };
    let mut out = Builder::new();
    let mut origin = render.origin_of(template);
    let whole = text.as_str();
    let (mut from, mut paid) = (0, 0);
    while let Some(found) = whole[from..].find('%') {
        let at = from + found;
        out.push_text(&text.slice(from, at), template.origin);
        let (length, field) = run.field(&whole[at + 1..])?;
        match field {
            None => out.push_text(&text.slice(at, at + 1), template.origin),
            Some((shown, value)) => {
                origin = render.origins.mix(origin, value);
                out.push_text(&shown, value);
            }
        }
        render.spend_growth(&mut paid, out.len())?;
        from = at + 1 + length;
    }
    out.push_text(&text.slice(from, whole.len()), template.origin);
    if let Value::Tuple(values) = &operands.value
        && run.taken < values.len()
    {
        return Err(invalid("a format has too many arguments"));
    }
    Ok(out.finish(origin, text.is_safe()))
}

struct Percent<'f, 'r> {
    render: &'f Render<'r>,
    operands: &'f Val<'r>,
    taken: usize,
    escape: bool,
}

impl<'r> Percent<'_, 'r> {
    fn next(&mut self, named: Option<&str>) -> Result<Val<'r>> {
        if let Some(name) = named {
            if !self.operands.value.is_mapping() {
                return Err(invalid("a format with names needs a dict"));
            }
            return Names::Mapping(self.operands).get(self.render, name);
        }
        self.taken += 1;
        let found = match &self.operands.value {
            Value::Tuple(values) => values.get(self.taken - 1).cloned(),
            _ => (self.taken == 1).then(|| self.operands.clone()),
        };
        found.ok_or_else(|| invalid("a format has too few arguments"))
    }

    /// A width or precision: digits, or `*` for the next argument.
    fn star(&mut self, characters: &[char], at: &mut usize, spec: &mut Spec) -> Result<Option<usize>> {
        let limit = self.render.env.limits.string_bytes;
        if characters.get(*at) != Some(&'*') {
            return size(characters, at, limit);
        }
        *at += 1;
        let wanted =
            self.next(None)?.value.as_integer().ok_or_else(|| invalid("`*` in a format needs an integer"))?;
        if wanted < 0 {
            spec.align = Some('<');
        }
        let wanted = usize::try_from(wanted.unsigned_abs()).unwrap_or(usize::MAX);
        check_size(wanted, limit)?;
        Ok(Some(wanted))
    }

    /// One field behind its `%`: how many bytes it takes, and its text with the origin; nothing for `%%`.
    fn field(&mut self, rest: &str) -> Result<(usize, Option<(Text<'r>, Origin)>)> {
        let characters: Vec<char> = rest.chars().take(256).collect();
        let mut at = 0;
        let mut named = None;
        if characters.first() == Some(&'(') {
            let end = characters.iter().position(|character| *character == ')');
            let end = end.ok_or_else(|| invalid("a format has `%(` without `)`"))?;
            named = Some(characters[1..end].iter().collect::<String>());
            at = end + 1;
        }
        let mut spec = Spec { sign: Some('-'), ..Spec::default() };
        loop {
            match characters.get(at) {
                Some('-') => spec.align = Some('<'),
                Some('+') => spec.sign = Some('+'),
                Some(' ') if spec.sign != Some('+') => spec.sign = Some(' '),
                Some(' ') => {}
                Some('#') => spec.alternate = true,
                Some('0') => spec.zero = true,
                _ => break,
            }
            at += 1;
        }
        if spec.align == Some('<') {
            spec.zero = false;
        }
        spec.width = self.star(&characters, &mut at, &mut spec)?.unwrap_or(0);
        if characters.get(at) == Some(&'.') {
            at += 1;
            spec.precision = Some(self.star(&characters, &mut at, &mut spec)?.unwrap_or(0));
        }
        while matches!(characters.get(at), Some('h' | 'l' | 'L')) {
            at += 1;
        }
        let letter = *characters.get(at).ok_or_else(|| invalid("a format ends within a field"))?;
        let length = characters[..=at].iter().map(|character| character.len_utf8()).sum();
        if letter == '%' {
            return Ok((length, None));
        }
        let value = self.next(named.as_deref())?;
        let plain = letter == 's' && spec.width == 0 && spec.precision.is_none();
        let text = match &value.value {
            // A text stays as it is, with its pieces.
            Value::Text(text) if plain && self.escape && !text.is_safe() => text.map(python::escape_html),
            Value::Text(text) if plain => text.clone(),
            _ => self.shown(&value, letter, spec)?.into(),
        };
        Ok((length, Some((text, self.render.origin_of(&value)))))
    }

    fn shown(&self, value: &Val<'r>, letter: char, mut spec: Spec) -> Result<String> {
        let not_a_number = || invalid(format!("`%{letter}` needs a number, not {}", type_name(&value.value)));
        let text = match letter {
            's' => to_str(self.render, value)?,
            'r' => to_repr(self.render, value)?,
            'a' => to_ascii(self.render, value)?,
            'c' => match (value.value.as_integer(), value.value.as_str()) {
                (Some(code), _) => character_of(code)?,
                (None, Some(text)) if python::length(text) == 1 => text.to_owned(),
                _ => return Err(invalid("`%c` needs a character or its number")),
            },
            'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
                let whole = match (value.value.as_integer(), &value.value) {
                    (Some(whole), _) => whole,
                    (None, Value::Float(number))
                        if matches!(letter, 'd' | 'i' | 'u') && number.is_finite() =>
                    {
                        number.trunc() as i128
                    }
                    _ => return Err(not_a_number()),
                };
                spec.letter = Some(if matches!(letter, 'i' | 'u') { 'd' } else { letter });
                let (prefix, mut digits) = integer_digits(whole.unsigned_abs(), &spec)?;
                if let Some(precision) = spec.precision {
                    digits = format!("{}{digits}", "0".repeat(precision.saturating_sub(digits.len())));
                }
                return Ok(spec.pad_number(whole < 0, prefix, &digits));
            }
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
                let number = value.value.as_number().ok_or_else(not_a_number)?;
                spec.letter = Some(letter);
                let negative = number.is_sign_negative() && !number.is_nan();
                return Ok(spec.pad_number(negative, "", &float_digits(number, &spec)?));
            }
            other => return Err(invalid(format!("unknown letter `{other}` in a format"))),
        };
        let numeric = value.value.as_number().is_some();
        let text =
            if self.escape && !numeric && !value.value.is_safe() { python::escape_html(&text) } else { text };
        let cut: String = text.chars().take(spec.precision.unwrap_or(usize::MAX)).collect();
        spec.zero = false;
        Ok(spec.pad(&cut, '>'))
    }
}
