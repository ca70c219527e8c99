//! Prepares a template so that the engine can tell, at no cost in the template's own behaviour, which expression writes
//! a value, and so that no operator can grow a value without bound.
//!
//! Two kinds of insertion, both inside or between tags, never in the author's text:
//!
//! - A **beacon** `{% raw %}{% endraw %}` before every place that emits a value. It renders as an empty literal, whose
//!   address in the template's memory tells the writer which emission comes next (see [`super::writer`]). Being empty, it
//!   does not show in captured text (macros, `set` blocks) and no comparison can see it.
//! - A **cap** `( … )|__cue_cap` around sums and concatenations. `{% set s = s ~ s %}` in a loop doubles a string with a
//!   few instructions a turn, which fuel does not stop; the cap does.
//!
//! This module works on tokens and knows no meaning. The result must render as the original does: the differential tests
//! run every case through it.

use minijinja::machinery::{Span, Token, Tokenizer};
use minijinja::syntax::SyntaxConfig;

use crate::source::OffsetMap;

/// The filter that [`super::compat`] registers to bound a value.
const CAP: &str = ")|__cue_cap";

/// A template with its insertions.
#[derive(Debug)]
pub(crate) struct Instrumented {
    pub(crate) text: String,
    /// From the instrumented text to the original.
    pub(crate) map: OffsetMap,
    /// Offset of each beacon in the instrumented text, in the order of the emissions.
    pub(crate) beacons: Vec<u32>,
    /// The emitting tags in the original, in the same order.
    pub(crate) tags: Vec<std::ops::Range<usize>>,
}

/// Instruments a template that is known to parse.
pub(crate) fn instrument(source: &str, syntax: &SyntaxConfig) -> Result<Instrumented, minijinja::Error> {
    let mut tokenizer = Tokenizer::new(source, "", false, syntax.clone());
    let mut tokens = Vec::new();
    while let Some((token, span)) = tokenizer.next_token()? {
        tokens.push((token, span));
    }
    let mut insertions = Insertions::default();
    let mut index = 0;
    while index < tokens.len() {
        let (token, span) = &tokens[index];
        let end = tokens[index..]
            .iter()
            .position(|(token, _)| matches!(token, Token::VariableEnd | Token::BlockEnd))
            .map_or(tokens.len(), |offset| index + offset);
        match token {
            Token::VariableStart => {
                insertions.beacon(source, span, closing(&tokens, end), true);
                insertions.caps(&tokens[index + 1..end]);
                index = end;
            }
            Token::BlockStart => {
                if let Some((Token::Ident("call" | "filter"), _)) = tokens.get(index + 1) {
                    insertions.beacon(source, span, closing(&tokens, end), false);
                }
                // The keyword itself is never part of an expression.
                insertions.caps(tokens.get(index + 2..end).unwrap_or_default());
                index = end;
            }
            _ => {}
        }
        index += 1;
    }
    Ok(insertions.apply(source))
}

fn closing(tokens: &[(Token<'_>, Span)], end: usize) -> usize {
    tokens.get(end).or(tokens.last()).map_or(0, |(_, span)| span.end_offset as usize)
}

#[derive(Default)]
struct Insertions {
    /// Offset in the original, text, and whether it is a beacon.
    list: Vec<(usize, String, bool)>,
    tags: Vec<std::ops::Range<usize>>,
}

impl Insertions {
    fn beacon(&mut self, source: &str, start: &Span, end: usize, variable: bool) {
        let at = start.start_offset as usize;
        // The beacon stands where the tag stood, so it takes over what the tag does to the white space before it.
        let marker = match source.as_bytes().get(at + 2) {
            Some(b'-') => "-",
            Some(b'+') => "+",
            // `lstrip_blocks` strips before a block tag, but not before a variable.
            _ if variable => "+",
            _ => "",
        };
        self.list.push((at, format!("{{%{marker} raw %}}{{% endraw %}}"), true));
        self.tags.push(at..end);
    }

    /// Wraps every run of operands that holds a `~` or a `+` between tokens that bind less tightly.
    fn caps(&mut self, tokens: &[(Token<'_>, Span)]) {
        let mut levels = vec![Run::default()];
        let mut previous: Option<&Token<'_>> = None;
        for (token, span) in tokens {
            let start = span.start_offset as usize;
            let end = span.end_offset as usize;
            let operand_before = previous.is_some_and(ends_operand);
            match token {
                Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => {
                    if let Some(run) = levels.last_mut() {
                        run.extend(start, end);
                        run.note(token, operand_before);
                    }
                    levels.push(Run::default());
                }
                Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                    if levels.len() > 1
                        && let Some(run) = levels.pop()
                    {
                        self.close(run);
                    }
                    if let Some(run) = levels.last_mut() {
                        run.extend(start, end);
                    }
                }
                _ if separates(token, previous) => {
                    if let Some(run) = levels.last_mut() {
                        self.close(std::mem::take(run));
                    }
                }
                _ => {
                    // Two operands side by side: the second is a keyword such as `ignore` or `recursive`, unless both
                    // are strings, which Jinja joins.
                    let joined = is_string(token) && previous.is_some_and(is_string);
                    if operand_before && begins_operand(token) && !joined {
                        if let Some(run) = levels.last_mut() {
                            self.close(std::mem::take(run));
                        }
                    }
                    if let Some(run) = levels.last_mut() {
                        run.extend(start, end);
                        run.note(token, operand_before);
                    }
                }
            }
            previous = Some(token);
        }
        for run in levels {
            self.close(run);
        }
    }

    fn close(&mut self, mut run: Run) {
        if let Some((start, end)) = run.range
            && run.grows()
        {
            self.list.push((start, "(".into(), false));
            self.list.push((end, CAP.into(), false));
        }
    }

    fn apply(mut self, source: &str) -> Instrumented {
        // Stable: insertions at one offset keep their order, and no two runs begin or end at the same one.
        self.list.sort_by_key(|(at, _, _)| *at);
        let extra: usize = self.list.iter().map(|(_, text, _)| text.len()).sum();
        let mut text = String::with_capacity(source.len() + extra);
        let mut map = OffsetMap::default();
        let mut beacons = Vec::with_capacity(self.tags.len());
        let mut copied = 0;
        for (at, insertion, beacon) in &self.list {
            text.push_str(&source[copied..*at]);
            text.push_str(insertion);
            map.insert(text.len(), insertion.len());
            if *beacon {
                beacons.push((text.len() - "{% endraw %}".len()) as u32);
            }
            copied = *at;
        }
        text.push_str(&source[copied..]);
        Instrumented { text, map, beacons, tags: self.tags }
    }
}

/// Operands and operators on one level of brackets, up to a token that binds less tightly than `+`.
#[derive(Default)]
struct Run {
    range: Option<(usize, usize)>,
    concatenates: bool,
    adds: bool,
    /// Tokens of the summand that is being read, and whether the last of them is a number.
    summand: (usize, bool),
    /// One summand is a plain number, so that the others cannot be strings or lists.
    numeric: bool,
}

impl Run {
    fn extend(&mut self, start: usize, end: usize) {
        self.range = Some((self.range.map_or(start, |(first, _)| first), end));
    }

    fn note(&mut self, token: &Token<'_>, operand_before: bool) {
        match token {
            Token::Plus | Token::Minus if operand_before => {
                self.end_summand();
                self.adds |= matches!(token, Token::Plus);
            }
            Token::Plus | Token::Minus => {}
            Token::Tilde => {
                self.concatenates = true;
                self.summand.0 += 1;
            }
            _ => self.summand = (self.summand.0 + 1, matches!(token, Token::Int(_) | Token::Float(_))),
        }
    }

    fn end_summand(&mut self) {
        self.numeric |= self.summand == (1, true);
        self.summand = (0, false);
    }

    /// Whether a value can come out that is larger than those that went in.
    fn grows(&mut self) -> bool {
        self.end_summand();
        self.concatenates || (self.adds && !self.numeric)
    }
}

fn separates(token: &Token<'_>, previous: Option<&Token<'_>>) -> bool {
    match token {
        Token::Comma
        | Token::Colon
        | Token::Assign
        | Token::Eq
        | Token::Ne
        | Token::Gt
        | Token::Gte
        | Token::Lt
        | Token::Lte => true,
        // Behind a dot or a pipe these are names: `x.is`, `xs|in`.
        Token::Ident("and" | "or" | "not" | "in" | "is" | "if" | "else") => {
            !matches!(previous, Some(Token::Dot | Token::Pipe))
        }
        _ => false,
    }
}

fn is_string(token: &Token<'_>) -> bool {
    matches!(token, Token::Str(_) | Token::String(_))
}

fn begins_operand(token: &Token<'_>) -> bool {
    matches!(token, Token::Ident(_) | Token::Int(_) | Token::Int128(_) | Token::Float(_)) || is_string(token)
}

fn ends_operand(token: &Token<'_>) -> bool {
    begins_operand(token) || matches!(token, Token::ParenClose | Token::BracketClose | Token::BraceClose)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instrumented(source: &str) -> String {
        instrument(source, &SyntaxConfig::default()).unwrap().text
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
    fn sums_and_concatenations_are_capped_and_keywords_stay_outside() {
        for (source, wanted) in [
            ("{% set s = s ~ s %}", "{% set s = (s ~ s)|__cue_cap %}"),
            ("{% set s = s + t %}", "{% set s = (s + t)|__cue_cap %}"),
            ("{% if a ~ b == c %}{% endif %}", "{% if (a ~ b)|__cue_cap == c %}{% endif %}"),
            ("{% include 'a' ~ b ignore missing %}", "{% include ('a' ~ b)|__cue_cap ignore missing %}"),
            (
                "{% for x in a + [b ~ c] recursive %}{% endfor %}",
                "{% for x in (a + [(b ~ c)|__cue_cap])|__cue_cap recursive %}{% endfor %}",
            ),
            ("{% set s = 'a' 'b' ~ c %}", "{% set s = ('a' 'b' ~ c)|__cue_cap %}"),
            ("{% set x = a if b ~ c else d %}", "{% set x = a if (b ~ c)|__cue_cap else d %}"),
            ("{% do f(x=a ~ b) %}", "{% do f(x=(a ~ b)|__cue_cap) %}"),
            ("{% set s = s * 2 + s %}", "{% set s = (s * 2 + s)|__cue_cap %}"),
        ] {
            assert_eq!(instrumented(source), wanted, "{source}");
        }
    }

    #[test]
    fn sums_with_a_number_are_left_alone() {
        for source in ["{% set n = loop.index + 1 %}", "{% set n = 1 + x %}", "{% set n = x - 1 + 2 %}"] {
            assert_eq!(instrumented(source), source);
        }
    }

    #[test]
    fn offsets_lead_back_to_the_original() {
        let source = "ab {{ x ~ y }} cd {{ z }}";
        let result = instrument(source, &SyntaxConfig::default()).unwrap();
        for word in ["ab", "cd", "x ~", "z"] {
            let at = result.text.find(word).unwrap();
            assert_eq!(result.map.offset(at), source.find(word).unwrap(), "{word}");
        }
        assert_eq!(&source[result.tags[1].clone()], "{{ z }}");
        assert!(result.text[result.beacons[1] as usize..].starts_with("{% endraw %}{{ z"));
    }
}
