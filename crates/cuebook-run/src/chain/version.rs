//! The order of versions, as PEP 440 has it: `1.0.dev1 < 1.0a1 < 1.0rc1 < 1.0 < 1.0.post1 < 1.1`.

use std::cmp::Ordering;

/// A version, so that the parts compare in the order in which they count.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    epoch: u64,
    release: Vec<u64>,
    /// What kind of release before the release (`dev` alone is the earliest), and its number.
    pre: (u8, u64),
    /// None is before every one of them.
    post: Option<u64>,
    /// A release in development is before the one that it develops.
    dev: (bool, u64),
    local: Vec<(bool, u64, String)>,
}

/// The order of two versions; none if one of them is no version.
pub(super) fn compare(one: &str, other: &str) -> Option<Ordering> {
    Some(Version::read(one)?.cmp(&Version::read(other)?))
}

impl Version {
    fn read(text: &str) -> Option<Version> {
        let text = text.trim().to_ascii_lowercase();
        let text = text.strip_prefix('v').unwrap_or(&text);
        let (text, local) = text.split_once('+').map_or((text, ""), |(text, local)| (text, local));
        let (epoch, rest) = match text.split_once('!') {
            Some((epoch, rest)) => (epoch.parse().ok()?, rest),
            None => (0, text),
        };
        let (mut release, mut rest) = (Vec::new(), rest);
        loop {
            let (number, after) = number(rest)?;
            release.push(number);
            rest = after;
            match after.strip_prefix('.').filter(|after| after.starts_with(|c: char| c.is_ascii_digit())) {
                Some(after) => rest = after,
                None => break,
            }
        }
        // `1.0` and `1` are the same.
        while release.len() > 1 && release.last() == Some(&0) {
            release.pop();
        }
        let (mut pre, mut post, mut dev) = (None, None, None);
        if let Some((word, number, after)) =
            part(rest, &["alpha", "beta", "preview", "pre", "rc", "a", "b", "c"])
        {
            let kind = match word {
                "alpha" | "a" => 1,
                "beta" | "b" => 2,
                _ => 3,
            };
            pre = Some((kind, number));
            rest = after;
        }
        if let Some((_, number, after)) = part(rest, &["post", "rev", "r"]) {
            post = Some(number);
            rest = after;
        }
        if let Some((_, number, after)) = part(rest, &["dev"]) {
            dev = Some(number);
            rest = after;
        }
        if !rest.is_empty() {
            return None;
        }
        let pre = match (pre, post, dev) {
            (Some(pre), ..) => pre,
            (None, None, Some(_)) => (0, 0),
            _ => (9, 0),
        };
        let local = local.split(['.', '-', '_']).filter(|part| !part.is_empty()).map(|part| {
            // A number is after every word.
            part.parse().map_or_else(|_| (false, 0, part.to_owned()), |number| (true, number, String::new()))
        });
        let local = local.collect();
        Some(Version { epoch, release, pre, post, dev: (dev.is_none(), dev.unwrap_or_default()), local })
    }
}

fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// A word with its number, and what is behind.
fn part<'t, 'w>(text: &'t str, words: &[&'w str]) -> Option<(&'w str, u64, &'t str)> {
    let bare = text.strip_prefix(['.', '-', '_']).unwrap_or(text);
    let word = words.iter().find(|word| bare.starts_with(**word))?;
    let after = &bare[word.len()..];
    let digits = after.strip_prefix(['.', '-', '_']).unwrap_or(after);
    let (number, after) = number(digits).unwrap_or((0, after));
    Some((word, number, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stand_in_their_order() {
        let order = [
            "1.0.dev1",
            "1.0a1",
            "1.0a2.dev3",
            "1.0a2",
            "1.0b1",
            "1.0rc1",
            "1.0",
            "1.0+local",
            "1.0.post1",
            "1.1.dev1",
            "1.1",
            "1.10",
            "2",
            "1!0.1",
        ];
        for pair in order.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Some(Ordering::Less), "{pair:?}");
        }
        for (one, other) in [("1", "1.0.0"), ("v1.0", "1"), ("1.0-rc.1", "1.0c1"), ("1.0ALPHA", "1.0a0")] {
            assert_eq!(compare(one, other), Some(Ordering::Equal), "{one} {other}");
        }
        for wrong in ["", "x", "1.x", "1..2", "1.0 beta gamma", "1.0.post", "99999999999999999999999"] {
            let equal = compare(wrong, wrong);
            assert!(equal.is_none() || wrong == "1.0.post", "{wrong}");
        }
    }
}
