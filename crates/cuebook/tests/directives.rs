//! Directives as prompts of a library: found through spaces, rendered with origins, checked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;

use cuebook::chat::Role;
use cuebook::items::{SpaceKind, Spaces};
use cuebook::trust::{Purpose, SigningKey, Trust, sign_for};
use cuebook::variables::HookTexts;
use cuebook::{Book, Code, Context, Origin, Severity, Variables};
use cuebook_lab::BookExt;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const DEPLOY: &str = r#"# Deploy

Brings an app to a place.

```xml
<directive name="deploy" version="1.2.0">
  <metadata>
    <description>Deploy &amp; check</description>
    <category>ops</category>
    <author>ann</author>
    <model tier="fast" />
  </metadata>
  <inputs>
    <input name="app" type="string" required="true">Which app</input>
    <input name="replicas" type="integer" default="2" />
  </inputs>
  <outputs>
    <output name="url">Where it runs</output>
    <output name="took" />
  </outputs>
</directive>
```

Deploy {input:app} with {input:replicas} replicas.
"#;

struct Project {
    project: tempfile::TempDir,
    user: tempfile::TempDir,
}

impl Project {
    fn new() -> Project {
        Project { project: tempfile::tempdir().unwrap(), user: tempfile::tempdir().unwrap() }
    }

    fn with(self, path: &str, text: &str) -> Project {
        write(self.project.path(), path, text);
        self
    }

    fn with_user(self, path: &str, text: &str) -> Project {
        write(self.user.path(), path, text);
        self
    }

    fn book(&self) -> Book {
        Book::open(self.project.path())
            .with_spaces(Spaces::new(self.project.path(), Some(self.user.path())))
            .with_paths(true)
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A key that the user of these spaces trusts.
fn trusted_key(spaces: &Spaces) -> SigningKey {
    let key = SigningKey::from_seed(&[7; 32]).unwrap();
    let now = "2026-02-26T00:00:00Z".parse().unwrap();
    Trust::new(spaces).add(SpaceKind::User, key.public(), "ann", Some(&key), now).unwrap();
    key
}

fn deploy() -> Project {
    Project::new().with(".ai/directives/ops/deploy.md", DEPLOY)
}

fn app(app: &str) -> Variables {
    Variables::new().set("app", app)
}

#[test]
fn a_directive_is_rendered_as_the_prompt_of_the_seed() {
    let rendered = deploy().book().render("ops/deploy", &app("shop"), &Context::default()).unwrap();
    assert_eq!(
        rendered.text(),
        "Execute the directive as specified now.\n\n<directive name=\"deploy\">\n<description>Deploy & check</description>\n\nBrings an app to a place.\n\nDeploy shop with 2 replicas.\n\nWhen you have completed all steps, return structured results:\n`rye_execute(item_type=\"tool\", item_id=\"rye/agent/threads/directive_return\", parameters={\"url\": \"<Where it runs>\", \"took\": \"<took>\"})`\n\n</directive>"
    );
    let message = &rendered.messages().unwrap()[0];
    assert_eq!(message.role, Role::User);
    let context = Context { model: Some("claude-sonnet-4-5".to_owned()), ..Context::default() };
    let rendered = deploy().book().render("ops/deploy", &app("shop"), &context).unwrap();
    for format in ["openai", "anthropic", "gemini"] {
        let wire = rendered.wire_as(format).unwrap();
        assert!(wire.body.to_string().contains("Deploy shop with 2 replicas."), "{format}");
    }
}

#[test]
fn results_return_in_a_block_on_request() {
    let block = "<returns>\n  <output name=\"url\">Where it runs</output>\n  <output name=\"took\" />\n</returns>\n\n</directive>";
    let project =
        deploy().with("cuebook.toml", "[directives]\nreturns = \"block\"\ninstruction = \"Do this.\"\n");
    let rendered = project.book().render("ops/deploy", &app("shop"), &Context::default()).unwrap();
    assert!(rendered.text().starts_with("Do this.\n\n<directive") && rendered.text().ends_with(block));
    let context =
        Context { returns: Some(cuebook::dialect::directive::Returns::Block), ..Context::default() };
    let rendered = deploy().book().render("ops/deploy", &app("shop"), &context).unwrap();
    assert!(rendered.text().ends_with(block));
    let wrong = deploy().with("cuebook.toml", "[directives]\nreturns = \"blok\"\n");
    let error = wrong.book().render("ops/deploy", &app("shop"), &Context::default()).unwrap_err();
    assert_eq!(error.code(), Code::BadConfig);
}

#[test]
fn every_byte_has_its_origin() {
    let rendered = deploy().book().render("ops/deploy", &app("shop"), &Context::default()).unwrap();
    let mut at = 0;
    for span in rendered.spans() {
        assert_eq!(span.range.start, at);
        at = span.range.end;
        let text = &rendered.text()[span.range.clone()];
        match &span.origin {
            Origin::Literal { source, range, .. } => assert_eq!(&source.text()[range.clone()], text),
            Origin::Value { shown, emitted } => {
                let names: Vec<&str> = shown.iter().map(|shown| shown.path.as_str()).collect();
                match names.as_slice() {
                    ["app"] => assert_eq!((text, emitted.text()), ("shop", "{input:app}")),
                    ["replicas"] => assert_eq!((text, emitted.text()), ("2", "{input:replicas}")),
                    _ => assert_eq!((text, emitted.text()), ("&", "&amp;")),
                }
            }
            Origin::Frame { name } => {
                assert!(["instruction", "directive", "returns"].contains(&name.as_str()))
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(at, rendered.text().len());
    let place = |text: &str| {
        let span = rendered.span_at(rendered.text().find(text).unwrap()).unwrap();
        let place = span.origin.place().unwrap();
        (place.file().to_owned(), place.line())
    };
    assert_eq!(place("Deploy shop"), (".ai/directives/ops/deploy.md".to_owned(), 24));
    assert_eq!(place("Brings"), (".ai/directives/ops/deploy.md".to_owned(), 3));
}

#[test]
fn inputs_are_checked_in_the_order_of_the_seed() {
    let project = deploy();
    let book = project.book();
    let error = |variables: Json| {
        let variables = Variables::from_json(variables.as_object().unwrap());
        book.render("ops/deploy", &variables, &Context::default()).unwrap_err()
    };
    assert_eq!(
        error(json!({"ap": 1})).diagnostic().message,
        "Unknown parameters: ap. Valid inputs: app, replicas"
    );
    let missing = error(json!({"replicas": "x"}));
    assert_eq!(missing.diagnostic().message, "Missing required inputs: app");
    assert_eq!(missing.field("declared_inputs").unwrap()[0]["name"], "app");
    assert_eq!(missing.field("prompt_id").unwrap(), "ops/deploy");
    assert_eq!(
        error(json!({"app": "a", "replicas": "x"})).diagnostic().message,
        "`replicas` must be of type integer, but is a string"
    );
    assert!(book.validate("ops/deploy", &app("a"), &Context::default()).unwrap().is_empty());
}

#[test]
fn a_nearer_space_shadows_the_others_and_that_is_shown() {
    let theirs = DEPLOY.replace("Brings an app to a place.", "The user's own.");
    let project = deploy().with_user(".ai/directives/ops/deploy.md", &theirs);
    let book = project.book();
    let sources: Vec<String> =
        book.list_candidates("ops/deploy").unwrap().into_iter().map(|candidate| candidate.source).collect();
    assert_eq!(sources, [".ai/directives/ops/deploy.md", "~/.ai/directives/ops/deploy.md"]);
    let explanation = book.explain("ops/deploy", &app("shop"), &Context::default()).unwrap();
    assert!(explanation.rendered().text().contains("Brings an app"));
    assert_eq!(
        explanation.to_json()["prompt"]["reason"],
        "the nearest space with this directive; it shadows ~/.ai/directives/ops/deploy.md"
    );
    let listed = book.list_prompts(Some("directive"), None).unwrap();
    let ids: Vec<&str> = listed.iter().map(|listing| listing.id.as_str()).collect();
    assert_eq!(ids, ["ops/deploy", "rye/agent/continuation", "rye/core/create_directive"]);
    assert_eq!(listed[0].candidates[1].shadowed_by.as_deref(), Some(".ai/directives/ops/deploy.md"));
    assert_eq!(listed[0].to_json()["shadows"], json!(["~/.ai/directives/ops/deploy.md"]));
    // Once the project's is gone, the user's is the one; a warm book sees that.
    std::fs::remove_file(project.project.path().join(".ai/directives/ops/deploy.md")).unwrap();
    let error = book.render("ops/deploy", &app("shop"), &Context::default()).unwrap_err();
    assert_eq!(error.code(), Code::Unsigned, "what lies in the user's space must be signed");
}

#[test]
fn a_directive_and_another_prompt_of_one_id_are_a_conflict() {
    let text = DEPLOY.replace("<category>ops</category>", "<category></category>");
    let project =
        Project::new().with(".ai/directives/deploy.md", &text).with("prompts/deploy/template.md", "Hi.\n");
    let book = project.book();
    let error = book.render("deploy", &app("shop"), &Context::default()).unwrap_err();
    assert_eq!(error.code(), Code::PromptConflict);
    book.set_resolution("deploy", ".ai/directives/deploy.md").unwrap();
    assert!(book.render("deploy", &app("shop"), &Context::default()).unwrap().text().contains("Deploy shop"));
    book.set_resolution("deploy", "prompts/deploy").unwrap();
    assert_eq!(book.render("deploy", &Variables::new(), &Context::default()).unwrap().text(), "Hi.");
}

#[test]
fn a_path_to_the_file_works_and_a_path_that_exists_comes_first() {
    let project = deploy();
    let book = project.book();
    let file = project.project.path().join(".ai/directives/ops/deploy.md");
    let found = book.library().find_path(&file).unwrap();
    assert_eq!(
        (found.id.as_str(), found.candidate.source.as_str()),
        ("ops/deploy", ".ai/directives/ops/deploy.md")
    );
    let other = deploy();
    let file = other.project.path().join(".ai/directives/ops/deploy.md");
    let rendered = book.render(file.to_str().unwrap(), &app("x"), &Context::default()).unwrap();
    assert!(rendered.text().contains("Deploy x"));
    let error = book.render("ops/deplyo", &app("x"), &Context::default()).unwrap_err();
    assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `ops/deploy`?"));
    for wrong in ["../ops/deploy", "ops//deploy"] {
        assert!(book.render(wrong, &app("x"), &Context::default()).is_err(), "{wrong}");
    }
}

#[test]
fn an_unsigned_directive_is_reported_and_a_changed_one_refused() {
    let project = deploy();
    let rendered = project.book().render("ops/deploy", &app("shop"), &Context::default()).unwrap();
    let [note] = rendered.notes() else { panic!("{:?}", rendered.notes()) };
    assert_eq!((note.code, note.severity), (Code::Unsigned, Severity::Warning));

    let spaces = Spaces::new(project.project.path(), Some(project.user.path()));
    let key = trusted_key(&spaces);
    let path = project.project.path().join(".ai/directives/ops/deploy.md");
    let purpose = Purpose::at("directives/ops/deploy.md").unwrap();
    let now = "2026-02-26T00:00:00Z".parse().unwrap();
    let signed = sign_for(&purpose, "md", DEPLOY.as_bytes(), &key, now).unwrap();
    std::fs::write(&path, &signed).unwrap();
    let book = project.book();
    let rendered = book.render("ops/deploy", &app("shop"), &Context::default()).unwrap();
    assert!(rendered.notes().is_empty(), "{:?}", rendered.notes());
    assert!(!rendered.text().contains("rye:signed"));

    let changed =
        String::from_utf8(signed.clone()).unwrap().replace("Deploy {input:app}", "Delete {input:app}");
    std::fs::write(&path, changed).unwrap();
    let error = book.render("ops/deploy", &app("shop"), &Context::default()).unwrap_err();
    assert_eq!(error.code(), Code::ContentChanged);
    let report = book.check(&["ops/deploy".to_owned()], |_| {}).unwrap();
    assert_eq!(report.findings[0].code, Code::ContentChanged);
}

#[test]
fn check_reports_defects_of_a_directive() {
    let odd = DEPLOY
        .replace(
            "<category>ops</category>",
            "<category>other</category><context><system>team/tone</system><before>../x</before></context>",
        )
        .replace("name=\"deploy\" version", "name=\"deploy\" extends=\"ops/base\" version")
        .replace("with {input:replicas}", "with {input:replcas}");
    let project = Project::new().with(".ai/directives/ops/deploy.md", &odd).with(
        ".ai/directives/ops/loop.md",
        "```xml\n<directive name=\"loop\" version=\"1.0.0\" extends=\"ops/loop\"><metadata><category>ops</category></metadata></directive>\n```\nx",
    );
    let found = |target: &str| -> Vec<String> {
        let report = project.book().check(&[target.to_owned()], |_| {}).unwrap();
        report.findings.iter().map(|finding| format!("{} {}", finding.code, finding.message)).collect()
    };
    let all = found("ops/deploy");
    let expect = |start: &str| assert!(all.iter().any(|found| found.starts_with(start)), "{start}: {all:#?}");
    expect("CB220 ");
    expect("CB222 the category is \"other\", but its path says \"ops\"");
    expect("CB308 Failed to load parent directive 'ops/base': Directive not found: ops/base");
    expect("CB402 the prompt `ops/deploy` does not declare `replcas`");
    expect("CB403 unused variable `replicas`");
    assert!(
        found("ops/loop")
            .iter()
            .any(|found| found == "CB309 Circular extends chain: ops/loop (chain: ops/loop)")
    );
    let without = odd.replace(" extends=\"ops/base\"", "");
    let project = Project::new().with(".ai/directives/ops/deploy.md", &without);
    let report = project.book().check(&[], |_| {}).unwrap();
    let all: Vec<&str> = report.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert!(all.contains(&"CB116") && all.contains(&"CB117"), "{all:?}");
}

#[test]
fn parents_give_context_and_the_nearest_permissions() {
    let file = |name: &str, extends: &str, metadata: &str| {
        format!(
            "```xml\n<directive name=\"{name}\" version=\"1.0.0\"{extends}><metadata><category>a</category>{metadata}</metadata></directive>\n```\nx"
        )
    };
    let context = |ids: &str| format!("<context>{ids}</context>");
    let may = |what: &str| format!("<permissions><execute>{what}</execute></permissions>");
    let project = Project::new();
    let spaces = Spaces::new(project.project.path(), Some(project.user.path()));
    let key = trusted_key(&spaces);
    let sign = |path: &str, text: String| {
        let purpose = Purpose::at(path.strip_prefix(".ai/").unwrap()).unwrap();
        let now = "2026-02-26T00:00:00Z".parse().unwrap();
        let signed = sign_for(&purpose, "md", text.as_bytes(), &key, now).unwrap();
        write(project.project.path(), path, std::str::from_utf8(&signed).unwrap());
    };
    sign(
        ".ai/directives/a/root.md",
        file("root", "", &(may("root") + &context("<system>k/one</system><after>k/two</after>"))),
    );
    sign(
        ".ai/directives/a/middle.md",
        file("middle", " extends=\"a/root\"", &(may("middle") + &context("<suppress>h</suppress>"))),
    );
    sign(
        ".ai/directives/a/leaf.md",
        file("leaf", " extends=\"a/middle\"", &context("<system>k/three</system><system>k/one</system>")),
    );
    sign(
        ".ai/knowledge/k/one.md",
        "```yaml\nname: one\ntitle: One\nentry_type: x\nversion: 1.0.0\ncategory: k\n```\nOne.".to_owned(),
    );
    let book = project.book();
    let prepared = book.prepare("a/leaf", &Context::default()).unwrap();
    let composed = prepared.compose().unwrap().unwrap();
    assert_eq!(composed.chain, ["a/leaf", "a/middle", "a/root"]);
    let (permissions, from) = composed.permissions.unwrap();
    assert_eq!(
        (permissions.capabilities, from.as_str()),
        (vec!["rye.execute.middle".to_owned()], "a/middle")
    );
    assert_eq!(
        composed.context.to_json(),
        json!({"system": ["k/one", "k/three"], "before": [], "after": ["k/two"], "suppress": ["h"]})
    );
    assert_eq!(composed.knowledge["k/one"].body(), "One.");
    let missing: Vec<&str> = composed.missing.iter().map(|missing| missing.message.as_str()).collect();
    assert_eq!(missing, ["Knowledge entry not found: k/three", "Knowledge entry not found: k/two"]);
    // What a model reads has the knowledge and what hooks of a thread add, each with its role and its origin.
    let hook_texts = HookTexts { after: vec!["Hooked.".to_owned()], ..HookTexts::default() };
    let context = Context { hook_texts, ..Context::default() };
    let rendered = book.render("a/leaf", &Variables::new(), &context).unwrap();
    let messages = rendered.messages().unwrap();
    let said: Vec<(&str, String)> =
        messages.iter().map(|message| (message.role.as_str(), message.texts().collect())).collect();
    let prompt = "Execute the directive as specified now.\n\n<directive name=\"leaf\">\n\nx\n\n</directive>\n\nHooked.";
    assert_eq!(said, [("system", "One.".to_owned()), ("user", prompt.to_owned())]);
    let origin = |text: &str| rendered.span_at(rendered.text().find(text).unwrap()).unwrap().origin;
    assert_eq!((origin("One.").kind(), origin("Hooked.").kind()), ("literal", "hook"));
    assert!(origin("One.").place().unwrap().to_string().contains("knowledge/k/one.md"));
    assert_eq!(rendered.notes().len(), 2, "{:?}", rendered.notes());
}

#[test]
fn the_built_in_directive_renders_by_its_seed_name() {
    let project = Project::new();
    let book = project.book();
    let variables = Variables::new().set("name", "deploy_app").set("category", "workflows");
    let rendered = book.render("rye/core/create_directive", &variables, &Context::default()).unwrap();
    assert!(rendered.text().contains("`.ai/directives/workflows/deploy_app.md`"));
    assert!(rendered.notes().is_empty());
    let error = book.render("rye/core/create_directive", &Variables::new(), &Context::default()).unwrap_err();
    assert_eq!(error.diagnostic().message, "Missing required inputs: name, category");
    let declared = error.field("declared_inputs").unwrap();
    assert_eq!(declared[2]["default"], "");
    let report = book.check(&["rye/core/create_directive".to_owned()], |_| {}).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

/// The skeleton of a prompt: everything that no value wrote, with a mark where one did.
fn skeleton(rendered: &cuebook::Rendered) -> String {
    rendered
        .spans()
        .map(|span| match &span.origin {
            Origin::Value { shown, .. } if !shown.is_empty() => "\u{0}".to_owned(),
            _ => rendered.text()[span.range.clone()].to_owned(),
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_value_changes_a_prompt_beyond_its_own_span(
        hostile in "(x|</directive>|<directive name=\"y\">|\\{input:app\\}|\\{env:PATH\\}|```xml|```|<!-- rye:signed:|# T|\n|\\$\\{inputs\\.app\\}|\"|`|.){1,20}",
    ) {
        // White space around the whole body is dropped; the body of this directive begins and ends with text.
        let project = deploy();
        let book = project.book();
        let harmless = book.render("ops/deploy", &app("shop"), &Context::default()).unwrap();
        let rendered = book.render("ops/deploy", &app(&hostile), &Context::default()).unwrap();
        prop_assert_eq!(skeleton(&harmless), skeleton(&rendered));
        let expected = harmless.text().replace("Deploy shop with", &format!("Deploy {hostile} with"));
        prop_assert_eq!(rendered.text(), expected);
        prop_assert_eq!(rendered.messages().unwrap().len(), 1);
    }
}
