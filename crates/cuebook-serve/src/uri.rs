//! The addresses of knowledge: `cuebook://knowledge/` and the id, with whatever a URI cannot hold written as `%20` and the like.

/// What the address of a piece of knowledge begins with.
pub(crate) const KNOWLEDGE: &str = "cuebook://knowledge/";
/// The addresses of all knowledge: `+` keeps the slashes of an id.
pub(crate) const TEMPLATE: &str = "cuebook://knowledge/{+id}";

/// A text that may stand in the path of a URI. Slashes stay.
pub(crate) fn encode(text: &str) -> String {
    let mut uri = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte))
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// The text that a path of a URI stands for; nothing, if it stands for none.
pub(crate) fn decode(uri: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                let digit =
                    |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                bytes.push(digit(high)? * 16 + digit(low)?);
                after
            }
            (b'%', _) => return None,
            _ => {
                bytes.push(*first);
                after
            }
        };
    }
    String::from_utf8(bytes).ok()
}

/// The address of a piece of knowledge.
pub(crate) fn of(id: &str) -> String {
    format!("{KNOWLEDGE}{}", encode(id))
}

/// The id that an address means.
pub(crate) fn id(uri: &str) -> Option<String> {
    decode(uri.strip_prefix(KNOWLEDGE)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_its_id() {
        for id in ["rye/core/terminology", "a b/ü", "100%", "x?y#z", "日本"] {
            let uri = of(id);
            assert!(uri.is_ascii() && !uri.contains(['?', '#', ' ']), "{uri}");
            assert_eq!(super::id(&uri).as_deref(), Some(id));
        }
        for wrong in [
            "cuebook://knowledge/%",
            "cuebook://knowledge/%4",
            "cuebook://knowledge/%zz",
            "cuebook://knowledge/%ff",
            "file:///etc/passwd",
            "",
        ] {
            assert_eq!(super::id(wrong), None, "{wrong}");
        }
    }
}
