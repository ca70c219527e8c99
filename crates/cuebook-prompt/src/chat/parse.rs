//! From attributed text to messages.
//!
//! The structure is read from what authors wrote alone: the text is cut into lines at *their* newlines, and a line begins a
//! message if it is a [marker](super::marker) with every value in it taken as opaque. So the number of messages and their
//! roles depend on the template and on what its conditions let through, never on what a value says.
//!
//! Rich inputs are put back where an emission of theirs wrote their nonce: a conversation cuts the message in two, the
//! others become a part of it.

use std::ops::Range;

use serde_json::{Map, Value as Json};

use super::marker::{Atom, Marker};
use super::marks::{self, Mark};
use super::message::keep;
use super::{Message, Part, Role, Roles, thread};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, Severity};
use crate::prompt::{Format, Rich};
use crate::variables::RichInput;

/// A run of the text: who wrote it, and the rich inputs that can show in it.
#[derive(Debug, Clone)]
pub struct Run<'r> {
    /// Where it is in the text.
    pub range: Range<usize>,
    /// Whether an author wrote it.
    pub literal: bool,
    /// Whether a hook wrote it. Its newlines end lines, and it begins no message.
    pub hook: bool,
    /// Whether a tag that only looks a role up wrote it.
    pub role: bool,
    /// What its dialect marked there.
    pub mark: Option<Mark>,
    /// Rich inputs whose nonces can stand in it.
    pub rich: Vec<&'r RichInput>,
}

/// What becomes of messages without text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Empty {
    /// They stay.
    #[default]
    Keep,
    /// A marker with no line behind it begins no message, as in Prompty 2 for Python.
    SkipBare,
    /// White space around a message goes, and so does a message of which nothing is left, as in Prompty 1.
    Skip,
}

/// How a text is taken apart, where that differs between versions of Prompty.
#[derive(Debug, Clone, Default)]
pub struct ParseOptions {
    /// What becomes of messages without text.
    pub empty: Empty,
    /// Whether `{{ item.role }}:` alone on its line begins a message of the user or the assistant.
    pub roles_of_values: bool,
    /// The names of roles.
    pub roles: Roles,
    /// Whether messages begin where the dialect marked them, and no line begins one.
    pub marked: bool,
    /// Whether white space stays, as in dotprompt, where the user says what stands before the first mark.
    pub exact: bool,
}

impl ParseOptions {
    /// How the text of a prompt with this format is taken apart.
    pub fn of(format: &Format) -> ParseOptions {
        let option = |name: &str| format.parser_options.get(name).and_then(Json::as_str);
        let empty = match option("empty") {
            Some("skip") => Empty::Skip,
            Some("skip-bare") => Empty::SkipBare,
            _ => Empty::Keep,
        };
        let roles = Roles::of(&format.parser_options);
        let marked = format.parser.as_deref() == Some(MARKS);
        let (roles_of_values, exact) = (option("roles") == Some("values"), option("text") == Some("exact"));
        ParseOptions { empty, roles_of_values, roles, marked, exact }
    }
}

/// The parser of a text whose dialect marked where messages begin.
pub const MARKS: &str = "marks";

/// Makes messages of a text whose runs cover it.
pub fn parse(text: &str, runs: &[Run<'_>], ways: &ParseOptions) -> Result<Vec<Message>> {
    if ways.marked && ways.exact {
        return marks::parse(text, runs);
    }
    assemble(text, runs, all_stretches(text, runs, ways), ways)
}

/// The same for a text without marks, rich inputs and texts of hooks: each part comes with whether an author wrote it.
#[doc(hidden)]
pub fn parse_plain(
    text: &str,
    parts: impl Iterator<Item = (Range<usize>, bool)>,
    ways: &ParseOptions,
) -> Result<Vec<Message>> {
    let part = |(range, literal)| if literal { LinePart::Literal(range) } else { LinePart::Value(range) };
    let stretches = stretches(text, parts.map(part), ways);
    assemble(text, &[], stretches, ways)
}

/// A part of a text as its lines are read.
enum LinePart {
    Literal(Range<usize>),
    Value(Range<usize>),
    Role(Range<usize>),
    Hook(Range<usize>),
}

fn assemble(
    text: &str,
    runs: &[Run<'_>],
    stretches: Vec<MarkedText>,
    ways: &ParseOptions,
) -> Result<Vec<Message>> {
    let mut messages = Vec::new();
    let marked = stretches.iter().any(|stretch| stretch.marker.is_some());
    for stretch in stretches {
        let MarkedText { marker, content } = stretch;
        let found = rich_in(text, runs, &content)?;
        match marker {
            Some(_) if content.is_empty() && ways.empty != Empty::Keep => {}
            Some(Marker { role, attributes }) => {
                let own = Message { role, parts: Vec::new(), metadata: attributes };
                fill(text, content, found, own, true, &mut messages)?;
            }
            None => {
                let own = Message { role: Role::System, parts: Vec::new(), metadata: Map::new() };
                // What stands before the first marker is a message if it says anything.
                fill(text, content, found, own, !marked, &mut messages)?;
            }
        }
    }
    if ways.empty == Empty::Skip {
        messages.iter_mut().for_each(Message::trim);
        messages.retain(|message| !message.is_empty());
    }
    Ok(messages)
}

/// The roles that markers begin, in order.
pub fn marked_roles(text: &str, runs: &[Run<'_>], ways: &ParseOptions) -> Vec<Role> {
    all_stretches(text, runs, ways)
        .into_iter()
        .filter_map(|stretch| stretch.marker)
        .map(|marker| marker.role)
        .collect()
}

/// A marker and the text up to the next one.
struct MarkedText {
    marker: Option<Marker>,
    content: Range<usize>,
}

fn all_stretches(text: &str, runs: &[Run<'_>], ways: &ParseOptions) -> Vec<MarkedText> {
    if ways.marked {
        return marked_stretches(text, runs);
    }
    let part = |run: &Run<'_>| match run {
        Run { hook: true, .. } => LinePart::Hook(run.range.clone()),
        Run { literal: true, .. } => LinePart::Literal(run.range.clone()),
        Run { role: true, .. } => LinePart::Role(run.range.clone()),
        _ => LinePart::Value(run.range.clone()),
    };
    stretches(text, runs.iter().map(part), ways)
}

fn marked_stretches(text: &str, runs: &[Run<'_>]) -> Vec<MarkedText> {
    let mut stretches = vec![MarkedText { marker: None, content: 0..text.len() }];
    for run in runs {
        let Some(Mark::Message(role)) = run.mark.clone() else { continue };
        if let Some(last) = stretches.last_mut() {
            last.content.end = run.range.start;
        }
        let marker = Some(Marker { role, attributes: Map::new() });
        stretches.push(MarkedText { marker, content: run.range.end..text.len() });
    }
    stretches
}

fn stretches(text: &str, parts: impl Iterator<Item = LinePart>, ways: &ParseOptions) -> Vec<MarkedText> {
    let mut stretches = vec![MarkedText { marker: None, content: 0..text.len() }];
    let mut line: Vec<Atom<'_>> = Vec::new();
    let mut line_start = 0;
    let mut end_line = |line: &mut Vec<Atom<'_>>, range: Range<usize>, next: usize| {
        let chosen = |line: &[Atom<'_>]| ways.roles_of_values.then(|| Marker::chosen(line)).flatten();
        if let Some(marker) = Marker::read(line, &ways.roles).or_else(|| chosen(line)) {
            if let Some(last) = stretches.last_mut() {
                last.content.end = range.start;
            }
            stretches.push(MarkedText { marker: Some(marker), content: next..text.len() });
        }
        line.clear();
    };
    for part in parts {
        let range = match part {
            LinePart::Value(range) => {
                line.push(Atom::Value(&text[range]));
                continue;
            }
            LinePart::Role(range) => {
                line.push(Atom::Role(&text[range]));
                continue;
            }
            LinePart::Hook(range) => {
                let (start, written) = (range.start, &text[range]);
                line.push(Atom::Value(written));
                if let Some(last) = written.rfind('\n') {
                    line.clear();
                    line_start = start + last + 1;
                    if last + 1 < written.len() {
                        line.push(Atom::Value(&written[last + 1..]));
                    }
                }
                continue;
            }
            LinePart::Literal(range) => range,
        };
        let mut start = range.start;
        for length in memchr::memchr_iter(b'\n', text[range.clone()].as_bytes()) {
            let end = range.start + length;
            let written = &text[start..end];
            // Nearly every line is text, as its end shows.
            if !line.is_empty() || may_be_marker(written) {
                line.push(Atom::Literal(written));
                end_line(&mut line, line_start..end, end + 1);
            }
            start = end + 1;
            line_start = start;
        }
        if start < range.end {
            line.push(Atom::Literal(&text[start..range.end]));
        }
    }
    end_line(&mut line, line_start..text.len(), text.len());
    stretches
}

/// Whether a line that the author wrote whole can begin a message: it ends with a colon, or with what may be white space.
fn may_be_marker(line: &str) -> bool {
    line.as_bytes().last().is_some_and(|last| matches!(last, b':' | ..=b' ' | 0x80..))
}

/// Every place in a part of the text where a rich input wrote its nonce, in order.
pub(super) fn rich_in<'r>(
    text: &str,
    runs: &[Run<'r>],
    content: &Range<usize>,
) -> Result<Vec<(Range<usize>, &'r RichInput)>> {
    let mut found = Vec::new();
    let first = runs.partition_point(|run| run.range.end <= content.start);
    let inside = runs[first..].iter().take_while(|run| run.range.start < content.end);
    for run in inside.filter(|run| !run.rich.is_empty()) {
        let mut here: Vec<(Range<usize>, &RichInput)> = Vec::new();
        for input in &run.rich {
            let all = text[run.range.clone()].match_indices(&input.nonce);
            here.extend(all.map(|(at, nonce)| {
                let start = run.range.start + at;
                (start..start + nonce.len(), *input)
            }));
        }
        here.sort_by_key(|(range, _)| range.start);
        refuse_remains(text, run, &here)?;
        found.extend(here);
    }
    Ok(found)
}

/// A nonce that a filter changed stands for nothing any more, and must not reach a model.
fn refuse_remains(text: &str, run: &Run<'_>, found: &[(Range<usize>, &RichInput)]) -> Result<()> {
    for input in &run.rich {
        let before_name = input.nonce.strip_suffix(&format!("_{}__", input.name));
        let Some(digits) = before_name.and_then(|nonce| nonce.rsplit('_').next()) else { continue };
        let mark = format!("{digits}_{}", input.name).to_lowercase();
        let shown = text[run.range.clone()].to_lowercase().matches(&mark).count();
        if digits.len() >= 8 && shown > found.iter().filter(|(_, known)| known.name == input.name).count() {
            let (name, kind) = (&input.name, input.kind.as_str());
            let message = format!("the template changes the placeholder of the {kind} `{name}`");
            let hint = format!("print it without filters: {{{{ {name} }}}}");
            let diagnostic =
                Diagnostic::new(Code::ChangedNonce, message).severity(Severity::Error).hint(hint);
            return Err(Error::new(ErrorKind::PromptRender, diagnostic));
        }
    }
    Ok(())
}

/// Fills a message with a part of the text. `always` says whether an empty message is one.
fn fill(
    text: &str,
    content: Range<usize>,
    found: Vec<(Range<usize>, &RichInput)>,
    own: Message,
    always: bool,
    messages: &mut Vec<Message>,
) -> Result<()> {
    let mut parts: Vec<Part> = Vec::with_capacity(1);
    let mut at = content.start;
    // An input without a value leaves nothing behind, as if its nonce had never been there.
    let absent: Vec<Range<usize>> =
        found.iter().filter(|(_, input)| input.value.is_none()).map(|(range, _)| range.clone()).collect();
    let has_thread = found.iter().any(|(_, input)| input.kind == Rich::Thread);
    let given: Vec<(Range<usize>, &RichInput)> =
        found.into_iter().filter(|(_, input)| input.value.is_some()).collect();
    let cut = !given.is_empty();
    for (range, input) in given {
        push_text(text, at..range.start, &absent, cut, &mut parts);
        at = range.end;
        let Some(value) = &input.value else { continue };
        if input.kind == Rich::Thread {
            if !parts.is_empty() {
                let parts = std::mem::take(&mut parts);
                messages.push(Message { parts, ..own.clone() });
            }
            messages.extend(thread::messages(&input.name, value, &input.roles)?);
        } else {
            parts.push(thread::media(&input.name, input.kind, value)?);
        }
    }
    push_text(text, at..content.end, &absent, cut, &mut parts);
    // A message that the author began stays, unless a conversation takes its place; text before all of them must say
    // something.
    let says_nothing =
        parts.iter().all(|part| matches!(part, Part::Text { value, .. } if value.trim().is_empty()));
    if says_nothing && !always {
        return Ok(());
    }
    if parts.is_empty() && always && !has_thread {
        parts.push(Part::Text { value: String::new(), ranges: Vec::new() });
    }
    if !parts.is_empty() {
        messages.push(Message { parts, ..own });
    }
    Ok(())
}

/// Adds a text without the newlines around it; beside something rich, without any white space around it.
fn push_text(text: &str, range: Range<usize>, absent: &[Range<usize>], cut: bool, parts: &mut Vec<Part>) {
    let trim = |text: &str| -> (usize, usize) {
        let trimmed = if cut { text.trim() } else { text.trim_matches('\n') };
        let start = trimmed.as_ptr() as usize - text.as_ptr() as usize;
        (start, start + trimmed.len())
    };
    let mut gone = absent.iter().filter(|gone| range.start <= gone.start && gone.end <= range.end).peekable();
    if gone.peek().is_none() {
        let (start, end) = trim(&text[range.clone()]);
        if start < end {
            let range = range.start + start..range.start + end;
            parts.push(Part::Text { value: text[range.clone()].to_owned(), ranges: vec![range] });
        }
        return;
    }
    let (mut value, mut ranges) = (String::new(), Vec::new());
    let mut at = range.start;
    for gone in gone {
        value.push_str(&text[at..gone.start]);
        ranges.push(at..gone.start);
        at = gone.end;
        let line = value.len() - value.trim_end_matches([' ', '\t']).len();
        let begins = value[..value.len() - line].ends_with('\n') || value.len() == line;
        let rest = &text[at..range.end];
        let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        match rest[spaces..].chars().next() {
            // A line that held nothing else goes with it, and so does one of two blank lines that would meet.
            Some('\n') if begins => {
                value.truncate(value.len() - line);
                keep(&mut ranges, 0..value.len());
                at += spaces + 1;
                if value.is_empty() || value.ends_with("\n\n") {
                    at += text[at..range.end].len() - text[at..range.end].trim_start_matches('\n').len();
                }
            }
            None | Some('\n') => {
                value.truncate(value.len() - line);
                keep(&mut ranges, 0..value.len());
            }
            Some(_) => {}
        }
    }
    value.push_str(&text[at..range.end]);
    ranges.push(at..range.end);
    let (start, end) = trim(&value);
    if start < end {
        keep(&mut ranges, start..end);
        parts.push(Part::Text { value: value[start..end].to_owned(), ranges });
    }
}
