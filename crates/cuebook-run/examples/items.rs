//! Make a key, sign an item, verify it, find it and execute it.

use std::fs;

use cuebook::actions::search::SearchRequest;
use cuebook::actions::sign::{SignRequest, Signed};
use cuebook::items::{ItemType, Spaces};
use cuebook_run::{Engine, ExecuteRequest, Executed};

const TEA: &str = "```yaml
name: tea
title: How to make tea
version: 1.0.0
entry_type: note
category: desk
```

Four minutes.
";

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (project, user) = (tempfile::tempdir()?, tempfile::tempdir()?);
    fs::create_dir_all(project.path().join(".ai/knowledge/desk"))?;
    fs::write(project.path().join(".ai/knowledge/desk/tea.md"), TEA)?;
    let spaces = Spaces::new(project.path(), Some(user.path()));
    let engine = Engine::new(spaces);
    engine.generate_key("Ada")?;

    let unsigned = engine.verify(ItemType::Knowledge, "desk/tea").expect_err("unsigned");
    println!("{} {}", unsigned.kind().name(), unsigned.code());
    if let Signed::Item(signed) = engine.sign(&SignRequest::new(ItemType::Knowledge, "desk/tea"))? {
        println!("signed {}", signed.item_id);
    }
    println!("signed by {}", engine.verify(ItemType::Knowledge, "desk/tea")?.owner.unwrap_or_default());

    let found = engine.search(&SearchRequest::new("knowledge", "tea"))?;
    println!("{} found: {}", found.total, found.items[0].title);
    match engine.execute(&ExecuteRequest::knowledge("desk/tea"))? {
        Executed::Knowledge(_, knowledge) => println!("{}", knowledge.body().trim()),
        other => println!("{other:?}"),
    }
    Ok(())
}
