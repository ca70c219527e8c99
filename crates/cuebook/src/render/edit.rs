//! Whose text it is after a hook has changed it.
//!
//! A hook takes a string and returns one, so what it did is found by comparing the two: first by lines, then, where lines
//! differ, by words. What is the same keeps its origin; all else is the hook's.
//!
//! Origins decide what may carry structure, so doubt is settled against the author. A line that changed is never left
//! looking as if an author had written it whole: a hook could else make a role marker of `the user:` by taking words away.
//! And where the same line stands in the text both as an author's and as a value's, it stays the author's only if every line
//! that is the same stands where it stood.
//!
//! The work is bounded, whatever the texts are: what would take too long to compare is the hook's.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::template::sink::{Piece, Writer};

/// Tokens whose comparison is worth its time. Texts that repeat themselves take time by the square of their length.
const MAX_TOKENS: usize = 2_000;

/// The pieces of the new text. The pieces of the old text cover it without gaps, and so do these.
pub(super) fn reattribute(old: &str, pieces: &[Piece], new: &str, editor: u32) -> Vec<Piece> {
    // A hook that only adds before and behind, or only takes away there, leaves no doubt about the rest.
    if let Some(at) = new.find(old) {
        return around(pieces, at, old.len(), new.len(), editor);
    }
    if let Some(at) = old.find(new).filter(|at| is_whole_lines(old, *at..*at + new.len())) {
        return inside(old, pieces, at..at + new.len());
    }
    let mut edit = Edit::new(old, pieces, new, editor);
    let old_lines: Vec<&str> = old.split('\n').collect();
    let new_lines: Vec<&str> = new.split('\n').collect();
    let hunks = differences(&old_lines, &new_lines);
    edit.in_place = hunks.iter().all(|(before, after)| before.len() == after.len());
    let (mut from, mut to) = (0, 0);
    for (before, after) in hunks {
        while to < after.start {
            edit.keep(from, to);
            (from, to) = (from + 1, to + 1);
        }
        (from, to) = (before.end, after.end);
        edit.change(before, after);
    }
    while to < edit.new_lines.len() {
        edit.keep(from, to);
        (from, to) = (from + 1, to + 1);
    }
    edit.result
}

/// The pieces of a text that holds the old one at an offset.
fn around(pieces: &[Piece], at: usize, length: usize, whole: usize, editor: u32) -> Vec<Piece> {
    let hook = |start: usize| Piece { start: start as u32, writer: Writer::Hook { editor } };
    let before = (at > 0).then(|| hook(0));
    let kept = pieces.iter().map(|piece| Piece { start: piece.start + at as u32, ..*piece });
    let behind = (at + length < whole).then(|| hook(at + length));
    before.into_iter().chain(kept).chain(behind).collect()
}

/// Whether a part of a text begins and ends where lines do: part of a line could look like another line.
fn is_whole_lines(text: &str, range: Range<usize>) -> bool {
    let begins = range.start == 0 || text[..range.start].ends_with('\n');
    let ends =
        range.end == text.len() || text[range.end..].starts_with('\n') || text[..range.end].ends_with('\n');
    !range.is_empty() && begins && ends
}

/// The pieces of a part of the old text, with the empty ones in it and at its ends.
fn inside(old: &str, pieces: &[Piece], range: Range<usize>) -> Vec<Piece> {
    let ends = pieces.iter().skip(1).map(|piece| piece.start as usize).chain([old.len()]);
    let mut result = Vec::new();
    for (piece, end) in pieces.iter().zip(ends) {
        let start = piece.start as usize;
        let empty_inside = start == end && range.start <= start && start <= range.end;
        if empty_inside || (start < range.end && range.start < end) {
            let from = start.max(range.start);
            let writer = match piece.writer {
                Writer::Literal { unit, offset } => {
                    Writer::Literal { unit, offset: offset + (from - start) as u32 }
                }
                other => other,
            };
            result.push(Piece { start: (from - range.start) as u32, writer });
        }
    }
    result
}

/// Where two sequences differ. What they begin and end with in common is found whatever their length; what lies between is
/// compared if that does not take too long.
pub fn differences<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(Range<usize>, Range<usize>)> {
    let start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[start..], &new[start..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    if old.is_empty() && new.is_empty() {
        return Vec::new();
    }
    let whole = (start..start + old.len(), start..start + new.len());
    if old.is_empty() || new.is_empty() {
        return vec![whole];
    }
    if old.len() + new.len() > MAX_TOKENS {
        // Lines that were changed one by one are the usual case, and easy.
        if old.len() != new.len() {
            return vec![whole];
        }
        let differ = (0..old.len()).filter(|index| old[*index] != new[*index]);
        return differ
            .map(|index| (start + index..start + index + 1, start + index..start + index + 1))
            .collect();
    }
    let shift = |range: Range<usize>| start + range.start..start + range.end;
    // Numbers are compared in one step, however long the texts are that they stand for.
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut numbered = |tokens: &[&'t str]| -> Vec<usize> {
        let number = |token: &&'t str| {
            let next = numbers.len();
            *numbers.entry(token).or_insert(next)
        };
        tokens.iter().map(number).collect()
    };
    let (old, new) = (numbered(old), numbered(new));
    hunks(&old, &new).into_iter().map(|(before, after)| (shift(before), shift(after))).collect()
}

/// Where two sequences differ that have the most elements in common. The caller bounds their lengths.
fn hunks(old: &[usize], new: &[usize]) -> Vec<(Range<usize>, Range<usize>)> {
    let width = new.len() + 1;
    // How many elements the rests of the two have in common, from each pair of places.
    let mut common = vec![0_u16; (old.len() + 1) * width];
    for before in (0..old.len()).rev() {
        for after in (0..new.len()).rev() {
            common[before * width + after] = match old[before] == new[after] {
                true => common[(before + 1) * width + after + 1] + 1,
                false => common[(before + 1) * width + after].max(common[before * width + after + 1]),
            };
        }
    }
    let mut hunks = Vec::new();
    let (mut before, mut after) = (0, 0);
    while before < old.len() || after < new.len() {
        let begin = (before, after);
        while before < old.len() && after < new.len() && old[before] != new[after] {
            match common[(before + 1) * width + after] >= common[before * width + after + 1] {
                true => before += 1,
                false => after += 1,
            }
        }
        if before == old.len() || after == new.len() {
            (before, after) = (old.len(), new.len());
        }
        if begin != (before, after) {
            hunks.push((begin.0..before, begin.1..after));
        }
        while before < old.len() && after < new.len() && old[before] == new[after] {
            (before, after) = (before + 1, after + 1);
        }
    }
    hunks
}

struct Edit<'t> {
    old: &'t str,
    pieces: &'t [Piece],
    old_lines: Vec<Range<usize>>,
    new: &'t str,
    new_lines: Vec<Range<usize>>,
    /// Lines that the old text has both from an author and from another origin.
    twofold: HashSet<&'t str>,
    /// Whether every line that is the same stands where it stood.
    in_place: bool,
    editor: u32,
    result: Vec<Piece>,
    written: usize,
    /// The piece that was copied last and where in the old text that ended: what goes on there is one piece.
    last: Option<(usize, usize)>,
}

impl<'t> Edit<'t> {
    fn new(old: &'t str, pieces: &'t [Piece], new: &'t str, editor: u32) -> Edit<'t> {
        let mut edit = Edit {
            old,
            pieces,
            old_lines: ranges(old),
            new,
            new_lines: ranges(new),
            twofold: HashSet::new(),
            in_place: true,
            editor,
            result: Vec::new(),
            written: 0,
            last: None,
        };
        let (authors, others): (Vec<Range<usize>>, Vec<Range<usize>>) =
            edit.old_lines.iter().cloned().partition(|line| edit.is_authors(line));
        let authors: HashSet<&str> = authors.into_iter().map(|line| &old[line]).collect();
        edit.twofold =
            others.into_iter().map(|line| &old[line]).filter(|line| authors.contains(line)).collect();
        edit
    }

    /// The piece that holds a byte of the old text.
    fn piece_at(&self, offset: usize) -> usize {
        self.pieces.partition_point(|piece| piece.start as usize <= offset).saturating_sub(1)
    }

    fn end_of(&self, piece: usize) -> usize {
        self.pieces.get(piece + 1).map_or(self.old.len(), |next| next.start as usize)
    }

    /// Whether part of the old text has something in it and could carry structure.
    fn is_authors(&self, range: &Range<usize>) -> bool {
        !range.is_empty()
            && (self.piece_at(range.start)..self.pieces.len())
                .take_while(|piece| (self.pieces[*piece].start as usize) < range.end)
                // An emission that wrote nothing changes nothing.
                .filter(|piece| (self.pieces[*piece].start as usize) < self.end_of(*piece))
                .all(|piece| {
                    let writer = self.pieces[piece].writer;
                    writer.is_author() || matches!(writer, Writer::Frame { .. })
                })
    }

    /// Whether it is unknown which of several equal lines this one is, and it matters.
    fn is_in_doubt(&self, line: &str) -> bool {
        !self.in_place && self.twofold.contains(line)
    }

    fn copy(&mut self, mut from: Range<usize>) {
        while !from.is_empty() {
            let piece = self.piece_at(from.start);
            let end = self.end_of(piece).min(from.end);
            if self.last != Some((piece, from.start)) {
                let Piece { start, writer } = self.pieces[piece];
                let writer = match writer {
                    Writer::Literal { unit, offset } => {
                        Writer::Literal { unit, offset: offset + (from.start - start as usize) as u32 }
                    }
                    other => other,
                };
                self.result.push(Piece { start: self.written as u32, writer });
            }
            self.last = Some((piece, end));
            self.written += end - from.start;
            from.start = end;
        }
    }

    fn hook(&mut self, length: usize) {
        if length == 0 {
            return;
        }
        let writer = Writer::Hook { editor: self.editor };
        if self.result.last().is_none_or(|piece| piece.writer != writer) {
            self.result.push(Piece { start: self.written as u32, writer });
        }
        self.last = None;
        self.written += length;
    }

    /// A line of the new text that is the same as one of the old text.
    fn keep(&mut self, from: usize, to: usize) {
        let line = self.old_lines[from].clone();
        if self.is_authors(&line) && self.is_in_doubt(&self.old[line.clone()]) {
            self.hook(line.len());
        } else {
            self.copy(line);
        }
        self.line_end(Some(from), to);
    }

    /// The newline behind a line of the new text. It is the old one if the line in the old text had one.
    fn line_end(&mut self, from: Option<usize>, to: usize) {
        if to + 1 == self.new_lines.len() {
            return;
        }
        match from {
            Some(from) if from + 1 < self.old_lines.len() => {
                let end = self.old_lines[from].end;
                self.copy(end..end + 1);
            }
            _ => self.hook(1),
        }
    }

    /// Lines of the new text that stand where others stood.
    fn change(&mut self, from: Range<usize>, to: Range<usize>) {
        if to.is_empty() {
            return;
        }
        // As many lines as before are the same lines, each changed.
        let paired = from.len() == to.len();
        let mut matches = if paired { Vec::new() } else { self.matching_words(from.clone(), to.clone()) }
            .into_iter()
            .peekable();
        for (index, line) in to.clone().enumerate() {
            let Range { start, end } = self.new_lines[line].clone();
            if paired {
                let old = from.start + index;
                matches = self.matching_words(old..old + 1, line..line + 1).into_iter().peekable();
            }
            // Parts of the line that are the same in both texts: where in the new text, and where in the old one.
            let mut same: Vec<(Range<usize>, usize)> = Vec::new();
            while let Some((new, old)) = matches.peek().cloned() {
                if new.start >= end {
                    break;
                }
                let part = new.start.max(start)..new.end.min(end);
                if self.new[part.clone()].contains(char::is_alphanumeric) {
                    same.push((part.clone(), old + (part.start - new.start)));
                }
                if new.end > end {
                    break;
                }
                matches.next();
            }
            let kept: usize = same.iter().map(|(part, _)| part.len()).sum();
            let all_authors = same.iter().all(|(part, old)| self.is_authors(&(*old..old + part.len())));
            if kept == end - start && all_authors {
                self.hook(end - start);
            } else {
                let mut at = start;
                for (part, old) in same {
                    self.hook(part.start - at);
                    self.copy(old..old + part.len());
                    at = part.end;
                }
                self.hook(end - at);
            }
            let before = match paired {
                true => Some(from.start + index),
                false => (line + 1 == to.end && !from.is_empty()).then(|| from.end - 1),
            };
            self.line_end(before, line);
        }
    }

    /// Runs of words that are the same in some lines of both texts, in order: where in the new text, and where in the old one.
    fn matching_words(&self, from: Range<usize>, to: Range<usize>) -> Vec<(Range<usize>, usize)> {
        if from.is_empty() {
            return Vec::new();
        }
        let old = self.old_lines[from.start].start..self.old_lines[from.end - 1].end;
        let new = self.new_lines[to.start].start..self.new_lines[to.end - 1].end;
        let old_words: Vec<&str> = Words(&self.old[old.clone()]).collect();
        let new_words: Vec<&str> = Words(&self.new[new.clone()]).collect();
        let length = |words: &[&str]| words.iter().map(|word| word.len()).sum::<usize>();
        let mut matches = Vec::new();
        let (mut old_at, mut new_at, mut after) = (old.start, new.start, 0);
        let end = (old_words.len()..old_words.len(), new_words.len()..new_words.len());
        for (was, is) in differences(&old_words, &new_words).into_iter().chain([end]) {
            let same = length(&new_words[after..is.start]);
            if same > 0 {
                matches.push((new_at..new_at + same, old_at));
            }
            old_at += same + length(&old_words[was]);
            new_at += same + length(&new_words[is.clone()]);
            after = is.end;
        }
        matches
    }
}

fn ranges(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    text.split('\n')
        .map(|line| {
            let range = start..start + line.len();
            start = range.end + 1;
            range
        })
        .collect()
}

/// A text as words, and everything between them letter by letter.
struct Words<'t>(&'t str);

impl<'t> Iterator for Words<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let first = self.0.chars().next()?;
        let end = match first.is_alphanumeric() {
            true => self.0.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(self.0.len()),
            false => first.len_utf8(),
        };
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LITERAL: char = 'L';
    const VALUE: char = 'v';

    /// A text whose letters say who wrote them, as in `LLLvv`.
    fn pieces(writers: &str) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut before = None;
        for (start, writer) in writers.chars().enumerate() {
            if before != Some(writer) {
                let start = start as u32;
                let writer = match writer {
                    LITERAL => Writer::Literal { unit: 0, offset: start },
                    _ => Writer::Value { unit: 0, offset: start },
                };
                pieces.push(Piece { start, writer });
            }
            before = Some(writer);
        }
        pieces
    }

    /// Who wrote each byte of the new text: `L`, `v` or `h`.
    fn shown(pieces: &[Piece], length: usize) -> String {
        let mut shown = String::new();
        for (index, piece) in pieces.iter().enumerate() {
            let end = pieces.get(index + 1).map_or(length, |next| next.start as usize);
            let letter = match piece.writer {
                Writer::Literal { .. } | Writer::Changed { .. } => 'L',
                Writer::Value { .. } => 'v',
                Writer::Hook { .. } => 'h',
                Writer::Frame { .. } => 'f',
            };
            shown.extend(std::iter::repeat_n(letter, end - piece.start as usize));
        }
        shown
    }

    fn edit(old: &str, writers: &str, new: &str) -> String {
        shown(&reattribute(old, &pieces(writers), new, 0), new.len())
    }

    #[test]
    fn text_of_a_hook_is_its_own_and_the_rest_keeps_its_origin() {
        assert_eq!(edit("Dear Ada,\n", "LLLLLvvvLL", "Dear Ada,\nbye"), "LLLLLvvvLLhhh");
        assert_eq!(edit("Dear Ada,", "LLLLLvvvL", "Dear good Ada,"), "LLLLLhhhhhvvvL");
        assert_eq!(edit("a\nb\nc", "LLLLL", "a\nX\nc"), "LLhLL");
        assert_eq!(edit("text\n\n", "LLLLLL", "text"), "LLLL");
        assert_eq!(edit("", "", "new\n"), "hhhh");
        assert_eq!(edit("all gone", "LLLLLLLL", ""), "");
    }

    #[test]
    fn a_line_that_changed_never_looks_like_an_authors_whole_line() {
        assert_eq!(edit("the user:\nhi", "LLLLLLLLLLvv", "user:\nhi"), "hhhhhLvv");
        assert_eq!(edit("us\ner:", "LLLLLL", "user:"), "hhhhh");
        assert_eq!(edit("vuser:", "vLLLLL", "user:"), "hhhhh");
        assert_eq!(edit("a user: b", "LLLLLLLLL", "a\nuser:\nb"), "hhhhhhhhh");
    }

    #[test]
    fn an_equal_line_is_the_authors_only_in_its_place() {
        let (old, writers) = ("user:\nA\nuser:\nB", "LLLLLLvvvvvvvvv");
        assert_eq!(edit(old, writers, "user:\nA\nuser:\nB!"), "LLLLLLvvvvvvvvvh");
        // The end of the old text, or a line of the author's with a value from further down: the first is no author's.
        assert_eq!(edit(old, writers, "user:\nB"), "vvvvvvv");
        // A line that is moved is somewhere else.
        assert_eq!(edit("a\nu:\nu:", "LLvvvLL", "u:\na\nu:"), "vvvhhhh");
    }

    #[test]
    fn empty_pieces_change_nothing() {
        for (old, writers, new) in [
            ("user:\nhi\n", "LLLLLLvvL", "user:\nhi there\n"),
            ("a\nuser:\nA\nuser:", "LLLLLLLLvvLLLLL", "user:\nA\nuser:\na"),
            ("one", "LLL", ""),
            ("", "", "new"),
        ] {
            let full = pieces(writers);
            let mut with_empty = Vec::new();
            for start in 0..=old.len() as u32 {
                // A literal that goes on behind an empty emission begins anew there.
                with_empty.push(Piece { start, writer: Writer::Value { unit: 0, offset: 99 } });
                let writer = full.iter().rfind(|piece| piece.start <= start).map(|piece| piece.writer);
                match writer {
                    _ if start as usize == old.len() => {}
                    Some(Writer::Literal { .. }) => {
                        with_empty.push(Piece { start, writer: Writer::Literal { unit: 0, offset: start } });
                    }
                    Some(writer) => with_empty.push(Piece { start, writer }),
                    None => {}
                }
            }
            let result = reattribute(old, &with_empty, new, 0);
            assert_eq!(shown(&result, new.len()), edit(old, writers, new), "{old:?} to {new:?}");
        }
    }

    #[test]
    fn texts_that_repeat_themselves_take_no_more_time_than_others() {
        for (old, new) in [
            ("a ".repeat(500_000), "b a ".repeat(250_000)),
            ("a\n".repeat(500_000), "b\na\n".repeat(250_000)),
            ("some words here\n".repeat(60_000), "SOME WORDS HERE\n".repeat(60_000)),
            ("one line\n".repeat(60_000), "one line!\n".repeat(60_000)),
        ] {
            let writers = "L".repeat(old.len());
            let result = reattribute(&old, &pieces(&writers), &new, 0);
            assert_eq!(shown(&result, new.len()).len(), new.len());
        }
        let (old, new) = ("one line\n".repeat(3000), "one line!\n".repeat(3000));
        let result = reattribute(&old, &pieces(&"L".repeat(old.len())), &new, 0);
        assert!(shown(&result, new.len()).starts_with("LLLLLLLLhLLLLLLLLLhL"));
    }

    proptest! {
        #[test]
        fn pieces_cover_the_text_and_every_kept_byte_is_the_old_one(
            old in "[ab:\n ]{0,40}", seed in proptest::collection::vec(any::<bool>(), 40), new in "[ab:\n ]{0,40}",
        ) {
            let writers: String =
                old.chars().zip(&seed).map(|(_, literal)| if *literal { LITERAL } else { VALUE }).collect();
            let result = reattribute(&old, &pieces(&writers), &new, 0);
            prop_assert_eq!(shown(&result, new.len()).len(), new.len());
            for (index, piece) in result.iter().enumerate() {
                let start = piece.start as usize;
                let end = result.get(index + 1).map_or(new.len(), |next| next.start as usize);
                prop_assert!(start <= end);
                if let Writer::Literal { offset, .. } = piece.writer {
                    let offset = offset as usize;
                    prop_assert_eq!(&new[start..end], &old[offset..offset + (end - start)]);
                }
            }
            // No line is an author's that was not one before.
            let shown = shown(&result, new.len());
            let was: Vec<&str> = ranges(&old).into_iter()
                .filter(|line| !line.is_empty() && writers[line.clone()].chars().all(|writer| writer == LITERAL))
                .map(|line| &old[line])
                .collect();
            for line in ranges(&new) {
                if !line.is_empty() && shown[line.clone()].chars().all(|writer| writer == 'L') {
                    prop_assert!(was.contains(&&new[line]));
                }
            }
        }
    }
}
