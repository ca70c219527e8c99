use cuebook::{Book, Context, Origin, Variables};
use cuebook_hooks::sandbox::{Launcher, launch_if_asked};

fn main() -> cuebook::Result<()> {
    // Hooks run in workers, which a copy of this program starts: for that copy this line does not return.
    launch_if_asked();
    let book = Book::open("../desk");
    let hooks = cuebook_hooks::hooks(book.library().clone(), Launcher::this_program());
    let book = book.with_hooks(hooks);

    // The text, and who wrote what.
    let variables = Variables::new().set("customer", "Ada").set("letter", "Where is order 7?");
    let rendered = book.render("answer", &variables, &Context::default())?;
    for span in rendered.spans() {
        let text = &rendered.text()[span.range.clone()];
        // A value can also come from the template alone, like the separator of `join`.
        if let Origin::Value { shown, .. } = &span.origin
            && !shown.is_empty()
        {
            let paths: Vec<&str> = shown.iter().map(|shown| shown.path.as_str()).collect();
            println!("{text:?} is a value of {}", paths.join(" and "));
        }
    }

    // Messages, and the body of a request. Nothing is sent.
    let rendered = book.render("reply", &variables, &Context::default())?;
    for message in rendered.messages()? {
        println!("{}: {}", message.role, message.texts().collect::<String>());
    }
    let wire = rendered.wire_as("openai")?;
    println!("{} has {} messages", wire.body["model"], wire.body["messages"].as_array().map_or(0, Vec::len));

    // An error has a code, a place and a fix.
    if let Err(error) = book.render("answer", &Variables::new(), &Context::default()) {
        for finding in error.diagnostics() {
            println!("{finding}");
        }
    }
    Ok(())
}
