//! Diagnostics as a person reads them: the message, the excerpt with the place underlined, and the way out.

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Renderer, Snippet};

use super::{Diagnostic, Severity, printable, printable_lines, without_secrets};
use crate::source::Place;

/// Lines of the source that are shown on either side of the place.
const CONTEXT_LINES: usize = 1;

/// Lines that two places of one file may lie apart and still be shown in one excerpt.
const MAX_LINES_BETWEEN: usize = 6;

/// The longest line that is shown around the place. The renderer cuts the line of the place itself, and only that.
const CONTEXT_WIDTH: usize = 200;

/// Bytes of the lines that a report shows. Findings beyond that are shown without their lines: each of thousands of findings can lie
/// on the same line of a megabyte.
const MAX_SHOWN: usize = 1 << 20;

/// Renders findings one below the other, in colour if asked to.
pub fn report<'d>(diagnostics: impl IntoIterator<Item = &'d Diagnostic>, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    let mut left = MAX_SHOWN;
    for diagnostic in diagnostics {
        if !out.is_empty() {
            out.push('\n');
        }
        let mut diagnostic = safe(diagnostic);
        if left == 0 {
            without_lines(&mut diagnostic);
        }
        for group in groups(&diagnostic, &mut left) {
            let rendered = renderer.render(&[group]);
            let mut rendered = rendered.trim_end();
            // Behind a line of context the renderer leaves its margin open, also where nothing follows.
            if let Some((above, last)) = rendered.rsplit_once('\n')
                && is_margin(last)
            {
                rendered = above.trim_end();
            }
            out.push_str(rendered);
            out.push('\n');
        }
    }
    out
}

/// The same finding without anything that a terminal would act upon.
fn safe(diagnostic: &Diagnostic) -> Diagnostic {
    Diagnostic {
        message: printable(&diagnostic.message).into_owned(),
        label: diagnostic.label.as_deref().map(|label| printable(label).into_owned()),
        related: diagnostic
            .related
            .iter()
            .map(|(place, label)| (place.clone(), printable(label).into_owned()))
            .collect(),
        file: diagnostic.file.as_deref().map(|file| printable(file).into_owned()),
        hint: diagnostic
            .hint
            .as_ref()
            .map(|hint| hint.clone().map(|text| printable_lines(text).into_owned())),
        place: diagnostic.place.clone(),
        ..*diagnostic
    }
}

/// Leaves of the places only the name of the first.
fn without_lines(diagnostic: &mut Diagnostic) {
    if let Some(place) = diagnostic.place.take() {
        diagnostic.file = Some(printable(&place.to_string()).into_owned());
    }
    diagnostic.related.clear();
}

/// Whether a line is nothing but the margin, whatever its colour.
fn is_margin(line: &str) -> bool {
    let mut parts = line.split('\x1b');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    plain.extend(parts.map(|part| part.split_once('m').map_or(part, |(_, text)| text)));
    plain.trim() == "|"
}

/// What stands below each other without a gap. Without an excerpt there is no margin for the way out to hang on, so it
/// begins a line of its own.
fn groups<'d>(diagnostic: &'d Diagnostic, left: &mut usize) -> Vec<Group<'d>> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let message = match (&diagnostic.place, &diagnostic.file) {
        (None, Some(file)) => format!("{file}: {}", diagnostic.message),
        _ => diagnostic.message.clone(),
    };
    let mut group =
        level.primary_title(message).id(diagnostic.code.as_str()).elements([] as [Element<'_>; 0]);
    let excerpts = excerpts(diagnostic);
    if excerpts.is_empty() {
        let hint = diagnostic.hint.as_deref().map(|hint| Level::HELP.primary_title(hint));
        let hint = hint.map(|title| title.elements([] as [Element<'_>; 0]));
        return std::iter::once(group).chain(hint).collect();
    }
    for excerpt in &excerpts {
        *left = left.saturating_sub(excerpt.lines.len());
        group = group.element(excerpt.snippet());
    }
    if let Some(hint) = &diagnostic.hint {
        group = group.element(Level::HELP.message(hint.text.as_str()));
    }
    vec![group]
}

/// Neighbouring lines of one source and what is marked in them.
struct Excerpt<'d> {
    marks: Vec<(&'d Place, AnnotationKind, Option<&'d str>)>,
    /// The bytes of the marked lines, whole lines.
    lines: Range<usize>,
}

/// The places of a finding, the main one first; places that lie close together share an excerpt.
fn excerpts(diagnostic: &Diagnostic) -> Vec<Excerpt<'_>> {
    let main =
        diagnostic.place.iter().map(|place| (place, AnnotationKind::Primary, diagnostic.label.as_deref()));
    let related = diagnostic
        .related
        .iter()
        .map(|(place, label)| (place, AnnotationKind::Context, Some(label.as_str())));
    let mut excerpts: Vec<Excerpt<'_>> = Vec::new();
    for mark in main.chain(related) {
        let text = mark.0.source().text();
        let lines = mark.0.source().lines_of(marked(mark.0));
        let near = excerpts.iter_mut().find(|excerpt| {
            let same = std::sync::Arc::ptr_eq(excerpt.marks[0].0.source(), mark.0.source());
            let gap = excerpt.lines.end.min(lines.end)..excerpt.lines.start.max(lines.start);
            same && (gap.is_empty() || text[gap].matches('\n').count() <= MAX_LINES_BETWEEN)
        });
        match near {
            Some(excerpt) => {
                excerpt.lines = excerpt.lines.start.min(lines.start)..excerpt.lines.end.max(lines.end);
                excerpt.marks.push(mark);
            }
            None => excerpts.push(Excerpt { marks: vec![mark], lines }),
        }
    }
    excerpts
}

/// What is underlined: a place that goes over several lines is underlined on its first, and the end of a text is behind
/// its last line rather than on an empty one.
fn marked(place: &Place) -> Range<usize> {
    let range = place.range();
    let text = place.source().text();
    if range.start == text.len() && text.ends_with('\n') {
        return range.start - 1..range.start - 1;
    }
    let first = place.text().split('\n').next().unwrap_or_default();
    range.start..range.start + first.len()
}

impl<'d> Excerpt<'d> {
    /// The lines with their neighbours. They are cut out here because a source can be megabytes long.
    fn snippet(&self) -> Snippet<'d, Annotation<'d>> {
        let (place, ..) = self.marks[0];
        let source = place.source();
        let text = source.text();
        let Range { mut start, mut end } = self.lines;
        for _ in 0..CONTEXT_LINES {
            let before = source.lines_of(start.saturating_sub(1)..start.saturating_sub(1));
            if start > 0 && before.len() <= CONTEXT_WIDTH {
                start = before.start;
            }
            // The empty rest behind the last newline is no line.
            let after = source.lines_of((end + 1).min(text.len())..(end + 1).min(text.len()));
            if end + 1 < text.len() && after.len() <= CONTEXT_WIDTH {
                end = after.end;
            }
        }
        let (first_number, _) = source.line_column(start);
        let annotations = self.marks.iter().map(|(place, kind, label)| {
            let range = marked(place);
            kind.span(range.start - start..range.end - start).label(*label)
        });
        let lines: Vec<Cow<'_, str>> = text[start..end].split('\n').map(without_secrets).collect();
        Snippet::source(lines.join("\n"))
            .path(place.file())
            .line_start(first_number)
            .fold(false)
            .annotations(annotations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::source::Source;

    fn shown(diagnostic: &Diagnostic) -> String {
        report([diagnostic], false)
    }

    #[test]
    fn the_lines_around_a_place_are_shown() {
        let source = Source::new("t.md", "one\ntwo\nthree\nfour\nfive\n");
        let diagnostic = Diagnostic::new(Code::TemplateSyntax, "wrong")
            .at(source.place(8..13))
            .label("here")
            .hint("mend it");
        assert_eq!(
            shown(&diagnostic),
            "\
error[CB304]: wrong
 --> t.md:3:1
  |
2 | two
3 | three
  | ^^^^^ here
4 | four
  |
  = help: mend it
"
        );
    }

    #[test]
    fn thousands_of_findings_on_one_long_line_show_it_a_few_times() {
        let source = Source::new("t.md", "word ".repeat(100_000));
        let findings: Vec<Diagnostic> = (0..2_000)
            .map(|n| Diagnostic::new(Code::TemplateSyntax, "wrong").at(source.place(n * 5..n * 5 + 4)))
            .collect();
        let shown = report(&findings, false);
        assert_eq!(shown.matches("wrong").count(), 2_000);
        assert_eq!(shown.matches("^^^^").count(), 3);
        assert!(shown.ends_with("error[CB304]: t.md:1:9996: wrong\n"), "{}", &shown[shown.len() - 200..]);
    }

    #[test]
    fn a_key_on_a_line_that_is_shown_is_not() {
        let source = Source::new("t.yaml", "a: 1\napiKey: sk-literal-secret-123456\nb: x\n");
        let shown = shown(&Diagnostic::new(Code::TemplateSyntax, "wrong").at(source.place(0..1)));
        assert_eq!(
            shown,
            "error[CB304]: wrong\n --> t.yaml:1:1\n  |\n1 | a: 1\n  | ^\n2 | apiKey: ************************\n"
        );
    }

    #[test]
    fn the_first_and_the_last_line_have_one_neighbour() {
        let source = Source::new("t.md", "one\ntwo\n");
        let first = shown(&Diagnostic::new(Code::TemplateSyntax, "wrong").at(source.place(0..3)));
        assert_eq!(first, "error[CB304]: wrong\n --> t.md:1:1\n  |\n1 | one\n  | ^^^\n2 | two\n");
        let last = shown(&Diagnostic::new(Code::TemplateSyntax, "wrong").at(source.place(4..7)));
        assert_eq!(last, "error[CB304]: wrong\n --> t.md:2:1\n  |\n1 | one\n2 | two\n  | ^^^\n");
        let end = shown(&Diagnostic::new(Code::TemplateSyntax, "wrong").at(source.place(8..8)));
        assert_eq!(end, "error[CB304]: wrong\n --> t.md:2:4\n  |\n1 | one\n2 | two\n  |    ^\n");
    }

    #[test]
    fn places_that_lie_close_together_share_an_excerpt() {
        let source = Source::new("t.json", "{\n  \"a\": 1,\n  \"b\": 2,\n  \"a\": 3\n}\n");
        let diagnostic = Diagnostic::new(Code::BadInput, "twice")
            .at(source.place(24..27))
            .label("second")
            .related(source.place(4..7), "first");
        assert_eq!(
            shown(&diagnostic),
            "\
error[CB407]: twice
 --> t.json:4:3
  |
1 | {
2 |   \"a\": 1,
  |   --- first
3 |   \"b\": 2,
4 |   \"a\": 3
  |   ^^^ second
5 | }
"
        );
    }

    #[test]
    fn places_far_apart_and_in_other_files_have_their_own_excerpts() {
        let source = Source::new("a.md", format!("first\n{}last\n", "x\n".repeat(20)));
        let other = Source::new("b.md", "other\n");
        let diagnostic = Diagnostic::new(Code::BadInput, "twice")
            .at(source.place(0..5))
            .related(source.place(46..50), "again")
            .related(other.place(0..5), "and here");
        assert_eq!(
            shown(&diagnostic),
            "\
error[CB407]: twice
  --> a.md:1:1
   |
 1 | first
   | ^^^^^
 2 | x
   |
  ::: a.md:22:1
   |
21 | x
22 | last
   | ---- again
   |
  ::: b.md:1:1
   |
 1 | other
   | ----- and here
"
        );
    }

    #[test]
    fn without_a_place_the_way_out_begins_its_own_line() {
        let diagnostic = Diagnostic::new(Code::PromptNotFound, "no prompt `x` was found").hint("one\n  two");
        assert_eq!(shown(&diagnostic), "error[CB101]: no prompt `x` was found\nhelp: one\n        two\n");
        let diagnostic = Diagnostic::new(Code::Unreadable, "a folder").file("x");
        assert_eq!(shown(&diagnostic), "error[CB110]: x: a folder\n");
    }

    #[test]
    fn colour_changes_no_text() {
        let source = Source::new("t.md", "one\ntwo\n");
        let diagnostic = Diagnostic::new(Code::TemplateSyntax, "wrong").at(source.place(0..3));
        let coloured = report([&diagnostic], true);
        assert!(coloured.contains('\x1b'));
        assert_eq!(coloured.lines().count(), shown(&diagnostic).lines().count());
    }

    #[test]
    fn endless_neighbours_are_left_out() {
        let source = Source::new("t.md", format!("{}\nhere\n{}\n", "a".repeat(5000), "b".repeat(5000)));
        let diagnostic = Diagnostic::new(Code::TemplateSyntax, "wrong").at(source.place(5001..5005));
        assert_eq!(shown(&diagnostic), "error[CB304]: wrong\n --> t.md:2:1\n  |\n2 | here\n  | ^^^^\n");
    }
}
