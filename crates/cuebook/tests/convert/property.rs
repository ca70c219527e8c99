//! There and back, with hostile words and hostile values.

use cuebook::chat::Role;
use cuebook_lab::convert::BuiltIn;
use cuebook_lab::convert::EntryKind;
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

use crate::model::{ALL, Model, NAMES, Part, Section, convert, said};

/// Words with a meaning in some notation.
const HOSTILE: [&str; 45] = [
    "{{ who }}",
    "{% if who %}",
    "{# who #}",
    "{% raw %}",
    "{% endraw %}",
    "{{",
    "}}",
    "{",
    "}",
    "{%",
    "#}",
    "$who",
    "${who}",
    "$",
    "$$",
    "{input:who}",
    "{input:who:x}",
    "{input:who?}",
    "{include:a/b}",
    "{env:PATH}",
    "${inputs.who}",
    "{input:_:{}",
    "user:",
    "system:",
    "# user:",
    "assistant[a=\"b\"]:",
    "# Heading",
    "## Two",
    "#",
    "#tag",
    "```",
    "~~~~",
    "```yaml section",
    "```xml",
    "<!--",
    "-->",
    "<b>&amp;</b>",
    "]]>",
    "---",
    "+++",
    "\\n\\",
    "\"'",
    "{{{x}}}",
    "{{! x }}",
    "é\u{2028}\u{a0}x",
];

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        3 => "[a-z ,.]{1,8}".prop_map(Part::Text),
        4 => proptest::sample::select(&HOSTILE[..]).prop_map(|text| Part::Text(text.to_owned())),
        2 => (0..NAMES.len()).prop_map(Part::Name),
    ]
}

fn section(level: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Section> {
    let line = prop::collection::vec(part(), 0..4);
    (level, "[A-Z][a-z]{1,5}( [a-z$]{1,4})?", prop::collection::vec(line, 0..5)).prop_map(
        |(level, title, mut lines)| {
            // What a section says begins and ends with an author's word; between them stands anything.
            lines.insert(0, vec![Part::Text("First".into())]);
            lines.push(vec![Part::Text("Last.".into())]);
            Section { level, title, lines }
        },
    )
}

/// A tree: the first heading is of the first level, and none skips one.
fn tree() -> impl Strategy<Value = Model> {
    (prop::collection::vec(section(1..=3), 1..4), "[a-z <>&\"{}$#:]{0,12}").prop_map(
        |(mut sections, description)| {
            let mut level = 0;
            for (index, section) in sections.iter_mut().enumerate() {
                section.level = section.level.min(level + 1);
                level = section.level;
                section.title = format!("{} {index}", section.title);
            }
            Model { sections, description: format!("About {description}x") }
        },
    )
}

/// A text without headings.
fn flat() -> impl Strategy<Value = Model> {
    section(0..=0).prop_map(|section| Model { sections: vec![section], description: "About it".into() })
}

fn values() -> impl Strategy<Value = Map<String, Json>> {
    let value = prop_oneof![
        "[a-z ]{0,6}",
        prop::collection::vec(proptest::sample::select(&HOSTILE[..]), 0..4)
            .prop_map(|words| words.join("\n")),
        Just(" \n spaced \n".to_owned()),
    ];
    (value.clone(), value.clone(), prop::option::of(value), any::<i32>()).prop_map(
        |(who, what, tone, count)| {
            let mut values = Map::new();
            values.insert("who".into(), json!(who));
            values.insert("_what_2".into(), json!(what));
            values.insert("count".into(), json!(count));
            if let Some(tone) = tone {
                values.insert("tone".into(), json!(tone));
            }
            values
        },
    )
}

fn role(dialect: BuiltIn) -> Role {
    if dialect == BuiltIn::Directive { Role::User } else { Role::System }
}

/// Converts there and back, and compares at each step.
fn there_and_back(
    model: &Model,
    from: BuiltIn,
    to: BuiltIn,
    values: &Map<String, Json>,
) -> Result<(), TestCaseError> {
    let expected = model.expected(values);
    let source = model.project(from);
    prop_assert_eq!(said(&source, from, values), (role(from), expected.clone()), "as it was written");
    let fail = |error: cuebook::Error| TestCaseError::fail(format!("{from:?} to {to:?}: {error}"));
    let (there, result) = convert(&source, to).map_err(fail)?;
    let files = || there.files.iter().map(|file| file.text.clone()).collect::<Vec<_>>().join("\n====\n");
    let losses: Vec<&str> = there.report.losses().map(|entry| entry.finding.message.as_str()).collect();
    prop_assert!(losses.is_empty(), "{from:?} to {to:?}: {losses:?}\n{}", files());
    prop_assert_eq!(there.compared, 4, "the result is compared before it is given out");
    // Only a .prompty file can keep that the user says what a directive says.
    let who = if to == BuiltIn::Prompty { role(from) } else { role(to) };
    prop_assert_eq!(
        said(&result, to, values),
        (who, expected.clone()),
        "{:?} to {:?}:\n{}",
        from,
        to,
        files()
    );
    let (back, again) = convert(&result, from).map_err(fail)?;
    let losses: Vec<&str> = back.report.losses().map(|entry| entry.finding.message.as_str()).collect();
    prop_assert!(losses.is_empty(), "{to:?} back to {from:?}: {losses:?}\n{}", files());
    let (_, text) = said(&again, from, values);
    prop_assert_eq!(text, expected, "{:?} to {:?} and back", from, to);
    // What surrounds the text is carried over as well.
    for project in [&result, &again] {
        let definition = project.book().get_definition("p").unwrap();
        prop_assert_eq!(&definition["version"], "2.1.0");
        prop_assert_eq!(&definition["description"], &json!(model.description));
        prop_assert_eq!(&definition["metadata"]["author"], "ann");
        let required = definition["variables"]["required"].as_array().unwrap();
        let names: Vec<&str> = required.iter().filter_map(|it| it["name"].as_str()).collect();
        prop_assert_eq!(names, ["who", "_what_2", "count"]);
        prop_assert_eq!(&required[0]["description"], "Whom");
        prop_assert_eq!(&required[2]["type"], "integer");
        prop_assert_eq!(&definition["variables"]["optional"][0]["default"], "kind");
    }
    Ok(())
}

/// Each case is dozens of conversions; `PROPTEST_CASES` asks for more of them.
pub fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_says_the_same_in_every_notation_and_back_again(model in tree(), values in values()) {
        for from in ALL {
            for to in ALL.into_iter().filter(|to| *to != from) {
                there_and_back(&model, from, to, &values)?;
            }
        }
    }

    #[test]
    fn a_text_without_headings_renders_the_same(model in flat(), values in values()) {
        let others = [BuiltIn::Template, BuiltIn::Prompty, BuiltIn::Directive];
        for from in others {
            for to in others.into_iter().filter(|to| *to != from) {
                there_and_back(&model, from, to, &values)?;
            }
            let source = model.project(from);
            let (there, result) = convert(&source, BuiltIn::Sections).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let losses: Vec<(EntryKind, &str)> =
                there.report.losses().map(|entry| (entry.fate, entry.finding.message.as_str())).collect();
            // The one thing that sections cannot do is to say nothing before the text, and that is reported.
            let title = match from { BuiltIn::Directive => "p", _ => "Probe" };
            let reported = format!("the heading `# {title}` is added: every section needs one");
            prop_assert_eq!(losses, [(EntryKind::Changed, reported.as_str())]);
            let expected = format!("# {title}\n\n{}", model.expected(&values));
            prop_assert_eq!(said(&result, BuiltIn::Sections, &values).1, expected);
        }
    }
}
