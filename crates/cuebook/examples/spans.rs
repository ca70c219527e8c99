//! Where each piece of a prompt came from.

use std::fs;

use cuebook::{Book, Origin};

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    fs::create_dir_all(folder.path().join("prompts/greet"))?;
    fs::write(
        folder.path().join("prompts/greet/template.md"),
        "Hello {{ user.name }}, you have {{ count }} letters.\n",
    )?;

    let book = Book::open(folder.path());
    let user = serde_json::json!({"name": "Ada"});
    let rendered = book.prompt("greet").var("user", user).var("count", 2).render()?;
    for span in rendered.spans() {
        let text = &rendered.text()[span.range.clone()];
        match &span.origin {
            Origin::Value { shown, .. } => {
                let paths: Vec<&str> = shown.iter().map(|shown| shown.path.as_str()).collect();
                println!("{text:?} is the value of {}", paths.join(", "));
            }
            other => println!("{text:?} is a {}", other.kind()),
        }
    }
    Ok(())
}
