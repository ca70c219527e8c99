//! What a model is reported besides the directive.

use cuebook_run::Kind;
use serde_json::{Value as Json, json};

use crate::setup::*;

fn knowledge(stage: &Setup, name: &str, text: &str) {
    stage.world.signed(
        &format!("knowledge/demo/{name}.md"),
        &format!("```yaml\nname: {name}\ntitle: T\n```\n\n{text}\n"),
    );
}

#[test]
fn context_is_ordered_from_root_to_leaf() {
    let stage = Setup::new(script([returns("a", "x")]));
    for name in ["rules", "tone", "before", "after"] {
        knowledge(&stage, name, &format!("Knowledge about {name}."));
    }
    stage.directive(
        "root",
        "<context><system>demo/rules</system><after>demo/after</after></context>",
        "Root.",
    );
    let context = "<context><system>demo/tone</system><system>demo/rules</system><before>demo/before</before></context>";
    stage.extending("leaf", " extends=\"demo/root\"", context, &format!("{WORD}---\nLeaf."));
    let answer = stage.run("demo/leaf");
    assert_eq!(answer["status"], "success", "{answer:#}");
    let body = &stage.mock.requests()[0].body;
    let system = body["system"].to_string();
    let at = |text: &str, what: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in {text}"));
    assert!(at(&system, "about rules") < at(&system, "about tone"), "{system}");
    assert_eq!(system.matches("about rules").count(), 1);
    let user = body["messages"][0].to_string();
    assert!(
        at(&user, "about before") < at(&user, "Leaf.") && at(&user, "Leaf.") < at(&user, "about after"),
        "{user}"
    );
    assert!(!user.contains("Root.") && !user.contains("rye:signed"), "{user}");
    let reported = &stage.payloads(&id_of(&answer), Kind::ContextInjected)[0];
    assert_eq!(reported["knowledge"].as_array().unwrap().len(), 4, "{reported}");
}

#[test]
fn missing_knowledge_is_reported_in_an_event() {
    let stage = Setup::new(script([returns("a", "x")]));
    stage.worker("<context><before>demo/nowhere</before></context>");
    let answer = stage.run("demo/work");
    assert_eq!(answer["status"], "success", "{answer:#}");
    let reported = &stage.payloads(&id_of(&answer), Kind::ContextInjected)[0];
    assert!(reported["missing"][0].as_str().unwrap().contains("demo/nowhere"), "{reported}");
}

#[test]
fn changed_knowledge_is_not_sent_and_the_log_says_so() {
    let stage = Setup::new(script([returns("a", "x")]));
    knowledge(&stage, "rules", "Be kind.");
    let path = stage.world.project().join(".ai/knowledge/demo/rules.md");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("kind", "rude")).unwrap();
    stage.worker("<context><system>demo/rules</system></context>");
    let answer = stage.run("demo/work");
    let body = stage.mock.requests()[0].body.to_string();
    assert!(!body.contains("Be rude") && !body.contains("Be kind"), "{body}");
    let reported = &stage.payloads(&id_of(&answer), Kind::ContextInjected)[0];
    assert_eq!(reported["missing"].as_array().unwrap().len(), 1, "{reported}");
}

#[test]
fn hooks_speak_first_unless_the_directive_does_not_want_them() {
    let hooks = |event: &str, more: &str| {
        format!(
            "hooks:\n  - id: greeting\n    event: {event}\n    {more}\n    action: {{primary: execute, item_type: knowledge, item_id: demo/rules}}\n"
        )
    };
    for (event, more, metadata) in [
        ("build_system_prompt", "wrap: true", ""),
        ("thread_started", "position: after", ""),
        ("thread_started", "wrap: false", ""),
        ("thread_started", "wrap: true", "<context><suppress>greeting</suppress></context>"),
        ("thread_started", "wrap: true", "<context><suppress>demo/rules</suppress></context>"),
    ] {
        let stage = Setup::new(script([returns("a", "x")]));
        knowledge(&stage, "rules", "Be kind.");
        stage.worker(metadata);
        stage.world.signed("config/agent/hooks.yaml", &hooks(event, more));
        let answer = stage.run("demo/work");
        assert_eq!(answer["status"], "success", "{answer:#}");
        let body = &stage.mock.requests()[0].body;
        let text = |json: &Json| match json {
            Json::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<String>(),
            other => other.as_str().unwrap_or_default().to_owned(),
        };
        let (system, user) = (text(&body["system"]), text(&body["messages"][0]["content"]));
        let wrapped = "<rules id=\"demo/rules\" type=\"knowledge\">\nBe kind.\n</rules>";
        match (event, more, metadata) {
            (_, _, metadata) if !metadata.is_empty() => {
                assert!(!system.contains("kind") && !user.contains("kind"), "{user}")
            }
            ("build_system_prompt", _, _) => assert_eq!(system, wrapped),
            (_, "wrap: false", _) => assert!(user.starts_with("Be kind.\n\n"), "{user}"),
            _ => assert!(user.ends_with(wrapped), "{user}"),
        }
    }
}

#[test]
fn keys_are_taken_out_of_what_a_hook_says_first() {
    let (stage, key) = with_key(script([returns("a", "x")]));
    stage.tool("leak", &format!("return {{'body': {key:?}}}"));
    stage.worker("<hooks><hook id=\"h\" event=\"thread_started\"><action primary=\"execute\" item_type=\"tool\" item_id=\"demo/leak\"/></hook></hooks>");
    let answer = stage.run("demo/work");
    assert_eq!(answer["status"], "success", "{answer:#}");
    let reported = stage.reported(0);
    assert!(reported.contains("[secret]") && !reported.contains(&key), "{reported}");
    let log = json!(stage.log(&id_of(&answer)).iter().map(|event| event.payload.clone()).collect::<Vec<_>>())
        .to_string();
    assert!(!log.contains(&key));
}
