//! Keys of front matter that no schema describes: those of `.prompt` files, of skills and of knowledge.

use std::path::Path;

use super::complete::{Completion, CompletionKind, plain};
use super::layout::{Notation, front_matter};
use super::words::key_path;

/// A key: the key that it stands below, its name, what it is, and the words that its value can be.
type Key = (&'static str, &'static str, &'static str, &'static [&'static str]);

const PROMPT_KEYS: [Key; 24] = [
    ("", "name", "The name of the prompt.", &[]),
    ("", "variant", "The variant, if the file is one.", &[]),
    ("", "version", "The version of the prompt.", &[]),
    ("", "description", "What the prompt is for.", &[]),
    ("", "model", "The model, as in `googleai/gemini-2.5-flash`.", &[]),
    ("", "config", "Options of the model.", &[]),
    ("", "input", "What the prompt takes.", &[]),
    ("", "output", "What an answer has.", &[]),
    ("", "tools", "Tools that the model can call, by their names.", &[]),
    ("", "toolDefs", "Tools with their schemas.", &[]),
    ("config", "temperature", "How much chance there is in an answer.", &[]),
    ("config", "maxOutputTokens", "The most tokens of an answer.", &[]),
    ("config", "topP", "Only the likeliest tokens up to this probability are chosen from.", &[]),
    ("config", "topK", "Only so many of the likeliest tokens are chosen from.", &[]),
    ("config", "stopSequences", "Texts that end an answer.", &[]),
    ("config", "frequencyPenalty", "Makes frequent tokens less likely.", &[]),
    ("config", "presencePenalty", "Makes tokens that were there before less likely.", &[]),
    ("config", "seed", "The number that the model's chance begins with.", &[]),
    ("input", "schema", "The inputs with their types, as in `name?: string, who is greeted`.", &[]),
    ("input", "default", "The values of inputs that the caller leaves out.", &[]),
    ("output", "format", "The form of an answer.", &["json", "text"]),
    ("output", "schema", "What an answer in JSON has.", &[]),
    ("toolDefs", "name", "The name of the tool.", &[]),
    ("toolDefs", "inputSchema", "What the tool takes.", &[]),
];

const SKILL_KEYS: [Key; 6] = [
    ("", "name", "The name of the skill: that of its folder.", &[]),
    ("", "description", "What the skill does, and when it helps.", &[]),
    ("", "license", "The license, or the file that has it.", &[]),
    ("", "compatibility", "What the skill needs, such as programs or a network.", &[]),
    ("", "metadata", "Names and values that programs read.", &[]),
    ("", "allowed-tools", "Tools that the skill may call, as in `Read Grep`.", &[]),
];

const KNOWLEDGE_KEYS: [Key; 8] = [
    ("", "name", "The name: that of the file.", &[]),
    ("", "title", "The title.", &[]),
    ("", "description", "What the text is about.", &[]),
    ("", "category", "The folder of the file.", &[]),
    ("", "version", "The version, as in `1.0.0`.", &[]),
    ("", "author", "Who wrote it.", &[]),
    ("", "entry_type", "The kind of the text.", &["reference", "pattern", "learning", "concept"]),
    ("", "tags", "Words to find it by.", &[]),
];

fn keys(notation: Notation) -> &'static [Key] {
    match notation {
        Notation::Dotprompt => &PROMPT_KEYS,
        Notation::Skill => &SKILL_KEYS,
        Notation::Knowledge => &KNOWLEDGE_KEYS,
        _ => &[],
    }
}

/// The keys that can stand where a byte of front matter is.
fn here(notation: Notation, text: &str, offset: usize) -> Option<impl Iterator<Item = &'static Key>> {
    let front = front_matter(text).filter(|front| (front.start..=front.end).contains(&offset))?;
    let path = key_path(&text[front.start..], offset - front.start);
    let parent = path.first().cloned().unwrap_or_default();
    Some(keys(notation).iter().filter(move |(known, ..)| path.len() <= 1 && *known == parent))
}

/// Keys and values of front matter; `None` if a byte is not in it.
pub(super) fn words(notation: Notation, text: &str, offset: usize) -> Option<Vec<Completion>> {
    let here = here(notation, text, offset)?;
    let written = text[..offset].rsplit('\n').next().unwrap_or_default().trim_start_matches([' ', '-']);
    let Some((key, value)) = written.split_once(':') else {
        let fitting = here.filter(|(_, key, ..)| key.starts_with(written));
        let key = |(_, key, about, _): &Key| Completion {
            documentation: (*about).to_owned(),
            ..plain(key, CompletionKind::Key, "key")
        };
        return Some(fitting.map(key).collect());
    };
    let words = here.filter(|(_, known, ..)| *known == key.trim()).flat_map(|(.., words)| words.iter());
    let fitting = words.filter(|word| word.starts_with(value.trim()));
    Some(fitting.map(|word| plain(word, CompletionKind::Value, "")).collect())
}

/// What a key of front matter is.
pub(super) fn about(path: &Path, text: &str, word: &std::ops::Range<usize>) -> Option<String> {
    // A key may have hyphens.
    let is_key = |letter: char| super::cursor::is_word(letter) || letter == '-';
    let start = text[..word.start].rfind(|letter| !is_key(letter)).map_or(0, |at| at + 1);
    let end = text[word.end..].find(|letter| !is_key(letter)).map_or(text.len(), |at| word.end + at);
    let (_, key, about, _) =
        here(Notation::of(path), text, start)?.find(|(_, key, ..)| *key == &text[start..end])?;
    Some(format!("**{key}**\n\n{about}"))
}
