//! Mustache sections as Jinja2, where inputs say what they are.

use cuebook::{Code, Error};
use cuebook_lab::BookExt;
use cuebook_lab::convert::BuiltIn::{Directive, Sections, Template};
use cuebook_lab::convert::{Conversion, Target};
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

use crate::support::Project;

const INPUTS: &str = "inputs:
  flag: {kind: boolean}
  name: {kind: string, required: true}
  tags: {kind: array, items: {kind: string}}
  users:
    kind: array
    required: true
    items:
      kind: object
      properties:
        first: {kind: string, required: true}
        admin: {kind: boolean, required: true}
        items: {kind: array, items: {kind: integer}}
  owner: {kind: object, properties: {mail: {kind: string}}}
  other: {kind: any}
";

fn project(body: &str) -> Project {
    let front = format!("template: {{format: {{kind: mustache, options: {{escape: false}}}}}}\n{INPUTS}");
    Project::new().file("prompts/p.prompty", &format!("---\n{front}---\n{body}"))
}

fn converted(body: &str) -> Result<Conversion, Error> {
    project(body).book().convert("p", &Target::new(Template))
}

#[track_caller]
fn becomes(body: &str, template: &str) {
    let conversion = converted(body).unwrap_or_else(|error| panic!("{body}: {error}"));
    assert_eq!(conversion.files[0].text, format!("{template}\n"));
    assert!(conversion.compared > 0, "{conversion:#?}");
}

#[test]
fn lists_become_loops_and_the_rest_conditions() {
    becomes(
        "A{{#flag}} yes{{/flag}}{{^flag}} no{{/flag}}.",
        "A{% if flag %} yes{% endif %}{% if not flag %} no{% endif %}.",
    );
    becomes("{{#name}}Hi {{.}}{{/name}}!", "{% if name %}Hi {{ name }}{% endif %}!");
    becomes(
        "Tags:\n{{#tags}}\n- {{.}} of {{name}}\n{{/tags}}\nEnd.",
        "Tags:\n{% for item in tags or [] %}- {{ item }} of {{ name }}\n{% endfor %}End.",
    );
    becomes("{{^tags}}None.{{/tags}} x", "{% if not tags %}None.{% endif %} x");
    becomes(
        "{{#users}}{{first}}{{#admin}} (admin of {{name}}){{/admin}}{{#items}} {{.}}{{/items}};{{/users}} x",
        "{% for item in users %}{{ item.first }}{% if item.admin %} (admin of {{ name }}){% endif %}{% for item_2 in item.get(\"items\") or [] %} {{ item_2 }}{% endfor %};{% endfor %} x",
    );
    becomes(
        "Ask {{#owner}}{{mail}}{{/owner}}, {{owner.mail}}.",
        "Ask {% if owner is mapping %}{{ owner.mail }}{% endif %}, {{ owner.mail if owner is mapping }}.",
    );
}

#[test]
fn a_role_line_and_braces_are_no_text_of_the_template() {
    becomes(
        "system:\n{{#flag}}Use {% raw %} and {x}{{/flag}} y",
        "{% if flag %}Use {% raw %}{% raw %}{% endraw %} and {x}{% endif %} y",
    );
}

#[test]
fn undeclared_values_are_refused_at_their_place() {
    for (body, what) in [
        ("{{#other}}x{{/other}}", "a Mustache section `other` without a declared type"),
        ("{{#nobody}}x{{/nobody}}", "a Mustache section `nobody`"),
        ("{{#flag}}{{$block}}x{{/block}}{{/flag}}", "a block"),
    ] {
        let error = converted(&format!("A\n{body}\n")).unwrap_err();
        assert_eq!(error.code(), Code::CannotConvert, "{error}");
        assert!(error.diagnostic().message.contains(what), "{error}");
    }
    // Others have Mustache, and a directive has neither.
    let project = project("# A\n\n{{#other}}x{{/other}} y\n");
    assert!(project.book().convert("p", &Target::new(Sections)).is_ok());
    assert!(project.book().convert("p", &Target::new(Directive)).is_err());
}

#[test]
fn escapes_are_reported_and_the_rest_is_compared() {
    let text = format!(
        "---\ntemplate: {{format: {{kind: mustache}}}}\n{INPUTS}---\n{{{{#tags}}}}{{{{.}}}}, {{{{/tags}}}}{{{{#flag}}}}{{{{{{name}}}}}}{{{{/flag}}}}."
    );
    let project = Project::new().file("prompts/p.prompty", &text);
    let conversion = project.book().convert("p", &Target::new(Template)).unwrap();
    let reported = |part: &str| conversion.report.losses().any(|entry| entry.finding.message.contains(part));
    assert!(
        reported("the value of `.` is no longer escaped") && !reported("the value of `name` is"),
        "{:#?}",
        conversion.report
    );
    assert!(conversion.compared > 0, "{conversion:#?}");
}

fn body() -> impl Strategy<Value = String> {
    let leaf = proptest::sample::select(
        &["a ", "\n", "{ ", "{{name}}", " {{flag}} x", "{{owner.mail}}", "{{! note }}", "- ", "# b\n"][..],
    );
    let leaf = leaf.prop_map(str::to_owned);
    leaf.prop_recursive(3, 24, 4, |inner| {
        let name = proptest::sample::select(&["#flag", "^flag", "#name", "^name", "#tags", "^tags", "#users", "^users", "#owner", "^owner"][..]);
        let many = prop::collection::vec(inner, 1..4);
        (name, many, any::<bool>()).prop_map(|(name, inner, own_line)| {
            let line = if own_line { "\n" } else { "" };
            let close = &name[1..];
            let item = match name {
                "#tags" => "{{.}}",
                "#users" => "{{first}}{{#admin}}!{{/admin}}",
                _ => "",
            };
            format!("{line}{{{{{name}}}}}{line}{}{item}{line}{{{{/{close}}}}}{line}", inner.concat())
        })
    })
}

fn values() -> impl Strategy<Value = Map<String, Json>> {
    let text = proptest::sample::select(&["", "x", "{{ y }}", "a\nb"][..]).prop_map(|text| json!(text));
    let user =
        (text.clone(), any::<bool>()).prop_map(|(first, admin)| json!({"first": first, "admin": admin}));
    let tags = prop::collection::vec(text.clone(), 0..3);
    (
        text.clone(),
        any::<bool>(),
        prop::option::of(tags),
        prop::collection::vec(user, 0..3),
        prop::option::of(text),
    )
        .prop_map(|(name, flag, tags, users, mail)| {
            let mut values = Map::new();
            values.insert("name".into(), name);
            values.insert("flag".into(), json!(flag));
            values.insert("users".into(), json!(users));
            if let Some(tags) = tags {
                values.insert("tags".into(), json!(tags));
            }
            if let Some(mail) = mail {
                values.insert("owner".into(), json!({"mail": mail}));
            }
            values
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::property::cases() * 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_template_with_sections_renders_the_same_text(parts in prop::collection::vec(body(), 1..4), values in values()) {
        let text = format!("Begin {}end.", parts.concat());
        let source = project(&text);
        let conversion = source.book().convert("p", &Target::new(Template)).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let result = Project::new();
        for file in &conversion.files {
            result.write(&format!("prompts/p/{}", file.path), &file.text);
        }
        // Yes and no are written otherwise, and that is reported.
        let alike = |text: String| text.replace(" True x", " true x").replace(" False x", " false x");
        let values = Json::Object(values);
        prop_assert_eq!(alike(result.text("p", values.clone())), source.text("p", values), "{}", conversion.files[0].text);
        prop_assert_eq!(conversion.uncompared, None);
    }
}
