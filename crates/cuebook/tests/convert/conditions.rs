//! Conditions of sections, where they can be written around them.

use cuebook_lab::BookExt;
use cuebook_lab::convert::BuiltIn::{self, Directive, Prompty, Template};
use cuebook_lab::convert::{Conversion, Target};
use serde_json::json;

use crate::model::convert;
use crate::support::Project;

const TREE: &str = "---
inputs:
  who: {kind: string, required: true}
  expert: {kind: boolean, default: false}
---
# Task

Greet $who now.

# Details
```yaml section
enabled: expert
```
All of it, $who.

## Inner
```yaml section
enabled: who == \"Ann\"
```
For $who alone.

# End

Stop.
";

fn reported(conversion: &Conversion) -> Vec<&str> {
    conversion.report.losses().map(|entry| entry.finding.message.as_str()).collect()
}

#[test]
fn conditional_sections_render_the_same() {
    let source = Project::new().file("prompts/p.sections.md", TREE);
    for to in [Template, Prompty] {
        let (conversion, result) = convert(&source, to).unwrap();
        assert_eq!(reported(&conversion), [] as [&str; 0], "{to:?}");
        assert_eq!((conversion.compared, conversion.compared_without.len()), (4, 0), "{conversion:#?}");
        for values in [
            json!({"who": "Ann"}),
            json!({"who": "Ann", "expert": true}),
            json!({"who": "Bo", "expert": true}),
            json!({"who": "", "expert": false}),
        ] {
            assert_eq!(
                result.text("p", values.clone()),
                source.text("p", values.clone()),
                "{to:?}: {values}"
            );
        }
    }
    let (conversion, _) = convert(&source, Template).unwrap();
    assert_eq!(
        conversion.files[0].text,
        "# Task\n\nGreet {{ who }} now.{% if expert %}\n\n# Details\n\nAll of it, {{ who }}.{% if who == \"Ann\" %}\n\n## Inner\n\nFor {{ who }} alone.{% endif %}{% endif %}\n\n# End\n\nStop.\n"
    );
}

#[test]
fn where_there_are_none_they_are_lost_and_the_rest_is_compared() {
    let source = Project::new().file("prompts/p.sections.md", TREE);
    let conversion = source.book().convert("p", &Target::new(Directive)).unwrap();
    assert_eq!(
        reported(&conversion)[..2],
        [
            "the condition of `details` is left out: it is always shown",
            "the condition of `details.inner` is left out: it is always shown"
        ]
    );
    assert!(conversion.compared_without.contains(&"every section was enabled".to_owned()), "{conversion:#?}");
    assert!(conversion.compared >= 3);
}

#[test]
fn conditions_with_folds_are_compared_without_folds() {
    let text = TREE.replace("# End\n", "# End\n```yaml section\nsummary: Short.\nvisibility: summary\n```\n");
    let source = Project::new().file("prompts/p.sections.md", &text);
    let conversion = source.book().convert("p", &Target::new(Template)).unwrap();
    assert_eq!(conversion.compared_without, ["every section was shown in full"], "{:#?}", conversion.report);
    assert_eq!(conversion.compared, 4);
}

#[test]
fn conditions_that_only_sections_know_are_reported() {
    let lost = |text: &str, to: BuiltIn| {
        let source = Project::new().file("prompts/p.sections.md", text);
        let conversion = source.book().convert("p", &Target::new(to)).unwrap();
        reported(&conversion).iter().any(|message| message.contains("is left out: it is always shown"))
    };
    assert!(!lost(TREE, Prompty));
    // A session, and a section at the beginning.
    assert!(lost(&TREE.replace("enabled: expert", "enabled: not session.quiet"), Prompty));
    assert!(lost(&TREE.replace("# Task\n", "# Task\n```yaml section\nenabled: expert\n```\n"), Template));
}

#[test]
fn a_tool_that_came_and_went_with_its_section_is_reported() {
    let text =
        TREE.replace("enabled: expert\n", "enabled: expert\ntools: [{name: find, description: Finds}]\n");
    let source = Project::new().file("prompts/p.sections.md", &text);
    let conversion = source.book().convert("p", &Target::new(Prompty)).unwrap();
    assert_eq!(reported(&conversion), ["the tool `find` is always available, also without `details`"]);
}
