//! What an error tells a program, and what it tells a person.

use std::fs;

use cuebook::error::details::UnknownVariable;
use cuebook::{Book, ErrorKind};

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    fs::create_dir_all(folder.path().join("prompts/greet"))?;
    fs::write(folder.path().join("prompts/greet/template.md"), "Hello {{ name }}!\n")?;
    let book = Book::open(folder.path());

    let error = book.prompt("greet").var("nmae", "Ada").render().expect_err("misspelt");
    println!("{:?} {}: {}", error.kind(), error.code(), error.diagnostic().message);
    if let Some(UnknownVariable { nearest, .. }) = error.details() {
        println!("nearest: {nearest:?}");
    }
    assert_eq!(error.kind(), ErrorKind::PromptValidation);

    fs::write(folder.path().join("prompts/greet/template.md"), "Hello {{ name | uper }}!\n")?;
    let error = book.prompt("greet").var("name", "Ada").render().expect_err("no such filter");
    println!("{}", error.report(false)); // with colours for a terminal: `true`
    let advice = error.diagnostic().advice();
    println!("advice: {}", advice.unwrap_or_default());
    Ok(())
}
