//! What is known of families of models, for lists that name them and say no more.
//!
//! OpenAI lists ids; Google lists limits and no modalities. Anthropic says everything itself, and a deployment on Foundry
//! has any name that its owner gave it, so those two have no families here.

/// A family: the models whose id begins like this.
pub(super) struct Family {
    prefix: &'static str,
    pub(super) context_window: Option<u64>,
    pub(super) input: &'static [&'static str],
    pub(super) output: &'static [&'static str],
}

/// The family with the longest prefix that ends where a word of the id ends.
pub(super) fn of(provider: &str, id: &str) -> Option<&'static Family> {
    let families = match provider {
        "openai" => OPENAI,
        "gemini" | "google" => GEMINI,
        _ => return None,
    };
    longest(id, families, |family| family.prefix)
}

/// The entry of a table with the longest prefix of an id. A prefix counts only if a word of the id ends there, and a dot
/// is no end: `gpt-4.1` is no `gpt-4`.
pub fn longest<'t, T>(id: &str, table: &'t [T], prefix: impl Fn(&T) -> &'static str) -> Option<&'t T> {
    table.iter().filter(|entry| begins(id, prefix(entry))).max_by_key(|entry| prefix(entry).len())
}

fn begins(id: &str, prefix: &str) -> bool {
    id.strip_prefix(prefix)
        .is_some_and(|rest| rest.chars().next().is_none_or(|next| !next.is_alphanumeric() && next != '.'))
}

const fn family(
    prefix: &'static str,
    context_window: u64,
    input: &'static [&'static str],
    output: &'static [&'static str],
) -> Family {
    let context_window = if context_window == 0 { None } else { Some(context_window) };
    Family { prefix, context_window, input, output }
}

const TEXT: &[&str] = &["text"];
const SEES: &[&str] = &["text", "image"];
const SENSES: &[&str] = &["text", "image", "audio", "video"];
const IMAGE: &[&str] = &["image"];
const AUDIO: &[&str] = &["audio"];
const NONE: &[&str] = &[];
/// The size of a window that is unknown, or does not exist.
const UNKNOWN: u64 = 0;

const OPENAI: &[Family] = &[
    family("gpt-3.5-turbo", 16_385, TEXT, TEXT),
    family("gpt-4", 8_192, TEXT, TEXT),
    family("gpt-4-turbo", 128_000, SEES, TEXT),
    family("gpt-4o", 128_000, SEES, TEXT),
    family("gpt-4o-mini", 128_000, SEES, TEXT),
    family("chatgpt-4o-latest", 128_000, SEES, TEXT),
    family("gpt-4.1", 1_047_576, SEES, TEXT),
    family("gpt-4.5-preview", 128_000, SEES, TEXT),
    family("gpt-5", 400_000, SEES, TEXT),
    family("gpt-5-chat", 128_000, SEES, TEXT),
    family("gpt-5.1", 400_000, SEES, TEXT),
    family("gpt-5.1-chat", 128_000, SEES, TEXT),
    family("gpt-oss", 131_072, TEXT, TEXT),
    family("o1", 200_000, SEES, TEXT),
    family("o1-mini", 128_000, TEXT, TEXT),
    family("o1-preview", 128_000, TEXT, TEXT),
    family("o3", 200_000, SEES, TEXT),
    family("o3-mini", 200_000, TEXT, TEXT),
    family("o4-mini", 200_000, SEES, TEXT),
    family("text-embedding-3-small", 8_191, TEXT, NONE),
    family("text-embedding-3-large", 8_191, TEXT, NONE),
    family("text-embedding-ada-002", 8_191, TEXT, NONE),
    family("dall-e-3", UNKNOWN, TEXT, IMAGE),
    family("gpt-image-1", UNKNOWN, SEES, IMAGE),
    family("whisper-1", UNKNOWN, AUDIO, TEXT),
    family("tts-1", UNKNOWN, TEXT, AUDIO),
];

const GEMINI: &[Family] = &[
    family("gemini-1.5-flash", 1_048_576, SENSES, TEXT),
    family("gemini-1.5-pro", 2_097_152, SENSES, TEXT),
    family("gemini-2.0-flash", 1_048_576, SENSES, TEXT),
    family("gemini-2.0-flash-preview-image-generation", UNKNOWN, SEES, SEES),
    family("gemini-2.5-flash", 1_048_576, SENSES, TEXT),
    family("gemini-2.5-flash-image", UNKNOWN, SEES, SEES),
    family("gemini-2.5-flash-preview-tts", UNKNOWN, TEXT, AUDIO),
    family("gemini-2.5-pro", 1_048_576, SENSES, TEXT),
    family("gemini-2.5-pro-preview-tts", UNKNOWN, TEXT, AUDIO),
    family("gemini-embedding-001", 2_048, TEXT, NONE),
    family("text-embedding-004", 2_048, TEXT, NONE),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_prefix_occurs_twice() {
        for families in [OPENAI, GEMINI] {
            let mut prefixes: Vec<&str> = families.iter().map(|family| family.prefix).collect();
            prefixes.sort_unstable();
            prefixes.dedup();
            assert_eq!(prefixes.len(), families.len());
        }
    }
}
