//! A warm book notices every change of what a prompt was made from, before the next render.
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cuebook::{Book, Code, Context, Variables};

/// A project with a book that has rendered `p` once and therefore keeps it.
struct Warm {
    folder: tempfile::TempDir,
    book: Book,
    context: Context,
}

impl Warm {
    /// Writes the files, lets their times settle, and renders.
    fn new(files: &[(&str, &str)]) -> Warm {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            put(folder.path(), path, text);
        }
        // Times that are old enough to be trusted: the way that can miss a change is the one to test.
        std::thread::sleep(Duration::from_millis(50));
        let warm =
            Warm { book: Book::open(folder.path()).with_paths(true), folder, context: Context::default() };
        warm.render();
        warm.render();
        warm
    }

    fn put(&self, path: &str, text: &str) {
        put(self.folder.path(), path, text);
    }

    fn render(&self) -> String {
        self.try_render().unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_render(&self) -> cuebook::Result<String> {
        let rendered = self.book.render("p", &Variables::new(), &self.context)?;
        Ok(rendered.text().to_owned())
    }

    fn fails_with(&self, code: Code) {
        match self.try_render() {
            Ok(text) => panic!("rendered {text:?} and did not notice"),
            Err(error) => assert_eq!(error.code(), code, "{error}"),
        }
    }
}

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

const SHARED: &str = "user_data/shared/prompts";

#[test]
fn an_edited_template_is_seen() {
    let warm = Warm::new(&[("prompts/p/template.md", "one")]);
    assert_eq!(warm.render(), "one");
    warm.put("prompts/p/template.md", "two");
    assert_eq!(warm.render(), "two");
}

#[test]
fn same_length_edits_within_one_clock_tick_are_seen() {
    let warm = Warm::new(&[("prompts/p/template.md", "0000")]);
    for turn in 1..200 {
        let text = format!("{turn:04}");
        warm.put("prompts/p/template.md", &text);
        assert_eq!(warm.render(), text);
    }
}

#[test]
fn edits_that_set_the_old_time_again_are_all_seen() {
    let warm = Warm::new(&[("prompts/p/template.md", "0000")]);
    let path = warm.folder.path().join("prompts/p/template.md");
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for turn in 1..200 {
        let text = format!("{turn:04}");
        fs::write(&path, &text).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(warm.render(), text);
    }
}

#[test]
fn a_file_that_is_exchanged_for_another_is_seen() {
    let warm = Warm::new(&[("prompts/p/template.md", "one"), ("new", "two")]);
    fs::rename(warm.folder.path().join("new"), warm.folder.path().join("prompts/p/template.md")).unwrap();
    assert_eq!(warm.render(), "two");
}

#[test]
fn an_edited_partial_is_seen() {
    let warm = Warm::new(&[
        ("prompts/p/template.md", "[{% include 'partials/a.md' %}]"),
        ("prompts/partials/a.md", "one"),
    ]);
    warm.put("prompts/partials/a.md", "two");
    assert_eq!(warm.render(), "[two]");
}

#[test]
fn an_edited_partial_whose_name_is_computed_is_seen() {
    let warm = Warm::new(&[
        ("prompts/p/template.md", "{% set n = 'a' %}[{% include 'partials/' ~ n ~ '.md' %}]"),
        ("prompts/partials/a.md", "one"),
    ]);
    warm.put("prompts/partials/a.md", "two");
    assert_eq!(warm.render(), "[two]");
}

#[test]
fn an_edited_parent_is_seen() {
    let warm = Warm::new(&[
        ("prompts/p/template.md", "{% extends 'base/template.md' %}{% block b %}child{% endblock %}"),
        ("prompts/base/template.md", "one {% block b %}{% endblock %}"),
    ]);
    assert_eq!(warm.render(), "one child");
    warm.put("prompts/base/template.md", "two {% block b %}{% endblock %}");
    assert_eq!(warm.render(), "two child");
}

#[test]
fn an_edited_prompt_py_is_seen() {
    let definition = |default: &str| {
        format!(
            "VARIABLES = {{\"optional\": [{{\"name\": \"x\", \"type\": \"string\", \"default\": \"{default}\"}}]}}\n"
        )
    };
    let warm =
        Warm::new(&[("prompts/p/template.md", "{{ x }}"), ("prompts/p/prompt.py", &definition("one"))]);
    assert_eq!(warm.render(), "one");
    warm.put("prompts/p/prompt.py", &definition("two"));
    assert_eq!(warm.render(), "two");
}

#[test]
fn an_edited_prompt_py_of_a_parent_by_metadata_is_seen() {
    let definition = |default: &str| {
        format!(
            "VARIABLES = {{\"optional\": [{{\"name\": \"x\", \"type\": \"string\", \"default\": \"{default}\"}}]}}\n"
        )
    };
    let warm = Warm::new(&[
        ("prompts/p/template.md", "{{ x }}"),
        ("prompts/p/prompt.py", "METADATA = {\"extends\": \"base\"}\n"),
        ("prompts/base/template.md", ""),
        ("prompts/base/prompt.py", &definition("one")),
    ]);
    assert_eq!(warm.render(), "one");
    warm.put("prompts/base/prompt.py", &definition("two"));
    assert_eq!(warm.render(), "two");
}

#[test]
fn a_new_prompt_py_is_seen() {
    let warm = Warm::new(&[("prompts/p/template.md", "[{{ x }}]")]);
    assert_eq!(warm.render(), "[]");
    warm.put(
        "prompts/p/prompt.py",
        "VARIABLES = {\"optional\": [{\"name\": \"x\", \"type\": \"string\", \"default\": \"y\"}]}\n",
    );
    assert_eq!(warm.render(), "[y]");
}

#[test]
fn deleted_files_are_missed() {
    let warm = Warm::new(&[
        ("prompts/p/template.md", "{% include 'partials/a.md' %}"),
        ("prompts/partials/a.md", "one"),
    ]);
    fs::remove_file(warm.folder.path().join("prompts/partials/a.md")).unwrap();
    warm.fails_with(Code::MissingInclude);
    fs::remove_file(warm.folder.path().join("prompts/p/template.md")).unwrap();
    warm.fails_with(Code::NoTemplate);
    fs::remove_dir(warm.folder.path().join("prompts/p")).unwrap();
    warm.fails_with(Code::PromptNotFound);
}

#[test]
fn a_partial_of_the_user_replaces_a_built_in_one() {
    let warm = Warm::new(&[("prompts/p/template.md", "{% include 'partials/safety_rules.md' %}")]);
    warm.put(&format!("{SHARED}/partials/safety_rules.md"), "mine");
    assert_eq!(warm.render(), "mine");
    fs::remove_file(warm.folder.path().join(SHARED).join("partials/safety_rules.md")).unwrap();
    assert_ne!(warm.render(), "mine");
}

#[test]
fn a_new_partial_nearer_than_the_one_in_use_is_taken() {
    let warm = Warm::new(&[
        ("prompts/p/template.md", "{% include 'partials/a.md' %}"),
        ("prompts/partials/a.md", "plain"),
    ]);
    warm.put(&format!("{SHARED}/partials/a.md"), "shared");
    assert_eq!(warm.render(), "shared");
}

#[test]
fn a_partial_that_was_optional_and_absent_is_seen_when_it_comes() {
    let warm = Warm::new(&[("prompts/p/template.md", "[{% include 'partials/a.md' ignore missing %}]")]);
    assert_eq!(warm.render(), "[]");
    warm.put("prompts/partials/a.md", "here");
    assert_eq!(warm.render(), "[here]");
}

#[test]
fn a_second_pack_with_the_partial_in_use_makes_a_conflict() {
    let warm = Warm::new(&[
        ("prompts/p/template.md", "{% include 'partials/a.md' %}"),
        ("user_data/packs/first/prompts/partials/a.md", "first"),
    ]);
    assert_eq!(warm.render(), "first");
    warm.put("user_data/packs/second/prompts/partials/a.md", "second");
    warm.fails_with(Code::PromptConflict);
    // A choice between the two ends it, and another choice is seen as well.
    for pack in ["second", "first"] {
        let source = format!("user_data/packs/{pack}/prompts/partials/a.md");
        let choice = format!(r#"{{"partials/a.md": {{"source": "{source}"}}}}"#);
        warm.put(&format!("{SHARED}/resolution.json"), &choice);
        assert_eq!(warm.render(), pack);
    }
}

#[test]
fn a_second_candidate_of_a_parent_is_a_conflict() {
    let warm = Warm::new(&[
        ("prompts/p/template.md", "{% extends 'base/template.md' %}"),
        ("prompts/base/template.md", "one"),
    ]);
    assert_eq!(warm.render(), "one");
    warm.put("user_data/packs/other/prompts/base/template.md", "two");
    warm.fails_with(Code::PromptConflict);
}

#[test]
fn a_new_candidate_in_a_pack_makes_a_conflict() {
    let warm = Warm::new(&[("prompts/p/template.md", "one")]);
    warm.put("user_data/packs/other/prompts/p/template.md", "two");
    warm.fails_with(Code::PromptConflict);
}

#[test]
fn a_choice_that_another_process_records_is_seen() {
    let warm = Warm::new(&[
        ("prompts/p/template.md", "plain"),
        (&format!("{SHARED}/p/template.md"), "shared"),
        (&format!("{SHARED}/resolution.json"), r#"{"p": {"source": "prompts/p"}}"#),
    ]);
    assert_eq!(warm.render(), "plain");
    // Another book is as good as another process: the two share nothing but the files.
    let other = Book::open(warm.folder.path());
    for (source, text) in [("user_data/shared/prompts/p", "shared"), ("prompts/p", "plain")].repeat(20) {
        other.set_resolution("p", source).unwrap();
        assert_eq!(warm.render(), text);
    }
}

#[test]
fn a_new_pack_whose_provider_fills_a_name_in_use_is_seen() {
    let warm = Warm::new(&[("prompts/p/template.md", "[{{ metrics }}]")]);
    assert_eq!(warm.render(), "[]");
    let manifest = r#"{"pack_id": "m", "version": "1.0.0", "type": "prompt_pack", "prompts": [],
        "variable_providers": [{"file": "variables/m.py", "namespace": "metrics"}]}"#;
    warm.put("user_data/packs/m/variables/m.py", "");
    warm.put("user_data/packs/m/pack.json", manifest);
    warm.fails_with(Code::ProviderUnavailable);
}

#[test]
fn changed_defaults_are_seen() {
    let defaults = |value: &str| format!(r#"{{"variables": {{"x": "{value}"}}}}"#);
    let path = format!("{SHARED}/defaults.json");
    let warm = Warm::new(&[("prompts/p/template.md", "{{ x }}"), (&path, &defaults("one"))]);
    assert_eq!(warm.render(), "one");
    for value in ["two", "six", "ten"] {
        warm.put(&path, &defaults(value));
        assert_eq!(warm.render(), value);
    }
    fs::remove_file(warm.folder.path().join(&path)).unwrap();
    assert_eq!(warm.render(), "");
}

#[test]
fn changed_settings_are_seen() {
    let warm = Warm::new(&[
        ("cuebook.toml", ""),
        ("prompts/p/template.md", "{% for i in range(100) %}.{% endfor %}"),
        ("team/partials/a.md", ""),
    ]);
    assert_eq!(warm.render().len(), 100);
    warm.put("cuebook.toml", "[limits]\nfuel = 20\n");
    warm.fails_with(Code::OutOfFuel);
    warm.put("cuebook.toml", "[limits]\nfuel = \n");
    warm.fails_with(Code::BadConfig);
    fs::remove_file(warm.folder.path().join("cuebook.toml")).unwrap();
    assert_eq!(warm.render().len(), 100);
}

#[test]
fn a_new_folder_in_the_settings_brings_its_prompts() {
    let warm = Warm::new(&[("prompts/p/template.md", "one"), ("team/p/template.md", "two")]);
    warm.put("cuebook.toml", "[library]\npaths = [\"team\"]\n");
    warm.fails_with(Code::PromptConflict);
}

#[test]
fn a_new_variant_for_the_language_is_taken() {
    let mut warm = Warm::new(&[
        ("prompts/p/template.md", "hello {% include 'partials/a.md' %}"),
        ("prompts/partials/a.md", "world"),
    ]);
    warm.context.language = Some("de-AT".into());
    assert_eq!(warm.render(), "hello world");
    warm.put("prompts/partials/a.de.md", "Welt");
    assert_eq!(warm.render(), "hello Welt");
    warm.put("prompts/p/template.de-at.md", "servus {% include 'partials/a.md' %}");
    assert_eq!(warm.render(), "servus Welt");
}

#[test]
fn a_changed_alias_of_a_parent_is_seen() {
    let vocab = "user_data/shared/vocab.json";
    let warm = Warm::new(&[
        ("prompts/p/template.md", "{{ x }}"),
        ("prompts/p/prompt.py", "METADATA = {\"extends\": \"base\"}\n"),
        ("prompts/p1/template.md", ""),
        ("prompts/p1/prompt.py", "VARIABLES = {\"optional\": [{\"name\": \"x\", \"default\": \"one\"}]}\n"),
        ("prompts/p2/template.md", ""),
        ("prompts/p2/prompt.py", "VARIABLES = {\"optional\": [{\"name\": \"x\", \"default\": \"two\"}]}\n"),
        (vocab, r#"{"prompt.p1": ["prompt.base"]}"#),
    ]);
    assert_eq!(warm.render(), "one");
    warm.put(vocab, r#"{"prompt.p2": ["prompt.base"]}"#);
    assert_eq!(warm.render(), "two");
}
