//! What a target cannot say is reported: each thing by itself, and any of them together.

use cuebook::Code;
use cuebook_lab::BookExt;
use cuebook_lab::convert::BuiltIn::{self, Directive, Prompty, Sections, Template};
use cuebook_lab::convert::{EntryKind, Target};
use proptest::prelude::*;

use crate::model::ALL;
use crate::support::Project;

/// Something that a notation has, where it is written, and what becomes of it.
#[derive(Debug, Clone, Copy, Default)]
struct Feature {
    /// Python, keys of front matter, or elements of metadata.
    head: &'static str,
    /// Entries of inputs: in VARIABLES, in front matter, or elements.
    inputs: &'static str,
    /// What stands behind the text.
    text: &'static str,
    /// The settings of the section.
    settings: &'static str,
    /// Elements of a directive beside its metadata.
    beside: &'static str,
    about: &'static str,
    /// A part of what is said about it.
    reported: &'static str,
    lacking: &'static [BuiltIn],
}

const F: Feature = Feature {
    head: "",
    inputs: "",
    text: "",
    settings: "",
    beside: "",
    about: "",
    reported: "",
    lacking: &[],
};
const REST_OF_TEMPLATE: &[BuiltIn] = &[Prompty, Sections, Directive];
const REST_OF_PROMPTY: &[BuiltIn] = &[Template, Sections, Directive];
const REST_OF_SECTIONS: &[BuiltIn] = &[Template, Prompty, Directive];
const REST_OF_DIRECTIVE: &[BuiltIn] = &[Template, Prompty, Sections];

fn features(from: BuiltIn) -> Vec<Feature> {
    match from {
        Template => vec![
            Feature {
                head: "def post_render(text, variables, context):\n    return text\n",
                about: "hooks",
                reported: "`post_render`",
                lacking: REST_OF_TEMPLATE,
                ..F
            },
            Feature {
                head: "PERMISSIONS = {\"read_file\": True}\n",
                about: "permissions",
                reported: "read_file",
                lacking: REST_OF_TEMPLATE,
                ..F
            },
            Feature {
                head: "LIMITS = {\"max_output_size\": 77777}\n",
                about: "limits",
                reported: "77777",
                lacking: REST_OF_TEMPLATE,
                ..F
            },
            Feature {
                head: "# why\n",
                about: "comments",
                reported: "prompt.py",
                lacking: REST_OF_TEMPLATE,
                ..F
            },
            Feature {
                inputs: "\"custom\": [{\"name\": \"mood\", \"type\": \"string\", \"default\": \"calm\"}],",
                about: "inputs",
                reported: "the custom variable `mood`",
                lacking: REST_OF_TEMPLATE,
                ..F
            },
            Feature {
                inputs: "\"optional\": [{\"name\": \"date\", \"source\": \"system\"}],",
                about: "inputs",
                reported: "sets `date`",
                lacking: REST_OF_TEMPLATE,
                ..F
            },
            Feature {
                text: "{# a note #}",
                about: "comments",
                reported: "comment in the template",
                lacking: &[Directive],
                ..F
            },
            Feature {
                text: " {{ flag }}.",
                inputs: "\"optional\": [{\"name\": \"flag\", \"type\": \"boolean\", \"default\": True}],",
                about: "text",
                reported: "value of `flag`",
                lacking: &[Directive],
                ..F
            },
            Feature {
                text: " {{ who }}",
                about: "text",
                reported: "whitespace of `who` at the end",
                lacking: &[Sections, Directive],
                ..F
            },
        ],
        Prompty => vec![
            Feature {
                head: "model: {id: gpt-4o, options: {temperature: 0.5}}\n",
                about: "model",
                reported: "model",
                lacking: &[Template, Directive],
                ..F
            },
            Feature {
                head: "tools:\n  - {name: find, kind: function, description: Finds}\n",
                about: "tools",
                reported: "`find`",
                lacking: &[Template, Directive],
                ..F
            },
            Feature {
                head: "tools:\n  - {name: web, kind: mcp, serverName: x}\n",
                about: "tools",
                reported: "`web`",
                lacking: REST_OF_PROMPTY,
                ..F
            },
            Feature {
                head: "outputs: {answer: {kind: string, required: true}}\n",
                about: "outputs",
                reported: "output",
                lacking: &[Template, Directive],
                ..F
            },
            Feature {
                head: "speciality: yes\n",
                about: "metadata",
                reported: "`speciality`",
                lacking: REST_OF_PROMPTY,
                ..F
            },
            Feature {
                head: "# why\n",
                about: "comments",
                reported: "front matter",
                lacking: REST_OF_PROMPTY,
                ..F
            },
            Feature {
                inputs: "  careful: {kind: string, strict: true}\n",
                about: "inputs",
                reported: "strict check of `careful`",
                lacking: REST_OF_PROMPTY,
                ..F
            },
            Feature {
                inputs: "  photo: {kind: image}\n",
                about: "inputs",
                reported: "`photo` has the kind",
                lacking: REST_OF_PROMPTY,
                ..F
            },
            Feature {
                inputs: "  size: {kind: string, enumValues: [s, m]}\n",
                about: "inputs",
                reported: "allowed values of `size`",
                lacking: &[Template, Directive],
                ..F
            },
            Feature {
                inputs: "  list: {kind: array, items: {kind: string}}\n",
                about: "inputs",
                reported: "inner structure of `list`",
                lacking: &[Template, Directive],
                ..F
            },
            Feature {
                text: "\n\nuser:\nHi.",
                about: "roles",
                reported: "2 messages",
                lacking: REST_OF_PROMPTY,
                ..F
            },
            Feature {
                text: " {{ odd }}.",
                inputs: "  odd: {kind: boolean, default: true}\n",
                about: "text",
                reported: "value of `odd`",
                lacking: &[Template, Sections, Directive],
                ..F
            },
        ],
        Sections => vec![
            Feature {
                settings: "summary: In short.\n",
                about: "sections",
                reported: "summary",
                lacking: REST_OF_SECTIONS,
                ..F
            },
            Feature {
                settings: "summary: In short.\nvisibility: summary\n",
                about: "sections",
                reported: "in full",
                lacking: REST_OF_SECTIONS,
                ..F
            },
            Feature {
                settings: "enabled: who == \"Ann\"\n",
                about: "sections",
                reported: "condition",
                lacking: REST_OF_SECTIONS,
                ..F
            },
            Feature {
                settings: "skills: [cooking]\n",
                about: "skills",
                reported: "`cooking`",
                lacking: REST_OF_SECTIONS,
                ..F
            },
            Feature {
                settings: "priority: 5\n",
                about: "sections",
                reported: "priorities",
                lacking: REST_OF_SECTIONS,
                ..F
            },
            Feature {
                settings: "tools: [{name: find, description: Finds}]\n",
                about: "tools",
                reported: "`find`",
                lacking: &[Template, Directive],
                ..F
            },
            Feature {
                head: "ns: team\n",
                about: "sections",
                reported: "`ns`",
                lacking: REST_OF_SECTIONS,
                ..F
            },
            Feature {
                head: "model: {id: gpt-4o}\n",
                about: "model",
                reported: "model",
                lacking: &[Template],
                ..F
            },
            Feature {
                head: "output: {answer: {kind: string, required: true}}\n",
                about: "outputs",
                reported: "output",
                lacking: &[Template, Directive],
                ..F
            },
            Feature {
                text: " $who",
                about: "text",
                reported: "whitespace of `who`",
                lacking: REST_OF_SECTIONS,
                ..F
            },
            Feature {
                text: "\n\n# Off\n```yaml section\nenabled: false\n```\nGone.",
                about: "sections",
                reported: "`off` is disabled",
                lacking: REST_OF_SECTIONS,
                ..F
            },
        ],
        Directive => vec![
            Feature {
                head: "<limits turns=\"5\"/>",
                about: "limits",
                reported: "limits of a thread",
                lacking: REST_OF_DIRECTIVE,
                ..F
            },
            Feature {
                head: "<permissions><execute><tool>x.*</tool></execute></permissions>",
                about: "permissions",
                reported: "permissions of a thread",
                lacking: REST_OF_DIRECTIVE,
                ..F
            },
            Feature {
                head: "<context><system>team/rules</system></context>",
                about: "context",
                reported: "knowledge",
                lacking: REST_OF_DIRECTIVE,
                ..F
            },
            Feature {
                head: "<model tier=\"fast\"/>",
                about: "model",
                reported: "`tier`",
                lacking: REST_OF_DIRECTIVE,
                ..F
            },
            Feature {
                head: "<!-- why -->",
                about: "comments",
                reported: "XML",
                lacking: REST_OF_DIRECTIVE,
                ..F
            },
            Feature {
                beside: "<process><execute item_type=\"tool\" item_id=\"x\"/></process>",
                about: "actions",
                reported: "<execute>",
                lacking: REST_OF_DIRECTIVE,
                ..F
            },
            Feature {
                beside: "<outputs><output name=\"url\"/></outputs>",
                about: "outputs",
                reported: "output",
                lacking: REST_OF_DIRECTIVE,
                ..F
            },
            Feature {
                text: " {env:CUEBOOK_NOWHERE:x}.",
                about: "text",
                reported: "`CUEBOOK_NOWHERE`",
                lacking: REST_OF_DIRECTIVE,
                ..F
            },
            Feature {
                text: " {input:who}",
                about: "text",
                reported: "whitespace of `who`",
                lacking: REST_OF_DIRECTIVE,
                ..F
            },
        ],
        BuiltIn::Dotprompt | BuiltIn::Skill => unreachable!("not in BuiltIn::ALL"),
    }
}

/// A prompt with some features, and nothing else that anybody lacks.
fn project(from: BuiltIn, features: &[Feature]) -> Project {
    let all = |part: fn(&Feature) -> &'static str| features.iter().map(part).collect::<String>();
    let (head, inputs, text) = (all(|it| it.head), all(|it| it.inputs), all(|it| it.text));
    let project = Project::new();
    let limits = "{\"limits\": {\"max_output_size\": 50000}}";
    project.write("user_data/shared/prompts/defaults.json", limits);
    match from {
        Template => {
            project.write("prompts/p/template.md", &format!("# Task\n\nGreet {{{{ who }}}} now.{text}\n"));
            let who = "\"required\": [{\"name\": \"who\", \"type\": \"string\"}]";
            project.write("prompts/p/prompt.py", &format!("VARIABLES = {{{inputs}{who}}}\n{head}"));
        }
        Prompty => {
            let inputs = format!("inputs:\n  who: {{kind: string, required: true}}\n{inputs}");
            let body = format!("system:\n# Task\n\nGreet {{{{ who }}}} now.{text}");
            project.write("prompts/p.prompty", &format!("---\n{head}{inputs}---\n{body}\n"));
        }
        Sections => {
            let settings = all(|it| it.settings);
            let front = format!("{head}inputs:\n  who: {{kind: string, required: true}}\n");
            let body = format!("# Task\n```yaml section\n{settings}```\nGreet $who now.{text}");
            project.write("prompts/p.sections.md", &format!("---\n{front}---\n{body}\n"));
        }
        Directive => {
            let beside = all(|it| it.beside);
            let xml = format!(
                "<directive name=\"p\" version=\"1.0.0\"><metadata><category></category>{head}</metadata><inputs><input name=\"who\" type=\"string\" required=\"true\"/>{inputs}</inputs>{beside}</directive>"
            );
            let body = format!("# Task\n\nGreet {{input:who}} now.{text}");
            project.write(".ai/directives/p.md", &format!("```xml\n{xml}\n```\n{body}\n"));
        }
        BuiltIn::Dotprompt | BuiltIn::Skill => unreachable!("not in BuiltIn::ALL"),
    }
    project
}

fn losses(from: BuiltIn, features: &[Feature], to: BuiltIn) -> Vec<(&'static str, String)> {
    let conversion = project(from, features).book().convert("p", &Target::new(to));
    let conversion =
        conversion.unwrap_or_else(|error| panic!("{from:?} to {to:?} with {features:?}: {error}"));
    // Whatever was reported, all the rest was compared, and is the same.
    assert!(
        conversion.compared > 0 && conversion.uncompared.is_none(),
        "{from:?} to {to:?} with {features:?}: {conversion:#?}"
    );
    let strict = conversion.strictly();
    let losses = conversion.report.losses().map(|entry| (entry.about, entry.finding.message.clone()));
    let losses: Vec<(&'static str, String)> = losses.collect();
    assert_eq!(strict.is_err(), !losses.is_empty());
    losses
}

#[test]
fn exactly_what_a_target_lacks_is_reported() {
    for from in ALL {
        for to in ALL.into_iter().filter(|to| *to != from) {
            assert_eq!(losses(from, &[], to), [], "{from:?} to {to:?}, which both can say");
            for feature in features(from) {
                let losses = losses(from, &[feature], to);
                let reported = |(about, message): &(&str, String)| {
                    *about == feature.about && message.contains(feature.reported)
                };
                let is_lacking = feature.lacking.contains(&to);
                assert_eq!(
                    losses.iter().any(reported),
                    is_lacking,
                    "{from:?} to {to:?}: {feature:?}\n{losses:#?}"
                );
                assert!(is_lacking || losses.is_empty(), "{from:?} to {to:?}: {feature:?}\n{losses:#?}");
            }
        }
    }
}

/// Tries every notation that a hint names, and returns how many there are.
fn named_ways_out_work(project: &Project, error: &cuebook::Error) -> usize {
    let hint = error.diagnostic().hint.clone().unwrap();
    let named = ALL.into_iter().filter(|to| hint.contains(&format!("--to {}", to.as_str())));
    let tried = named.map(|to| project.book().convert("p", &Target::new(to)));
    tried.map(|tried| assert!(tried.is_ok(), "{hint}: {tried:?}")).count()
}

#[test]
fn features_without_a_counterpart_are_refused_at_their_place() {
    for (text, line, what) in [
        (" {% if who %}x{% endif %}", 3, "a condition"),
        ("\n{% for x in who %}{{ x }}{% endfor %}", 4, "a loop"),
        ("\n\n{{ who | upper }}.", 5, "a filter"),
        (" {{ system.date }}.", 3, "a part of a value"),
    ] {
        let project = project(Template, &[Feature { text, ..F }]);
        let error = project.book().convert("p", &Target::new(Directive)).unwrap_err();
        assert_eq!(error.code(), Code::CannotConvert, "{error}");
        let found = error.diagnostic();
        assert!(found.message.contains(what), "{}", found.message);
        assert_eq!(found.place.as_ref().unwrap().line(), line);
        assert_eq!(named_ways_out_work(&project, &error), 2);
        // Others have Jinja2, and say the same.
        for to in [Prompty, Sections] {
            let conversion = project.book().convert("p", &Target::new(to)).unwrap();
            let lost = conversion.report.losses().filter(|entry| entry.fate == EntryKind::Lost).count();
            assert_eq!(lost, 0, "{to:?}: {:#?}", conversion.report);
            assert!(conversion.compared > 0 || to == Sections, "{:#?}", conversion.report);
        }
    }
}

#[test]
fn a_directive_that_shows_another_item_is_refused_where_it_does() {
    let project = Project::new();
    let fence = |name: &str| {
        format!("```xml\n<directive name=\"{name}\"><metadata><category/></metadata></directive>\n```\n")
    };
    project.write(".ai/directives/tone.md", &format!("{}Be kind.\n", fence("tone")));
    project.write(".ai/directives/p.md", &format!("{}Hello.\n{{include:directive:tone}}\n", fence("p")));
    for to in [Template, Prompty, Sections] {
        let error = project.book().convert("p", &Target::new(to)).unwrap_err();
        assert_eq!(error.code(), Code::CannotConvert, "{error}");
        assert_eq!(error.diagnostic().place.as_ref().unwrap().line(), 5);
        assert!(error.diagnostic().message.contains("include"), "{error}");
        assert_eq!(named_ways_out_work(&project, &error), 0);
    }
}

#[test]
fn mustache_goes_where_mustache_is_and_is_jinja_elsewhere() {
    let project = Project::new();
    let front = "template: {format: {kind: mustache}}\ninputs: {who: {kind: string, required: true}}\n";
    project.write(
        "prompts/p.prompty",
        &format!("---\n{front}---\n# Task\n\nHi {{{{#who}}}}{{{{who}}}}{{{{/who}}}}.\n"),
    );
    let sections = project.book().convert("p", &Target::new(Sections)).unwrap();
    assert!(sections.report.is_lossless(), "{:#?}", sections.report);
    assert!(sections.files[0].text.contains("engine: mustache"), "{}", sections.files[0].text);
    // Back it goes with its escapes, and a line that only looks like a role begins no message.
    let back = Project::new();
    let text =
        "---\nengine: mustache\ninputs: {who: {kind: string, required: true}}\n---\n# Task\n\nHi {{who}}.\n";
    back.write("prompts/p.sections.md", text);
    let prompty = back.book().convert("p", &Target::new(Prompty)).unwrap();
    assert!(prompty.report.is_lossless() && prompty.compared == 4, "{:#?}", prompty.report);
    assert!(prompty.files[0].text.contains("kind: mustache"), "{}", prompty.files[0].text);
    back.write("prompts/p.sections.md", &text.replace("Hi", "user:\nHi"));
    let prompty = back.book().convert("p", &Target::new(Prompty)).unwrap();
    assert!(prompty.files[0].text.contains("{{ \"u\" }}ser:"), "{}", prompty.files[0].text);
    assert!(prompty.report.losses().any(|entry| entry.finding.message.contains("HTML")));
    let template = project.book().convert("p", &Target::new(Template)).unwrap();
    assert!(template.files[0].text.contains("Hi {% if who %}{{ who }}{% endif %}."), "{template:#?}");
    let error = project.book().convert("p", &Target::new(Directive)).unwrap_err();
    assert_eq!(error.code(), Code::CannotConvert);
    assert_eq!(error.diagnostic().place.as_ref().unwrap().line(), 7);
    assert_eq!(named_ways_out_work(&project, &error), 2);
}

#[test]
fn a_key_in_a_file_is_neither_copied_nor_shown() {
    let project = Project::new();
    let model = "model: {id: m, connection: {kind: key, apiKey: sk-very-secret-0123456789, endpoint: \"${env:NOWHERE}\"}}\n";
    project.write("prompts/p.prompty", &format!("---\n{model}---\n# Task\n\nHi.\n"));
    for to in [Template, Sections, Directive] {
        let conversion = project.book().convert("p", &Target::new(to)).unwrap();
        let all = format!("{} {:?}", conversion.to_json(), conversion);
        assert!(!conversion.to_json().to_string().contains("sk-very-secret"), "{all}");
        assert!(!conversion.report.is_lossless());
    }
}

#[test]
fn a_directive_changed_after_signing_is_refused() {
    use cuebook::Book;
    use cuebook::items::{SpaceKind, Spaces};
    use cuebook::trust::{Purpose, SigningKey, Trust, sign_for};
    let (project, user) = (Project::new(), Project::new());
    let spaces = || Spaces::new(&project.path(""), Some(&user.path("")));
    let key = SigningKey::from_seed(&[7; 32]).unwrap();
    let now = || "2026-02-26T00:00:00Z".parse().unwrap();
    Trust::new(&spaces()).add(SpaceKind::User, key.public(), "ann", Some(&key), now()).unwrap();
    let draft = "```xml\n<directive name=\"p\" version=\"1.0.0\"><metadata><description>It</description><category></category></metadata></directive>\n```\nStay calm.\n";
    let purpose = Purpose::at("directives/p.md").unwrap();
    let signed = sign_for(&purpose, "md", draft.as_bytes(), &key, now()).unwrap();
    let signed = String::from_utf8(signed).unwrap();
    let convert = |text: &str| {
        project.write(".ai/directives/p.md", text);
        let book = Book::open(project.path("")).with_spaces(spaces()).with_paths(true);
        book.convert("p", &Target::new(Template)).map(|conversion| conversion.files[0].text.clone())
    };
    assert_eq!(convert(draft).unwrap(), "Stay calm.\n");
    assert_eq!(convert(&signed).unwrap(), "Stay calm.\n");
    let error = convert(&signed.replace("calm", "angry")).unwrap_err();
    assert_eq!(error.code(), Code::ContentChanged);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::property::cases() * 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_that_a_target_lacks_is_reported(
        from in proptest::sample::select(&ALL[..]),
        to in proptest::sample::select(&ALL[..]),
        wanted in prop::collection::vec(any::<bool>(), 12),
    ) {
        prop_assume!(from != to);
        let mut chosen: Vec<Feature> = Vec::new();
        for (feature, _) in features(from).into_iter().zip(wanted).filter(|(_, wanted)| *wanted) {
            // A key, a group or an end of the text can be there once.
            let keys = |it: &Feature| {
                let words = [it.head, it.inputs, it.settings, it.beside].map(|part| part.split([':', ' ']).next().unwrap_or_default().trim().to_owned());
                words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>()
            };
            let clashes = chosen.iter().any(|other| {
                keys(other).iter().any(|key| keys(&feature).contains(key)) || !other.text.is_empty() && !feature.text.is_empty()
            });
            if !clashes {
                chosen.push(feature);
            }
        }
        let losses = losses(from, &chosen, to);
        for feature in chosen.iter().filter(|feature| feature.lacking.contains(&to)) {
            let reported = |(about, message): &(&str, String)| *about == feature.about && message.contains(feature.reported);
            prop_assert!(losses.iter().any(reported), "{from:?} to {to:?}: {feature:?} of {chosen:?}\n{losses:#?}");
        }
    }
}
