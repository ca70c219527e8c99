//! The table as a picture: for each row a line per contestant, with a dot where its figure lies in multiples of ours.
//!
//! The scale is logarithmic, since peers differ by thousands. Everything has its name and its figure beside it, so that no colour
//! has to be distinguished from another one. Colours are classes, because a page can be light or dark.

use std::fmt::Write;

use super::figure::digits;
use super::{Outcome, Row, Table};

const WIDTH: f64 = 960.0;
/// Where names end, and where the scale begins and ends.
const NAMES: f64 = 190.0;
pub const LEFT: f64 = 210.0;
pub const RIGHT: f64 = 770.0;
const LINE: f64 = 18.0;
const HEADING: f64 = 30.0;
const TOP: f64 = 108.0;
/// Letters of a reason that fit on a line.
const REASON: usize = 78;

const STYLE: &str = "\
text { font: 12px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: #24292f; }
.ground { fill: #ffffff; }
.title { font-size: 17px; font-weight: 600; }
.row { font-weight: 600; font-size: 13px; }
.quiet { fill: #57606a; }
.ours { fill: #0550ae; font-weight: 600; }
.grid { stroke: #d0d7de; stroke-width: 1; }
.one { stroke: #0550ae; stroke-width: 1.5; }
.stem { stroke: #8c959f; stroke-width: 2; }
.dot { fill: #57606a; }
.dot-ours { fill: #0550ae; }
.dot-floor { fill: none; stroke: #8c959f; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.ground { fill: #0d1117; }
.quiet { fill: #9198a1; }
.ours { fill: #79c0ff; }
.grid { stroke: #30363d; }
.one { stroke: #79c0ff; }
.stem { stroke: #6e7681; }
.dot { fill: #9198a1; }
.dot-ours { fill: #79c0ff; }
.dot-floor { stroke: #6e7681; }
}";

/// The whole picture.
pub fn svg(table: &Table) -> String {
    let scale = Scale::of(table);
    let lines = |row: &Row| 1 + row.peers.len() + usize::from(row.floor.is_some());
    let height = |row: &Row| HEADING + LINE * lines(row) as f64;
    let bottom = TOP + table.rows.iter().map(height).sum::<f64>();
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {h}\" width=\"{WIDTH}\" height=\"{h}\" role=\"img\">\n\
         <title>Cuebook and its peers</title>\n<style>{STYLE}</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>",
        h = bottom + 40.0
    );
    text(&mut out, 20.0, 30.0, "title", "", "Cuebook and its peers: multiples of what cuebook takes");
    let about: Vec<String> = table.about.iter().map(|(name, value)| format!("{name} {value}")).collect();
    text(&mut out, 20.0, 48.0, "quiet", "", "less is better, on a logarithmic scale");
    text(&mut out, 20.0, 64.0, "quiet", "", &short(&about.join("; "), 150));
    for power in scale.lowest..=scale.highest {
        let x = scale.at(10_f64.powi(power));
        let class = if power == 0 { "one" } else { "grid" };
        let _ = writeln!(
            out,
            "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{y1:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>",
            y1 = TOP - 12.0
        );
        let times = format!("{}×", 10_f64.powi(power));
        text(&mut out, x, TOP - 18.0, "quiet", "middle", &times);
        text(&mut out, x, bottom + 16.0, "quiet", "middle", &times);
    }
    let mut y = TOP;
    for row in &table.rows {
        row_lines(&mut out, &scale, row, y);
        y += height(row);
    }
    out.push_str("</svg>\n");
    out
}

fn row_lines(out: &mut String, scale: &Scale, row: &Row, top: f64) {
    let mut y = top + HEADING - 10.0;
    text(out, 20.0, y, "row", "", &row.name);
    let mut line = |name: &str, outcome: &Outcome, kind: Kind| {
        y += LINE;
        let class = if kind == Kind::Ours { "ours" } else { "" };
        text(out, NAMES, y, class, "end", &short(name, 30));
        let value = match outcome {
            Ok(value) => *value,
            Err(why) => {
                // It stands where dots would be, so the lines behind it give way.
                let _ = writeln!(
                    out,
                    "<rect class=\"ground\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{LINE}\"/>",
                    LEFT - 4.0,
                    y - 13.0,
                    RIGHT - LEFT + 8.0
                );
                return text(out, LEFT, y, "quiet", "", &short(&format!("missing: {why}"), REASON));
            }
        };
        let mut label = row.unit.show(value);
        if let Ok(ours) = row.ours {
            let (one, x, middle) = (scale.at(1.0), scale.at(value / ours), y - 4.0);
            let _ = writeln!(
                out,
                "<line class=\"stem\" x1=\"{one:.1}\" y1=\"{middle:.1}\" x2=\"{x:.1}\" y2=\"{middle:.1}\"/>\n\
                 <circle class=\"{}\" cx=\"{x:.1}\" cy=\"{middle:.1}\" r=\"4.5\"/>",
                kind.dot()
            );
            if kind != Kind::Ours {
                let _ = write!(label, "  ·  {}×", digits(value / ours));
            }
        }
        text(out, RIGHT + 20.0, y, class, "", &label);
    };
    line("cuebook", &row.ours, Kind::Ours);
    for peer in &row.peers {
        line(&peer.title(), &peer.outcome, Kind::Peer);
    }
    if let Some(floor) = &row.floor {
        line("floor", &floor.outcome, Kind::Floor);
    }
}

#[derive(PartialEq, Eq)]
enum Kind {
    Ours,
    Peer,
    Floor,
}

impl Kind {
    fn dot(&self) -> &'static str {
        match self {
            Kind::Ours => "dot-ours",
            Kind::Peer => "dot",
            Kind::Floor => "dot-floor",
        }
    }
}

/// Where a multiple of ours lies.
struct Scale {
    /// Powers of ten that all figures lie between.
    lowest: i32,
    highest: i32,
}

impl Scale {
    fn of(table: &Table) -> Scale {
        let (mut lowest, mut highest) = (-1, 1);
        for row in &table.rows {
            let Ok(ours) = row.ours else { continue };
            let floor = row.floor.as_ref().map(|floor| &floor.outcome);
            for value in row.peers.iter().map(|peer| &peer.outcome).chain(floor).flatten() {
                let power = (value / ours).log10();
                if power.is_finite() {
                    lowest = lowest.min(power.floor() as i32);
                    highest = highest.max(power.ceil() as i32);
                }
            }
        }
        Scale { lowest, highest }
    }

    fn at(&self, times: f64) -> f64 {
        let (lowest, highest) = (f64::from(self.lowest), f64::from(self.highest));
        let power = if times > 0.0 { times.log10() } else { lowest };
        LEFT + (power.clamp(lowest, highest) - lowest) / (highest - lowest) * (RIGHT - LEFT)
    }
}

fn text(out: &mut String, x: f64, y: f64, class: &str, anchor: &str, text: &str) {
    let _ = write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\"");
    for (name, value) in [("class", class), ("text-anchor", anchor)] {
        if !value.is_empty() {
            let _ = write!(out, " {name}=\"{value}\"");
        }
    }
    out.push('>');
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Nothing else of these is allowed in XML.
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out.push_str("</text>\n");
}

fn short(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters - 1).chain(['…']).collect()
}
