//! Whether the elements of a chain fit together: their spaces, what they give and take, their versions.

use serde_json::{Map, Value as Json};

use super::{Element, version};

/// What was found in a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// What makes it unusable.
    pub issues: Vec<String>,
    /// What is worth knowing.
    pub warnings: Vec<String>,
    /// The pairs that were looked at: who is run, and by whom.
    pub validated_pairs: Vec<[String; 2]>,
}

/// One element, as far as it matters here.
#[derive(Debug, Clone, Default)]
struct Link {
    id: String,
    space: String,
    version: Option<String>,
    inputs: Option<Vec<String>>,
    outputs: Option<Vec<String>>,
    constraints: Map<String, Json>,
}

impl Link {
    fn of(element: &Element) -> Link {
        Link {
            id: element.id().to_owned(),
            space: element.space().to_owned(),
            version: element.tool.version.clone(),
            inputs: element.tool.inputs.clone(),
            outputs: element.tool.outputs.clone(),
            constraints: element.tool.child_constraints.clone(),
        }
    }

    fn of_json(element: &Json) -> Link {
        let text = |name: &str| element.get(name).and_then(Json::as_str).map(str::to_owned);
        let names = |name: &str| {
            let list = element.get(name)?.as_array()?;
            Some(list.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
        };
        Link {
            id: text("item_id").unwrap_or_default(),
            space: text("space").unwrap_or_default(),
            version: text("version"),
            inputs: names("inputs"),
            outputs: names("outputs"),
            constraints: element
                .get("child_constraints")
                .and_then(Json::as_object)
                .cloned()
                .unwrap_or_default(),
        }
    }

    fn is_system(&self) -> bool {
        self.space == "system" || self.space.starts_with("system:")
    }

    /// The project before the user before the program.
    fn rank(&self) -> u8 {
        match self.space.as_str() {
            "project" => 3,
            "user" => 2,
            _ if self.is_system() => 1,
            _ => 0,
        }
    }
}

/// Validates a chain that is described as answers describe it: `item_id`, `space`, and where they are known `version`,
/// `inputs`, `outputs` and `child_constraints`.
pub fn validate(chain: &[Json]) -> Report {
    links(&chain.iter().map(Link::of_json).collect::<Vec<_>>())
}

pub(crate) fn elements(chain: &[Element]) -> Report {
    links(&chain.iter().map(Link::of).collect::<Vec<_>>())
}

fn links(chain: &[Link]) -> Report {
    let mut report = Report::default();
    for (child, parent) in chain.iter().zip(chain.iter().skip(1)) {
        spaces(child, parent, &mut report);
        names(child, parent, &mut report);
        versions(child, parent, &mut report);
        report.validated_pairs.push([child.id.clone(), parent.id.clone()]);
    }
    // What the program brings must not lean on what anybody can change.
    for (child, parent) in chain.iter().zip(chain.iter().skip(1)) {
        if child.is_system() && !parent.is_system() {
            report.issues.push(format!(
                "Invalid chain: system tool '{}' cannot delegate to mutable {} tool '{}'",
                child.id, parent.space, parent.id
            ));
        }
    }
    report
}

fn spaces(child: &Link, parent: &Link, report: &mut Report) {
    if child.rank() < parent.rank() {
        report.issues.push(format!(
            "Tool '{}' from {} space cannot depend on '{}' from {} space. Lower precedence spaces cannot depend on \
             higher precedence spaces.",
            child.id, child.space, parent.id, parent.space
        ));
    }
}

fn names(child: &Link, parent: &Link, report: &mut Report) {
    let (Some(outputs), Some(inputs)) = (&child.outputs, &parent.inputs) else { return };
    if outputs.is_empty() || inputs.is_empty() {
        return;
    }
    let missing: Vec<&String> = inputs.iter().filter(|name| !outputs.contains(name)).collect();
    if !missing.is_empty() {
        report.issues.push(format!(
            "I/O mismatch: '{}' requires inputs {} not provided by '{}' (outputs: {})",
            parent.id,
            listed(missing),
            child.id,
            listed(outputs)
        ));
    }
}

/// Names in quotes and brackets.
fn listed<'n>(names: impl IntoIterator<Item = &'n String>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("'{name}'")).collect();
    format!("[{}]", quoted.join(", "))
}

fn versions(child: &Link, parent: &Link, report: &mut Report) {
    let Some(constraints) = parent.constraints.get(&child.id).and_then(Json::as_object) else { return };
    let bound = |name: &str| constraints.get(name).and_then(Json::as_str);
    let (least, most) = (bound("min_version"), bound("max_version"));
    if least.is_none() && most.is_none() {
        return;
    }
    let Some(version) = &child.version else {
        let (child, parent) = (&child.id, &parent.id);
        report
            .warnings
            .push(format!("'{child}' has no version but '{parent}' specifies version constraints"));
        return;
    };
    // Versions that cannot be compared are not a reason to refuse.
    let compared = |bound: &str| version::compare(version, bound);
    if let Some(least) = least
        && compared(least).is_some_and(|order| order.is_lt())
    {
        report.issues.push(format!(
            "Version constraint failed: '{}' version {version} < minimum required {least}",
            child.id
        ));
    }
    if let Some(most) = most
        && compared(most).is_some_and(|order| order.is_gt())
    {
        report.issues.push(format!(
            "Version constraint failed: '{}' version {version} > maximum allowed {most}",
            child.id
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_program_does_not_lean_on_a_project() {
        let report = validate(&[
            json!({"item_id": "t", "space": "system:cuebook"}),
            json!({"item_id": "r", "space": "project"}),
        ]);
        assert_eq!(report.issues.len(), 2);
        assert_eq!(report.validated_pairs, [["t".to_owned(), "r".to_owned()]]);
    }

    #[test]
    fn versions_are_compared_as_versions() {
        let issues = |version: &str, least: &str, most: &str| {
            validate(&[
                json!({"item_id": "t", "space": "project", "version": version}),
                json!({"item_id": "r", "space": "project",
                    "child_constraints": {"t": {"min_version": least, "max_version": most}}}),
            ])
            .issues
        };
        assert!(issues("1.10.0", "1.9", "2").is_empty());
        assert_eq!(
            issues("1.0", "1.2.0", "2"),
            ["Version constraint failed: 't' version 1.0 < minimum required 1.2.0"]
        );
        assert_eq!(
            issues("3.0rc1", "1", "2"),
            ["Version constraint failed: 't' version 3.0rc1 > maximum allowed 2"]
        );
        assert!(issues("what", "1", "2").is_empty());
    }
}
