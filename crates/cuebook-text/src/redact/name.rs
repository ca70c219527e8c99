//! Which names belong to secrets.
//!
//! A name is split into its words (`userApiKey`, `user_api_key` and `User-Api-Key` are the same three), because a
//! search for letters alone would take every `author` for `auth` and every `max_tokens` for a `token`.

use serde_json::{Map, Value};

/// What a name says about its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// Nothing.
    Plain,
    /// It is a secret.
    Secret,
    /// It is a token: a secret, unless it is a number.
    Token,
    /// It counts tokens: `max_tokens`, `inputTokens`, `token_budget`.
    Count,
}

/// Letters that make a word a secret's, wherever in the word they stand: `authorization`, `usersecrets`, `oauth2`.
const SECRET: [&str; 10] = [
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "auth",
    "credential",
    "cookie",
    "privatekey",
    "accesskey",
];

/// Words that hold such letters and mean something else.
const INNOCENT: [&str; 13] = [
    "author",
    "authors",
    "authored",
    "authoring",
    "authorship",
    "authority",
    "authorities",
    "authentic",
    "authenticity",
    "coauthor",
    "coauthors",
    "secretary",
    "secretaries",
];

/// Two words that make a secret together.
const PAIRS: [(&str, &str); 8] = [
    ("api", "key"),
    ("api", "keys"),
    ("private", "key"),
    ("access", "key"),
    ("signing", "key"),
    ("subscription", "key"),
    ("virtual", "key"),
    ("pass", "phrase"),
];

/// Words that make a count of a token.
const COUNTING: [&str; 34] = [
    "max",
    "maximum",
    "min",
    "minimum",
    "input",
    "output",
    "prompt",
    "completion",
    "total",
    "num",
    "number",
    "n",
    "count",
    "counts",
    "limit",
    "limits",
    "budget",
    "usage",
    "used",
    "remaining",
    "details",
    "cached",
    "cache",
    "reasoning",
    "thinking",
    "audio",
    "image",
    "text",
    "accepted",
    "rejected",
    "prediction",
    "per",
    "estimate",
    "estimated",
];

/// What a name says about its value.
pub fn kind_of_name(name: &str) -> Name {
    let words = words(name);
    let innocent = |word: &String| INNOCENT.contains(&word.as_str());
    let secret = words.iter().any(|word| !innocent(word) && SECRET.iter().any(|part| word.contains(part)))
        || words.windows(2).any(|two| PAIRS.contains(&(two[0].as_str(), two[1].as_str())));
    if secret {
        return Name::Secret;
    }
    // `authtoken` went above; `tokenizer`, `tokenize` and `tokenization` are about text.
    let token = words.iter().any(|word| word.contains("token") && !word.contains("tokeni"));
    match token {
        true if words.iter().any(|word| COUNTING.contains(&word.as_str())) => Name::Count,
        true => Name::Token,
        false => Name::Plain,
    }
}

/// Whether a text of an array is the name of the text after it: a header, an option.
pub(super) fn introduces(text: &str) -> bool {
    let name = text.trim_start_matches('-').trim_end_matches(':');
    let one_word = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    let like_a_name =
        text.starts_with("--") || name.contains(['-', '_']) || name.starts_with(|c: char| c.is_uppercase());
    one_word && like_a_name && name.len() <= 64 && matches!(kind_of_name(name), Name::Secret | Name::Token)
}

/// Whether an object says with `name` (or `key`) that its `value` is a secret.
pub(super) fn described_by(members: &Map<String, Value>) -> bool {
    let name = ["name", "key", "header"].iter().find_map(|it| members.get(*it)?.as_str());
    name.is_some_and(|name| name.len() <= 64 && matches!(kind_of_name(name), Name::Secret | Name::Token))
}

/// The words of a name, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut letters = name.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        let starts = letter.is_uppercase()
            && (before.is_lowercase()
                || before.is_numeric()
                // The last capital of `APIKey` begins the next word.
                || (before.is_uppercase() && letters.peek().is_some_and(|next| next.is_lowercase())));
        if (starts || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_in_every_spelling() {
        for name in [
            "secret",
            "clientSecret",
            "CLIENT_SECRET",
            "password",
            "dbPassword",
            "api_key",
            "apikey",
            "apiKey",
            "APIKey",
            "API_KEY",
            "x-api-key",
            "openai.api_key",
            "auth",
            "authorization",
            "Proxy-Authorization",
            "oauth2",
            "authentication",
            "credential",
            "awsCredentials",
            "cookie",
            "Set-Cookie",
            "authToken",
            "private_key",
            "AWS_SECRET_ACCESS_KEY",
            "author_password",
        ] {
            assert_eq!(kind_of_name(name), Name::Secret, "{name}");
        }
        for name in ["token", "accessToken", "refresh_token", "GITHUB_TOKEN", "idtoken", "tokens"] {
            assert_eq!(kind_of_name(name), Name::Token, "{name}");
        }
    }

    #[test]
    fn names_that_only_sound_like_secrets_are_plain() {
        for name in [
            "author",
            "authors",
            "co_author",
            "authority",
            "key",
            "keys",
            "keyboard",
            "secretary",
            "tokenizer",
            "tokenization",
            "primary_key",
            "pass",
            "city",
            "",
            "--",
            "é",
        ] {
            assert_eq!(kind_of_name(name), Name::Plain, "{name}");
        }
    }

    #[test]
    fn counts_of_tokens_are_counts() {
        for name in [
            "max_tokens",
            "maxOutputTokens",
            "max_completion_tokens",
            "input_tokens",
            "gen_ai.usage.output_tokens",
            "gen_ai.request.max_tokens",
            "promptTokens",
            "totalTokenCount",
            "token_budget",
            "completion_tokens_details",
            "cached_tokens",
            "tokens_per_minute",
        ] {
            assert_eq!(kind_of_name(name), Name::Count, "{name}");
        }
    }
}
