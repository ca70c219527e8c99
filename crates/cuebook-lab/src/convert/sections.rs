//! Drafts as trees of sections.
//!
//! A section shows its heading, so that a text becomes sections only where it has headings, with an empty line around each, as
//! sections are written. Several ways are tried, from the one that makes most of the text to the one that always works, and
//! each is read and rendered before it counts.

use std::collections::HashSet;

use serde_json::{Map, Value as Json, json};

use super::draft::{Draft, Piece, Print};
use super::notation::yaml;
use super::report::Report;
use super::reported_differences::{ComparisonRules, ReportedDifference};
use super::target_text::{Jinja, SyntaxLines, cannot, dollar, lines, looks_like_structure, mustache};
use super::verify::{Bench, Verdict};
use super::{OutFile, prompty, target_limits};
use crate::convert::BuiltIn;
use crate::dialect::sections::{key_of, scan};
use crate::error::Result;
use crate::library::SECTIONS_END;
use crate::template::python::is_space;

/// How much of the text's own headings becomes sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    /// All that can.
    Split,
    /// The first one.
    First,
    /// None: one is added.
    Added,
}

/// How often lines are looked at again that would mean something.
const MAX_ROUNDS: usize = 100;

/// The files, and what stands before the text of the draft now.
pub(super) fn write(
    draft: &mut Draft,
    bench: &Bench<'_>,
    report: &mut Report,
) -> Result<(Vec<OutFile>, String)> {
    let names = crate::template::jinja::parts::is_name;
    target_limits::rename(draft, names, report);
    target_limits::role_becomes_system(draft, BuiltIn::Sections, report);
    let mut front = target_limits::front(draft);
    if let Some((model, place)) = &draft.model {
        if model.get("connection").is_some_and(|connection| connection.to_string().contains("${")) {
            let message =
                "references in the model's connection are left out: a section tree does not resolve them";
            let hint = "configure the provider in your program";
            report.lost("model", message).at(place.clone()).hint(hint);
        }
        front.insert("model".into(), Json::Object(model.clone()));
    }
    prompty::inputs(draft, &mut front);
    if !draft.outputs.is_empty() {
        let named = |(output, _): &(Map<String, Json>, _)| {
            let mut output = output.clone();
            let name = output.shift_remove("name").and_then(|name| name.as_str().map(str::to_owned));
            (name.unwrap_or_default(), Json::Object(output))
        };
        let properties: Map<String, Json> = draft.outputs.iter().map(named).collect();
        front.insert("output".into(), json!({"container": "object", "properties": properties}));
        target_limits::returned_otherwise(draft, report);
    }
    let tools = tools(draft, report);
    let texts = Texts::of(draft);
    let mut reported_differences = report.reported_differences();
    let alike = |name: &String| draft.input(name).is_some_and(super::draft::Input::prints_alike);
    let odd = draft.words.iter().flat_map(|chunk| &chunk.names).filter(|name| !alike(name));
    reported_differences.extend(odd.map(|name| ReportedDifference::Odd(name.clone())));
    let terms = ComparisonRules::new(reported_differences, draft);
    let mut spare = None;
    let mut failure = None;
    for plan in [Plan::Split, Plan::First, Plan::Added] {
        if spare.is_some() {
            // Headings of its own are worth more than white space at the edges of sections.
            break;
        }
        for engine in ["dollar", "jinja2", "mustache"] {
            let Some(text) = texts.write(draft, plan, engine) else { continue };
            let text = text.map_err(|stop| cannot(draft, &stop, BuiltIn::Sections))?;
            let mut front = front.clone();
            if engine != "dollar" {
                front.insert("engine".into(), json!(engine));
            }
            let title = title(draft);
            let prefix = if plan == Plan::Added { format!("# {title}\n\n") } else { String::new() };
            let body = with_settings(&format!("{prefix}{}", text.trim_matches(is_space)), &tools);
            let files = vec![OutFile {
                path: format!("{}{SECTIONS_END}", draft.id),
                text: format!("---\n{}---\n{body}\n", yaml(&front)),
            }];
            match bench.compare_pieces(draft, &files, &prefix, &terms) {
                Ok(Verdict::Same) => {
                    reported(draft, &texts, plan, engine, &title, report);
                    return Ok((files, prefix));
                }
                Ok(Verdict::Other) if plan != Plan::Added => {}
                // The way that always works is used, and its differences are reported at the end.
                Ok(verdict) => drop(spare.get_or_insert((files, prefix, plan, engine, title, verdict))),
                Err(error) => failure = Some(error),
            }
        }
    }
    if let Some((files, prefix, plan, engine, title, verdict)) = spare {
        if verdict == Verdict::ButSpace {
            let message = "whitespace at the edge of a section is removed";
            report
                .changed("text", message)
                .hint("this rarely changes a model's answer")
                .spares(ReportedDifference::Space);
        }
        reported(draft, &texts, plan, engine, &title, report);
        return Ok((files, prefix));
    }
    // Nothing was found that says the same: whatever keeps the last way from being read is the reason.
    if let (Some(error), Err(_)) = (failure, draft.pieces()) {
        return Err(error);
    }
    let place = bench.source.prompt().template.place(0..0);
    let stop = super::draft::UnsupportedPart { what: "something".to_owned(), place };
    Err(match draft.pieces() {
        Err(stop) => cannot(draft, &stop, BuiltIn::Sections),
        Ok(_) => cannot(draft, &stop, BuiltIn::Sections),
    })
}

/// The text in the languages that it can be written in.
struct Texts {
    pieces: Option<Vec<Piece>>,
    /// Lines that are headings as sections write them, with their levels.
    headings: Vec<usize>,
}

impl Texts {
    fn of(draft: &Draft) -> Texts {
        let pieces = draft.pieces().ok();
        let by_line: Vec<Option<String>> = match &pieces {
            Some(pieces) => lines(pieces)
                .into_iter()
                .map(|line| match line.as_slice() {
                    [] => Some(String::new()),
                    [Piece::Text(text)] => Some(text.clone()),
                    _ => None,
                })
                .collect(),
            None => {
                let jinja =
                    Jinja { guard: SyntaxLines::Nothing, blocks_are_safe: true, kept: &[], forced: &[] };
                let text = match mustache(draft) {
                    Some((text, _)) => text,
                    None => jinja.write(draft, None).unwrap_or_default(),
                };
                text.split('\n').map(|line| Some(line.to_owned())).collect()
            }
        };
        let line = |number: usize| by_line.get(number).and_then(|line| line.as_deref());
        let is_heading = |number: &usize| {
            line(*number).is_some_and(looks_like_structure)
                && (*number == 0 || line(*number - 1) == Some(""))
                && (*number + 1 == by_line.len() || line(*number + 1) == Some(""))
        };
        let mut headings: Vec<usize> = (0..by_line.len()).filter(is_heading).collect();
        if pieces.is_none() {
            // A title is shown as it is written, and a tag that takes away white space takes the empty line.
            let written = |line: &&str| !line.trim().is_empty();
            let texts: Vec<&str> = by_line.iter().map(|line| line.as_deref().unwrap_or_default()).collect();
            headings.retain(|number| {
                let before = texts[..*number].iter().rev().find(|line| written(line));
                let behind = texts[*number + 1..].iter().find(|line| written(line));
                let takes_before =
                    |line: &&str| ["-%}", "-}}", "-#}"].iter().any(|end| line.trim_end().ends_with(end));
                let takes_behind =
                    |line: &&str| ["{%-", "{{-", "{#-"].iter().any(|tag| line.trim_start().starts_with(tag));
                !["{{", "{%", "{#"].iter().any(|tag| texts[*number].contains(tag))
                    && !before.is_some_and(takes_before)
                    && !behind.is_some_and(takes_behind)
            });
        }
        if let Some(pieces) = &pieces {
            // Beside a value a section would take white space away that the value brings.
            let parts = lines(pieces);
            let is_word = |piece: Option<&Piece>| !matches!(piece, Some(Piece::Value { .. }));
            headings.retain(|number| {
                let before = parts[..*number].iter().flatten().rfind(|piece| !is_blank(piece));
                let behind = parts[*number + 1..].iter().flatten().find(|piece| !is_blank(piece));
                *number == 0 || is_word(before) && is_word(behind)
            });
        }
        let shares = |line: &Option<String>| line.as_deref().is_some_and(is_shared_beyond_its_section);
        if pieces.is_none() && by_line.iter().any(shares) {
            // Each section is a template of its own: what one of them defines the next does not know.
            headings.truncate(1);
        }
        Texts { pieces, headings }
    }

    /// The lines that are headings of sections by a plan.
    fn kept(&self, plan: Plan) -> &[usize] {
        match plan {
            Plan::Split => &self.headings,
            Plan::First => &self.headings[..self.headings.len().min(1)],
            Plan::Added => &[],
        }
    }

    fn begins_with_heading(&self) -> bool {
        self.headings.first() == Some(&0)
    }

    /// The text for a plan; `None` if it cannot be written so.
    fn write(
        &self,
        draft: &Draft,
        plan: Plan,
        engine: &str,
    ) -> Option<std::result::Result<String, super::draft::UnsupportedPart>> {
        let kept = self.kept(plan);
        if plan != Plan::Added && !self.begins_with_heading()
            || plan == Plan::First && self.headings.len() == 1 && self.pieces.is_some()
        {
            return None;
        }
        match engine {
            "mustache" => {
                let (text, escape) = mustache(draft)?;
                (escape || self.pieces.is_none()).then_some(Ok(text))
            }
            // Values that Mustache escapes are escaped by Mustache alone.
            _ if mustache(draft).is_some_and(|(_, escape)| escape) => None,
            // `$name` has no comments.
            "dollar" if draft.words.iter().any(|chunk| !chunk.comments.is_empty()) => None,
            "dollar" => Some(Ok(dollar(draft, self.pieces.as_ref()?)?)),
            _ if self.pieces.is_none() && mustache(draft).is_some() => None,
            _ => Some(jinja(draft, kept)),
        }
    }
}

/// The text as Jinja2, in which no other line than those that are kept begins anything.
fn jinja(draft: &Draft, kept: &[usize]) -> std::result::Result<String, super::draft::UnsupportedPart> {
    let mut forced: Vec<usize> = Vec::new();
    let mut text = String::new();
    for _ in 0..MAX_ROUNDS {
        let jinja = Jinja { guard: SyntaxLines::Headings, blocks_are_safe: true, kept, forced: &forced };
        text = jinja.write(draft, None)?;
        let found = scan(&text, 0..text.len());
        let opened = found.unclosed.iter().chain(&found.misplaced).map(|range| range.start).min();
        let Some(at) = opened else { break };
        let line = text[..at].matches('\n').count();
        if forced.contains(&line) {
            break;
        }
        forced.push(line);
    }
    Ok(text)
}

/// The text with settings below the headings that need some: the tools below the first, and keys where a title gives none.
fn with_settings(text: &str, tools: &[Json]) -> String {
    let found = scan(text, 0..text.len());
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let mut seen: Vec<HashSet<String>> = Vec::new();
    for (index, part) in found.parts.iter().enumerate() {
        seen.truncate(part.level);
        seen.resize_with(part.level, HashSet::new);
        let mut settings = Map::new();
        let key = key_of(&text[part.title.clone()]);
        let known = seen.last_mut();
        let fits = !key.is_empty() && known.is_some_and(|known| known.insert(key));
        if !fits {
            settings.insert("key".into(), json!(format!("section-{}", index + 1)));
        }
        if index == 0 && !tools.is_empty() {
            settings.insert("tools".into(), Json::Array(tools.to_vec()));
        }
        if !settings.is_empty() {
            let end =
                text[part.marks.start..].find('\n').map_or(text.len(), |length| part.marks.start + length);
            out.push_str(&text[at..end]);
            out.push_str(&format!("\n```yaml section\n{}```", yaml(&settings)));
            at = end;
        }
    }
    out.push_str(&text[at..]);
    out
}

/// The tools that a section can have.
fn tools(draft: &Draft, report: &mut Report) -> Vec<Json> {
    let mut tools = Vec::new();
    for (tool, place) in &draft.tools {
        let name = tool.get("name").and_then(Json::as_str).unwrap_or_default();
        let is_function = tool.get("kind") == Some(&json!("function"));
        let described =
            tool.get("description").and_then(Json::as_str).is_some_and(|text| !text.trim().is_empty());
        if !is_function || !described {
            let why = match is_function {
                true => "sections accept only tools with a description",
                false => "sections accept only functions",
            };
            let message = format!("the tool `{name}` is left out: {why}");
            report
                .lost("tools", message)
                .at(place.clone())
                .hint("give the tool to the model in your program");
            continue;
        }
        let mut object = Map::new();
        for (key, value) in tool {
            match key.as_str() {
                "kind" => {}
                "name" | "description" => drop(object.insert(key.clone(), value.clone())),
                "parameters" if value.as_array().is_some_and(Vec::is_empty) => {}
                "parameters" => drop(object.insert(key.clone(), value.clone())),
                other => {
                    let message = format!(
                        "`{other}` of the tool `{name}` is left out: tools of sections do not have it"
                    );
                    report.lost("tools", message).at(place.clone());
                }
            }
        }
        tools.push(Json::Object(object));
    }
    tools
}

/// Whether a line of a template defines something that what follows may use.
fn is_shared_beyond_its_section(line: &str) -> bool {
    const WORDS: [&str; 6] = ["set", "macro", "import", "from", "block", "extends"];
    line.split("{%").skip(1).any(|tag| {
        let word = tag.trim_start_matches(['-', '+']).trim_start();
        WORDS.iter().any(|known| word.strip_prefix(known).is_some_and(|rest| rest.starts_with([' ', '\t'])))
    })
}

/// The heading of a text that has none.
fn title(draft: &Draft) -> String {
    let name = draft.title().replace(['\n', '\r'], " ");
    let name = name.trim().trim_end_matches('#').trim();
    if name.is_empty() { "Prompt".to_owned() } else { name.to_owned() }
}

/// Says what the way that was taken means.
fn reported(draft: &Draft, texts: &Texts, plan: Plan, engine: &str, title: &str, report: &mut Report) {
    let print = match engine {
        "dollar" => Print::Python,
        "mustache" => Print::Mustache,
        _ => Print::Portable,
    };
    target_limits::prints(draft, print, BuiltIn::Sections, report);
    if engine == "jinja2" {
        let kept = texts.kept(plan);
        // Whatever the stretches add up to, only the reported ones count here.
        let jinja = Jinja { guard: SyntaxLines::Headings, blocks_are_safe: true, kept, forced: &[] };
        let _ = jinja.write(draft, Some(report));
    }
    if engine == "mustache" && mustache(draft).is_some_and(|(_, escape)| !escape) {
        let message = "values are escaped for HTML: Mustache in sections always escapes";
        report
            .changed("text", message)
            .hint("write {{{name}}} to print a value unchanged")
            .spares(ReportedDifference::Markup);
    }
    match plan {
        Plan::Split => {}
        Plan::First => {
            let message = "the text stays one section: splitting it at its other headings would change it";
            report.note("sections", message);
        }
        Plan::Added => {
            let message = format!("the heading `# {title}` is added: every section needs one");
            let hint = "start the text with a heading and an empty line to keep it";
            report.changed("text", message).hint(hint);
        }
    }
    let Some(pieces) = &texts.pieces else { return };
    if let Some(Piece::Text(text)) = pieces.first() {
        let gone = &text[..text.len() - text.trim_start_matches(is_space).len()];
        target_limits::space_gone(draft, gone, "beginning", report);
    }
    if let Some(Piece::Text(text)) = pieces.last() {
        target_limits::space_gone(draft, &text[text.trim_end_matches(is_space).len()..], "end", report);
    }
    let kept = texts.kept(plan);
    let by_line = lines(pieces);
    let mut bounds: Vec<usize> = kept.to_vec();
    bounds.push(by_line.len());
    let mut from = 0;
    for bound in bounds {
        let body = by_line.get(from..bound).unwrap_or_default();
        let written: Vec<&Piece> = body.iter().flatten().filter(|piece| !is_blank(piece)).collect();
        for (edge, piece) in [("beginning", written.first()), ("end", written.last())] {
            if let Some(Piece::Value { name, .. }) = piece {
                let message = format!("whitespace of `{name}` at the {edge} of its section is removed");
                let place = draft.input(name).and_then(|input| input.place.clone());
                report
                    .changed("text", message)
                    .at(place)
                    .hint("write a word before or after it")
                    .spares(ReportedDifference::Edge(name.clone()));
            }
        }
        from = bound + 1;
    }
}

fn is_blank(piece: &Piece) -> bool {
    matches!(piece, Piece::Text(text) if text.trim_matches(is_space).is_empty())
}
