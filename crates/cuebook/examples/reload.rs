//! One book for all threads of a service, and when it looks for changed files.

use std::fs;
use std::sync::Arc;

use cuebook::{Book, Freshness};

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let template = folder.path().join("prompts/greet/template.md");
    fs::create_dir_all(folder.path().join("prompts/greet"))?;
    fs::write(&template, "Hello {{ name }}!\n")?;

    let book = Arc::new(Book::open(folder.path()).with_freshness(Freshness::Manual));
    let workers: Vec<_> = (0..4)
        .map(|number| {
            let book = book.clone();
            std::thread::spawn(move || book.prompt("greet").var("name", number).render())
        })
        .collect();
    for worker in workers {
        println!("{}", worker.join().expect("no panic")?.text());
    }

    fs::write(&template, "Good day {{ name }}!\n")?;
    println!("before refresh: {}", book.prompt("greet").var("name", "Ada").render()?.text());
    book.refresh();
    println!("after refresh: {}", book.prompt("greet").var("name", "Ada").render()?.text());
    Ok(())
}
