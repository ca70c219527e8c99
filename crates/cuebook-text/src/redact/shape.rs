//! Secrets that give themselves away by their look, in text of any kind.
//!
//! Prompts are prose and code, and a trace that blacks out half a sentence is worthless. So a rule needs more than a
//! word: a known beginning with a long random rest, a scheme with a token, a quoted name with a quoted value. A password
//! in plain prose ("the password is swordfish") has no look; only its name, where it has one, can save it.
//!
//! One pass over the text, without backtracking: a rule looks ahead over what it will take, or a few bytes.

use std::borrow::Cow;
use std::ops::Range;

use super::REDACTED;
use super::name::{Name, kind_of_name};

/// How keys of well-known services begin.
const BEGINNINGS: [&str; 30] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "whsec_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxs-",
    "xapp-",
    "hf_",
    "gsk_",
    "xai-",
    "pplx-",
    "AIza",
    "AKIA",
    "ASIA",
    "ya29.",
    "npm_",
    "pypi-",
    "dop_v1_",
    "SG.",
];

/// The text without its secrets; the same text if it has none.
pub(super) fn redacted(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut kept = 0;
    let mut at = 0;
    while at < text.len() {
        match secret_at(text, at) {
            Some(secret) => {
                out.push_str(&text[kept..secret.start]);
                out.push_str(REDACTED);
                kept = secret.end;
                at = secret.end.max(at + 1);
            }
            None => at += 1,
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

/// The secret that a rule finds from here on. Every range begins and ends beside an ASCII byte or at the text's end, so
/// it never cuts a letter in two.
fn secret_at(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let found = match bytes[at] {
        b'-' => private_key(text, at),
        b':' => password_of_a_url(bytes, at),
        b'"' | b'\'' => quoted_member(bytes, at),
        byte if byte.is_ascii_alphabetic() && begins_a_word(bytes, at) => {
            key_of_a_service(bytes, at).or_else(|| after_a_scheme(bytes, at)).or_else(|| assigned(bytes, at))
        }
        _ => None,
    }?;
    // What was redacted before stays as it is.
    (!found.is_empty() && &text[found.clone()] != REDACTED).then_some(found)
}

fn begins_a_word(bytes: &[u8], at: usize) -> bool {
    at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || matches!(bytes[at - 1], b'_' | b'-'))
}

/// Where the bytes from here on stop to be of a kind.
fn run(bytes: &[u8], from: usize, of: impl Fn(u8) -> bool) -> usize {
    bytes[from..].iter().position(|&byte| !of(byte)).map_or(bytes.len(), |length| from + length)
}

fn of_a_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~+/=".contains(&byte)
}

/// `-----BEGIN … PRIVATE KEY-----` and all that follows, up to its end.
fn private_key(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text[at..].strip_prefix("-----BEGIN ")?;
    let label = rest.find("-----")?;
    if label > 40 || !rest[..label].ends_with("PRIVATE KEY") {
        return None;
    }
    let start = at + "-----BEGIN ".len() + label + "-----".len();
    let end = text[start..].find("-----END ").map_or(text.len(), |length| start + length);
    // The key that was taken out before leaves only a mark between the lines.
    (text[start..end].trim() != REDACTED).then_some(start..end)
}

/// The password in `scheme://user:password@host`, seen from the colon before the slashes.
fn password_of_a_url(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    if !bytes[at..].starts_with(b"://") {
        return None;
    }
    let start = at + 3;
    let end = run(bytes, start, |byte| byte.is_ascii_graphic() && !b"/?#\"'<>`\\".contains(&byte));
    let host = start + bytes[start..end].iter().rposition(|&byte| byte == b'@')?;
    let colon = start + bytes[start..host].iter().position(|&byte| byte == b':')?;
    Some(colon + 1..host)
}

/// `"apiKey": "…"`, in text that is not JSON as a whole.
fn quoted_member(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let quote = bytes[at];
    let name_end = run(bytes, at + 1, |byte| byte.is_ascii_alphanumeric() || b"_-. ".contains(&byte));
    if bytes.get(name_end) != Some(&quote) || name_end - at > 65 {
        return None;
    }
    let colon = run(bytes, name_end + 1, |byte| byte == b' ');
    if bytes.get(colon) != Some(&b':') {
        return None;
    }
    let open = run(bytes, colon + 1, |byte| byte.is_ascii_whitespace());
    let close_with = *bytes.get(open).filter(|byte| b"\"'".contains(byte))?;
    named(bytes, at + 1..name_end)?;
    Some(open + 1..end_of_quotes(bytes, open + 1, close_with))
}

/// Where quotes close that were opened before; the end of a text that was cut.
fn end_of_quotes(bytes: &[u8], from: usize, quote: u8) -> usize {
    let mut at = from;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    // A backslash may be the last byte, and what follows one may be a letter of several bytes.
    at.min(bytes.len())
}

/// `sk-…` and its like.
fn key_of_a_service(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let beginning = BEGINNINGS.iter().find(|beginning| bytes[at..].starts_with(beginning.as_bytes()));
    let (start, web_token) = match beginning {
        Some(beginning) => (at + beginning.len(), false),
        None if bytes[at..].starts_with(b"eyJ") => (at, true),
        None => return None,
    };
    let end = run(bytes, start, |byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    // The full stop of a sentence is not the key's.
    let end = start + bytes[start..end].iter().rposition(|&byte| byte != b'.')? + 1;
    let rest = &bytes[start..end];
    let random = if web_token {
        rest.len() >= 30 && rest.iter().filter(|&&byte| byte == b'.').count() >= 2
    } else {
        // `sk-learn-pipeline-2024` is no key: no part of it is both long and mixed.
        rest.split(|byte| b"-_.".contains(byte))
            .any(|part| part.len() >= 20 || (part.len() >= 10 && part.iter().any(u8::is_ascii_digit)))
    };
    random.then_some(at..end)
}

/// `Bearer …` and `Basic …`. Short ones only behind `Authorization:`, since people write of bearers, too.
fn after_a_scheme(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let word = run(bytes, at, |byte| byte.is_ascii_alphabetic());
    let scheme = &bytes[at..word];
    let known = scheme.eq_ignore_ascii_case(b"bearer") || scheme.eq_ignore_ascii_case(b"basic");
    if !known || bytes.get(word) != Some(&b' ') {
        return None;
    }
    let start = word + 1;
    let end = run(bytes, start, of_a_token);
    let token = &bytes[start..end];
    let before = bytes[..at].trim_ascii_end();
    let header = before.strip_suffix(b":").or(before.strip_suffix(b"=")).unwrap_or_default().trim_ascii_end();
    let in_a_header =
        header.len() >= 13 && header[header.len() - 13..].eq_ignore_ascii_case(b"authorization");
    let mixed = token.iter().any(|byte| byte.is_ascii_digit() || *byte == b'=');
    (in_a_header || (token.len() >= 16 && mixed)).then_some(start..end)
}

/// `API_KEY=…`, `?token=…&`, `password="…"`.
fn assigned(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let equals = run(bytes, at, |byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if bytes.get(equals) != Some(&b'=') || equals - at > 64 {
        return None;
    }
    let kind = named(bytes, at..equals)?;
    let start = equals + 1;
    if let Some(&quote) = bytes.get(start).filter(|byte| b"\"'".contains(byte)) {
        let end = end_of_quotes(bytes, start + 1, quote);
        // A placeholder is written by an author and holds no secret.
        let literal = end - start > 4 && !bytes[start..end].windows(2).any(|two| two == b"{{");
        return literal.then_some(start + 1..end);
    }
    let end = run(bytes, start, |byte| of_a_token(byte) || b"!@$%^*:".contains(&byte));
    let value = &bytes[start..end];
    let number = kind == Name::Token && value.iter().all(u8::is_ascii_digit);
    let environment = bytes[at..equals].iter().all(|byte| !byte.is_ascii_lowercase());
    let long =
        if environment { value.len() >= 4 } else { value.len() >= 6 && value.iter().any(u8::is_ascii_digit) };
    (long && !number).then_some(start..end)
}

/// What a name says, if it is a secret's.
fn named(bytes: &[u8], name: Range<usize>) -> Option<Name> {
    let name = std::str::from_utf8(&bytes[name]).ok()?;
    Some(kind_of_name(name)).filter(|kind| matches!(kind, Name::Secret | Name::Token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_schemes_are_taken_out_of_text() {
        for (before, after) in [
            ("use sk-proj-abc123DEF456ghi789. Now", "use [REDACTED]. Now"),
            ("(ghp_0123456789abcdefghij)", "([REDACTED])"),
            ("Bearer abcdef0123456789abcdef", "Bearer [REDACTED]"),
            ("Authorization: Bearer short", "Authorization: Bearer [REDACTED]"),
            ("curl -H 'authorization: basic dTpw'", "curl -H 'authorization: basic [REDACTED]'"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def_123", "[REDACTED]"),
            ("postgres://ada:p%40ss@db/x?y=1", "postgres://ada:[REDACTED]@db/x?y=1"),
            ("GET /?api_key=abc123&x=1", "GET /?api_key=[REDACTED]&x=1"),
            ("export DB_PASSWORD=swordfish\n", "export DB_PASSWORD=[REDACTED]\n"),
            ("connect(password='swordfish')", "connect(password='[REDACTED]')"),
            (
                "so: {\"apiKey\": \"a\\\"b\", 'token' : 'x'} é",
                "so: {\"apiKey\": \"[REDACTED]\", 'token' : '[REDACTED]'} é",
            ),
            ("{\"a\": 1, \"secret\": \"cut he", "{\"a\": 1, \"secret\": \"[REDACTED]"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----",
                "-----BEGIN RSA PRIVATE KEY-----[REDACTED]-----END RSA PRIVATE KEY-----",
            ),
        ] {
            assert_eq!(redacted(before), after);
            assert_eq!(redacted(after), after, "a second time");
        }
    }

    #[test]
    fn prose_and_code_are_left_alone() {
        for same in [
            "The bearer of this letter, and basic manners, matter.",
            "A bearer authenticationmechanismwithoutdigits is prose.",
            "sk-learn-preprocessing-2024 and task-1234567890abcdefghij",
            "password: see below. The token= sign. max_tokens=100000 token=123456",
            "token = lexer.next(); f(auth=None, token=tok)",
            "see https://example.org/a:b@c and mailto:ada@example.org at 10:30",
            "\"author\": \"Ada\", \"it's\" 'tokenizer': 'o200k'",
            "---- BEGIN -----BEGIN PUBLIC KEY-----\nabc",
            "password=\"{{ password }}\"",
            "日本語 = \"é\" ://",
        ] {
            assert_eq!(redacted(same), same);
        }
    }

    #[test]
    fn no_text_makes_it_panic() {
        let pieces = [
            "\"",
            "'",
            "token",
            ":",
            "é",
            "\\",
            "=",
            "://",
            "@",
            "-----BEGIN ",
            "PRIVATE KEY-----",
            "sk-",
            " ",
            "Bearer ",
        ];
        let mut state = 7usize;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..8 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                text.push_str(pieces[(state >> 33) % pieces.len()]);
            }
            let once = redacted(&text).into_owned();
            assert!(once.len() + 200 > text.len());
        }
    }
}
