//! Token tables are unpacked by the first count. This is a separate program, because the other tests count.

#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]

use cuebook::tokens::{Tokenizer, Vocabulary};
use cuebook::{Book, Context, Variables};
use cuebook_lab::BookExt as _;

#[test]
fn a_render_never_unpacks_a_token_table() {
    let project = tempfile::tempdir().unwrap();
    let prompts = project.path().join("prompts");
    std::fs::create_dir_all(&prompts).unwrap();
    // The model's window is known, so the render compares its size with it.
    let file = "---\nmodel: {id: gpt-4, provider: openai}\ninputs: {name: Ada}\n---\nsystem:\nGreet {{ name }}.\nuser:\nHello\n";
    std::fs::write(prompts.join("greet.prompty"), file).unwrap();
    let sections =
        "---\nmodel: gpt-4\n---\n# Task\nGreet.\n\n# More\n```yaml section\nsummary: Short.\n```\nLong.\n";
    std::fs::write(prompts.join("tree.sections.md"), sections).unwrap();
    let book = Book::open(project.path());
    let rendered = book.render("greet", &Variables::new(), &Context::default()).unwrap();
    assert_eq!(rendered.messages().unwrap().len(), 2);
    rendered.wire_as("openai").unwrap();
    book.render("tree", &Variables::new(), &Context::default()).unwrap();
    book.check(&[], |_| {}).unwrap();
    assert!(Vocabulary::ALL.iter().all(|vocabulary| !vocabulary.is_loaded()));

    // A count unpacks the table of its model, and no other.
    assert!(Tokenizer::for_model("gpt-4o").count("Hello") > 0);
    assert!(Vocabulary::O200k.is_loaded() && !Vocabulary::Cl100k.is_loaded());
}
