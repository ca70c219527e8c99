//! Diagnostics as a person reads them: the message, the excerpt with the place underlined, and the way out.

use annotate_snippets::{AnnotationKind, Element, Group, Level, Renderer, Snippet};

use super::{Diagnostic, Severity};
use crate::source::Place;

/// Lines of the source that are shown on either side of the place.
const CONTEXT_LINES: usize = 1;

/// Renders findings one below the other, in colour if asked to.
pub fn report<'d>(diagnostics: impl IntoIterator<Item = &'d Diagnostic>, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for diagnostic in diagnostics {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(renderer.render(&[group(diagnostic)]).trim_end());
        out.push('\n');
    }
    out
}

fn group(diagnostic: &Diagnostic) -> Group<'_> {
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
    if let Some(place) = &diagnostic.place {
        group = group.element(snippet(place, AnnotationKind::Primary, diagnostic.label.as_deref()));
    }
    for (place, label) in &diagnostic.related {
        group = group.element(snippet(place, AnnotationKind::Context, Some(label)));
    }
    if let Some(hint) = &diagnostic.hint {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    group
}

/// The lines around a place. They are cut out here because a source can be megabytes long.
fn snippet<'d>(
    place: &'d Place,
    kind: AnnotationKind,
    label: Option<&'d str>,
) -> Snippet<'d, annotate_snippets::Annotation<'d>> {
    let text = place.source().text();
    let range = place.range();
    let mut start = text[..range.start].rfind('\n').map_or(0, |newline| newline + 1);
    for _ in 0..CONTEXT_LINES {
        start = text[..start.saturating_sub(1)].rfind('\n').map_or(0, |newline| newline + 1);
    }
    let first_line =
        text[range.start..range.end].find('\n').map_or(range.end, |newline| range.start + newline);
    let mut end = text[first_line..].find('\n').map_or(text.len(), |newline| first_line + newline);
    for _ in 0..CONTEXT_LINES {
        end = text[end..].find('\n').map_or(end, |newline| end + newline);
        end = text[(end + 1).min(text.len())..].find('\n').map_or(text.len(), |newline| end + 1 + newline);
    }
    let first_number = text[..start].matches('\n').count() + place.source().first_line();
    let span = range.start - start..first_line.max(range.start) - start;
    let annotation = kind.span(span).label(label);
    Snippet::source(&text[start..end]).path(place.file()).line_start(first_number).annotation(annotation)
}
