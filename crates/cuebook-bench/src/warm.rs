//! What a warm render costs: a prompt with three includes, by how often its book looks for changed files.

use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use cuebook::{Book, Context, Freshness, Variables};

use crate::measure::compare;

/// Prints one row for each way to look.
pub fn run() -> Result<(), Box<dyn Error>> {
    let project = tempfile::tempdir()?;
    for (path, text) in [
        (
            "p/template.md",
            "{% include 'partials/a.md' %} {% include 'partials/b.md' %} {% include 'partials/c.md' %}",
        ),
        ("partials/a.md", "Hello {{ name }}."),
        ("partials/b.md", "You have {{ count }} letters."),
        ("partials/c.md", "Be brief."),
    ] {
        let path = project.path().join("prompts").join(path);
        fs::create_dir_all(path.parent().unwrap_or(project.path()))?;
        fs::write(path, text)?;
    }
    // Files that have just been written are looked at more closely than others.
    std::thread::sleep(Duration::from_millis(50));
    let variables = Variables::new().set("name", "Ada").set("count", 2);
    let context = Arc::new(Context::default());
    let prepared = Book::open(project.path()).prepare("p", &context)?;
    println!("warm: a prompt with three includes, by how often its book looks for changed files");
    println!("{:36} {:>12} {:>12} {:>7} {:>12}", "", "prepared", "book", "ratio", "target");
    let ways = [
        ("looks before every render", Freshness::EveryRender, "15 µs"),
        ("looks at most once a second", Freshness::AtMostEvery(Duration::from_secs(1)), "–"),
        ("looks after refresh()", Freshness::Manual, "ratio 1.30"),
    ];
    for (name, freshness, target) in ways {
        let book = Book::open(project.path()).with_freshness(freshness);
        assert_eq!(
            book.render("p", &variables, &context)?.text(),
            prepared.render(&variables, &context)?.text(),
            "both must give the same text"
        );
        let pair =
            compare(|| prepared.render(&variables, &context), || book.render("p", &variables, &context));
        println!("{name:36} {:>9.0} ns {:>9.0} ns {:>7.2} {target:>12}", pair.peer, pair.ours, pair.ratio());
    }
    Ok(())
}
