//! Renders inside tasks of tokio: hooks run in threads of their own, so no task waits for another.

use std::fs;
use std::sync::Arc;

use cuebook::{Book, Context, variables};

/// Runs the example.
#[tokio::main(flavor = "current_thread")]
pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    fs::create_dir_all(folder.path().join("prompts/greet"))?;
    fs::write(folder.path().join("prompts/greet/template.md"), "Hello {{ name }}!\n")?;

    let book = Arc::new(Book::open(folder.path()));
    let tasks: Vec<_> = ["Ada", "Bo", "Cy"]
        .map(|name| tokio::spawn(book.render_async("greet", &variables! { name: name }, &Context::default())))
        .into();
    for task in tasks {
        println!("{}", task.await??.text());
    }
    Ok(())
}
