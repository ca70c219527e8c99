//! A comparison of two outputs, for people and for scripts.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::{Cause, ChangedSentence, Counts, OutputDiff};

/// How much of a value is shown in a line.
const SHOWN_LETTERS: usize = 60;

fn counted(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// `2 texts, 1 answer`
fn counts(counts: &Counts) -> String {
    let parts = [(counts.texts, "text"), (counts.answers, "answer"), (counts.verdicts, "verdict")];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    parts.map(|(count, one)| counted(*count, one)).collect::<Vec<_>>().join(", ")
}

fn short(value: &Json) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn sentence(changed: &ChangedSentence) -> String {
    let one = &changed.sentence;
    let of = if one.judge.is_empty() { String::new() } else { format!(" (judge {})", one.judge) };
    format!("{} {}:{}{of}  {}", if changed.is_new { '+' } else { '-' }, one.file, one.line, one.text)
}

impl Cause {
    fn lines(&self) -> Vec<String> {
        let reason = &self.reason;
        let mut lines: Vec<String> = reason.sentences.iter().map(sentence).collect();
        if !reason.columns.is_empty() {
            lines.push(format!("other values in the data: {}", reason.columns.join(", ")));
        }
        if let Some((before, after)) = &reason.models {
            lines.push(format!("another model: {before} → {after}"));
        }
        if reason.is_unknown {
            lines.push(
                "an output does not say which sentences this row uses: write it with --run or --sources"
                    .to_owned(),
            );
        }
        if !reason.what.is_empty() {
            lines.push(reason.what.to_owned());
        }
        lines
    }

    fn to_json(&self) -> Json {
        let reason = &self.reason;
        let sentences: Vec<Json> = reason
            .sentences
            .iter()
            .map(|one| {
                let judge = Some(&one.sentence.judge).filter(|judge| !judge.is_empty());
                json!({"change": if one.is_new { "new" } else { "gone" }, "file": one.sentence.file, "line": one.sentence.line,
                    "text": one.sentence.text, "judge": judge})
            })
            .collect();
        let rows: Vec<Json> = self
            .rows
            .iter()
            .map(|row| {
                let changes: Vec<Json> = row
                    .changes
                    .iter()
                    .map(|one| json!({"column": one.column, "before": one.before, "after": one.after}))
                    .collect();
                json!({"row": row.row, "changes": changes})
            })
            .collect();
        json!({
            "sentences": sentences,
            "columns": reason.columns,
            "models": reason.models.as_ref().map(|(before, after)| json!({"before": before, "after": after})),
            "unknown": reason.is_unknown,
            "reason": Some(reason.what).filter(|what| !what.is_empty()),
            "counts": self.counts.to_json(),
            "rows": rows,
        })
    }
}

impl Counts {
    fn to_json(self) -> Json {
        json!({"rows": self.rows, "texts": self.texts, "answers": self.answers, "verdicts": self.verdicts})
    }
}

impl OutputDiff {
    /// The comparison as scripts see it.
    pub fn to_json(&self) -> Json {
        json!({
            "before": self.before,
            "after": self.after,
            "rows": self.rows,
            "only_before": self.only.0,
            "only_after": self.only.1,
            "changed": self.changed.to_json(),
            "causes": self.causes.iter().map(Cause::to_json).collect::<Vec<_>>(),
        })
    }

    /// The comparison for people.
    pub fn to_text(&self) -> String {
        let of = if self.changed.rows > 0 { format!(" ({})", counts(&self.changed)) } else { String::new() };
        let mut text = format!(
            "{} → {}: {} of {} changed{of}\n",
            self.before,
            self.after,
            self.changed.rows,
            counted(self.rows, "row")
        );
        for (count, name) in [(self.only.0, &self.before), (self.only.1, &self.after)] {
            if count > 0 {
                let _ = writeln!(text, "only in {name}: {}", counted(count, "row"));
            }
        }
        for cause in &self.causes {
            let _ = writeln!(text, "\n{}: {}", counted(cause.counts.rows, "row"), counts(&cause.counts));
            for line in cause.lines() {
                let _ = writeln!(text, "  {line}");
            }
            for row in &cause.rows {
                let changes: Vec<String> = row
                    .changes
                    .iter()
                    .map(|one| format!("{} {} → {}", one.column, short(&one.before), short(&one.after)))
                    .collect();
                let changes = if changes.is_empty() { "the text".to_owned() } else { changes.join(", ") };
                let _ = writeln!(text, "  row {}: {changes}", short(&row.row));
            }
            let hidden = cause.counts.rows - cause.rows.len() as u64;
            if hidden > 0 && !cause.rows.is_empty() {
                let _ = writeln!(text, "  and {} more", counted(hidden, "row"));
            }
        }
        text
    }
}
