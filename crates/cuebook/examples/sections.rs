//! A section tree that is built in Rust, with a summary that the model opens; and a tree from a file that fits a budget.

use std::fs;

use cuebook::Book;
use cuebook::prompt::Visibility;
use cuebook::sections::{Section, Setting, Tree, VisibilityOverrides};
use serde_json::json;

const CLERK: &str = "# Task\nAnswer the letter.\n\n# Style\n```yaml section\npriority: -1\n```\nBe brief. Be kind. Be exact.\n";

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let handbook = Section::new("handbook", "Handbook", "A parcel may come back within 30 days.")
        .summary("Rules about returns.")
        .visible(Visibility::Summary);
    let task = Section::new("task", "Task", "Answer the letter.");
    let tree =
        Tree::builder("desk", "clerk").section(task).section(handbook).model("openai", "gpt-4o").build()?;
    let rendered = tree.render(&Setting::new(&[]))?.into_rendered();
    println!("{}", rendered.text());
    let tools = rendered.tools();
    println!("tools: {:?}", tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>());

    // The model calls the tool:
    let mut session = VisibilityOverrides::new();
    let call = json!({"section_key": "handbook"});
    if let Some(answer) = tree.answer("read_section", &call, &Setting::new(&[]), &mut session) {
        println!("{}", answer.text);
    }

    let folder = tempfile::tempdir()?;
    fs::create_dir_all(folder.path().join("prompts"))?;
    fs::write(folder.path().join("prompts/clerk.sections.md"), CLERK)?;
    let short = Book::open(folder.path()).prompt("clerk").fit(12).render()?;
    println!("{}", short.text());
    Ok(())
}
