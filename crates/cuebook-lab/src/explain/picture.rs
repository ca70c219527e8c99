//! An explanation as an SVG picture: the text in coloured pieces, and beside each line where its pieces came from.
//!
//! The picture needs no script, no font and no other file, and follows the reader's light or dark mode. All text in it is
//! escaped; characters that do not show are spelled out.

use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

use super::page::{is_unseen, spelt};
use super::{Explanation, label};
use crate::render::Origin;

/// The widest line of text, in cells, before it wraps.
const WIDTH: usize = 60;
/// The size of a cell, in pixels.
const CELL: f64 = 8.4;
/// The height of a line, in pixels.
const LINE: usize = 24;
/// The space around everything, in pixels.
const MARGIN: usize = 20;
/// How many colours there are for authors' files.
const FILES: usize = 4;
/// The longest label, in characters.
const LABEL: usize = 44;
/// The width of a character of a label, in pixels.
const LABEL_CELL: f64 = 7.3;
/// How many labels one line shows.
const LABELS: usize = 4;

const STYLE: &str = "\
text{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}\
.t{fill:#1b1f24}.q{fill:#5b6570;font-size:12px}.b{fill:#ffffff;stroke:#d6dbe1}.k{stroke:#98a3ae}\
.f0{fill:#eef1f4}.f1{fill:#fff0d6}.f2{fill:#e3f4e4}.f3{fill:#fde3ea}\
.value{fill:#cfe6ff}.rich{fill:#e8d8ff}.hook{fill:#ffd9a8}.frame{fill:#d5eeda}\
@media(prefers-color-scheme:dark){\
.t{fill:#e4e8ec}.q{fill:#98a3ae}.b{fill:#14171b;stroke:#333b44}\
.f0{fill:#262d34}.f1{fill:#453516}.f2{fill:#17361c}.f3{fill:#4a1f2c}\
.value{fill:#12406b}.rich{fill:#41296a}.hook{fill:#5c3a0d}.frame{fill:#1c4a25}}";

/// What every picture begins with, and what its title ends with.
const START: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"";
const TITLE_END: &str = ", and where each part came from</title>";

/// Whether a file that begins like this is such a picture.
pub fn is_picture(start: &[u8]) -> bool {
    start.starts_with(START.as_bytes()) && memchr::memmem::find(start, TITLE_END.as_bytes()).is_some()
}

/// A part of one line that has one origin.
struct Run {
    text: String,
    class: String,
    label: String,
}

/// The picture.
pub fn picture(explanation: &Explanation) -> String {
    let lines = lines(explanation);
    let cells = lines.iter().map(|runs| runs.iter().map(|run| run.text.width()).sum()).max().unwrap_or(0);
    let labels_at = (MARGIN * 2) as f64 + cells as f64 * CELL;
    let widest = lines.iter().map(|runs| labels(runs).into_iter().map(label_width).sum()).fold(0.0, f64::max);
    let width = labels_at + widest + MARGIN as f64;
    let height = MARGIN * 2 + lines.len() * LINE;
    let mut out = format!(
        "{START} viewBox=\"0 0 {width:.0} {height}\" width=\"{width:.0}\" height=\"{height}\"><title>{}{TITLE_END}\
         <style>{STYLE}</style>\n\
         <rect class=\"b\" x=\".5\" y=\".5\" width=\"{:.0}\" height=\"{}\" rx=\"8\"/>\n",
        escaped(&explanation.prepared().found().id),
        width - 1.0,
        height - 1,
    );
    for (index, runs) in lines.iter().enumerate() {
        line(&mut out, runs, MARGIN + index * LINE, labels_at);
    }
    out.push_str("</svg>\n");
    out
}

/// Draws one line: pieces on the left, their origins on the right.
fn line(out: &mut String, runs: &[Run], top: usize, labels_at: f64) {
    let mut x = MARGIN as f64;
    for run in runs {
        let width = run.text.width() as f64 * CELL;
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "<rect class=\"{}\" x=\"{x:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{}\" rx=\"3\"/>\
             <text class=\"t\" x=\"{x:.1}\" y=\"{}\" textLength=\"{width:.1}\" xml:space=\"preserve\">{}</text>",
            run.class,
            LINE - 3,
            top + LINE - 8,
            escaped(&run.text),
        );
        x += width;
    }
    let mut x = labels_at;
    for run in labels(runs) {
        let _ = writeln!(
            out,
            "<rect class=\"{} k\" x=\"{x:.1}\" y=\"{}\" width=\"11\" height=\"11\" rx=\"2\"/>\
             <text class=\"q\" x=\"{:.1}\" y=\"{}\" xml:space=\"preserve\">{}</text>",
            run.class,
            top + 5,
            x + 16.0,
            top + LINE - 9,
            escaped(&run.label),
        );
        x += label_width(run);
    }
}

/// The room that a label takes, with its mark and a gap.
fn label_width(run: &Run) -> f64 {
    16.0 + run.label.width() as f64 * LABEL_CELL + 14.0
}

/// The distinct labels of a line.
fn labels(runs: &[Run]) -> Vec<&Run> {
    let mut labels: Vec<&Run> = Vec::new();
    for run in runs {
        if labels.len() < LABELS && !labels.iter().any(|known| known.label == run.label) {
            labels.push(run);
        }
    }
    labels
}

/// The text in lines of coloured pieces; long lines wrap.
fn lines(explanation: &Explanation) -> Vec<Vec<Run>> {
    let mut files: Vec<String> = Vec::new();
    let mut lines: Vec<Vec<Run>> = vec![Vec::new()];
    let mut used = 0;
    for span in explanation.rendered().spans().filter(|span| !span.range.is_empty()) {
        let (class, name) = (class(&span.origin, &mut files), shortened(&label(&span.origin)));
        for (index, part) in explanation.seen(&span).split('\n').enumerate() {
            if index > 0 {
                lines.push(Vec::new());
                used = 0;
            }
            for word in visible(part).split_inclusive(' ') {
                let width = word.width();
                if used > 0 && used + width > WIDTH {
                    lines.push(Vec::new());
                    used = 0;
                }
                used += width;
                // `lines` is never empty.
                let Some(line) = lines.last_mut() else { continue };
                match line.last_mut().filter(|run| run.class == class && run.label == name) {
                    Some(run) => run.text.push_str(word),
                    None => {
                        line.push(Run { text: word.to_owned(), class: class.clone(), label: name.clone() });
                    }
                }
            }
        }
    }
    while lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    lines
}

/// The class of an origin: one for each kind, and one for each of an author's files.
fn class(origin: &Origin, files: &mut Vec<String>) -> String {
    let Some(place) = origin.place().filter(|_| origin.is_literal()) else { return origin.kind().to_owned() };
    let known = files.iter().position(|file| file == place.file());
    let index = known.unwrap_or_else(|| {
        files.push(place.file().to_owned());
        files.len() - 1
    });
    format!("f{}", index % FILES)
}

fn shortened(text: &str) -> String {
    let text = visible(text);
    match text.chars().count() {
        count if count > LABEL => format!("…{}", text.chars().skip(count - LABEL + 1).collect::<String>()),
        _ => text,
    }
}

/// The text with tabs as spaces and unseen characters spelled out.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\t' => out.push_str("    "),
            letter if is_unseen(letter) => out.push_str(&spelt(letter)),
            letter => out.push(letter),
        }
    }
    out
}

fn escaped(text: &str) -> String {
    visible(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
