//! Prepares a template so that the engine can tell, at no cost in the template's own behaviour, which expression writes
//! a value, and so that its operators mean what Python means.
//!
//! Five kinds of change, all inside or between tags, never in the author's text:
//!
//! - A **beacon** `{% raw %}{% endraw %}` before every place that emits a value. It renders as an empty literal, whose
//!   address in the template's memory tells the writer which emission comes next (see [`super::writer`]). Being empty, it
//!   does not show in captured text (macros, `set` blocks) and no comparison can see it.
//! - The **edits** of [`super::compat`]: operators as filters, which print as Python does and do not grow without bound.
//! - Where text is captured, a **charge** `{% if 5000|__cue_literal %}{% endif %}` behind every long literal. The engine
//!   copies a literal into a captured value with one instruction, however long it is, and neither fuel nor the limits on
//!   values and output see it; the charge counts it among the bytes that a render makes, and prints nothing.
//! - The edits of [`super::fence`], which make filters of its blocks.
//! - In a macro, before every include a **mention** `{% if [x]|__cue_seen %}{% endif %}` of the names that have been set around
//!   it. A macro of the engine takes along what its own text mentions; in Jinja2 what it includes sees the others as well.
//!
//! This module works on tokens and knows no meaning. The result must render as the original does: the differential tests
//! run every case through it.

use std::ops::Range;

use minijinja::machinery::{Span, Token, Tokenizer};
use minijinja::syntax::SyntaxConfig;

use super::compat::{Edit, operator_edits};
use super::fence;
use super::names::{Reference, ReferenceKind};
use super::style::Style;
use crate::source::OffsetMap;

/// A template with its changes.
#[derive(Debug)]
pub(crate) struct Instrumented {
    pub(crate) text: String,
    /// From the instrumented text to the original.
    pub(crate) map: OffsetMap,
    /// Offset of each beacon in the instrumented text, in the order of the emissions.
    pub(crate) beacons: Vec<u32>,
    /// The emitting tags in the original, in the same order.
    pub(crate) tags: Vec<Range<usize>>,
}

/// Instruments a template that is known to parse. `captured` says that its text may end up in values.
pub(crate) fn instrument(
    source: &str,
    syntax: &SyntaxConfig,
    captured: bool,
    style: Style,
    references: &[Reference],
) -> Result<Instrumented, minijinja::Error> {
    let tags = emitting_tags(source, syntax)?;
    let charges = if captured { charges(source, syntax)? } else { Vec::new() };
    let charges = charges.into_iter().map(|edit| (edit, false));
    let beacons = tags.iter().map(|(tag, variable)| (beacon(source, tag.start, *variable), true));
    let operators = operator_edits(&fence::readable(source, syntax), syntax.clone(), style);
    let edits = operators.into_iter().chain(fence::edits(source, syntax)).map(|edit| (edit, false));
    let mentions = references.iter().filter_map(|one| mention(source, one)).map(|edit| (edit, false));
    let mut changes: Vec<(Edit, bool)> = charges.chain(beacons).chain(edits).chain(mentions).collect();
    // Stable: what changes at one place keeps its order, so that a beacon stays next to its tag.
    changes.sort_by_key(|(edit, _)| (edit.range.start, edit.range.end));
    Ok(apply(source, &changes, tags.into_iter().map(|(tag, _)| tag).collect()))
}

/// The edit that mentions what has been set around an include in a macro.
fn mention(source: &str, reference: &Reference) -> Option<Edit> {
    let names: Vec<&str> = reference.lent.names().map(String::as_str).collect();
    if !reference.in_macro || reference.kind != ReferenceKind::Include || names.is_empty() {
        return None;
    }
    let at = source.get(..reference.range.start)?.rfind("{%")?;
    let (marker, names) = (marker(source, at, false), names.join(", "));
    Some(Edit { range: at..at, text: format!("{{%{marker} if [{names}]|__cue_seen %}}{{% endif %}}") })
}

/// The tags that emit a value, in order, and whether they are variables (`{{ … }}`) or blocks (`{% call %}`).
fn emitting_tags(source: &str, syntax: &SyntaxConfig) -> Result<Vec<(Range<usize>, bool)>, minijinja::Error> {
    let mut tokenizer = Tokenizer::new(source, "", false, syntax.clone());
    let mut tags = Vec::new();
    let mut open: Option<(Span, bool)> = None;
    let mut opened: Option<Span> = None;
    while let Some((token, span)) = tokenizer.next_token()? {
        match token {
            Token::VariableStart => open = Some((span, true)),
            Token::Ident("call" | "filter" | fence::NAME) if opened.is_some() => {
                open = opened.map(|span| (span, false))
            }
            Token::VariableEnd | Token::BlockEnd => {
                if let Some((start, variable)) = open.take() {
                    tags.push((start.start_offset as usize..span.end_offset as usize, variable));
                }
            }
            _ => {}
        }
        opened = matches!(token, Token::BlockStart).then_some(span);
    }
    Ok(tags)
}

/// Literals of fewer bytes are not charged: what fuel pays for bounds them.
const LONG: usize = 256;

/// A charge for every long literal, in front of the tag that follows it. What follows the last tag is written once whenever
/// the template is, so its charge stands in front of the first tag, which is in no block.
fn charges(source: &str, syntax: &SyntaxConfig) -> Result<Vec<Edit>, minijinja::Error> {
    let mut tokenizer = Tokenizer::new(source, "", false, syntax.clone());
    let mut charges = Vec::new();
    let mut bytes = 0;
    while let Some((token, span)) = tokenizer.next_token()? {
        let variable = match token {
            Token::TemplateData(text) => {
                bytes += text.len();
                continue;
            }
            Token::VariableStart => true,
            Token::BlockStart => false,
            _ => continue,
        };
        let at = span.start_offset as usize;
        if bytes >= LONG {
            let marker = marker(source, at, variable);
            charges.push(Edit { range: at..at, text: charge(marker, bytes, "") });
        }
        bytes = 0;
    }
    if bytes >= LONG {
        charges.insert(0, trailing_charge(source, bytes));
    }
    Ok(charges)
}

/// The charge for what follows the last tag. At the beginning of the text it would take the beginning of a line away from
/// the first tag (`lstrip_blocks`), so it does to the white space what that tag does, be it a comment or `raw`.
fn trailing_charge(source: &str, bytes: usize) -> Edit {
    match ["{{", "{%", "{#"].iter().filter_map(|start| source.find(start)).min() {
        Some(at) => {
            let marker = marker(source, at, source[at..].starts_with("{{"));
            Edit { range: at..at, text: charge(marker, bytes, "") }
        }
        None => Edit { range: 0..0, text: charge("", bytes, "+") },
    }
}

fn charge(before: &str, bytes: usize, after: &str) -> String {
    format!("{{%{before} if {bytes}|__cue_literal %}}{{% endif {after}%}}")
}

/// What is put in front of a tag takes over what the tag does to the white space before it.
fn marker(source: &str, at: usize, variable: bool) -> &'static str {
    match source.as_bytes().get(at + 2) {
        Some(b'-') => "-",
        Some(b'+') => "+",
        // `lstrip_blocks` strips before a block tag, but not before a variable.
        _ if variable => "+",
        _ => "",
    }
}

fn beacon(source: &str, at: usize, variable: bool) -> Edit {
    let marker = marker(source, at, variable);
    Edit { range: at..at, text: format!("{{%{marker} raw %}}{END}") }
}

const END: &str = "{% endraw %}";

fn apply(source: &str, changes: &[(Edit, bool)], tags: Vec<Range<usize>>) -> Instrumented {
    let extra: usize = changes.iter().map(|(edit, _)| edit.text.len()).sum();
    let mut text = String::with_capacity(source.len() + extra);
    let mut map = OffsetMap::default();
    let mut beacons = Vec::with_capacity(tags.len());
    let mut copied = 0;
    for (edit, is_beacon) in changes {
        text.push_str(&source[copied..edit.range.start]);
        text.push_str(&edit.text);
        map.replace(text.len(), edit.range.len(), edit.text.len());
        if *is_beacon {
            beacons.push((text.len() - END.len()) as u32);
        }
        copied = edit.range.end;
    }
    text.push_str(&source[copied..]);
    Instrumented { text, map, beacons, tags }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instrumented(source: &str) -> String {
        instrument(source, &SyntaxConfig::default(), false, Style::Python, &[]).unwrap().text
    }

    #[test]
    fn every_emission_gets_a_beacon_that_keeps_the_white_space_marker() {
        assert_eq!(instrumented("a {{ x }} b"), "a {%+ raw %}{% endraw %}{{ x }} b");
        assert_eq!(instrumented("a {{- x -}} b"), "a {%- raw %}{% endraw %}{{- x -}} b");
        assert_eq!(
            instrumented("{%- filter upper %}a{% endfilter %}"),
            "{%- raw %}{% endraw %}{%- filter upper %}a{% endfilter %}"
        );
        assert_eq!(
            instrumented("{% raw %}{{ x }}{% endraw %}{# {{ y }} #}"),
            "{% raw %}{{ x }}{% endraw %}{# {{ y }} #}"
        );
    }

    #[test]
    fn long_literals_are_charged_where_text_is_captured_and_keep_their_white_space() {
        let long = "x".repeat(LONG);
        let source = format!("{long}\n{{{{- a }}}}\n  {{% if b %}}\n{long}\n  {{% endif %}}\n{long}");
        let charge = |marker: &str, bytes: usize, after: &str| charge(marker, bytes, after);
        let charged = instrument(&source, &SyntaxConfig::default(), true, Style::Python, &[]).unwrap().text;
        let wanted = format!(
            "{long}\n{}{}{{%- raw %}}{END}{{{{- a }}}}\n  {{% if b %}}\n{long}\n  {}{{% endif %}}\n{long}",
            charge("-", LONG + 1, ""),
            charge("-", LONG, ""),
            charge("", LONG + 4, ""),
        );
        assert_eq!(charged, wanted);
        assert!(!instrumented(&source).contains("__cue_literal"));
        for settings in 0..8 {
            let syntax = SyntaxConfig::builder()
                .trim_blocks(settings & 1 != 0)
                .lstrip_blocks(settings & 2 != 0)
                .keep_trailing_newline(settings & 4 != 0)
                .build()
                .unwrap();
            let render = |text: &str| {
                let mut environment = minijinja::Environment::new();
                environment.set_syntax(syntax.clone());
                environment.add_filter("__cue_literal", |_: usize| false);
                environment.render_str(text, minijinja::context!(a => 1, b => true)).unwrap()
            };
            let same = |source: &str| {
                let charged = instrument(source, &syntax, true, Style::Python, &[]).unwrap().text;
                assert_ne!(charged, source);
                assert_eq!(render(&charged), render(source), "{settings} {source:?}");
            };
            same(&source);
            // Whatever the first tag is, and whatever is before and behind it.
            for before in ["", "\n", "  ", "\n  ", "x  ", "x\n  "] {
                same(&format!("{before}{long}"));
                for tag in [
                    "{{ a }}",
                    "{{- a -}}",
                    "{% set v %}a{% endset %}{{ v }}",
                    "{%- if b %}\n b\n  {% endif -%}",
                    "{%+ if b +%}\n b{% endif %}",
                    "{# c #}",
                    "{#- c -#}",
                    "{% raw %}\n{{ r }}\n{% endraw %}",
                    "{%- raw -%} {{ r }} {%- endraw -%}",
                    "{# c #}\n  {% if b %}{% endif %}",
                ] {
                    for behind in ["", "\n", "  ", "  \n"] {
                        same(&format!("{before}{tag}{behind}{long}{behind}"));
                    }
                }
            }
        }
    }

    #[test]
    fn offsets_lead_back_to_the_original() {
        let source = "ab {{ x ~ y }} cd {{ z }}";
        let result = instrument(source, &SyntaxConfig::default(), false, Style::Python, &[]).unwrap();
        for word in ["ab", "cd", "z"] {
            let at = result.text.find(word).unwrap();
            assert_eq!(result.map.offset(at), source.find(word).unwrap(), "{word}");
        }
        assert_eq!(&source[result.tags[1].clone()], "{{ z }}");
        assert!(result.text[result.beacons[1] as usize..].starts_with("{% endraw %}{{ z"));
    }
}
