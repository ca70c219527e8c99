//! An explanation as one page for a browser, which needs nothing besides: no network, no other file.
//!
//! Everything that is not from here is text: it is escaped, never put into the script or the style, and a policy in the page
//! allows this script and this style alone. Characters that do not show, or that would turn the text around, are spelt out.

mod sections;

use std::collections::HashMap;
use std::fmt::Write;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use indexmap::IndexMap;
use sha2::{Digest, Sha256};

use super::{Explanation, label};
use crate::ledger::{Contributor, Ledger};
use crate::render::Span;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The longest excerpt of a source, and the longest value, in characters.
const MAX_SHOWN: usize = 300;

/// What every page begins with, and what its title ends with.
const START: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
const TITLE_END: &str = " · cuebook explain</title>";

/// Whether a text that begins like this is such a page.
pub fn is_page(start: &[u8]) -> bool {
    start.starts_with(START.as_bytes()) && memchr::memmem::find(start, TITLE_END.as_bytes()).is_some()
}

/// The page.
pub fn page(explanation: &Explanation) -> String {
    let found = explanation.prepared().found();
    let mut out = Page(String::with_capacity(explanation.rendered().text().len() * 4 + 16_384));
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    out.raw(START);
    out.raw(&format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n"));
    out.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    out.text(&found.id);
    out.raw(TITLE_END).raw("\n<style>").raw(STYLE).raw("</style>\n</head>\n<body>\n<header>\n<h1>");
    out.shown(&found.id).raw("</h1>\n<p>from ").shown(&found.candidate.source).raw(" · ");
    out.shown(&found.reason.describe());
    for (name, value) in [("pack", found.candidate.pack_id.clone()), ("", explanation.signature())] {
        if let Some(value) = value {
            out.raw(" · ").raw(name).raw(if name.is_empty() { "" } else { " " }).shown(&value);
        }
    }
    out.raw("</p>\n");
    let ledger = Ledger::of(explanation.rendered());
    match &ledger {
        Ok(ledger) => out.summary(ledger),
        Err(error) => {
            out.raw("<p>Tokens are not counted: ").shown(&error.diagnostic().message).raw("</p>\n");
        }
    }
    out.raw("</header>\n<main>\n");
    out.body(explanation, ledger.as_ref().ok());
    if let Some(disclosed) = explanation.rendered().sections() {
        out.sections(disclosed, ledger.as_ref().ok());
    }
    out.variables(explanation, ledger.as_ref().ok());
    if let Ok(ledger) = &ledger {
        out.counts(ledger);
    }
    out.raw("</main>\n<script>").raw(SCRIPT).raw("</script>\n</body>\n</html>\n");
    out.0
}

fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// The page while it is written.
struct Page(String);

impl Page {
    /// What is from here.
    fn raw(&mut self, html: &str) -> &mut Page {
        self.0.push_str(html);
        self
    }

    /// Text of others, also inside of an attribute. What does not show is spelt out.
    fn text(&mut self, text: &str) -> &mut Page {
        for letter in text.chars() {
            match letter {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' => self.0.push_str("&#10;"),
                letter if is_unseen(letter) => self.0.push_str(&spelt(letter)),
                letter => self.0.push(letter),
            }
        }
        self
    }

    /// Text of others that is shown as it is. What does not show is spelt out in a box.
    fn shown(&mut self, text: &str) -> &mut Page {
        let mut from = 0;
        for (at, letter) in text.char_indices().filter(|(_, letter)| is_unseen(*letter)) {
            self.lines(&text[from..at]);
            self.raw("<i class=\"c\">").raw(&spelt(letter)).raw("</i>");
            from = at + letter.len_utf8();
        }
        self.lines(&text[from..])
    }

    /// Text whose line ends stay line ends.
    fn lines(&mut self, text: &str) -> &mut Page {
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.0.push('\n');
            }
            self.text(line);
        }
        self
    }

    fn attribute(&mut self, name: &str, value: &str) -> &mut Page {
        if value.is_empty() {
            return self;
        }
        self.raw(" ").raw(name).raw("=\"").text(value).raw("\"")
    }

    fn summary(&mut self, ledger: &Ledger) {
        let about = if ledger.is_exact() { "" } else { "about " };
        let _ = write!(self.0, "<p>{about}{} tokens", ledger.total());
        if let Some(model) = &ledger.model {
            self.raw(" for ").shown(model);
        }
        self.raw("</p>\n");
        for reason in ledger.estimates() {
            self.raw("<p>").shown(&reason).raw(".</p>\n");
        }
    }

    fn body(&mut self, explanation: &Explanation, ledger: Option<&Ledger>) {
        self.raw("<h2>Text</h2>\n<ul class=\"legend\">");
        for (kind, name) in KINDS {
            self.raw(&format!("<li class=\"{kind}\">{name}</li>"));
        }
        let files = files(explanation);
        for (name, index) in files.iter().filter(|(_, index)| **index > 0) {
            self.raw(&format!("<li class=\"f{}\">", index % FILES))
                .raw(&format!("<b>{index}</b> "))
                .shown(name);
            self.raw("</li>");
        }
        self.raw("</ul>\n<div class=\"view\">\n<pre id=\"text\">");
        let contributors = ledger.iter().flat_map(|ledger| &ledger.contributors);
        let numbers: HashMap<&Contributor, usize> =
            contributors.enumerate().map(|(index, entry)| (&entry.contributor, index)).collect();
        let mut last = 0;
        for span in explanation.rendered().spans().filter(|span| !span.range.is_empty()) {
            let file = file_of(&span).and_then(|file| files.get(file.as_str())).copied();
            // A number marks where an included file begins, or goes on behind another.
            let file = file.map(|index| (index, std::mem::replace(&mut last, index) != index));
            self.span(&span, &explanation.seen(&span), &numbers, file);
        }
        self.raw("</pre>\n<aside id=\"origin\" aria-live=\"polite\"><p>Point at a piece of the text to see where it came from; ");
        self.raw(
            "click to keep it. Point at a row below to mark everything from that \
             source.</p></aside>\n</div>\n",
        );
    }

    fn span(
        &mut self,
        span: &Span,
        text: &str,
        numbers: &HashMap<&Contributor, usize>,
        file: Option<(usize, bool)>,
    ) {
        let origin = &span.origin;
        let kind = origin.kind();
        let name = KINDS.iter().find(|(known, _)| *known == kind).map_or(kind, |(_, name)| name);
        match file {
            Some((index @ 1.., begins)) => {
                let number = if begins { format!(" data-f=\"{index}\"") } else { String::new() };
                self.raw(&format!("<span class=\"p {kind} f{}\"{number} tabindex=\"0\"", index % FILES));
            }
            _ => drop(self.raw(&format!("<span class=\"p {kind}\" tabindex=\"0\""))),
        }
        let says = label(origin);
        self.attribute("title", &says).attribute("data-k", name).attribute("data-l", &says);
        if let Some(place) = origin.place() {
            self.attribute("data-w", &place.to_string());
            if !origin.is_literal() {
                self.attribute("data-x", &shorten(place.text()));
            }
        }
        if let Some(section) = &span.section {
            self.attribute("data-s", section);
        }
        self.attribute("data-b", &format!("{} to {}", span.range.start, span.range.end - 1));
        if let Some(index) = numbers.get(&Contributor::of(origin)) {
            self.raw(&format!(" data-c=\"{index}\""));
        }
        self.raw(">").shown(text).raw("</span>");
    }

    fn variables(&mut self, explanation: &Explanation, ledger: Option<&Ledger>) {
        let variables = explanation.variables();
        if variables.is_empty() {
            return;
        }
        let own = ledger.map(own_tokens).unwrap_or_default();
        self.table("Variables", &["variable", "layer", "declared", "value", "tokens"], |page| {
            for variable in variables {
                let layer = variable.layer.map_or("absent", |layer| layer.as_str());
                let value = match variable.layer {
                    Some(_) => shorten(&variable.value.to_string()),
                    None => String::new(),
                };
                let tokens = own.get(variable.name.as_str()).map_or_else(String::new, usize::to_string);
                page.raw("<tr><td>").shown(&variable.name).raw("</td><td>").raw(layer).raw("</td><td>");
                page.raw(variable.declared.unwrap_or("")).raw("</td><td>").shown(&value);
                page.raw("</td><td class=\"n\">");
                page.raw(if variable.used { &tokens } else { "not used" }).raw("</td></tr>\n");
            }
        });
    }

    fn counts(&mut self, ledger: &Ledger) {
        self.table("Text by source", &["kind", "source", "tokens", "bytes"], |page| {
            for (index, entry) in ledger.contributors.iter().enumerate() {
                let kind = entry.contributor.kind();
                let name = KINDS.iter().find(|(known, _)| *known == kind).map_or(kind, |(_, name)| name);
                page.raw(&format!(
                    "<tr data-c=\"{index}\"><td><span class=\"{kind}\">{name}</span></td><td>"
                ));
                page.shown(&entry.contributor.label());
                page.raw(&format!(
                    "</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                    entry.tokens, entry.bytes
                ));
            }
        });
        let rows = ledger
            .messages
            .iter()
            .map(|message| (format!("{} {}", message.number, message.role), message.tokens));
        self.counted("Messages", "message", rows);
        if !ledger.tools.is_empty() {
            self.counted("Tools", "tool", ledger.tools.iter().map(|tool| (tool.name.clone(), tool.tokens)));
        }
        if ledger.output > 0 {
            self.counted("Answer", "part", std::iter::once(("its schema".to_owned(), ledger.output)));
        }
    }

    fn counted(&mut self, title: &str, what: &str, rows: impl Iterator<Item = (String, usize)>) {
        self.table(title, &[what, "tokens"], |page| {
            for (name, tokens) in rows {
                page.raw("<tr><td>").shown(&name);
                page.raw(&format!("</td><td class=\"n\">{tokens}</td></tr>\n"));
            }
        });
    }

    fn table(&mut self, title: &str, columns: &[&str], rows: impl FnOnce(&mut Page)) {
        self.raw(&format!("<h2>{title}</h2>\n<div class=\"wide\"><table>\n<tr>"));
        for column in columns {
            let class = if matches!(*column, "tokens" | "bytes") { " class=\"n\"" } else { "" };
            self.raw(&format!("<th{class}>{column}</th>"));
        }
        self.raw("</tr>\n");
        rows(self);
        self.raw("</table></div>\n");
    }
}

/// How many colours there are for included files; the first is that of the prompt's own file.
const FILES: usize = 6;

/// The author's file that a piece is from.
fn file_of(span: &Span) -> Option<String> {
    let place = span.origin.place().filter(|_| span.origin.is_literal())?;
    Some(place.file().to_owned())
}

/// The authors' files in the order of the text. The prompt's own file has the number 0.
fn files(explanation: &Explanation) -> IndexMap<String, usize> {
    let own = explanation.prepared().prompt().template.name().to_owned();
    let mut files = IndexMap::from([(own, 0)]);
    for span in explanation.rendered().spans().filter(|span| !span.range.is_empty()) {
        if let Some(file) = file_of(&span) {
            let next = files.len();
            files.entry(file).or_insert(next);
        }
    }
    files
}

/// The kinds of origins, and what they are called here.
const KINDS: [(&str, &str); 5] = [
    ("literal", "an author's text"),
    ("value", "a value"),
    ("rich", "a rich input"),
    ("hook", "a hook"),
    ("frame", "text of the engine"),
];

/// The tokens of what shows each variable alone; one that only shows together with others has none.
fn own_tokens(ledger: &Ledger) -> HashMap<&str, usize> {
    let mut own = HashMap::new();
    for entry in &ledger.contributors {
        let name = match &entry.contributor {
            Contributor::Variables(shown) if shown.len() == 1 => Some(shown[0].path.as_str()),
            Contributor::Rich { input, .. } => input.as_deref(),
            _ => None,
        };
        if let Some(name) = name {
            own.entry(name).or_insert(entry.tokens);
        }
    }
    own
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
        None => text.to_owned(),
    }
}

/// Whether a character does not show, or changes how others show.
pub(super) fn is_unseen(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => true,
        '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        // What no page may hold, even escaped.
        '\u{fdd0}'..='\u{fdef}' => true,
        letter => letter.is_control() || u32::from(letter) & 0xfffe == 0xfffe,
    }
}

/// A character that does not show, spelt out.
pub(super) fn spelt(letter: char) -> String {
    format!("U+{:04X}", u32::from(letter))
}
