// Pieces of programs that the README and the guide show. Each function holds one of them, word for word.

use std::future::Future;
use std::pin::pin;
use std::task::{Context as Waking, Poll, Waker};

/// Waits for an answer without a runtime.
fn wait<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        if let Poll::Ready(done) = work.as_mut().poll(&mut Waking::from_waker(Waker::noop())) {
            return done;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// What a provider would say.
async fn post(_url: &str, _body: &serde_json::Value) -> cuebook::Result<serde_json::Value> {
    Ok(serde_json::json!({"choices": [{"message": {"role": "assistant", "content": "It left on Monday."}}]}))
}

fn render() -> cuebook::Result<()> {
    use cuebook::{Book, Context, Variables};

    let book = Book::open("my-prompts");
    let variables = Variables::new().set("user_name", "Ada");
    let rendered = book.render("greeting", &variables, &Context::default())?;
    println!("{}", rendered.text());
    for span in rendered.spans() {
        println!("{:?} {}", span.range, span.origin.to_json());
    }
    Ok(())
}

async fn speak() -> cuebook::Result<()> {
    use std::sync::Arc;

    use cuebook::chat::reply::Reply;
    use cuebook::{Book, Context, variables};

    let book = Arc::new(Book::open("my-prompts"));
    let variables = variables! { question: "Where is order 7?", customer: "Ada" };
    let rendered = book.render_async("support", &variables, &Context::default()).await?;
    for message in rendered.messages()? {
        println!("{}: {:?}", message.role, message.texts().collect::<Vec<_>>());
    }
    let wire = rendered.wire_as("openai")?;
    for note in &wire.notes {
        eprintln!("{note}");
    }
    let response = post(&format!("https://api.openai.com/v1{}", wire.path), &wire.body).await?; // yours
    match wire.read(&response)?.reply {
        Reply::Text(text) => println!("{text}"),
        Reply::ToolCalls { calls, .. } => println!("it wants {calls:?}"),
        other => println!("{other:?}"),
    }
    Ok(())
}

fn engine() -> cuebook::Result<()> {
    use std::ops::Range;
    use std::sync::Arc;

    use cuebook::source::Source;
    use cuebook::template::engine::{Compiled, Engine, Job, Outline, Output};
    use cuebook::template::page::{StandaloneOutline, Page};
    use cuebook::variables::Scope;

    /// Writes `<name>` as the value of `name`.
    #[derive(Debug)]
    struct Angles;

    struct Template(Arc<Source>, Vec<(String, Range<usize>)>);

    impl Engine for Angles {
        fn compile(&self, job: Job<'_>) -> cuebook::Result<Box<dyn Compiled>> {
            let text = job.source.text();
            let tags = text.match_indices('<').filter_map(|(start, _)| {
                let end = start + text[start..].find('>')? + 1;
                Some((text[start + 1..end - 1].to_owned(), start..end))
            });
            let tags = tags.collect();
            Ok(Box::new(Template(job.source, tags)))
        }
    }

    impl Compiled for Template {
        fn render(&self, scope: &Arc<Scope>, limit: usize) -> cuebook::Result<Output> {
            let mut page = Page::new(&self.0, limit);
            let mut at = 0;
            for (name, tag) in &self.1 {
                page.literal(at..tag.start)?;
                // For a conversation or an image, this is its nonce.
                let text = match scope.shown(name) {
                    Some(serde_json::Value::String(text)) => text,
                    Some(other) => other.to_string(),
                    None => String::new(),
                };
                page.value(tag.clone(), &[name], &text)?;
                at = tag.end;
            }
            page.literal(at..self.0.text().len())?;
            Ok(page.finish())
        }

        fn outline(&self) -> Arc<dyn Outline> {
            Arc::new(StandaloneOutline::new(&self.0, self.1.iter().cloned()))
        }
    }

    let book = cuebook::Book::open("my-prompts").with_engine("angles", Angles);
    let variables = cuebook::Variables::new().set("who", "Ada");
    println!("{}", book.render("angles", &variables, &cuebook::Context::default())?.text());
    Ok(())
}

fn extensions() -> cuebook::Result<()> {
    use serde_json::json;

    let book = cuebook::Book::open("my-prompts")
        .with_filter("initials", |given| {
            let name = given[0].as_str().ok_or("a name is a text")?;
            Ok(json!(name.split(' ').filter_map(|word| word.chars().next()).collect::<String>()))
        })
        .with_test("short", |given| Ok(given[0].as_str().is_some_and(|text| text.len() < 20)))
        .with_global("team", json!("Tides"));
    // {{ name | initials }}{% if name is short %}, {{ team }}{% endif %}
    let variables = cuebook::Variables::new().set("name", "Ada Lovelace");
    println!("{}", book.render("card", &variables, &cuebook::Context::default())?.text());
    Ok(())
}

fn section_type() -> cuebook::Result<()> {
    use cuebook::sections::SectionType;
    use serde_json::{Map, Value};

    #[derive(Debug)]
    struct Shout;

    impl SectionType for Shout {
        fn render_body(&self, text: &str, _values: &Map<String, Value>) -> cuebook::Result<String> {
            Ok(text.to_uppercase())
        }
    }

    let book = cuebook::Book::open("my-prompts").with_section_type("shout", Shout);
    let context = cuebook::Context::default();
    println!("{}", book.render("rules", &cuebook::Variables::new(), &context)?.text());
    Ok(())
}

fn hooks() -> cuebook::Result<()> {
    use cuebook::Book;
    use cuebook_hooks::sandbox::{Launcher, launch_if_asked};
    use serde_json::json;

    // The first line of `main`: workers are started by a copy of the program, and for that copy this does not return.
    launch_if_asked();

    let book = Book::open("my-prompts");
    let hooks = cuebook_hooks::hooks(book.library().clone(), Launcher::this_program())
        .provider("build", |_context| Ok(json!({"number": 42}).as_object().cloned().unwrap_or_default()))
        .post_render("greeting", |text, _variables, _context| Ok(text.trim_end().to_owned()));
    let book = book.with_hooks(hooks);
    let variables = cuebook::Variables::new().set("user_name", "Ada");
    assert!(!book.render("greeting", &variables, &cuebook::Context::default())?.text().ends_with('\n'));
    Ok(())
}

fn compared() -> Result<(), Box<dyn std::error::Error>> {
    let mut env = minijinja::Environment::new();
    env.add_template("greeting", "You are talking to {{ user_name }}.")?;
    let text = env.get_template("greeting")?.render(minijinja::context! { user_name => "Ada" })?;
    println!("{text}");

    let book = cuebook::Book::open("my-prompts");
    let text = book.prompt("greeting").var("user_name", "Ada").render()?.into_text();
    println!("{text}");
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    compared()?;
    render()?;
    wait(speak())?;
    engine()?;
    extensions()?;
    section_type()?;
    hooks()?;
    Ok(())
}
