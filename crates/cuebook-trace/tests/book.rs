//! What a book tells about its renders, end to end.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use cuebook::{Book, Context, Variables};
use cuebook_trace::{Recorder, Tracy, is_ours};
use serde_json::Value;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry};

const KEY: &str = "k-9f8e7d6c5b4a";

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("prompts")).unwrap();
    let text = "---\ninputs: {who: Ada, apiKey: {kind: string}}\n---\nuser:\nHi {{ who }}, {{ apiKey }}.";
    std::fs::write(folder.path().join("prompts/p.prompty"), text).unwrap();
    folder
}

/// The traces that a piece of work leaves, by the name of their root, and everything as text.
fn traces(work: impl FnOnce()) -> (Vec<(String, Value)>, String) {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new().with(Tracy::new(folder.path())).with_filter(filter_fn(is_ours));
    tracing::subscriber::with_default(Registry::default().with(recorder), work);
    let mut texts: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    texts.sort();
    let read = |text: &String| {
        let trace: Value = serde_json::from_str(text).unwrap();
        (trace["trace"]["name"].as_str().unwrap().to_owned(), trace["trace"].clone())
    };
    (texts.iter().map(read).collect(), texts.concat())
}

fn names(traces: &[(String, Value)]) -> Vec<&str> {
    let mut names: Vec<&str> = traces.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names
}

#[test]
fn render_and_parse_are_traced_without_the_key() {
    let project = project();
    let variables = Variables::new().set("apiKey", KEY);
    let (found, text) = traces(|| {
        let rendered = Book::open(project.path()).render("p", &variables, &Context::default()).unwrap();
        assert!(rendered.text().contains(KEY));
        assert_eq!(rendered.messages().unwrap().len(), 1);
        rendered.wire().unwrap_err();
        let reply = serde_json::json!({"choices": [{"message": {"content": "Hello!"}}]});
        cuebook::chat::reply::read(cuebook::chat::Api::OpenAiChat, &reply, false).unwrap();
    });
    assert_eq!(names(&found), ["parse", "prepare", "process", "render"]);
    let (_, render) = found.iter().find(|(name, _)| name == "render").unwrap();
    assert_eq!(render["__frames"][0]["name"], "load");
    assert_eq!(render["result"], "user:\nHi Ada, [REDACTED].");
    assert!(!text.contains(KEY), "{text}");
}

#[test]
fn asynchronous_and_failed_renders_are_traced() {
    let project = project();
    let book = Arc::new(Book::open(project.path()));
    let (found, _) = traces(|| {
        let render = |prompt: &str| {
            futures_executor::block_on(book.render_async(prompt, &Variables::new(), &Context::default()))
        };
        render("p").unwrap();
        book.render("gone", &Variables::new(), &Context::default()).unwrap_err();
    });
    assert!(names(&found).contains(&"render"));
    let failed = found.iter().find(|(_, trace)| trace["result"]["exception"].is_string()).unwrap();
    assert_eq!(failed.1["result"]["exception"], "PromptNotFoundError");
}
