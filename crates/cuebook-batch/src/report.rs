//! What an output says in numbers: how many rows passed, what they cost, how long they took, and how far judges agree.

mod agreement;
mod page;

use std::path::Path;

use cuebook::error::{did_you_mean, nearest};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::{Map, Value as Json, json};

use crate::rows;
pub use agreement::Agreement;

/// The most different values that a column may have to count as a verdict.
const MAX_VALUES: usize = 20;
/// The most columns of verdicts; each is compared with each.
const MAX_VERDICTS: usize = 40;

/// What is to be reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportOptions {
    /// Columns with verdicts of judges or people; none for all columns that look like verdicts.
    pub verdicts: Vec<String>,
    /// What stands before the names of the columns that `cuebook batch` added.
    pub prefix: String,
}

/// Some numbers, from the smallest to the largest.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spread {
    /// Their sum.
    pub sum: f64,
    /// Their mean.
    pub mean: f64,
    /// Half of them are smaller.
    pub p50: f64,
    /// Nine of ten are smaller.
    pub p90: f64,
    /// 99 of a hundred are smaller.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// How often a column has each value.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The column.
    pub column: String,
    /// Its values and how many rows have each, the most frequent first.
    pub counts: Vec<(String, u64)>,
    /// How many rows have a value.
    pub rows: u64,
    /// The share of `true`, with the ends of its confidence interval (95 %); only for columns of truth values.
    pub passed: Option<(f64, f64, f64)>,
}

/// What an output says.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The output.
    pub name: String,
    /// How many rows it has.
    pub rows: u64,
    /// How many of them are error rows.
    pub failed: u64,
    /// Codes of errors and how many rows have each.
    pub codes: Vec<(String, u64)>,
    /// What a row costs.
    pub cost: Option<Spread>,
    /// How long a row took, in seconds.
    pub seconds: Option<Spread>,
    /// What each judge costs for a row, by the judge's name.
    pub judges: Vec<(String, Spread)>,
    /// What was read and written.
    pub tokens: (u64, u64),
    /// Of what was read, what a provider's cache had.
    pub cached: u64,
    /// Columns of verdicts.
    pub verdicts: Vec<Verdict>,
    /// How far each two columns of verdicts agree.
    pub agreements: Vec<Agreement>,
}

/// A column of verdicts, in small numbers: a value of a list for each row.
struct Column {
    name: String,
    values: Vec<String>,
    /// `u8::MAX` for a row without a value.
    rows: Vec<u8>,
    /// Whether it has too many different values.
    is_full: bool,
    is_truth: bool,
}

impl Column {
    fn add(&mut self, value: Option<&Json>) {
        let text = match value {
            None | Some(Json::Null) => return self.rows.push(u8::MAX),
            Some(Json::Bool(value)) => value.to_string(),
            Some(Json::Number(number)) if number.is_i64() || number.is_u64() => {
                self.is_truth = false;
                number.to_string()
            }
            Some(Json::String(text)) if text.len() <= 80 => {
                // The columns of CSV hold texts only.
                self.is_truth &= matches!(text.as_str(), "true" | "false");
                text.clone()
            }
            Some(_) => {
                self.is_full = true;
                return self.rows.push(u8::MAX);
            }
        };
        let index = self.values.iter().position(|known| *known == text).unwrap_or_else(|| {
            self.values.push(text);
            self.values.len() - 1
        });
        self.is_full |= self.values.len() > MAX_VALUES;
        self.rows.push(u8::try_from(index.min(MAX_VALUES)).unwrap_or(u8::MAX));
    }
}

/// Reads an output and says what is in it.
///
/// # Errors
///
/// That it cannot be read, or a column that is wanted is missing.
pub fn report(path: &Path, wanted: &ReportOptions) -> Result<Report> {
    let mut rows = rows::open(path)?;
    let own = |name: &str| format!("{}{name}", wanted.prefix);
    let mut report = Report {
        name: path.to_string_lossy().into_owned(),
        rows: 0,
        failed: 0,
        codes: Vec::new(),
        cost: None,
        seconds: None,
        judges: Vec::new(),
        tokens: (0, 0),
        cached: 0,
        verdicts: Vec::new(),
        agreements: Vec::new(),
    };
    let (mut costs, mut seconds) = (Vec::new(), Vec::new());
    let mut judges: Vec<(String, Vec<f64>)> = Vec::new();
    let mut columns: Vec<Column> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    while let Some(row) = rows.next_row() {
        let row = row?;
        if let Some(fault) = row.fault {
            return Err(fault);
        }
        let values = row.values;
        report.rows += 1;
        if let Some(code) = values.get(&own("error")).and_then(Json::as_str) {
            report.failed += 1;
            count(&mut report.codes, code);
        }
        let amount = |name: &str| values.get(&own(name)).and_then(Json::as_f64);
        let positive = |name: &str| amount(name).filter(|amount| *amount > 0.0);
        seconds.extend(positive("seconds"));
        // A row that no request was sent for has no cost: it is invalid, or an earlier row has the same answer.
        let is_asked = ["seconds", "input_tokens", "cost"].iter().any(|name| positive(name).is_some());
        costs.extend(amount("cost").filter(|_| is_asked));
        for (name, judge) in judges_of(&values, &wanted.prefix) {
            let cost = values.get(name).and_then(Json::as_f64).filter(|cost| *cost > 0.0);
            match (judges.iter_mut().find(|(known, _)| known == judge), cost) {
                (Some((_, costs)), cost) => costs.extend(cost),
                (None, Some(cost)) => judges.push((judge.to_owned(), vec![cost])),
                (None, None) => {}
            }
        }
        report.tokens.0 += amount("input_tokens").unwrap_or(0.0) as u64;
        report.tokens.1 += amount("output_tokens").unwrap_or(0.0) as u64;
        report.cached += amount("cached_tokens").unwrap_or(0.0) as u64;
        note(&mut columns, &mut names, &values, wanted, report.rows);
    }
    report.cost = Spread::of(costs);
    report.seconds = Spread::of(seconds);
    report.judges =
        judges.into_iter().filter_map(|(judge, costs)| Some((judge, Spread::of(costs)?))).collect();
    for name in &wanted.verdicts {
        if !names.contains(name) {
            let hint = did_you_mean(&nearest(name, names.iter().map(String::as_str)))
                .unwrap_or_else(|| format!("its columns are {}", names.join(", ")));
            let diagnostic = Diagnostic::new(Code::BadColumns, format!("the output has no column `{name}`"));
            return Err(Error::new(ErrorKind::Usage, diagnostic.file(report.name).hint(hint)));
        }
    }
    let is_verdict = |column: &&Column| {
        let has_values = (1..=MAX_VALUES).contains(&column.values.len());
        // Without a wish, a column with a value for each row is an id or a text.
        let is_wanted = !wanted.verdicts.is_empty() || column.values.len() as u64 * 2 <= report.rows.max(2);
        !column.is_full && has_values && is_wanted
    };
    let verdicts: Vec<&Column> = columns.iter().filter(is_verdict).take(MAX_VERDICTS).collect();
    report.verdicts = verdicts.iter().map(|column| verdict(column)).collect();
    for (index, one) in verdicts.iter().enumerate() {
        for other in &verdicts[index + 1..] {
            let pairs = one
                .rows
                .iter()
                .zip(&other.rows)
                .filter(|(one, other)| **one != u8::MAX && **other != u8::MAX);
            let pairs = pairs
                .map(|(at, to)| (one.values[*at as usize].as_str(), other.values[*to as usize].as_str()));
            report.agreements.extend(Agreement::of(&one.name, &other.name, pairs));
        }
    }
    Ok(report)
}

/// Names of columns that are no verdicts.
const PLAIN: [&str; 17] = [
    "row",
    "answer",
    "answer_outputs",
    "model",
    "finish",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cost",
    "seconds",
    "text",
    "messages",
    "wire",
    "render_hash",
    "sources",
    "error",
    "error_message",
];

fn note(
    columns: &mut Vec<Column>,
    names: &mut Vec<String>,
    values: &Map<String, Json>,
    wanted: &ReportOptions,
    rows: u64,
) {
    for name in values.keys().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>() {
        let plain = name.strip_prefix(&wanted.prefix).unwrap_or(&name);
        let is_plain = PLAIN.contains(&plain) || plain.ends_with("_cost") || plain.ends_with("_error");
        let is_wanted = match wanted.verdicts.is_empty() {
            true => !is_plain,
            false => wanted.verdicts.contains(&name),
        };
        if is_wanted {
            let missing = usize::try_from(rows - 1).unwrap_or(usize::MAX);
            columns.push(Column {
                name: name.clone(),
                values: Vec::new(),
                rows: vec![u8::MAX; missing],
                is_full: false,
                is_truth: true,
            });
        }
        names.push(name);
    }
    for column in columns.iter_mut() {
        if column.is_full {
            continue;
        }
        column.add(values.get(&column.name));
        if column.is_full {
            // A text or an id: its rows would only fill the memory.
            (column.rows, column.values) = (Vec::new(), Vec::new());
        }
    }
}

/// The columns with the costs of judges, and the names of the judges.
fn judges_of<'a>(values: &'a Map<String, Json>, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    values.keys().filter_map(move |name| {
        let judge = name.strip_prefix(prefix)?.strip_suffix("_cost")?;
        values.contains_key(&format!("{prefix}{judge}_error")).then_some((name.as_str(), judge))
    })
}

fn count(counts: &mut Vec<(String, u64)>, name: &str) {
    match counts.iter_mut().find(|(known, _)| known == name) {
        Some((_, count)) => *count += 1,
        None => counts.push((name.to_owned(), 1)),
    }
}

fn verdict(column: &Column) -> Verdict {
    let mut counts: Vec<(String, u64)> = column.values.iter().map(|value| (value.clone(), 0)).collect();
    for value in &column.rows {
        if let Some((_, count)) = counts.get_mut(usize::from(*value)) {
            *count += 1;
        }
    }
    let rows = counts.iter().map(|(_, count)| count).sum();
    let yes = counts.iter().find(|(value, _)| value == "true").map_or(0, |(_, count)| *count);
    counts.sort_by(|(one, a), (other, b)| b.cmp(a).then(one.cmp(other)));
    let passed = (column.is_truth && rows > 0).then(|| {
        let (low, high) = agreement::share_interval(yes, rows);
        (yes as f64 / rows as f64, low, high)
    });
    Verdict { column: column.name.clone(), counts, rows, passed }
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let max = *values.last()?;
        // The smallest value that so many are not larger than.
        let at = |share: f64| {
            let place = (share * values.len() as f64).ceil() as usize;
            values[place.clamp(1, values.len()) - 1]
        };
        let sum: f64 = values.iter().sum();
        Some(Spread { sum, mean: sum / values.len() as f64, p50: at(0.5), p90: at(0.9), p99: at(0.99), max })
    }

    fn to_json(self) -> Json {
        json!({"sum": self.sum, "mean": self.mean, "p50": self.p50, "p90": self.p90, "p99": self.p99, "max": self.max})
    }
}

impl Report {
    /// What the model and all judges have cost; `None` if nothing was asked.
    pub fn total_cost(&self) -> Option<f64> {
        let costs: Vec<f64> =
            self.cost.iter().chain(self.judges.iter().map(|(_, cost)| cost)).map(|cost| cost.sum).collect();
        (!costs.is_empty()).then(|| costs.iter().sum())
    }

    /// The share of the input tokens that a provider's cache had.
    pub fn cached_share(&self) -> Option<f64> {
        (self.tokens.0 > 0).then(|| self.cached as f64 / self.tokens.0 as f64)
    }

    /// The report as scripts see it.
    pub fn to_json(&self) -> Json {
        let counts = |counts: &[(String, u64)]| -> Map<String, Json> {
            counts.iter().map(|(name, count)| (name.clone(), json!(count))).collect()
        };
        let verdicts: Vec<Json> = self
            .verdicts
            .iter()
            .map(|verdict| {
                let passed = verdict.passed.map(|(share, low, high)| json!({"share": share, "low": low, "high": high}));
                json!({"column": verdict.column, "rows": verdict.rows, "counts": counts(&verdict.counts), "passed": passed})
            })
            .collect();
        json!({
            "output": self.name,
            "rows": self.rows,
            "failed": self.failed,
            "codes": counts(&self.codes),
            "cost": self.cost.map(Spread::to_json),
            "seconds": self.seconds.map(Spread::to_json),
            "input_tokens": self.tokens.0,
            "output_tokens": self.tokens.1,
            "cached_tokens": self.cached,
            "cached_share": self.cached_share(),
            "judges": self.judges.iter().map(|(judge, cost)| (judge.clone(), json!({"cost": cost.to_json()}))).collect::<Map<_, _>>(),
            "total_cost": self.total_cost(),
            "verdicts": verdicts,
            "agreements": self.agreements.iter().map(Agreement::to_json).collect::<Vec<_>>(),
        })
    }

    /// What is spread over rows, with its name.
    fn spreads(&self) -> Vec<(String, Spread)> {
        let own = [("cost", self.cost), ("seconds", self.seconds)];
        let own = own.into_iter().filter_map(|(name, spread)| Some((name.to_owned(), spread?)));
        own.chain(self.judges.iter().map(|(judge, cost)| (format!("cost of judge {judge}"), *cost))).collect()
    }

    /// The report for people.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}: {} rows, {} errors\n", self.name, self.rows, self.failed);
        for (code, count) in &self.codes {
            text.push_str(&format!("  {code}  {count}\n"));
        }
        for (name, spread) in self.spreads() {
            let Spread { sum, mean, p50, p90, p99, max } = spread;
            text.push_str(&format!(
                "{name}: {sum:.6} in all; mean {mean:.6}, p50 {p50:.6}, p90 {p90:.6}, p99 {p99:.6}, max {max:.6}\n"
            ));
        }
        if let (Some(total), false) = (self.total_cost(), self.judges.is_empty()) {
            text.push_str(&format!("cost with judges: {total:.6} in all\n"));
        }
        if let Some(share) = self.cached_share() {
            text.push_str(&format!(
                "tokens: {} input, {} of them cached ({:.1} %), {} output\n",
                self.tokens.0,
                self.cached,
                share * 100.0,
                self.tokens.1
            ));
        }
        for verdict in &self.verdicts {
            text.push_str(&format!("{}: {} rows", verdict.column, verdict.rows));
            if let Some((share, low, high)) = verdict.passed {
                text.push_str(&format!(
                    ", {:.1} % passed ({:.1} to {:.1})",
                    share * 100.0,
                    low * 100.0,
                    high * 100.0
                ));
            }
            let counts: Vec<String> =
                verdict.counts.iter().map(|(value, count)| format!("{value} {count}")).collect();
            text.push_str(&format!(": {}\n", counts.join(", ")));
        }
        for agreement in &self.agreements {
            text.push_str(&format!("{agreement}\n"));
        }
        text
    }

    /// The report as one HTML page that needs nothing else.
    pub fn to_html(&self) -> String {
        page::page(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let spread = Spread::of((1..=100).rev().map(f64::from).collect()).unwrap();
        assert_eq!((spread.p50, spread.p90, spread.p99, spread.max), (50.0, 90.0, 99.0, 100.0));
        assert_eq!((spread.sum, spread.mean), (5050.0, 50.5));
        assert_eq!(Spread::of(vec![7.0]).unwrap().p50, 7.0);
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn columns_with_few_values_are_verdicts_and_are_compared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.jsonl");
        let mut text = String::new();
        for row in 0..40 {
            let (label, judge) = (row % 2 == 0, row % 2 == 0 || row % 10 == 1);
            let line = json!({"row": row, "label": label, "good_ok": judge, "answer": format!("a {row}"), "cost": 0.5,
                "seconds": 2.0, "error": if row == 3 { json!("CB722") } else { Json::Null }});
            text.push_str(&format!("{line}\n"));
        }
        std::fs::write(&path, text).unwrap();
        let found = report(&path, &ReportOptions::default()).unwrap();
        assert_eq!((found.rows, found.failed, found.codes.clone()), (40, 1, vec![("CB722".to_owned(), 1)]));
        assert_eq!(found.cost.unwrap().sum, 20.0);
        let names: Vec<&str> = found.verdicts.iter().map(|verdict| verdict.column.as_str()).collect();
        assert_eq!(names, ["label", "good_ok"]);
        assert_eq!(found.verdicts[0].passed.unwrap().0, 0.5);
        // 36 of 40 agree; by chance, 20 would.
        assert!((found.agreements[0].kappa.unwrap() - 0.8).abs() < 1e-9, "{:?}", found.agreements);
        let missing = ReportOptions { verdicts: vec!["labl".to_owned()], ..ReportOptions::default() };
        assert!(report(&path, &missing).unwrap_err().report(false).contains("did you mean `label`?"));
        assert!(found.to_html().contains("<svg"));
    }
}
