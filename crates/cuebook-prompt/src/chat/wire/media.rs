//! Pictures, sounds and documents: where their bytes are, and what they are.
//!
//! Nothing is fetched and no file is read: a local path is refused, because the provider could not follow it either.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use super::draft::{Draft, MessagePosition};
use crate::chat::Media;
use crate::chat::media_type::{TYPES, guess};
use crate::error::Result;

/// Where the bytes are.
pub(super) enum Bytes<'m> {
    /// On the web, or in a store that only the provider can reach (`gs://…`).
    Url(&'m str),
    /// With the provider already, under this id (`file-…` of OpenAI, `file_…` of Anthropic).
    Id(&'m str),
    /// Here, in base64.
    Here(Cow<'m, str>),
}

/// Something that is not text.
pub(super) struct MediaContent<'m> {
    pub bytes: Bytes<'m>,
    /// What it is, as in `image/png`, if that is said or can be seen.
    pub media_type: Option<String>,
    /// The name of the file.
    pub name: Option<&'m str>,
    /// How closely a picture is to be looked at.
    pub detail: Option<&'m str>,
    /// The `data:` URI that it was passed as, if its bytes are in base64 there.
    written: Option<&'m str>,
    spot: MessagePosition<'m>,
}

impl<'r> Draft<'r> {
    /// Finds out where the bytes of a part are, and what it is.
    pub fn media(&self, spot: MessagePosition<'r>, media: &'r Media) -> Result<MediaContent<'r>> {
        let source = media.source.trim();
        let (mut uri_type, mut written) = (None, None);
        let bytes = if let Some(rest) = strip_scheme(source, "data") {
            let (media_type, data) = data_uri(rest).ok_or_else(|| {
                let why = "the `data:` URI has no comma, so it has no data";
                self.refuse(spot, why, "write it as `data:image/png;base64,iVBOR…`")
            })?;
            uri_type = Some(media_type);
            written = matches!(data, Cow::Borrowed(_)).then_some(source);
            Bytes::Here(data)
        } else if strip_scheme(source, "file").is_some() || is_path(source) {
            let why = format!("`{}` is a local file, which the provider cannot read", clip(source));
            return Err(self.refuse(spot, why, "pass a URL, a `data:` URI, or the bytes in base64"));
        } else if has_scheme(source) {
            Bytes::Url(source)
        } else if source.starts_with("file-") || source.starts_with("file_") {
            Bytes::Id(source)
        } else if source.is_empty()
            || source.chars().any(|c| !c.is_ascii_graphic() && !c.is_ascii_whitespace())
        {
            let why = "the source is not a URL, a `data:` URI or base64";
            return Err(self.refuse(spot, why, "pass one of these"));
        } else if source.contains(|c: char| c.is_ascii_whitespace()) {
            // Encoders break lines.
            Bytes::Here(Cow::Owned(source.split_ascii_whitespace().collect()))
        } else {
            Bytes::Here(Cow::Borrowed(source))
        };
        let name = media.name.as_deref().filter(|name| !name.is_empty());
        let said = media.media_type.as_deref().map(clean).filter(|said| !said.is_empty());
        let seen = || match &bytes {
            Bytes::Url(url) => guess(url).map(str::to_owned),
            Bytes::Here(data) => look(data).map(str::to_owned),
            Bytes::Id(_) => None,
        };
        let media_type = said.or(uri_type).or_else(|| name.and_then(guess).map(str::to_owned)).or_else(seen);
        let detail = media.detail.as_deref().filter(|detail| !detail.is_empty());
        Ok(MediaContent { bytes, media_type, name, detail, written, spot })
    }
}

impl MediaContent<'_> {
    /// What it is; refused if unknown.
    pub fn known_type(&self, draft: &Draft<'_>) -> Result<&str> {
        self.media_type.as_deref().ok_or_else(|| {
            let why = "the media type is missing";
            draft.refuse(self.spot, why, "add a `mediaType`, such as `image/png` or `application/pdf`")
        })
    }

    /// It as a `data:` URI.
    pub fn data_uri(&self, draft: &Draft<'_>, data: &str) -> Result<String> {
        match self.written {
            Some(uri) => Ok(uri.to_owned()),
            None => Ok(format!("data:{};base64,{data}", self.known_type(draft)?)),
        }
    }

    /// Its name, or one that says what it is.
    pub fn file_name(&self) -> String {
        match self.name {
            Some(name) => name.to_owned(),
            None => {
                let wanted = self.media_type.as_deref().unwrap_or_default();
                let ending = TYPES.iter().find(|(_, media_type)| *media_type == wanted);
                ending.map_or_else(|| "document".into(), |(ending, _)| format!("document.{ending}"))
            }
        }
    }

    /// The provider cannot take it.
    pub fn refuse(&self, draft: &Draft<'_>, why: impl std::fmt::Display, hint: &str) -> crate::Error {
        draft.refuse(self.spot, why, hint)
    }
}

/// Whether the provider can follow a URL by itself.
pub(super) fn is_web(url: &str) -> bool {
    strip_scheme(url, "https").is_some() || strip_scheme(url, "http").is_some()
}

/// The text that base64 stands for.
pub(super) fn text(data: &str) -> Option<String> {
    let engines = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
    let bytes = engines.iter().find_map(|engine| engine.decode(data).ok())?;
    String::from_utf8(bytes).ok()
}

fn strip_scheme<'s>(source: &'s str, scheme: &str) -> Option<&'s str> {
    let (before, after) = source.split_once(':')?;
    before.eq_ignore_ascii_case(scheme).then_some(after)
}

fn has_scheme(source: &str) -> bool {
    source.split_once("://").is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
    })
}

/// Whether it looks like a file's path. Base64 has no dots, so a name with an ending is never base64.
fn is_path(source: &str) -> bool {
    let ending = source.rsplit_once('.').map(|(_, ending)| ending);
    let has_ending = ending.is_some_and(|ending| {
        (1..=5).contains(&ending.len()) && ending.chars().all(|c| c.is_ascii_alphanumeric())
    });
    let windows = source.as_bytes().get(1..3).is_some_and(|two| two == b":\\");
    !has_scheme(source)
        && (has_ending || windows || ["./", "../", "~/"].iter().any(|start| source.starts_with(start)))
}

/// Type and base64 of what stands behind `data:`.
fn data_uri(rest: &str) -> Option<(String, Cow<'_, str>)> {
    let (head, data) = rest.split_once(',')?;
    let media_type = match clean(head) {
        none if none.is_empty() || !none.contains('/') => "text/plain".to_owned(),
        media_type => media_type,
    };
    let is_base64 = head.rsplit(';').next().is_some_and(|last| last.trim().eq_ignore_ascii_case("base64"));
    let data =
        if is_base64 { Cow::Borrowed(data) } else { Cow::Owned(STANDARD.encode(percent_decode(data))) };
    Some((media_type, data))
}

fn percent_decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let pair = after.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let code = pair.filter(|_| first == b'%').and_then(|pair| u8::from_str_radix(pair, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    bytes
}

/// A media type without parameters, under its usual name.
fn clean(media_type: &str) -> String {
    let name = media_type.split(';').next().unwrap_or_default().trim().to_lowercase();
    match name.as_str() {
        "image/jpg" => "image/jpeg".into(),
        _ => name,
    }
}

/// What the first bytes say.
fn look(data: &str) -> Option<&'static str> {
    // 16 characters of base64 are 12 bytes, enough for every mark below.
    let bytes = STANDARD.decode(data.get(..16)?).ok()?;
    match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => Some("image/webp"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E'] => Some("audio/wav"),
        [b'I', b'D', b'3', ..] => Some("audio/mpeg"),
        [b'O', b'g', b'g', b'S', ..] => Some("audio/ogg"),
        [b'f', b'L', b'a', b'C', ..] => Some("audio/flac"),
        [b'%', b'P', b'D', b'F', b'-', ..] => Some("application/pdf"),
        _ => None,
    }
}

fn clip(source: &str) -> String {
    let short: String = source.chars().take(60).collect();
    if short.len() < source.len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_is_read_from_the_first_bytes() {
        assert_eq!(look(&STANDARD.encode(b"\x89PNG\r\n\x1a\n0000")), Some("image/png"));
        assert_eq!(look(&STANDARD.encode(b"RIFF0000WEBPVP8 ")), Some("image/webp"));
        assert_eq!(look(&STANDARD.encode(b"RIFF0000WAVEfmt ")), Some("audio/wav"));
        assert_eq!(look("short"), None);
    }

    #[test]
    fn a_data_uri_may_be_written_in_percents() {
        let (media_type, data) = data_uri("text/plain;charset=utf-8,100%25%20sure%").unwrap();
        assert_eq!((media_type.as_str(), text(&data).as_deref()), ("text/plain", Some("100% sure%")));
        let (media_type, data) = data_uri(";base64,aGk=").unwrap();
        assert_eq!((media_type.as_str(), &*data), ("text/plain", "aGk="));
        assert!(data_uri("image/png;base64").is_none());
    }

    #[test]
    fn a_path_is_distinguished_from_base64_and_from_a_url() {
        for path in ["photo.png", "./a", "~/x/y", "C:\\a\\b", "/home/me/scan.pdf"] {
            assert!(is_path(path), "{path}");
        }
        for other in ["/9j/4AAQSkZJRg", "iVBORw0KGgo=", "https://example.com/a.png", "gs://bucket/a.png"] {
            assert!(!is_path(other), "{other}");
        }
    }
}
