//! Findings in the forms that continuous integration reads: annotations of GitHub, and SARIF.

use std::path::{Path, PathBuf};

use cuebook::error::printable_lines;
use cuebook::source::Place;
use cuebook::{Code, Diagnostic, Severity};
use serde_json::{Value as Json, json};

/// Names files as the repository does: findings name them from the project's folder, which may lie deeper.
pub struct Repository {
    project: PathBuf,
    top: PathBuf,
}

/// Where something is: the lines and columns count from 1, and the end column is behind the last character.
struct Region {
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

impl Repository {
    /// The repository around a project, or the project's folder where it is missing.
    pub fn around(project: &Path) -> Repository {
        let project = std::path::absolute(project).unwrap_or_else(|_| project.to_owned());
        let top =
            project.ancestors().find(|above| above.join(".git").exists()).unwrap_or(&project).to_owned();
        Repository { project, top }
    }

    /// A file's name from the top of the repository; `None` for what is not in it.
    fn file(&self, name: &str) -> Option<String> {
        let path = self.project.join(name);
        let inside = path.strip_prefix(&self.top).ok()?;
        path.exists().then(|| inside.to_string_lossy().replace('\\', "/"))
    }
}

impl Region {
    fn of(place: &Place) -> Region {
        let (line, column) = (place.line(), place.column());
        let (end_line, end_column) = place.source().line_column(place.range().end);
        Region { line, column, end_line, end_column }
    }
}

/// One workflow command of GitHub per finding.
pub fn github(findings: &[Diagnostic], repository: &Repository) -> String {
    findings.iter().map(|finding| annotation(finding, repository) + "\n").collect()
}

fn annotation(finding: &Diagnostic, repository: &Repository) -> String {
    let command = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let mut properties = Vec::new();
    let file = finding.file_name().and_then(|name| repository.file(name));
    if let Some(file) = &file {
        properties.push(("file", file.clone()));
        if let Some(Region { line, column, end_line, end_column }) = finding.place.as_ref().map(Region::of) {
            properties.push(("line", line.to_string()));
            properties.push(("endLine", end_line.to_string()));
            // GitHub ignores the line of an annotation that has columns and spans several lines.
            if line == end_line {
                properties.push(("col", column.to_string()));
                properties.push(("endColumn", end_column.to_string()));
            }
        }
    }
    properties.push(("title", format!("{} {}", finding.code, finding.code.name())));
    let properties: Vec<String> =
        properties.into_iter().map(|(name, value)| format!("{name}={}", property(&value))).collect();
    format!("::{command} {}::{}", properties.join(","), data(&message(finding, file.is_none())))
}

/// What a finding says. A file that the reader cannot link to is named in the message.
fn message(finding: &Diagnostic, with_file: bool) -> String {
    let mut text = finding.message.clone();
    if let Some(file) = finding.file_name().filter(|_| with_file) {
        text = format!("{file}: {text}");
    }
    if let Some(hint) = &finding.hint {
        text.push_str("\nhelp: ");
        text.push_str(hint);
    }
    printable_lines(&text).into_owned()
}

/// Escapes the text of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// A log in the Static Analysis Results Interchange Format 2.1.0.
pub fn sarif(findings: &[Diagnostic], repository: &Repository) -> Json {
    let mut codes: Vec<Code> = findings.iter().map(|finding| finding.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let results: Vec<Json> = findings.iter().map(|finding| result(finding, &codes, repository)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "cuebook",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": codes.iter().map(|code| rule(*code)).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(code: Code) -> Json {
    json!({
        "id": code.as_str(),
        "name": code.name(),
        "shortDescription": {"text": code.summary()},
        "help": {"text": format!("cuebook help {code}"), "markdown": code.page()},
        "defaultConfiguration": {"level": code.severity().as_str()},
    })
}

fn result(finding: &Diagnostic, codes: &[Code], repository: &Repository) -> Json {
    let location = finding.file_name().and_then(|name| location(name, finding.place.as_ref(), repository));
    let mut result = json!({
        "ruleId": finding.code.as_str(),
        "ruleIndex": codes.binary_search(&finding.code).unwrap_or_default(),
        "level": finding.severity.as_str(),
        "message": {"text": message(finding, location.is_none())},
        "locations": location.into_iter().collect::<Vec<_>>(),
    });
    let related: Vec<Json> = finding
        .related
        .iter()
        .filter_map(|(place, label)| {
            let mut location = location_of(place, repository)?;
            location["message"] = json!({"text": printable_lines(label)});
            Some(location)
        })
        .collect();
    if !related.is_empty() {
        result["relatedLocations"] = related.into();
    }
    result
}

fn location_of(place: &Place, repository: &Repository) -> Option<Json> {
    location(place.file(), Some(place), repository)
}

fn location(name: &str, place: Option<&Place>, repository: &Repository) -> Option<Json> {
    let mut physical = json!({"artifactLocation": {"uri": uri(&repository.file(name)?)}});
    if let Some(Region { line, column, end_line, end_column }) = place.map(Region::of) {
        physical["region"] =
            json!({"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column});
    }
    Some(json!({"physicalLocation": physical}))
}

/// A relative path as a URI reference. A colon is escaped too: in the first part it would end a scheme.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(byte.into())
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workflow_commands_escape_what_would_end_them() {
        let finding = Diagnostic::new(Code::BadInput, "100 %: a, b\nc").hint("x::y");
        let nowhere = Repository::around(Path::new("/"));
        assert_eq!(
            annotation(&finding.file("gone, or 5%:.md"), &nowhere),
            format!(
                "::error title={} {}::gone, or 5%25:.md: 100 %25: a, b%0Ac%0Ahelp: x::y",
                Code::BadInput.as_str(),
                Code::BadInput.name()
            )
        );
        assert_eq!(property("a,b:c%\r\n"), "a%2Cb%3Ac%25%0D%0A");
    }

    #[test]
    fn a_path_becomes_a_uri_reference() {
        assert_eq!(uri("prompts/a b:c/ä.md"), "prompts/a%20b%3Ac/%C3%A4.md");
    }
}
