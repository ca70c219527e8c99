//! The headings of a file, and what stands below each.
//!
//! A scanner of our own, and not a parser of Markdown: the text is a template first, in which `$names`, Jinja2 and Mustache mean
//! nothing to Markdown, and only three things of Markdown matter here, each of which is a matter of whole lines. A heading is a
//! line that *begins* with one to six `#` and a space; in code between fences and in HTML comments it is text. A heading that is
//! indented, quoted or underlined is text, so that what is a section can be seen at the margin.

use std::ops::Range;

/// A heading and what stands below it, up to the next one. Ranges are bytes of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// How many `#` it has.
    pub level: usize,
    /// The marks.
    pub marks: Range<usize>,
    /// The title, without white space and closing marks around it.
    pub title: Range<usize>,
    /// The YAML of its settings, if there is any.
    pub settings: Option<Range<usize>>,
    /// The text, without blank lines around it.
    pub body: Range<usize>,
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// The text before the first heading, without blank lines around it.
    pub before: Range<usize>,
    pub parts: Vec<Part>,
    /// Lines that open a block of settings which does not stand directly below a heading.
    pub misplaced: Vec<Range<usize>>,
    /// A line that opens a block of code, or a comment, which is never closed.
    pub unclosed: Option<Range<usize>>,
}

/// What a line is inside of.
enum Inside {
    Code { mark: u8, length: usize, opened: Range<usize>, settings: Option<usize> },
    Comment { opened: Range<usize> },
}

/// Looks at a part of a text.
pub fn scan(text: &str, range: Range<usize>) -> Scan {
    let mut scan = Scan { before: range.start..range.start, ..Scan::default() };
    let mut inside: Option<Inside> = None;
    let mut at = range.start;
    // Where the text of the part that is open begins, and whether nothing but blank lines came since its heading.
    let mut body = range.start;
    let mut is_fresh = false;
    for line in text[range.clone()].split_inclusive('\n') {
        let here = at..at + line.len();
        at = here.end;
        let bare = line.trim_end();
        match &inside {
            Some(Inside::Code { mark, length, settings, .. }) => {
                if closes(bare, *mark, *length) {
                    if let (Some(start), Some(part)) = (settings, scan.parts.last_mut()) {
                        part.settings = Some(*start..here.start);
                        body = here.end;
                    }
                    inside = None;
                }
                continue;
            }
            Some(Inside::Comment { .. }) => {
                if bare.contains("-->") {
                    inside = None;
                }
                continue;
            }
            None => {}
        }
        if let Some((level, title)) = heading(bare) {
            end(&mut scan, text, body..here.start);
            let title = here.start + title.start..here.start + title.end;
            let marks = here.start..here.start + level;
            scan.parts.push(Part { level, marks, title, settings: None, body: here.end..here.end });
            (body, is_fresh) = (here.end, true);
            continue;
        }
        let opened = here.start + (bare.len() - bare.trim_start().len())..here.start + bare.len();
        if let Some((mark, length, info)) = opens(bare) {
            let is_settings = is_section(info);
            let settings = (is_settings && is_fresh).then_some(here.end);
            if is_settings && !is_fresh {
                scan.misplaced.push(opened.clone());
            }
            inside = Some(Inside::Code { mark, length, opened, settings });
        } else if bare.trim_start().starts_with("<!--") && indent(bare) < 4 && !bare.contains("-->") {
            inside = Some(Inside::Comment { opened });
        }
        is_fresh = is_fresh && bare.is_empty();
    }
    end(&mut scan, text, body..range.end);
    scan.unclosed = inside.map(|inside| match inside {
        Inside::Code { opened, .. } | Inside::Comment { opened } => opened,
    });
    scan
}

/// Ends the part that is open with this text.
fn end(scan: &mut Scan, text: &str, range: Range<usize>) {
    let body = without_blank_lines(text, range);
    match scan.parts.last_mut() {
        Some(part) => part.body = body,
        None => scan.before = body,
    }
}

/// The range without blank lines at its beginning and white space at its end. The margin of its first line stays.
fn without_blank_lines(text: &str, range: Range<usize>) -> Range<usize> {
    let mut start = range.start;
    for line in text[range.clone()].split_inclusive('\n') {
        if !line.trim().is_empty() {
            break;
        }
        start += line.len();
    }
    start..start + text[start..range.end].trim_end().len()
}

fn indent(line: &str) -> usize {
    line.bytes().take_while(|byte| *byte == b' ').count()
}

/// The level of a heading, and where its title stands in the line.
fn heading(line: &str) -> Option<(usize, Range<usize>)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    if !(1..=6).contains(&level) || !matches!(line.as_bytes().get(level), None | Some(b' ' | b'\t')) {
        return None;
    }
    let rest = &line[level..];
    let start = level + (rest.len() - rest.trim_start().len());
    let title = line.get(start..).unwrap_or_default();
    // Marks at the end belong to the heading if there is white space before them.
    let bare = title.trim_end_matches('#');
    let closed = bare.is_empty() || bare.ends_with([' ', '\t']);
    let title = if closed { bare.trim_end() } else { title };
    Some((level, start..start + title.len()))
}

/// The mark, the length and the words behind it of a line that opens a block of code.
fn opens(line: &str) -> Option<(u8, usize, &str)> {
    let inner = line.trim_start_matches(' ');
    let mark = *inner.as_bytes().first().filter(|mark| matches!(**mark, b'`' | b'~'))?;
    let length = inner.bytes().take_while(|byte| *byte == mark).count();
    let info = inner[length..].trim();
    let fits = length >= 3 && indent(line) < 4 && !(mark == b'`' && info.contains('`'));
    fits.then_some((mark, length, info))
}

fn closes(line: &str, mark: u8, length: usize) -> bool {
    let inner = line.trim_start_matches(' ');
    indent(line) < 4 && inner.len() >= length && inner.bytes().all(|byte| byte == mark)
}

/// Whether the words behind a fence say that settings follow.
fn is_section(info: &str) -> bool {
    let mut words = info.split_whitespace();
    matches!((words.next(), words.next(), words.next()), (Some("yaml" | "yml"), Some("section"), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<(usize, &str, &str, Option<&str>)> {
        let show = |part: &Part| {
            let settings = part.settings.clone().map(|range| &text[range]);
            (part.level, &text[part.title.clone()], &text[part.body.clone()], settings)
        };
        scan(text, 0..text.len()).parts.iter().map(show).collect()
    }

    #[test]
    fn headings_at_the_margin_make_parts_and_lose_their_marks() {
        assert_eq!(
            parts(
                "# A\n\n  one\ntwo\n\n## B ##\n### C#\n#\n#tag\n####### seven\n  # in\n> # quoted\nT\n==\n"
            ),
            [
                (1, "A", "  one\ntwo", None),
                (2, "B", "", None),
                (3, "C#", "", None),
                (1, "", "#tag\n####### seven\n  # in\n> # quoted\nT\n==", None),
            ]
        );
    }

    #[test]
    fn code_and_comments_hold_no_headings() {
        let text = "# A\n```sh\n# not\n````\n~~~\n# nor\n```\n~~~~\n<!-- x\n# never\n-->\n# B\n<!-- one line -->\n# C";
        let titles: Vec<&str> = parts(text).iter().map(|part| part.1).collect();
        assert_eq!(titles, ["A", "B", "C"]);
        assert_eq!(scan(text, 0..text.len()).unclosed, None);
        // A fence of four is not closed by one of three, and what follows is code until the end.
        let open = "# A\n````\n```\n# B\n";
        assert_eq!(scan(open, 0..open.len()).unclosed, Some(4..8));
    }

    #[test]
    fn settings_stand_directly_below_a_heading() {
        let text = "# A\n\n```yaml section\nkey: a\n```\nBody\n\n# B\nText\n```yaml section\nkey: b\n```\n";
        assert_eq!(
            parts(text),
            [(1, "A", "Body", Some("key: a\n")), (1, "B", "Text\n```yaml section\nkey: b\n```", None)]
        );
        let found = scan(text, 0..text.len()).misplaced;
        assert_eq!(found.iter().map(|range| &text[range.clone()]).collect::<Vec<_>>(), ["```yaml section"]);
        let second = "# A\n```yaml section\n```\n```yaml section\n```\n";
        assert_eq!(scan(second, 0..second.len()).misplaced.len(), 1, "one block is enough");
    }

    #[test]
    fn text_before_the_first_heading_is_found() {
        let text = "\n\nHello\n\n# A\n";
        assert_eq!(&text[scan(text, 0..text.len()).before], "Hello");
    }
}
