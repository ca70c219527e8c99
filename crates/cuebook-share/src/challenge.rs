//! What a registry asks for: the header `WWW-Authenticate`.

/// A way to prove who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// A token from an address.
    Bearer {
        /// The address.
        realm: String,
        /// The name that the registry has there.
        service: Option<String>,
    },
    /// A name and a password.
    Basic,
}

impl Challenge {
    /// The challenge of a header that Cuebook can answer; a token is better than a password.
    pub fn read<'h>(headers: impl Iterator<Item = &'h str>) -> Option<Challenge> {
        let mut found = None;
        for header in headers {
            for (scheme, fields) in challenges(header) {
                let field = |wanted: &str| {
                    fields
                        .iter()
                        .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
                        .map(|(_, value)| value.clone())
                };
                if scheme.eq_ignore_ascii_case("bearer") {
                    let realm = field("realm")?;
                    return Some(Challenge::Bearer { realm, service: field("service") });
                }
                if scheme.eq_ignore_ascii_case("basic") {
                    found = Some(Challenge::Basic);
                }
            }
        }
        found
    }
}

type Fields = Vec<(String, String)>;

/// The schemes of a header with their fields: `Bearer realm="…",service=x, Basic realm="…"`.
fn challenges(header: &str) -> Vec<(String, Fields)> {
    let mut found: Vec<(String, Fields)> = Vec::new();
    let mut rest = header.trim_start_matches([' ', ',']);
    while !rest.is_empty() {
        let end = rest.find([' ', '=', ',']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = match after.strip_prefix('=') {
            Some(value) => {
                let (value, after) = value_of(value);
                if let Some((_, fields)) = found.last_mut() {
                    fields.push((word.to_owned(), value));
                }
                after
            }
            None => {
                found.push((word.to_owned(), Fields::new()));
                after
            }
        }
        .trim_start_matches([' ', ',']);
        if word.is_empty() && after.is_empty() {
            break;
        }
    }
    found
}

/// A value, in quotes or without, and what follows it.
fn value_of(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            letter => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_in_every_form() {
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer { realm: realm.into(), service: service.map(str::to_owned) })
        };
        for (header, expected) in [
            (
                "Bearer realm=\"https://a/t\",service=\"r\",scope=\"repository:x:pull\"",
                bearer("https://a/t", Some("r")),
            ),
            (
                "bearer Realm=\"https://a/t?x=\\\"1\\\"\" , service=r",
                bearer("https://a/t?x=\"1\"", Some("r")),
            ),
            ("Basic realm=\"x, y\", Bearer realm=\"https://a/t\"", bearer("https://a/t", None)),
            ("Basic realm=\"Registry\"", Some(Challenge::Basic)),
            ("Basic", Some(Challenge::Basic)),
            ("Negotiate abc==", None),
            ("Bearer scope=\"x\"", None),
            ("Bearer realm=\"unclosed", bearer("unclosed", None)),
            ("", None),
            (", =, ==\"", None),
        ] {
            assert_eq!(Challenge::read([header].into_iter()), expected, "{header}");
        }
    }
}
