//! Which models count with which vocabulary.
//!
//! The table has what OpenAI itself says about its models. A model that is not in it has no vocabulary here, and is never
//! given one by its looks.

use super::Vocabulary;
use super::Vocabulary::{Cl100k, O200k};
use crate::chat::models::longest;

/// The beginnings of ids, matched as families of models are everywhere.
const FAMILIES: &[(&str, Vocabulary)] = &[
    ("o1", O200k),
    ("o3", O200k),
    ("o4", O200k),
    ("gpt-5", O200k),
    ("gpt-4.5", O200k),
    ("gpt-4.1", O200k),
    ("gpt-4o", O200k),
    ("chatgpt-4o", O200k),
    // Its own list differs in special tokens only, and those never count.
    ("gpt-oss", O200k),
    ("gpt-4", Cl100k),
    ("gpt-3.5", Cl100k),
    // As deployments on Azure are called, which take no dots.
    ("gpt-35", Cl100k),
    ("text-embedding-3", Cl100k),
    ("text-embedding-ada-002", Cl100k),
    ("davinci-002", Cl100k),
    ("babbage-002", Cl100k),
];

/// The vocabulary of a model, if it is known.
pub(super) fn vocabulary(model: &str) -> Option<Vocabulary> {
    // A router names the provider first; a tuned model keeps the vocabulary that it came with.
    let id = model.strip_prefix("openai/").unwrap_or(model);
    let id = id.strip_prefix("ft:").unwrap_or(id);
    let id = minor_of_five(id).unwrap_or(id);
    longest(id, FAMILIES, |(prefix, _)| prefix).map(|(_, vocabulary)| *vocabulary)
}

/// `gpt-5` for `gpt-5.2` and `gpt-5.2-chat`: OpenAI gives all of them one vocabulary, those to come as well. A dot ends no
/// family otherwise.
fn minor_of_five(id: &str) -> Option<&str> {
    let minor = id.strip_prefix("gpt-5.")?;
    let rest = minor.trim_start_matches(|digit: char| digit.is_ascii_digit());
    (rest.len() < minor.len() && (rest.is_empty() || rest.starts_with(['-', ':']))).then_some("gpt-5")
}

/// Why a model has no vocabulary here: the beginning of a sentence.
pub(super) fn missing(model: &str) -> String {
    let maker = [("claude", "Anthropic"), ("gemini", "Google")]
        .into_iter()
        .find_map(|(name, maker)| model.contains(name).then_some(maker));
    match maker {
        Some(maker) => format!("{maker} publishes no vocabulary for `{model}`"),
        None => format!("Cuebook has no vocabulary for `{model}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_openai_have_their_vocabulary() {
        for model in [
            "gpt-4o",
            "gpt-4o-mini-2024-07-18",
            "chatgpt-4o-latest",
            "gpt-4.1-nano",
            "gpt-4.5-preview",
            "gpt-5",
            "gpt-5-mini",
            "gpt-5.1",
            "gpt-5.10-chat-latest",
            "gpt-oss-120b",
            "o1",
            "o1-preview",
            "o3-mini",
            "o4-mini-2025-04-16",
            "ft:gpt-4o:me::1",
            "ft:gpt-4.1-mini-2025-04-14:me::1",
            "openai/gpt-4o",
        ] {
            assert_eq!(vocabulary(model), Some(O200k), "{model}");
        }
        for model in [
            "gpt-4",
            "gpt-4-0613",
            "gpt-4-turbo-2024-04-09",
            "gpt-3.5-turbo",
            "gpt-35-turbo-16k",
            "text-embedding-3-small",
            "text-embedding-ada-002",
            "davinci-002",
            "ft:gpt-3.5-turbo-0125:me::1",
        ] {
            assert_eq!(vocabulary(model), Some(Cl100k), "{model}");
        }
    }

    #[test]
    fn a_model_is_given_no_vocabulary_by_its_looks() {
        for model in [
            "",
            "gpt",
            "gpt-4.9",
            "gpt-45",
            "gpt-4omni",
            "gpt-5.",
            "gpt-5.x",
            "gpt-5.1b",
            "gpt-50",
            "o11",
            "GPT-4o",
            "my-gpt-4o",
            "someone/gpt-4o",
            "text-davinci-003",
            "claude-sonnet-4-5",
            "gemini-2.5-pro",
        ] {
            assert_eq!(vocabulary(model), None, "{model}");
        }
    }

    #[test]
    fn providers_without_a_vocabulary_are_named() {
        assert!(
            missing("us.anthropic.claude-sonnet-4-5-v1:0").starts_with("Anthropic publishes no vocabulary")
        );
        assert!(missing("models/gemini-2.5-pro").starts_with("Google publishes no vocabulary"));
        assert_eq!(missing("qwen3"), "Cuebook has no vocabulary for `qwen3`");
    }

    #[test]
    fn no_prefix_occurs_twice() {
        let mut prefixes: Vec<&str> = FAMILIES.iter().map(|(prefix, _)| *prefix).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        assert_eq!(prefixes.len(), FAMILIES.len());
    }
}
