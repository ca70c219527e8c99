//! The same engine once more, slow and plain: characters in lists, every rule in its own pass.

use std::collections::BTreeMap;

/// What a body shows with these strings, or the line and column of an invalid `$`, or the missing name.
pub(super) fn render(
    text: &str,
    values: &BTreeMap<String, String>,
    keep: bool,
) -> Result<String, Result<(usize, usize), String>> {
    let body: Vec<char> = strip(&dedent(text)).chars().collect();
    let mut out = String::new();
    let mut at = 0;
    while at < body.len() {
        if body[at] != '$' {
            out.push(body[at]);
            at += 1;
            continue;
        }
        if body.get(at + 1) == Some(&'$') {
            out.push('$');
            at += 2;
            continue;
        }
        let braced = body.get(at + 1) == Some(&'{');
        let first = at + 1 + usize::from(braced);
        let mut end = first;
        while end < body.len() && (body[end] == '_' || body[end].is_ascii_alphanumeric()) {
            end += 1;
        }
        let named = end > first && !body[first].is_ascii_digit() && (!braced || body.get(end) == Some(&'}'));
        if !named {
            if !keep {
                return Err(Ok(position(&body[..at])));
            }
            out.push('$');
            at += 1;
            continue;
        }
        let name: String = body[first..end].iter().collect();
        end += usize::from(braced);
        match values.get(&name) {
            Some(value) => out.push_str(value),
            None if keep => out.extend(&body[at..end]),
            None => return Err(Err(name)),
        }
        at = end;
    }
    Ok(strip(&out))
}

fn position(before: &[char]) -> (usize, usize) {
    let (mut line, mut column) = (1, 1);
    for (index, character) in before.iter().enumerate() {
        let half = *character == '\r' && before.get(index + 1) == Some(&'\n');
        if "\n\r\u{b}\u{c}\u{1c}\u{1d}\u{1e}\u{85}\u{2028}\u{2029}".contains(*character) && !half {
            (line, column) = (line + 1, 1);
        } else {
            column += 1;
        }
    }
    (line, column)
}

fn strip(text: &str) -> String {
    let space = |character: &char| {
        let code = *character as u32;
        matches!(code, 0x9..=0xd | 0x1c..=0x20 | 0x85 | 0xa0 | 0x1680 | 0x2000..=0x200a | 0x2028 | 0x2029)
            || matches!(code, 0x202f | 0x205f | 0x3000)
    };
    let mut rest: Vec<char> = text.chars().skip_while(space).collect();
    while rest.last().is_some_and(space) {
        rest.pop();
    }
    rest.into_iter().collect()
}

fn dedent(text: &str) -> String {
    let mut lines: Vec<Vec<char>> = text.split('\n').map(|line| line.chars().collect()).collect();
    for line in &mut lines {
        if line.iter().all(|character| " \t".contains(*character)) {
            line.clear();
        }
    }
    // One column after the other goes, as long as all lines agree about it.
    loop {
        let mut firsts = lines.iter().filter_map(|line| line.first().copied());
        let Some(first) = firsts.next() else { break };
        if !" \t".contains(first) || firsts.any(|other| other != first) {
            break;
        }
        for line in lines.iter_mut().filter(|line| !line.is_empty()) {
            line.remove(0);
        }
    }
    let lines: Vec<String> = lines.into_iter().map(|line| line.into_iter().collect()).collect();
    lines.join("\n")
}
