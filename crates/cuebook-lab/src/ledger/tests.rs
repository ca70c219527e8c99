use serde_json::{Value as Json, json};

use super::stable::{Block, Group};
use super::*;
use cuebook::{Book, Context, Variables};

/// A folder with one prompt in one file.
fn book(file: &str, text: &str) -> (tempfile::TempDir, Book) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    let book = Book::open(folder.path()).with_paths(true);
    (folder, book)
}

fn render(book: &Book, prompt: &str, values: Json, model: &str) -> Rendered {
    let Json::Object(values) = values else { panic!("values are an object") };
    let variables = values.into_iter().fold(Variables::new(), |all, (name, value)| all.set(name, value));
    let context = Context { model: Some(model.to_owned()), ..Context::default() };
    book.render(prompt, &variables, &context).unwrap()
}

fn template(text: &str, a: Json, b: Json) -> Stability {
    let (_folder, book) = book("prompts/p/template.md", text);
    Stability::between(&render(&book, "p", a, "gpt-4o"), &render(&book, "p", b, "gpt-4o")).unwrap()
}

const CHAT: &str = "---\nname: chat\ninputs:\n  history: {kind: thread}\n  company: {kind: string, default: Acme}\n  \
                    question: {kind: string, required: true}\ntools:\n  - name: find\n    kind: function\n    description: Finds.\n    \
                    parameters:\n      - {name: what, kind: string, required: true}\n---\nsystem:\nYou answer for {{company}}.\n\n\
                    {{history}}\n\nuser:\nMy question: {{question}}\n";

#[test]
fn shares_of_authors_add_up_to_the_total() {
    for (text, values) in [
        (
            "Dear {{ name }}, {{ greeting|default('hello') }}!\n{% for x in list %}- {{ x }}{{ name }}\n{% endfor %}",
            json!({"name": "Ädä", "list": ["a b", "", "日本"]}),
        ),
        ("{{ a ~ b }}{{ 1 + 1 }}{{ a }}", json!({"a": "uni", "b": "verse"})),
        ("{{ a }}", json!({"a": ""})),
    ] {
        let (_folder, book) = book("prompts/p/template.md", text);
        let rendered = render(&book, "p", values, "gpt-4o");
        let ledger = Ledger::of(&rendered).unwrap();
        assert_eq!(ledger.total(), ledger.tokenizer.count(rendered.text()), "{text}");
        assert_eq!(
            ledger.contributors.iter().map(|entry| entry.tokens).sum::<usize>(),
            ledger.total(),
            "{text}"
        );
        assert_eq!(ledger.contributors.iter().map(|entry| entry.bytes).sum::<usize>(), rendered.text().len());
        assert!(ledger.is_exact());
    }
}

#[test]
fn a_token_belongs_to_the_origin_of_most_of_its_bytes() {
    for (text, value, wanted) in
        [("uni{{ rest }}", "verse", 1), ("univer{{ rest }}", "se", 0), ("I am {{ rest }}", "I", 1)]
    {
        let (_folder, book) = book("prompts/p/template.md", text);
        let ledger = Ledger::of(&render(&book, "p", json!({"rest": value}), "gpt-4o")).unwrap();
        let found =
            ledger.contributors.iter().find(|entry| entry.contributor.label() == "rest (caller)").unwrap();
        assert_eq!((found.tokens, found.bytes), (wanted, value.len()), "{text}");
    }
}

#[test]
fn messages_and_tools_are_counted_and_lines_with_roles_are_not() {
    let (_folder, book) = book("prompts/chat.prompty", CHAT);
    let history = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello there"}]);
    let rendered = render(&book, "chat", json!({"question": "Why?", "history": history}), "gpt-4o");
    let ledger = Ledger::of(&rendered).unwrap();
    let tokenizer = Tokenizer::for_model("gpt-4o");
    let found: Vec<(&str, usize)> =
        ledger.messages.iter().map(|message| (message.role.as_str(), message.tokens)).collect();
    let count = |text: &str| tokenizer.count(text);
    assert_eq!(
        found,
        [
            ("system", count("You answer for Acme.")),
            ("user", count("Hi")),
            ("assistant", count("Hello there")),
            ("user", count("My question: Why?"))
        ]
    );
    assert_eq!((ledger.tools.len(), ledger.tools[0].name.as_str()), (1, "find"));
    assert!(ledger.tools[0].tokens > 10);
    assert!(!ledger.is_exact(), "nobody says how tools are shown to a model");
    let labels: Vec<String> = ledger.contributors.iter().map(|entry| entry.contributor.label()).collect();
    for label in ["prompts/chat.prompty", "history (thread)", "company (optional)", "question (caller)"] {
        assert!(labels.iter().any(|known| known == label), "{labels:?}");
    }
}

#[test]
fn a_missing_input_leaves_the_origins_of_the_rest() {
    let text =
        CHAT.replace("user:\nMy question: {{question}}", "user:\n{{history}}\nMy question: {{question}}");
    let (_folder, book) = book("prompts/chat.prompty", &text);
    let rendered = render(&book, "chat", json!({"question": "Why?"}), "gpt-4o");
    let ledger = Ledger::of(&rendered).unwrap();
    let labels: Vec<String> = ledger.contributors.iter().map(|entry| entry.contributor.label()).collect();
    assert!(labels.iter().any(|label| label == "question (caller)"), "{labels:?}");
    assert!(!labels.iter().any(|label| label.contains("thread")), "{labels:?}");
    assert_eq!(ledger.contributors.iter().map(|entry| entry.tokens).sum::<usize>(), ledger.text_tokens());
}

#[test]
fn a_shorter_value_is_still_the_first_difference() {
    for (a, b) in [("Ada", "Adam"), ("Adam", "Ada"), ("", "Ada"), ("Ada", "")] {
        let found = template("Hello, dear friend {{ name }}!", json!({"name": a}), json!({"name": b}));
        let first = found.first.unwrap();
        assert_eq!(first.contributor.label(), "name (caller)", "{a} {b}");
        assert_eq!(first.message, Some(1));
        assert!(
            found.stable >= 4 && found.stable < found.total.max(5),
            "{} of {}",
            found.stable,
            found.total
        );
    }
}

#[test]
fn the_first_difference_has_byte_line_and_column() {
    let found =
        template("Grüße\n{{ a }} {{ b }}", json!({"a": "same", "b": "x1"}), json!({"a": "same", "b": "x2"}));
    let first = found.first.unwrap();
    assert_eq!((first.offset, first.line, first.column, first.at), (14, 2, 7, Some(14)));
    assert_eq!(first.contributor.label(), "b (caller)");
    assert_eq!(found.changed.iter().map(|shown| shown.path.as_str()).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn conditional_author_text_is_reported_as_a_difference() {
    let text = "Rules.\n{% if loud %}SHOUT{% else %}whisper{% endif %}";
    let found = template(text, json!({"loud": true}), json!({"loud": false}));
    let first = found.first.unwrap();
    assert!(first.is_literal());
    assert_eq!(first.line, 2);
    assert_eq!(found.changed[0].path, "loud");
}

#[test]
fn equal_renders_are_stable_throughout() {
    let found = template("Hello {{ name }}", json!({"name": "Ada"}), json!({"name": "Ada"}));
    assert!(found.first.is_none() && found.changed.is_empty());
    assert_eq!((found.stable, found.share()), (found.total, 1.0));
}

#[test]
fn a_conversation_that_grows_keeps_what_was_before() {
    let (_folder, book) =
        book("prompts/chat.prompty", &CHAT.replace("\n\nuser:\nMy question: {{question}}", ""));
    let turn = |role: &str, text: &str| json!({"role": role, "content": text});
    let short = json!([turn("user", "Hi"), turn("assistant", "Hello")]);
    let long = json!([turn("user", "Hi"), turn("assistant", "Hello"), turn("user", "Why?")]);
    let a = render(&book, "chat", json!({"question": "", "history": short}), "gpt-4o");
    let b = render(&book, "chat", json!({"question": "", "history": long}), "gpt-4o");
    let found = Stability::between(&a, &b).unwrap();
    assert_eq!(found.stable, found.total, "all of the shorter one begins the longer one");
    let first = found.first.unwrap();
    assert_eq!((first.message, first.contributor.label().as_str()), (Some(4), "history (thread)"));
}

#[test]
fn without_a_second_render_values_change_and_defaults_stay() {
    let (_folder, book) = book("prompts/chat.prompty", CHAT);
    let found = Stability::assumed(&render(&book, "chat", json!({"question": "Why?"}), "gpt-4o")).unwrap();
    let first = found.first.unwrap();
    assert_eq!((first.message, first.contributor.label().as_str()), (Some(2), "question (caller)"));
    assert_eq!(first.offset, "My question: ".len());
}

fn block(label: &str, group: Group, tokens: usize, stable: usize) -> Block {
    Block { label: label.to_owned(), group, tokens, stable, same: tokens == stable }
}

fn stability(blocks: Vec<Block>) -> Stability {
    Stability {
        basis: Basis::Compared,
        total: blocks.iter().map(|block| block.tokens).sum(),
        stable: blocks.iter().map(|block| block.stable).sum(),
        first: None,
        changed: Vec::new(),
        passing: None,
        blocks,
    }
}

#[test]
fn anthropic_cache_marks_follow_enough_tokens() {
    let found = stability(vec![
        block("the tool `a`", Group::Tools, 600, 600),
        block("the tool `b`", Group::Tools, 600, 600),
        block("message 1 (system)", Group::System, 300, 300),
        block("message 2 (user)", Group::Talk, 50, 50),
        block("message 3 (assistant)", Group::Talk, 50, 50),
        block("message 4 (user)", Group::Talk, 90, 10),
    ]);
    let plan = CachePlan::new(Provider::Anthropic, Some("claude-sonnet-4-5"), &found);
    let marks: Vec<(&str, usize)> =
        plan.breakpoints.iter().map(|mark| (mark.after.as_str(), mark.tokens)).collect();
    assert_eq!(marks, [("the tools", 1200), ("message 1 (system)", 1500), ("message 3 (assistant)", 1600)]);
    assert_eq!((plan.minimum, plan.cacheable), (1024, 1600));
    assert!(plan.advice.iter().any(|advice| advice.contains("two blocks")), "{:?}", plan.advice);
    let plan = CachePlan::new(Provider::Anthropic, Some("claude-opus-4-5-20251101"), &found);
    assert_eq!((plan.minimum, plan.cacheable, plan.breakpoints.len()), (4096, 0, 0));
    assert!(plan.advice[0].contains("caches only 4096 or more"), "{:?}", plan.advice);
}

#[test]
fn openai_keeps_beginnings_in_steps_and_gemini_without() {
    for (stable, openai, gemini) in
        [(1023, 0, 0), (1024, 1024, 0), (1151, 1024, 0), (1152, 1152, 0), (2100, 2048, 2100)]
    {
        let found = stability(vec![block("message 1 (system)", Group::System, 5000, stable)]);
        let kept = |provider, model| CachePlan::new(provider, Some(model), &found).cacheable;
        assert_eq!(kept(Provider::OpenAi, "gpt-4o"), openai, "{stable}");
        assert_eq!(kept(Provider::Gemini, "gemini-2.5-pro"), gemini, "{stable}");
    }
}

#[test]
fn a_model_gives_its_provider_and_smallest_cached_prefix() {
    for (model, provider, least) in [
        ("gpt-4o-mini", Provider::OpenAi, 1024),
        ("claude-sonnet-4-5", Provider::Anthropic, 1024),
        ("anthropic/claude-opus-4.6", Provider::Anthropic, 4096),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", Provider::Anthropic, 4096),
        ("claude-3-5-haiku-latest", Provider::Anthropic, 2048),
        ("gemini-2.5-flash", Provider::Gemini, 2048),
        ("gemini-3.1-pro-preview", Provider::Gemini, 4096),
    ] {
        assert_eq!(Provider::of(Some(model), None), Some(provider), "{model}");
        assert_eq!(minimum(provider, Some(model)), least, "{model}");
    }
    assert_eq!(Provider::of(Some("llama"), Some("azure")), Some(Provider::OpenAi));
    assert_eq!(Provider::of(Some("llama"), None), None);
    assert_eq!(Provider::of(None, Some("Anthropic")), Some(Provider::Anthropic));
}

#[test]
fn the_answer_schema_is_counted_before_the_messages() {
    let text =
        CHAT.replace("tools:\n", "outputs:\n  answer: {kind: string, description: What to say.}\ntools:\n");
    let (_folder, book) = book("chat.prompty", &text);
    let path = book.library().root().join("chat.prompty").to_string_lossy().into_owned();
    for (model, place) in [("gpt-4o", "/response_format"), ("claude-sonnet-4-5", "/output_config/format")] {
        let rendered = render(&book, &path, json!({"question": "Why?"}), model);
        let ledger = Ledger::of(&rendered).unwrap();
        let name = if model.starts_with("gpt") { "openai" } else { "anthropic" };
        let sent = rendered.wire_as(name).unwrap().body.pointer(place).unwrap().to_string();
        assert_eq!(ledger.output, ledger.tokenizer.count(&sent), "{model}");
        assert_eq!(ledger.total(), ledger.text_tokens() + ledger.tool_tokens() + ledger.output);
        assert!(ledger.estimates().iter().any(|reason| reason.starts_with("The schema of the answer")));
        let stability = Stability::assumed(&rendered).unwrap();
        assert_eq!((stability.total, stability.blocks[1].group), (ledger.total(), Group::Output));
        assert!(stability.stable >= ledger.output + ledger.tool_tokens(), "{stability:?}");
    }
}

#[test]
fn a_tree_is_the_users_where_a_provider_is_sent_it_as_the_users() {
    let (_folder, book) = book("prompts/tree.sections.md", "# Task\nDo it.\n");
    let roles = |model: &str| {
        let ledger = Ledger::of(&render(&book, "tree", json!({}), model)).unwrap();
        ledger.messages.iter().map(|message| message.role.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(roles("gpt-4o"), ["system"]);
    assert_eq!(roles("claude-sonnet-4-5"), ["user"]);
    assert_eq!(roles("gemini-2.5-pro"), ["user"]);
}

#[test]
fn nothing_is_marked_behind_the_schema_of_the_answer() {
    let blocks = |last: usize| {
        vec![
            block("tool", Group::Tools, 3000, 3000),
            block("schema", Group::Output, 500, 500),
            block("message 1 (system)", Group::System, last, last),
        ]
    };
    let plan = CachePlan::new(Provider::Anthropic, None, &stability(blocks(2000)));
    let marks: Vec<(&str, usize)> =
        plan.breakpoints.iter().map(|mark| (mark.after.as_str(), mark.tokens)).collect();
    assert_eq!(marks, [("the tools", 3000), ("message 1 (system)", 5500)]);
    let only = CachePlan::new(Provider::Anthropic, None, &stability(blocks(0)[..2].to_vec()));
    assert_eq!((only.breakpoints.len(), only.cacheable), (1, 3000));
}
