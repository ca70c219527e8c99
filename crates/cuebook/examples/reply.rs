//! A `.prompty` file becomes a request, and the provider's reply a Rust type.

use std::fs;

use cuebook::Book;
use serde_json::json;

#[derive(Debug, serde::Deserialize)]
struct Verdict {
    label: String,
    score: f64,
}

const JUDGE: &str = "---
model: {id: gpt-4o, provider: openai}
outputs:
  label: {kind: string}
  score: {kind: float}
---
system:
Judge the letter.
user:
{{ letter }}
";

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    fs::create_dir_all(folder.path().join("prompts"))?;
    fs::write(folder.path().join("prompts/judge.prompty"), JUDGE)?;

    let wire =
        Book::open(folder.path()).prompt("judge").var("letter", "My kettle leaks!").render()?.wire()?;
    println!("POST https://api.openai.com/v1{}", wire.path);
    println!(
        "{} messages, schema: {}",
        wire.body["messages"].as_array().map_or(0, Vec::len),
        wire.body["response_format"]["type"]
    );

    // Your client sends `wire.body`. This is what a provider answers:
    let reply = json!({"choices": [{"message": {"content": "{\"label\": \"complaint\", \"score\": 0.9}"}}]});
    let Verdict { label, score } = wire.read_as(&reply)?;
    println!("{label} ({score})");
    Ok(())
}
