//! `textwrap.wrap`.

use crate::python::is_space;

/// One line as `textwrap.wrap` breaks it, without touching tabs.
pub(crate) fn wrap(line: &str, width: usize, break_words: bool, hyphens: bool) -> Vec<String> {
    let all = chunks(line, hyphens);
    let mut chunks: Vec<&[char]> = all.iter().rev().map(Vec::as_slice).collect();
    let blank = |chunk: &[char]| chunk.iter().all(|character| is_space(*character));
    let mut lines: Vec<String> = Vec::new();
    while !chunks.is_empty() {
        if !lines.is_empty() && chunks.last().is_some_and(|chunk| blank(chunk)) {
            chunks.pop();
        }
        let mut current: Vec<&[char]> = Vec::new();
        let mut length = 0;
        while let Some(chunk) = chunks.pop_if(|chunk| length + chunk.len() <= width) {
            length += chunk.len();
            current.push(chunk);
        }
        if let Some(chunk) = chunks.pop_if(|chunk| chunk.len() > width) {
            if break_words {
                let room = width - length;
                let mut end = room;
                let hyphen = chunk[..room].iter().rposition(|character| *character == '-');
                if let Some(hyphen) =
                    hyphen.filter(|at| hyphens && chunk[..*at].iter().any(|character| *character != '-'))
                {
                    end = hyphen + 1;
                }
                let (head, tail) = chunk.split_at(end);
                current.push(head);
                chunks.push(tail);
            } else if current.is_empty() {
                current.push(chunk);
            } else {
                chunks.push(chunk);
            }
        }
        if current.last().is_some_and(|chunk| blank(chunk)) {
            current.pop();
        }
        if !current.is_empty() {
            lines.push(current.into_iter().flatten().collect());
        }
    }
    lines
}

/// The pieces between which a line may break: words, spaces, and words cut behind hyphens.
fn chunks(line: &str, hyphens: bool) -> Vec<Vec<char>> {
    let letters: Vec<char> = line.chars().collect();
    let letter = |index: usize| {
        letters.get(index).is_some_and(|character| character.is_alphabetic() || *character == '_')
    };
    let word = |index: usize| {
        letters.get(index).is_some_and(|character| character.is_alphanumeric() || *character == '_')
    };
    let before_dash = |index: usize| {
        word(index) || letters.get(index).is_some_and(|character| "!\"'&.,?".contains(*character))
    };
    let mut out: Vec<Vec<char>> = Vec::new();
    let mut start = 0;
    for at in 1..letters.len() {
        let change = is_space(letters[at - 1]) != is_space(letters[at]);
        let hyphen = hyphens
            && letters[at - 1] == '-'
            && letter(at)
            && (letter(at + 1) || (letters.get(at + 1) == Some(&'-') && letter(at + 2)))
            && at >= 3
            && letter(at - 2)
            && (letter(at - 3) || (letters[at - 3] == '-' && at >= 4 && letter(at - 4)));
        let run = |from: usize| letters[from..].iter().take_while(|character| **character == '-').count();
        let dash_begins =
            hyphens && letters[at] == '-' && before_dash(at - 1) && run(at) >= 2 && word(at + run(at));
        let dash_ends = hyphens && word(at) && {
            let dashes = letters[..at].iter().rev().take_while(|character| **character == '-').count();
            dashes >= 2 && at > dashes && before_dash(at - dashes - 1)
        };
        if change || hyphen || dash_begins || dash_ends {
            out.push(letters[start..at].to_vec());
            start = at;
        }
    }
    if start < letters.len() {
        out.push(letters[start..].to_vec());
    }
    out
}
