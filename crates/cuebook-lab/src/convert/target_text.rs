//! The text of a draft in the languages of the targets. Text that only looks like syntax is escaped so that it shows
//! as it is.

use super::draft::{Chunk, Draft, Language, Piece, UnsupportedPart};
use super::report::Report;
use super::reported_differences::ReportedDifference;
use crate::chat::{Marker, Roles};
use crate::convert::BuiltIn;
use crate::template::input::LITERAL_INPUT;
use crate::template::mustache::parts::PARTIAL;
use crate::template::parts::MissingValue;

/// Lines that would be more than text where a Jinja2 template is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyntaxLines {
    /// None.
    Nothing,
    /// Role markers.
    Roles,
    /// Headings.
    Headings,
}

/// How Jinja2 is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Jinja<'l> {
    pub(super) guard: SyntaxLines,
    /// Whether a block tag takes no white space along.
    pub(super) blocks_are_safe: bool,
    /// Lines that stay as they are whatever the guard says, by their numbers in the text, from 0, in order.
    pub(super) kept: &'l [usize],
    /// Lines that are guarded whatever they look like.
    pub(super) forced: &'l [usize],
}

impl Jinja<'_> {
    /// The text of a draft as a template. Comments that are not in it go to the report, if there is one.
    pub(super) fn write(
        self,
        draft: &Draft,
        mut report: Option<&mut Report>,
    ) -> Result<String, UnsupportedPart> {
        let mut out = String::new();
        // How many lines end in the text so far, up to this byte of it.
        let (mut first, mut counted) = (0, 0);
        for chunk in &draft.words {
            first += out[counted..].matches('\n').count();
            counted = out.len();
            match (&chunk.written, &chunk.pieces) {
                (Some((Language::Jinja, text)), pieces) => match pieces {
                    // What needs no change is the author's own, with comments and all.
                    Ok(pieces) if !self.fits(pieces, first) => {
                        self.pieces(pieces, first, &mut out);
                        if let Some(report) = report.as_deref_mut() {
                            no_comments(chunk, report);
                        }
                    }
                    Ok(_) => out.push_str(text),
                    Err(_) => self.guarded(text, first, &mut out),
                },
                (_, Ok(pieces)) => self.pieces(pieces, first, &mut out),
                (_, Err(stop)) => match &chunk.jinja {
                    Some(text) => self.guarded(text, first, &mut out),
                    None => return Err(stop.clone()),
                },
            }
        }
        Ok(out)
    }

    /// Whether no line of the pieces has to be guarded.
    fn fits(self, pieces: &[Piece], first: usize) -> bool {
        lines(pieces).iter().enumerate().all(|(number, line)| !self.is_guarded(first + number, line))
    }

    /// Writes pieces, the first of them on line `first`.
    pub(super) fn pieces(self, pieces: &[Piece], first: usize, out: &mut String) {
        for (number, line) in lines(pieces).iter().enumerate() {
            if number > 0 {
                out.push('\n');
            }
            let guarded = self.is_guarded(first + number, line);
            for (index, piece) in line.iter().enumerate() {
                let before_tag = line.get(index + 1).is_some();
                match piece {
                    Piece::Text(text) if guarded && index == 0 => self.guard_text(text, before_tag, out),
                    Piece::Text(text) => self.text(text, before_tag, out),
                    Piece::Value { name, absent } => self.value(name, absent, out),
                }
            }
        }
    }

    /// Writes a template of which no more is known than its text, from line `first` on.
    fn guarded(self, text: &str, first: usize, out: &mut String) {
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                out.push('\n');
            }
            let is_guarded =
                !line.is_empty() && self.is_guarded(first + number, &[Piece::Text(line.to_owned())]);
            match (is_guarded, line.char_indices().nth(1)) {
                (true, Some((end, _))) => {
                    self.sign(&line[..end], out);
                    out.push_str(&line[end..]);
                }
                (true, None) => self.sign(line, out),
                (false, _) => out.push_str(line),
            }
        }
    }

    fn is_guarded(self, number: usize, line: &[Piece]) -> bool {
        match self.guard {
            _ if self.forced.contains(&number) => matches!(line.first(), Some(Piece::Text(_))),
            _ if self.kept.binary_search(&number).is_ok() => false,
            SyntaxLines::Nothing => false,
            SyntaxLines::Roles => is_marker(line, &Roles::default()),
            SyntaxLines::Headings => {
                matches!(line.first(), Some(Piece::Text(text)) if looks_like_structure(text))
            }
        }
    }

    /// Writes the first letter of a line so that the line is no more than text.
    fn guard_text(self, text: &str, before_tag: bool, out: &mut String) {
        let end = text.char_indices().nth(1).map_or(text.len(), |(end, _)| end);
        self.sign(&text[..end], out);
        self.text(&text[end..], before_tag, out);
    }

    fn sign(self, sign: &str, out: &mut String) {
        // A role marker is one as long as an author wrote all of it, so that here a value has to stand.
        if self.guard == SyntaxLines::Roles || !self.blocks_are_safe {
            out.push_str(&format!("{{{{ {} }}}}", quoted(sign)));
        } else {
            out.push_str(&format!("{{% raw %}}{sign}{{% endraw %}}"));
        }
    }

    fn value(self, name: &str, absent: &MissingValue, out: &mut String) {
        match absent {
            MissingValue::Shows(text) if self.blocks_are_safe => {
                out.push_str(&format!("{{% if {name} is defined %}}{{{{ {name} }}}}{{% else %}}"));
                self.text(text, true, out);
                out.push_str("{% endif %}");
            }
            MissingValue::Shows(text) => {
                out.push_str(&format!("{{{{ {name}|default({}) }}}}", quoted(text)));
            }
            MissingValue::Nothing | MissingValue::Fails => out.push_str(&format!("{{{{ {name} }}}}")),
        }
    }

    /// Writes text so that it shows as it is. `before_tag` says whether a tag follows, with which a brace would mean more.
    pub(super) fn text(self, text: &str, before_tag: bool, out: &mut String) {
        let special = |at: usize| match text.as_bytes().get(at + 1) {
            Some(next) => matches!(next, b'{' | b'%' | b'#'),
            None => before_tag,
        };
        let braces: Vec<usize> =
            text.match_indices('{').map(|(at, _)| at).filter(|at| special(*at)).collect();
        let (Some(first), Some(last)) = (braces.first().copied(), braces.last().copied()) else {
            out.push_str(text);
            return;
        };
        if !self.blocks_are_safe || text.contains("endraw") {
            let mut from = 0;
            for at in braces {
                out.push_str(&text[from..at]);
                match self.blocks_are_safe {
                    true => out.push_str("{% raw %}{{% endraw %}"),
                    false => out.push_str("{{ \"{\" }}"),
                }
                from = at + 1;
            }
            out.push_str(&text[from..]);
            return;
        }
        let closes = ["}}", "%}", "#}"].iter().filter_map(|close| text.rfind(close)).max();
        let end = closes.map_or(0, |close| close + 2).max(last + 1);
        out.push_str(&text[..first]);
        out.push_str("{% raw %}");
        out.push_str(&text[first..end]);
        out.push_str("{% endraw %}");
        out.push_str(&text[end..]);
    }
}

/// A text in quotes.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// The pieces by lines. A line ends where an author's text has a newline; never in a value.
pub(super) fn lines(pieces: &[Piece]) -> Vec<Vec<Piece>> {
    let mut lines: Vec<Vec<Piece>> = vec![Vec::new()];
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                for (index, part) in text.split('\n').enumerate() {
                    if index > 0 {
                        lines.push(Vec::new());
                    }
                    if let Some(line) = lines.last_mut().filter(|_| !part.is_empty()) {
                        match line.last_mut() {
                            Some(Piece::Text(before)) => before.push_str(part),
                            _ => line.push(Piece::Text(part.to_owned())),
                        }
                    }
                }
            }
            Piece::Value { .. } => {
                if let Some(line) = lines.last_mut() {
                    line.push(piece.clone());
                }
            }
        }
    }
    lines
}

/// Whether a line would begin a message in a `.prompty` file.
pub(super) fn is_marker(line: &[Piece], roles: &Roles) -> bool {
    let atom = |piece: &Piece| -> (bool, String) {
        match piece {
            Piece::Text(text) => (true, text.clone()),
            Piece::Value { .. } => (false, "x".to_owned()),
        }
    };
    let atoms: Vec<(bool, String)> = line.iter().map(atom).collect();
    Marker::role_of(atoms.iter().map(|(literal, text)| (*literal, text.as_str())), roles).is_some()
}

/// Whether a line that begins so would be a heading among sections.
pub(super) fn looks_like_structure(line: &str) -> bool {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    (1..=6).contains(&level) && matches!(line.as_bytes().get(level), None | Some(b' ' | b'\t'))
}

/// The pieces with `$names`; `None` if that cannot say them.
pub(super) fn dollar(draft: &Draft, pieces: &[Piece]) -> Option<String> {
    let mut out = String::new();
    for (index, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) => out.push_str(&text.replace('$', "$$")),
            Piece::Value { name, absent } => {
                let is_word = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'_';
                let named = name.bytes().all(is_word) && !name.starts_with(|c: char| c.is_ascii_digit());
                let certain = draft.input(name).is_some_and(super::draft::Input::is_certain);
                // Where there is no value, `$name` fails.
                if !named || name.is_empty() || !(certain || *absent == MissingValue::Fails) {
                    return None;
                }
                let goes_on = matches!(pieces.get(index + 1), Some(Piece::Text(text))
                    if text.bytes().next().is_some_and(is_word));
                match goes_on {
                    true => out.push_str(&format!("${{{name}}}")),
                    false => out.push_str(&format!("${name}")),
                }
            }
        }
    }
    Some(out)
}

/// The pieces with `{input:…}`.
pub(super) fn input(draft: &Draft, pieces: &[Piece], report: &mut Report) -> String {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => escaped_input(text, &mut out),
            Piece::Value { name, absent } => {
                let input = draft.input(name);
                let kept = format!("{{input:{name}}}");
                out.push_str(&match absent {
                    _ if input.is_some_and(super::draft::Input::is_certain) => kept,
                    MissingValue::Shows(text) if *text == kept => kept,
                    MissingValue::Shows(text) if !text.contains('}') => format!("{{input:{name}:{text}}}"),
                    MissingValue::Shows(text) => {
                        let message =
                            format!("without a value, `{name}` prints nothing: before, it printed `{text}`");
                        report
                            .changed("text", message)
                            .at(input.and_then(|input| input.place.clone()))
                            .hint("give the input a default")
                            .spares(ReportedDifference::Absence(name.clone()));
                        format!("{{input:{name}?}}")
                    }
                    MissingValue::Nothing | MissingValue::Fails => format!("{{input:{name}?}}"),
                });
            }
        }
    }
    out
}

/// Writes text, in which a brace that would begin a placeholder is written as the default of an input that no one has.
fn escaped_input(text: &str, out: &mut String) {
    let mut from = 0;
    for (at, _) in text.match_indices('{') {
        let rest = &text[at + 1..];
        let after = ["input:", "env:"].into_iter().find_map(|begin| rest.strip_prefix(begin)).or_else(|| {
            let dollar = text[..at].ends_with('$');
            rest.strip_prefix("inputs.").filter(|_| dollar)
        });
        let begins =
            after.and_then(|after| after.chars().next()).is_some_and(|c| c.is_alphanumeric() || c == '_');
        // What is shown of another item has a longer name; one sign too many does no harm.
        if begins || rest.starts_with("include:") {
            out.push_str(&text[from..at]);
            out.push_str(&format!("{{input:{LITERAL_INPUT}:{{}}"));
            from = at + 1;
        }
    }
    out.push_str(&text[from..]);
}

/// Tells of the comments of a stretch that is written anew.
pub(super) fn no_comments(chunk: &Chunk, report: &mut Report) {
    for place in &chunk.comments {
        let message = "a comment in the template is left out";
        let hint = "copy it by hand to keep it";
        report.lost("comments", message).at(Some(place.clone())).hint(hint);
    }
}

/// The text of a Mustache template, if the draft is one.
pub(super) fn mustache(draft: &Draft) -> Option<(String, bool)> {
    let mut all = String::new();
    let mut escapes = None;
    for Chunk { written, pieces, .. } in &draft.words {
        match (written, pieces.as_deref()) {
            (Some((Language::Mustache { escape }, text)), _)
                if escapes.is_none_or(|known| known == *escape) =>
            {
                escapes = Some(*escape);
                all.push_str(text);
            }
            // Mustache has no way to say two braces.
            (None, Ok([Piece::Text(text)])) if !text.contains("{{") => all.push_str(text),
            _ => return None,
        }
    }
    escapes.map(|escape| (all, escape))
}

/// The error for a text that the target has no way to say.
pub(super) fn cannot(draft: &Draft, stop: &UnsupportedPart, target: BuiltIn) -> crate::error::Error {
    use crate::error::{Code, Diagnostic, Error, ErrorKind};
    let is_partial = stop.what == PARTIAL && target == BuiltIn::Template;
    let message = match is_partial {
        // Templates have includes, but none that does the same.
        true => format!(
            "the text has {PARTIAL}, but an `{{% include %}}` differs: a partial is indented like its \
                 tag, and sees the item of the section around it"
        ),
        false => format!("the text has {}, but a {} has no equivalent", stop.what, noun(target)),
    };
    // Only what works is named: other notations refuse some things as well.
    let can = |other: &BuiltIn| *other != draft.from && *other != target && can_say(draft, *other);
    let others: Vec<String> =
        BuiltIn::ALL.into_iter().filter(can).map(|other| format!("--to {}", other.as_str())).collect();
    let hint = match others.as_slice() {
        _ if stop.what.contains("{include:") => "copy the included text into the directive".to_owned(),
        _ if is_partial => {
            let jinja = "write the prompt in Jinja2, with an include instead of the partial";
            match others.as_slice() {
                [] => jinja.to_owned(),
                others => format!("{jinja}, or convert to a dialect with partials: {}", others.join(", ")),
            }
        }
        [] => "remove it".to_owned(),
        others => format!("remove it, or convert to a dialect that has it: {}", others.join(", ")),
    };
    let diagnostic = Diagnostic::new(Code::CannotConvert, message).at(stop.place.clone()).hint(hint);
    Error::new(ErrorKind::PromptRead, diagnostic).with("target", target.as_str())
}

/// Whether a notation has a way to say the text of a draft.
fn can_say(draft: &Draft, target: BuiltIn) -> bool {
    let jinja = Jinja { guard: SyntaxLines::Nothing, blocks_are_safe: true, kept: &[], forced: &[] };
    match target {
        BuiltIn::Directive | BuiltIn::Dotprompt | BuiltIn::Skill => draft.pieces().is_ok(),
        BuiltIn::Template => jinja.write(draft, None).is_ok(),
        BuiltIn::Prompty | BuiltIn::Sections => mustache(draft).is_some() || jinja.write(draft, None).is_ok(),
    }
}

/// What a prompt of a notation is called.
pub(super) fn noun(dialect: BuiltIn) -> &'static str {
    match dialect {
        BuiltIn::Template => "template",
        BuiltIn::Prompty => ".prompty file",
        BuiltIn::Sections => "section tree",
        BuiltIn::Directive => "directive",
        BuiltIn::Dotprompt => ".prompt file",
        BuiltIn::Skill => "skill",
    }
}
