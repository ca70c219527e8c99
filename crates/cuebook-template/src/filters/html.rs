//! Filters for HTML and addresses.

use crate::error::{Error, ErrorKind, Result};
use crate::python::{escape_html, is_space, offset_of};
use crate::render::{Call, Growing};
use crate::text::Text;
use crate::value::{Val, Value, type_error, type_name};

pub(super) fn escape<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    if call.value.value.is_safe() {
        return Ok(call.value.clone());
    }
    forceescape(call)
}

pub(super) fn forceescape<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let text = call.text()?;
    Ok(Val::text(text.map_from(call.origin(), escape_html).safe(true), call.origin()))
}

pub(super) fn safe<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let text = call.text()?;
    Ok(Val::text(text.safe(true), call.origin()))
}

pub(super) fn striptags<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let text = call.text()?;
    Ok(Val::text(unescape(&strip_tags(text.as_str())), call.origin()))
}

/// The entities that HTML pages use, and characters by their numbers.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match entity(rest) {
            Some((character, length)) => {
                out.push(character);
                rest = &rest[length..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

fn entity(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(32).position(|byte| byte == b';')?;
    let name = &text[1..end];
    let character = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
        None => match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            "nbsp" => '\u{a0}',
            "copy" => '\u{a9}',
            "reg" => '\u{ae}',
            "raquo" => '\u{bb}',
            "laquo" => '\u{ab}',
            "mdash" => '\u{2014}',
            "ndash" => '\u{2013}',
            "hellip" => '\u{2026}',
            "middot" => '\u{b7}',
            "euro" => '\u{20ac}',
            _ => return None,
        },
    };
    Some((character, end + 1))
}

pub(super) fn xmlattr<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let pairs = call.render.pairs(&call.value)?;
    let pairs = pairs
        .ok_or_else(|| type_error(format!("`xmlattr` needs a dict, not {}", type_name(&call.value.value))))?;
    let mut out = Growing::new(call.render);
    let (mut between, space) = (if call.flag(0, true)? { " " } else { "" }, " ");
    for (key, value) in pairs {
        if matches!(value.value, Value::None | Value::Undefined(_)) {
            continue;
        }
        let Some(key) = key.value.as_str() else {
            return Err(type_error(format!(
                "the name of an attribute is a string, not {}",
                type_name(&key.value)
            )));
        };
        if key.contains(|character: char| character.is_whitespace() || matches!(character, '/' | '>' | '=')) {
            return Err(Error::new(
                ErrorKind::Runtime,
                format!("`{key}` cannot be the name of an attribute"),
            ));
        }
        let text = call.render.text_of(&value)?;
        let shown = if text.is_safe() { text.as_str().to_owned() } else { escape_html(text.as_str()) };
        for part in [between, &escape_html(key), "=\"", &shown, "\""] {
            out.push(part)?;
        }
        between = space;
    }
    Ok(Val::text(Text::from(out.finish()).safe(call.cx.autoescape), call.origin()))
}

/// Percent encoding of everything that an address does not keep.
fn quote_url(text: &str, query: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' if query => out.push('+'),
            b'/' if !query => out.push('/'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

pub(super) fn urlencode<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let pairs = match (&call.value.value, call.render.pairs(&call.value)?) {
        (_, Some(pairs)) => pairs,
        (Value::Text(_), None) => {
            let text = call.text()?;
            return Ok(Val::text(
                text.map_from(call.origin(), |text| quote_url(text, false)).safe(false),
                call.origin(),
            ));
        }
        _ => match call.render.items(&call.value) {
            Err(_) => return Ok(Val::text(quote_url(call.text()?.as_str(), false), call.origin())),
            Ok(items) => {
                let mut pairs = Vec::new();
                for item in items.all(&call.render.origins) {
                    let pair = call.render.item_list(&item)?;
                    let [key, value] = <[Val<'r>; 2]>::try_from(pair)
                        .map_err(|_| type_error("`urlencode` takes a string, a dict or pairs"))?;
                    pairs.push((key, value));
                }
                pairs
            }
        },
    };
    let mut out = Growing::new(call.render);
    for (index, (key, value)) in pairs.into_iter().enumerate() {
        let (key, value) = (call.render.text_of(&key)?, call.render.text_of(&value)?);
        if index > 0 {
            out.push("&")?;
        }
        out.push(&quote_url(key.as_str(), true))?;
        out.push("=")?;
        out.push(&quote_url(value.as_str(), true))?;
    }
    Ok(Val::text(out.finish(), call.origin()))
}

pub(super) fn urlize<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let text = call.text()?;
    let escaped = if text.is_safe() { text.as_str().to_owned() } else { escape_html(text.as_str()) };
    let shown = match call.some(0) {
        Some(_) => usize::try_from(call.integer(0, 0)?).ok(),
        None => None,
    };
    let mut relations: Vec<String> = match call.some(3) {
        Some(_) => call.text_arg(3, "")?.as_str().split_whitespace().map(str::to_owned).collect(),
        None => Vec::new(),
    };
    if call.flag(1, false)? {
        relations.push("nofollow".to_owned());
    }
    relations.push("noopener".to_owned());
    relations.sort_unstable();
    relations.dedup();
    let mut attributes = format!(" rel=\"{}\"", escape_html(&relations.join(" ")));
    if call.some(2).is_some() {
        attributes.push_str(&format!(" target=\"{}\"", escape_html(call.text_arg(2, "")?.as_str())));
    }
    let mut schemes = Vec::new();
    if let Some(given) = call.some(4) {
        for scheme in call.render.item_list(given)? {
            schemes.push(call.render.text_of(&scheme)?.as_str().to_owned());
        }
    }
    let mut made = Growing::new(call.render);
    Links { shown, attributes, schemes: &schemes }.make(&escaped, &mut made)?;
    Ok(Val::text(Text::from(made.finish()).safe(call.cx.autoescape), call.origin()))
}

/// Text without comments and tags, its white space made single; entities stay as they are.
fn strip_tags(text: &str) -> String {
    let without_comments = cut_all(text, "<!--", "-->");
    let without_tags = cut_all(&without_comments, "<", ">");
    without_tags.split(is_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn cut_all(text: &str, open: &str, close: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(open) {
        let Some(length) = rest[start..].find(close) else { break };
        out.push_str(&rest[..start]);
        rest = &rest[start + length + close.len()..];
    }
    out + rest
}

/// How links are made of the addresses in a text.
struct Links<'l> {
    shown: Option<usize>,
    /// Attributes behind `href`, with a space before each.
    attributes: String,
    schemes: &'l [String],
}

impl Links<'_> {
    /// Makes links in a text that is escaped already.
    fn make(&self, escaped: &str, out: &mut Growing<'_, '_>) -> Result<()> {
        let mut rest = escaped;
        while !rest.is_empty() {
            out.render.spend(1 + self.schemes.len())?;
            let space = rest.starts_with(is_space);
            let end = rest.find(|character| is_space(character) != space).unwrap_or(rest.len());
            let (piece, after) = rest.split_at(end);
            rest = after;
            if space {
                out.push(piece)?;
            } else {
                self.word(piece, out)?;
            }
        }
        Ok(())
    }

    fn word(&self, word: &str, out: &mut Growing<'_, '_>) -> Result<()> {
        let mut middle = word;
        while let Some(after) = ["(", "<", "&lt;"].iter().find_map(|open| middle.strip_prefix(open)) {
            middle = after;
        }
        let head = &word[..word.len() - middle.len()];
        let bare = middle;
        while let Some(before) =
            [")", ">", ".", ",", "&gt;"].iter().find_map(|close| middle.strip_suffix(close))
        {
            middle = before;
        }
        let mut tail = &bare[middle.len()..];
        for (open, close) in [("(", ")"), ("<", ">"), ("&lt;", "&gt;")] {
            let opened = middle.matches(open).count();
            for _ in middle.matches(close).count()..opened {
                let Some(at) = tail.find(close) else { break };
                let end = middle.len() + at + close.len();
                middle = &bare[..end];
                tail = &bare[end..];
            }
        }
        out.push(head)?;
        match self.address(middle) {
            Some((href, shown, attributes)) => {
                for part in ["<a href=\"", &href, "\"", attributes, ">", &shown, "</a>"] {
                    out.push(part)?;
                }
            }
            None => out.push(middle)?,
        }
        out.push(tail)
    }

    fn address(&self, word: &str) -> Option<(String, String, &str)> {
        let shown = |text: &str| match self.shown {
            Some(limit) if text.chars().count() > limit => format!("{}...", &text[..offset_of(text, limit)]),
            _ => text.to_owned(),
        };
        let secure = word.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("http://"))
            || word.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://"));
        if is_web_address(word) {
            let href = if secure { word.to_owned() } else { format!("https://{word}") };
            return Some((href, shown(word), &self.attributes));
        }
        if let Some(mail) = word.strip_prefix("mailto:").filter(|mail| is_mail_address(mail)) {
            return Some((word.to_owned(), mail.to_owned(), ""));
        }
        if !word.starts_with("www.") && !word.starts_with('@') && !word.contains(':') && is_mail_address(word)
        {
            return Some((format!("mailto:{word}"), word.to_owned(), ""));
        }
        let known = self.schemes.iter().any(|scheme| word != scheme && word.starts_with(scheme.as_str()));
        known.then(|| (word.to_owned(), word.to_owned(), self.attributes.as_str()))
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn is_mail_address(text: &str) -> bool {
    // A domain holds no `@`, so only what follows the last one can be it.
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let Some((name, top)) = domain.rsplit_once('.') else { return false };
    !local.is_empty()
        && !top.is_empty()
        && top.chars().all(is_word)
        && name.starts_with(is_word)
        && name.chars().all(|character| is_word(character) || matches!(character, '.' | '-'))
}

fn is_web_address(text: &str) -> bool {
    let lower = text.to_lowercase();
    let scheme = ["https://", "http://"].into_iter().find_map(|scheme| lower.strip_prefix(scheme));
    let after = scheme.or_else(|| lower.strip_prefix("www.")).unwrap_or(&lower);
    let bare = after.len() == lower.len();
    let host_end = after.find(['/', '?', '#']).unwrap_or(after.len());
    let host = &after[..host_end];
    if scheme.is_some() && host.starts_with('[') {
        return host.find(']').is_some_and(|end| {
            host[1..end].contains(':')
                && host[1..end].chars().all(|character| character.is_ascii_hexdigit() || character == ':')
        });
    }
    let (host, port) = host.split_once(':').unwrap_or((host, "0"));
    if port.is_empty() || port.len() > 5 || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let mut labels: Vec<&str> = host.split('.').collect();
    let numeric = |label: &&str| {
        !label.is_empty() && label.len() <= 3 && label.bytes().all(|byte| byte.is_ascii_digit())
    };
    if scheme.is_some() && labels.len() == 4 && labels.iter().all(numeric) {
        return true;
    }
    let Some(top) = labels.pop() else { return false };
    let label = |label: &&str| {
        !label.is_empty()
            && label.chars().all(|character| is_word(character) || matches!(character, '%' | '-'))
    };
    let known = ["com", "net", "int", "edu", "gov", "org", "info", "mil"];
    if bare {
        return !labels.is_empty()
            && labels.iter().all(|part| label(part) && part.len() >= 2)
            && known.contains(&top);
    }
    let plain_top = (2..=63).contains(&top.len()) && top.bytes().all(|byte| byte.is_ascii_lowercase());
    let other_top = top.strip_prefix("xn--").is_some_and(|rest| (2..=59).contains(&rest.len()));
    labels.iter().all(label) && (plain_top || other_top)
}
