//! The Rust API: what a program gets that embeds Cuebook.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod support;

use std::sync::Arc;

use cuebook::error::details::{Conflict, InvalidVariables, NotFound, UnknownVariable};
use cuebook::hooks::Hooks;
use cuebook::source::Source;
use cuebook::template::engine::{Compiled, Engine, Job, Output};
use cuebook::template::page::StandaloneOutline;
use cuebook::variables::Scope;
use cuebook::{
    Book, Code, Context, ErrorKind, Origin, Rendered, Result, UnknownVariables, Variables, variables,
};
use serde_json::{Map, Value as Json, json};
use support::Project;

fn german() -> Project {
    Project::new()
        .file("cuebook.toml", "[library]\nlanguage = \"de\"\n")
        .file("prompts/p/template.md", "hello {{ name }} ({{ system.language }})")
        .file("prompts/p/template.de.md", "hallo {{ name }} ({{ system.language }})")
}

#[test]
fn prepare_takes_the_language_of_the_project() {
    let project = german();
    let name = variables! { name: "Ada" };
    let book = project.book();
    let context = Arc::new(Context::default());
    let rendered = book.render("p", &name, &context).unwrap();
    let prepared = book.prepare("p", &context).unwrap();
    assert_eq!(rendered.text(), "hallo Ada (de)");
    assert_eq!(prepared.render(&name, &context).unwrap().text(), "hallo Ada (de)");
    assert_eq!(prepared.language(), "de");
}

#[test]
fn a_prepared_prompt_refuses_another_language_and_strictness() {
    let project = german();
    let prepared = project.book().prompt("p").language("en").prepare().unwrap();
    let name = variables! { name: "Ada" };
    assert_eq!(prepared.render(&name, &Arc::default()).unwrap().text(), "hello Ada (en)");
    for context in [
        Context { language: Some("de".into()), ..Context::default() },
        Context { strict: true, ..Context::default() },
    ] {
        let error = prepared.render(&name, &Arc::new(context)).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Usage, Code::BadInput), "{error:?}");
    }
}

#[test]
fn a_prompt_that_was_prepared_strict_renders_strict() {
    let project = Project::with_template("Hello {{ name }}!");
    let book = project.book();
    let strict = book.prompt("p").strict().prepare().unwrap();
    let error = strict.render(&Variables::new(), &Arc::default()).unwrap_err();
    assert_eq!(error.code(), Code::UndefinedValue, "{error:?}");
    let lenient = book.prompt("p").prepare().unwrap();
    assert_eq!(lenient.render(&Variables::new(), &Arc::default()).unwrap().text(), "Hello !");
}

#[test]
fn unknown_variables_are_refused_by_default() {
    let project = Project::with_template("Hello {{ name }}!");
    let book = project.book();
    let error = book.prompt("p").var("nmae", "Ada").render().unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::PromptValidation, Code::UnknownVariable));
    assert_eq!(error.diagnostic().message, "the prompt `p` has no variable `nmae`");
    assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `name`?"));
    assert_eq!(error.field("nearest").unwrap(), &json!(["name"]));
    let noted = book.prompt("p").var("nmae", "Ada").unknown(UnknownVariables::Note).render().unwrap();
    assert_eq!(noted.notes().iter().map(|note| note.code).collect::<Vec<_>>(), [Code::UnknownVariable]);
    let ignored = book.prompt("p").var("nmae", "Ada").unknown(UnknownVariables::Ignore).render().unwrap();
    assert!(ignored.notes().is_empty());
    let prepared = book.prepare("p", &Context::default()).unwrap();
    assert!(prepared.render(&variables! { nmae: 1 }, &Arc::default()).is_err());
}

#[test]
fn a_prompt_with_a_hook_takes_any_variable() {
    let project = Project::with_template("Hello {{ name }}!");
    let hooks = Hooks::new().pre_render("p", |mut variables, _| {
        let first = variables["first"].as_str().ok_or("`first` is no text")?.to_owned();
        variables.insert("name".into(), json!(first));
        Ok(variables)
    });
    let book = project.book().with_hooks(hooks);
    assert_eq!(book.prompt("p").var("first", "Ada").render().unwrap().text(), "Hello Ada!");
}

#[test]
fn a_builder_takes_structs_maps_and_single_values() {
    #[derive(serde::Serialize)]
    struct Person {
        name: &'static str,
        age: Option<u8>,
    }
    let project = Project::with_template("{{ name }} {{ age }} {{ tags | join(',') }}");
    let book = project.book();
    let render = |builder: cuebook::RenderBuilder<'_>| builder.render().unwrap().into_text();
    let ada = Person { name: "Ada", age: Some(36) };
    assert_eq!(render(book.prompt("p").vars(&ada).var("tags", ["a", "b"])), "Ada 36 a,b");
    let given = variables! { name: "Bob", tags: vec![1, 2] };
    assert_eq!(render(book.prompt("p").vars(&given).var("age", 4)), "Bob 4 1,2");
    assert_eq!(render(book.prompt("p").var("name", "A").vars(&ada).var("tags", [0; 0])), "Ada 36 ");
    let error = book.prompt("p").vars(&[1, 2]).render().unwrap_err();
    assert_eq!(error.code(), Code::InvalidVariables);
    assert_eq!(Variables::from([("n", 1), ("m", 2)]).get("m"), Some(json!(2)));
}

#[test]
fn values_that_json_cannot_hold_are_refused_by_name() {
    let project = Project::with_template("{{ x }}");
    let book = project.book();
    for (value, why) in [
        (variables! { x: f64::NAN }, "the variable `x` has the number NaN, which JSON cannot hold"),
        (variables! { x: [f32::INFINITY] }, "the variable `x` has the number inf, which JSON cannot hold"),
    ] {
        let error = book.render("p", &value, &Context::default()).unwrap_err();
        assert_eq!((error.code(), error.diagnostic().message.as_str()), (Code::InvalidVariables, why));
    }
    let replaced = variables! { x: f64::NAN }.set("x", 1.5);
    assert_eq!(book.render("p", &replaced, &Context::default()).unwrap().text(), "1.5");
}

#[test]
fn deeply_nested_values_are_refused_and_do_not_overflow() {
    let project = Project::with_template("{{ x }}");
    let nested = |levels: usize| (0..levels).fold(json!(0), |inner, _| Json::Array(vec![inner]));
    assert_eq!(project.render("p", json!({"x": nested(100)})).unwrap().text().len(), 201);
    let object = Map::from_iter([("x".to_owned(), nested(8_000))]);
    for given in
        [Variables::from_json(&object), Variables::from(object), Variables::new().set("x", nested(8_000))]
    {
        let error = project.book().render("p", &given, &Context::default()).unwrap_err();
        assert_eq!(error.code(), Code::InvalidVariables);
        assert!(error.diagnostic().message.contains("inside each other"), "{error}");
    }
}

#[test]
fn a_missing_folder_is_reported_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none");
    let book = Book::open(&missing);
    for error in [
        book.prompt("p").render().unwrap_err(),
        book.list_prompts(None, None).unwrap_err(),
        book.prepare("p", &Context::default()).unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.code()), (ErrorKind::Io, Code::Unreadable));
        assert_eq!(error.diagnostic().message, "the folder of the project does not exist");
        assert_eq!(error.diagnostic().file.as_deref(), missing.to_str());
    }
}

#[test]
fn a_panic_in_a_hook_is_an_error_that_names_it() {
    let project = Project::with_template("{% if git %}{{ git.branch }}{% endif %}");
    let pre = Hooks::new().pre_render("p", |_, _| panic!("on purpose"));
    let post = Hooks::new().post_render("p", |_, _, _| panic!("{}", "on purpose"));
    let provider = Hooks::new().provider("git", |_| panic!("on purpose"));
    let expected = [
        (pre, "`pre_render` of the prompt `p` panicked: on purpose"),
        (post, "`post_render` of the prompt `p` panicked: on purpose"),
        (provider, "`provide` of the provider `git` panicked: on purpose"),
    ];
    for (hooks, message) in expected {
        let book = Arc::new(project.book().with_hooks(hooks));
        let error = book.prompt("p").render().unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Hook, Code::HookFailed));
        assert_eq!(error.diagnostic().message, message);
        let waited = book.render_async("p", &Variables::new(), &Context::default());
        let error = futures_executor::block_on(waited).unwrap_err();
        assert_eq!(error.diagnostic().message, message);
    }
}

#[test]
fn a_hook_returns_any_error_and_it_is_the_source() {
    let project = Project::with_template("{{ n }}");
    let hooks = Hooks::new().pre_render("p", |mut variables, _| {
        let number: u8 = variables["n"].as_str().unwrap_or_default().parse()?;
        variables.insert("n".into(), json!(number + 1));
        Ok(variables)
    });
    let book = project.book().with_hooks(hooks);
    assert_eq!(book.prompt("p").var("n", "41").render().unwrap().text(), "42");
    let error = book.prompt("p").var("n", "many").render().unwrap_err();
    assert_eq!(
        error.diagnostic().message,
        "`pre_render` of the prompt `p` failed: invalid digit found in string"
    );
    assert_eq!(error.field("hook").unwrap(), "pre_render");
    let source = std::error::Error::source(&error).unwrap();
    assert!(source.is::<std::num::ParseIntError>());
}

#[test]
fn a_hook_for_a_prompt_that_does_not_exist_is_refused() {
    let project = Project::new().file("prompts/review/template.md", "Review");
    let hooks = Hooks::new().post_render("revew", |text, _, _| Ok(text.to_owned()));
    let book = project.book().with_paths(false).with_hooks(hooks);
    let error = book.prompt("review").render().unwrap_err();
    assert_eq!(error.code(), Code::PromptNotFound);
    let message = "the hook `post_render` is for the prompt `revew`, which does not exist";
    assert_eq!(error.diagnostic().message, message);
    assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `review`?"));
    project.write("prompts/revew/template.md", "Now it exists");
    assert_eq!(book.prompt("review").render().unwrap().text(), "Review");
}

#[test]
fn a_file_is_rendered_by_path_and_stays_warm() {
    let project =
        Project::new().file("prompts/p/template.md", "id").file("out/q.prompty", "Hello {{ name }}");
    let book = project.book().with_paths(false);
    let (path, ada) = (project.path("out/q.prompty"), Variables::new().set("name", "Ada"));
    let context = Context::default();
    assert_eq!(book.render_file(&path, &ada, &context).unwrap().text(), "Hello Ada");
    assert_eq!(book.file(project.path("prompts/p")).render().unwrap().text(), "id");
    assert!(book.file(&path).vars(&ada).validate().unwrap().is_empty());
    let (first, again) = (book.file(&path).prepare().unwrap(), book.file(&path).prepare().unwrap());
    assert!(Arc::ptr_eq(&first, &again));
    project.write("out/q.prompty", "Bye {{ name }}");
    assert_eq!(book.file(&path).vars(&ada).render().unwrap().text(), "Bye Ada");
    // An id is not a path, also after the file was rendered by its path.
    for id in
        [path.to_str().unwrap(), "out/q.prompty", "file:out/q.prompty", &format!("file:{}", path.display())]
    {
        let error = book.render(id, &ada, &context).unwrap_err();
        assert!(matches!(error.code(), Code::InvalidId | Code::PromptNotFound), "{id}: {error}");
    }
    assert!(book.file(project.path("out/none.prompty")).render().is_err());
}

#[derive(Debug)]
struct Panicking {
    while_compiling: bool,
}

struct PanickingTemplate(Arc<Source>);

impl Engine for Panicking {
    fn compile(&self, job: Job<'_>) -> Result<Box<dyn Compiled>> {
        assert!(!self.while_compiling, "on purpose");
        Ok(Box::new(PanickingTemplate(job.source)))
    }
}

impl Compiled for PanickingTemplate {
    fn render(&self, _: &Arc<Scope>, _: usize) -> Result<Output> {
        panic!("on purpose")
    }

    fn outline(&self) -> Arc<dyn cuebook::template::engine::Outline> {
        Arc::new(StandaloneOutline::new(&self.0, []))
    }
}

#[test]
fn a_panic_in_an_engine_or_a_filter_is_an_error_that_names_it() {
    let text = "---\ntemplate: {format: loud}\n---\nHello";
    let project =
        Project::new().file("prompts/e.prompty", text).file("prompts/f.prompty", "{{ 'x' | shout }}");
    for while_compiling in [true, false] {
        let book = project.book().with_engine("loud", Panicking { while_compiling });
        let error = book.prompt("e").render().unwrap_err();
        assert_eq!(error.diagnostic().message, "the template engine `loud` panicked: on purpose");
    }
    let book = project.book().with_filter("shout", |_| panic!("on purpose"));
    let error = book.prompt("f").render().unwrap_err();
    let shown = format!("{error:?}");
    assert!(shown.contains("panicked: on purpose") && shown.contains("shout"), "{shown}");
}

/// A prompt as a template and as a `.prompty` file, rendered by a book with extensions.
fn extended(body: &str, extend: impl Fn(Book) -> Book) -> [Rendered; 2] {
    let project = Project::new()
        .file("prompts/t/template.md", body)
        .file("prompts/p.prompty", &format!("---\nname: p\n---\nsystem:\n{body}"));
    let book = extend(project.book());
    ["t", "p"].map(|id| book.prompt(id).var("name", "Ada Lovelace").render().unwrap())
}

/// The kind of the origin that a piece of the text has.
fn origin(rendered: &Rendered, piece: &str) -> &'static str {
    let at = rendered.text().find(piece).unwrap_or_else(|| panic!("no {piece} in {}", rendered.text()));
    rendered.span_at(at).unwrap().origin.kind()
}

#[test]
fn a_filter_of_a_program_keeps_the_origin_of_its_value() {
    let initials = |given: &[Json]| -> std::result::Result<Json, String> {
        let name = given[0].as_str().ok_or("a name is a text")?;
        Ok(json!(name.split(' ').filter_map(|word| word.chars().next()).collect::<String>()))
    };
    for rendered in extended("Hi {{ name | initials }}!", |book| book.with_filter("initials", initials)) {
        assert!(rendered.text().ends_with("Hi AL!"), "{}", rendered.text());
        assert_eq!((origin(&rendered, "Hi"), origin(&rendered, "AL")), ("literal", "value"));
        let span = rendered.span_at(rendered.text().find("AL").unwrap()).unwrap();
        let Origin::Value { shown, .. } = &span.origin else { panic!("{:?}", span.origin) };
        assert_eq!(shown[0].path, "name");
    }
}

#[test]
fn a_test_of_a_program_chooses_between_texts_of_the_author() {
    let body = "{% if name is short %}Hi{% else %}Dear{% endif %} {{ name }}";
    for (most, text) in [(5, "Dear"), (50, "Hi")] {
        let short = move |given: &[Json]| Ok(given[0].as_str().is_some_and(|text| text.len() < most));
        for rendered in extended(body, |book| book.with_test("short", short)) {
            assert!(rendered.text().ends_with(&format!("{text} Ada Lovelace")), "{}", rendered.text());
            assert_eq!((origin(&rendered, text), origin(&rendered, "Ada")), ("literal", "value"));
        }
    }
}

#[test]
fn a_global_of_a_program_is_a_value_in_the_text() {
    for rendered in
        extended("{{ name }} of {{ team }}.", |book| book.with_global("team", json!("system:\nTides")))
    {
        assert!(rendered.text().ends_with("Ada Lovelace of system:\nTides."), "{}", rendered.text());
        assert_eq!((origin(&rendered, " of "), origin(&rendered, "Tides")), ("literal", "value"));
    }
}

#[test]
fn an_error_of_the_file_system_has_its_source() {
    let project = Project::with_template("x");
    let error = cuebook::files::read_bytes(&project.path("none"), "none", 10).unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.downcast_ref::<std::io::Error>().unwrap().kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn an_error_carries_typed_details() {
    let text = "VARIABLES = {\"required\": [{\"name\": \"name\", \"type\": \"string\"}, {\"name\": \"age\", \"type\": \"integer\"}]}\n";
    let project = Project::with_template("{{ name }} {{ age }}")
        .file("prompts/p/prompt.py", text)
        .file("user_data/packs/x/prompts/two/template.md", "a")
        .file("prompts/two/template.md", "b");
    let book = project.book();
    let error = book.prompt("pp").render().unwrap_err();
    assert_eq!(error.details::<NotFound>().unwrap().prompt_id, "pp");
    assert_eq!(error.details::<Conflict>(), None);
    let error = book.prompt("p").var("age", "many").render().unwrap_err();
    let details: InvalidVariables = error.details().unwrap();
    assert_eq!((details.missing, details.invalid[0].name.as_str()), (vec!["name".to_owned()], "age"));
    let error = book.prompt("p").var("nam", "Ada").render().unwrap_err();
    assert_eq!(error.details::<UnknownVariable>().unwrap().nearest, ["name"]);
    let error = book.prompt("two").render().unwrap_err();
    let conflict: Conflict = error.details().unwrap();
    assert_eq!(conflict.sources().count(), 2);
}

#[test]
fn advice_for_programs_does_not_speak_of_the_command_line() {
    let text = "VARIABLES = {\"required\": [{\"name\": \"name\", \"type\": \"string\"}]}\n";
    let project = Project::with_template("{{ name }}").file("prompts/p/prompt.py", text);
    let book = project.book();
    let error = book.prompt("p").render().unwrap_err();
    assert_eq!(error.diagnostic().hint.as_deref(), Some("pass --var name=TEXT"));
    assert_eq!(error.diagnostic().advice(), Some("give `name` a value"));
    let error = book.prompt("zebra").render().unwrap_err();
    assert_eq!(error.diagnostic().advice(), Some("list the prompts"));
    assert_eq!(error.diagnostic().commands(), ["cuebook list"]);
}

#[test]
fn texts_of_many_renders_do_not_see_each_other() {
    let project = Project::with_template("{{ a }}{{ b }}{{ system.language }}");
    let (book, context) = (project.book(), Arc::new(Context::default()));
    let prepared = book.prepare("p", &context).unwrap();
    let mut texts = prepared.texts(&context).unwrap();
    let same = |given: Variables, texts: &str| {
        assert_eq!(texts, prepared.render(&given, &context).unwrap().text());
    };
    let both = variables! { a: 1, b: 2 };
    same(both.clone(), texts.render(&both).unwrap());
    same(variables! { a: 3 }, texts.render(&variables! { a: 3 }).unwrap());
    assert_eq!(texts.render(&variables! { c: 4 }).unwrap_err().code(), Code::UnknownVariable);
    // A caller can write to its variables again after each render.
    let mut reused = Variables::new().set("a", "x");
    for text in ["y", "z"] {
        reused.values_mut().for_each(|value| *value = text.into());
        same(reused.clone(), texts.render(&reused).unwrap());
    }
}
