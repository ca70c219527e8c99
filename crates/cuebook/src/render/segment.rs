//! Attributed text as segments: the projection that keeps only who wrote what.

use serde::Serialize;

use super::{Origin, Rendered};

/// Who wrote a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SegmentKind {
    /// An author, or the engine on an author's behalf.
    Literal,
    /// A value.
    Interp,
}

/// A run of text with one writer. Neighbouring literals are one segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Segment {
    /// Who wrote it.
    pub kind: SegmentKind,
    /// Its text.
    pub text: String,
    /// The variable that shows in it; `null` for literals and for computed text. In a template prompt the paths of all
    /// variables that can show, joined by commas; in a `.prompty` file the name of the one that the tag accesses.
    pub source: Option<String>,
    /// Whether a variable that can show in it is declared strict.
    pub strict: bool,
}

impl Segment {
    pub(super) fn of(rendered: &Rendered) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        let dialect = rendered.prompt().dialect;
        for (span, (range, _, emission)) in rendered.spans().zip(rendered.emitted()) {
            let text = &rendered.text()[range];
            let (kind, source) = match span.origin {
                Origin::Literal { .. } | Origin::Frame { .. } => (SegmentKind::Literal, None),
                Origin::Value { .. } if dialect.names_accessed => {
                    (SegmentKind::Interp, emission.and_then(|emission| emission.accessor.clone()))
                }
                Origin::Value { shown, .. } => {
                    let paths: Vec<String> = shown.into_iter().map(|shown| shown.path).collect();
                    (SegmentKind::Interp, (!paths.is_empty()).then(|| paths.join(", ")))
                }
                Origin::Rich { input, .. } => (SegmentKind::Interp, Some(input)),
                Origin::Hook { function, .. } => (SegmentKind::Interp, Some(function)),
            };
            let strict = emission.is_some_and(|emission| rendered.is_strict(emission));
            match segments.last_mut() {
                Some(last) if last.kind == SegmentKind::Literal && kind == SegmentKind::Literal => {
                    last.text.push_str(text);
                }
                _ => segments.push(Segment { kind, text: text.to_owned(), source, strict }),
            }
        }
        segments
    }
}
