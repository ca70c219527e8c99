//! Hooks, providers and filters as Rust closures.

use std::fs;

use cuebook::Book;
use cuebook::hooks::Hooks;
use serde_json::json;

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    fs::create_dir_all(folder.path().join("prompts/greet"))?;
    fs::write(
        folder.path().join("prompts/greet/template.md"),
        "{{ name | shout }}, build {{ build.number }}.\n",
    )?;

    let hooks = Hooks::new()
        .pre_render("greet", |mut variables, _context| {
            let id: u32 = variables["id"].as_str().unwrap_or_default().parse()?; // any error will do
            variables.insert("name".into(), json!(format!("user {id}")));
            Ok(variables)
        })
        .provider("build", |_context| Ok(json!({"number": 42}).as_object().cloned().unwrap_or_default()));
    let book = Book::open(folder.path()).with_hooks(hooks).with_filter("shout", |given| {
        let text = given[0].as_str().ok_or("`shout` takes a text")?;
        Ok(json!(text.to_uppercase()))
    });
    println!("{}", book.prompt("greet").var("id", "7").render()?.text());

    let error = book.prompt("greet").var("id", "seven").render().expect_err("no number");
    println!("{}", error.diagnostic().message);
    let source = std::error::Error::source(&error).map(ToString::to_string);
    println!("source: {}", source.unwrap_or_default());
    Ok(())
}
