//! Looking on while a thread runs: a line that changes on a terminal, plain lines without one, events as JSON where that is
//! asked for. All of it goes to stderr but the JSON, which is data.

use std::io::{IsTerminal, Write, stderr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cuebook::error::printable;
use cuebook_run::provider::Stop;
use cuebook_run::store::{Cost, Record};
use cuebook_run::{Activity, Event, Kind, Money, ThreadId, Watch};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value as Json;

use crate::interrupt::Interrupted;
use crate::output::{print_line, say};

/// Looks on.
pub struct ThreadProgress {
    interrupted: Interrupted,
    json: bool,
    terminal: bool,
    line: Arc<Mutex<Line>>,
}

#[derive(Default)]
struct Line {
    /// The thread that was started here; the others are its children, and those that go on with it.
    first: Option<ThreadId>,
    shown: bool,
    /// There are no observers any more.
    over: bool,
    drawn: Option<Instant>,
    /// When the figures were true.
    known: Option<Instant>,
    doing: String,
    cost: Cost,
    /// A child has asked a model whose price is not known.
    unpriced: bool,
}

/// How often the line is drawn anew, at most.
const EVERY: Duration = Duration::from_millis(100);
/// How often it is looked whether the seconds on the line are still right.
const TICK: Duration = Duration::from_millis(250);

impl ThreadProgress {
    /// Looks on at threads, if there are any.
    pub fn new(json: bool, threads: bool) -> ThreadProgress {
        let terminal = stderr().is_terminal() && !json;
        let line = Arc::<Mutex<Line>>::default();
        if terminal && threads {
            let line = line.clone();
            let tick = move || {
                while !lock(&line).over {
                    std::thread::sleep(TICK);
                    let mut line = lock(&line);
                    if line.shown && line.drawn.is_some_and(|drawn| drawn.elapsed() >= Duration::from_secs(1))
                    {
                        line.draw();
                    }
                }
            };
            // A line whose seconds stand still is better than none.
            drop(std::thread::Builder::new().name("progress".into()).stack_size(64 << 10).spawn(tick));
        }
        ThreadProgress { interrupted: Interrupted::new(), json, terminal, line }
    }

    /// Takes the line away.
    pub fn finish(&self) {
        lock(&self.line).clear();
    }
}

impl Drop for ThreadProgress {
    fn drop(&mut self) {
        lock(&self.line).over = true;
    }
}

fn lock(line: &Mutex<Line>) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(stderr(), "\r\x1b[2K");
        }
    }

    fn draw(&mut self) {
        let mut cost = self.cost;
        cost.unpriced |= self.unpriced;
        cost.elapsed += self.known.map_or(Duration::ZERO, |known| known.elapsed());
        let text = progress(&cost, &self.doing);
        (self.drawn, self.shown) = (Some(Instant::now()), true);
        let _ = write!(stderr(), "\r\x1b[2K{}", cut(&text, width()));
    }

    /// Says something that stays.
    fn say(&mut self, thread: &ThreadId, text: &str) {
        self.clear();
        let first = self.first.get_or_insert_with(|| thread.clone());
        match first == thread {
            true => say(text),
            false => {
                // Every line says whose it is: others may speak in between.
                let mark = last_part(thread);
                say(format_args!("[{mark}] {}", text.replace('\n', &format!("\n[{mark}] "))));
            }
        }
    }
}

impl Watch for ThreadProgress {
    fn cancelled(&self) -> bool {
        self.interrupted.cancelled()
    }

    fn stop(&self) -> Option<Stop> {
        self.interrupted.stop()
    }

    fn impatient(&self) -> bool {
        self.interrupted.impatient()
    }

    fn activity(&self, thread: &ThreadId, activity: &Activity<'_>) {
        let mut line = lock(&self.line);
        match activity {
            Activity::Event(event) if self.json => drop(print_line(&event.to_json(thread))),
            Activity::Event(event) if !self.terminal || is_worth_a_line(event) => {
                if let Some(text) = event_text(event) {
                    line.say(thread, &text);
                }
            }
            Activity::Pulse { cost, doing } if self.terminal => {
                if line.first.get_or_insert_with(|| thread.clone()) == thread {
                    (line.cost, line.known) = (*cost, Some(Instant::now()));
                    line.doing.clone_from(doing);
                } else {
                    line.unpriced |= cost.unpriced;
                    line.doing = format!("{}: {doing}", last_part(thread));
                }
                if line.drawn.is_none_or(|drawn| drawn.elapsed() >= EVERY) {
                    line.draw();
                }
            }
            Activity::Retry { attempt, pause, why } if self.terminal => {
                let (why, pause) = (printable(why), pause.as_secs_f64());
                line.say(thread, &format!("attempt {attempt} failed: {why}; retry in {pause:.1} s"));
            }
            _ => {}
        }
    }
}

/// Notes for a reader of the line alone.
fn is_worth_a_line(event: &Event) -> bool {
    let noted = event.kind == Kind::CognitionOut && event.payload.get("note").is_some();
    let capped = event.payload.get("capped").and_then(Json::as_array).is_some_and(|caps| !caps.is_empty());
    let unpriced = matches!(event.kind, Kind::Started | Kind::Resumed) && event.payload["unpriced"] == true;
    noted
        || capped
        || unpriced
        || matches!(
            event.kind,
            Kind::Denied
                | Kind::ToolUnknown
                | Kind::Hook
                | Kind::HookUnknown
                | Kind::Handoff
                | Kind::Continued
                | Kind::ContextInjected
        )
}

/// How many characters fit on a line of the terminal.
fn width() -> usize {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(stderr())
        && size.ws_col > 0
    {
        return size.ws_col.into();
    }
    80
}

/// A text that leaves the last place of a line free, where terminals begin another one.
fn cut(text: &str, width: usize) -> String {
    let most = width.saturating_sub(1);
    match text.chars().count() > most {
        true => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// Enough of a thread's name to tell it from those around it.
fn last_part(thread: &ThreadId) -> String {
    printable(thread.as_str().rsplit('/').next().unwrap_or_default()).to_string()
}

fn progress(cost: &Cost, doing: &str) -> String {
    let mut text = format!(
        "{} turn{} · {} tokens · {} · {} s",
        cost.turns,
        if cost.turns == 1 { "" } else { "s" },
        grouped(cost.tokens()),
        match cost.unpriced {
            true if cost.spend == Money::ZERO => "cost unknown".to_owned(),
            true => format!("at least {}", cost.spend),
            false => cost.spend.to_string(),
        },
        cost.elapsed.as_secs()
    );
    if !doing.is_empty() {
        text.push_str(" · ");
        text.push_str(printable(doing).as_ref());
    }
    text
}

/// What a thread used, in a line.
pub fn summary(id: &str, status: &str, cost: Option<&Json>) -> String {
    let mut text = format!("{status}: {}", printable(id));
    if let Some(cost) = cost {
        text.push_str("; ");
        text.push_str(&used(cost));
    }
    text
}

/// What was used, by one thread or by all those of a conversation.
pub fn used(cost: &Json) -> String {
    let number = |name: &str| cost.get(name).and_then(Json::as_u64).unwrap_or(0);
    let turns = number("turns");
    let money = |name: &str| Money::from_units(cost.get(name).and_then(Json::as_f64).unwrap_or(0.0));
    let spent = money("spend") + money("children_spend");
    let amount = spent.to_json().as_f64().unwrap_or(0.0);
    let spent = match cost.get("spend_known").and_then(Json::as_bool) {
        Some(false) if spent == Money::ZERO => "cost unknown".to_owned(),
        Some(false) => format!("at least {amount} spent"),
        _ => format!("{amount} spent"),
    };
    format!(
        "{turns} turn{}, {} tokens{}, {spent}, {:.1} s{}",
        if turns == 1 { "" } else { "s" },
        grouped(number("input_tokens") + number("output_tokens")),
        match number("estimated_tokens") {
            0 => String::new(),
            guessed => format!(" (about {} of them estimated)", grouped(guessed)),
        },
        cost.get("elapsed_seconds").and_then(Json::as_f64).unwrap_or(0.0),
        match number("threads") {
            0 | 1 => String::new(),
            threads => format!(", in {threads} threads"),
        },
    )
}

/// A thread in a line of a list, with what its children spent.
pub fn row(record: &Record, children: Money) -> String {
    let spent = record.cost.spend + children;
    let spent = match record.cost.unpriced {
        true if spent == Money::ZERO => "not known".to_owned(),
        true => format!("≥ {spent}"),
        false => spent.to_string(),
    };
    format!(
        "{:<11} {:>3} {:<5} {:>9} tokens {spent:>10}  {:<11} {}",
        record.status.as_str(),
        record.cost.turns,
        if record.cost.turns == 1 { "turn" } else { "turns" },
        grouped(record.cost.tokens()),
        ago(record.created_at, Timestamp::now()),
        printable(record.id.as_str())
    )
}

/// How long ago something was, or the day if that is long ago.
fn ago(then: Timestamp, now: Timestamp) -> String {
    match now.as_second() - then.as_second() {
        ..60 => "just now".to_owned(),
        seconds @ ..3600 => format!("{} min ago", seconds / 60),
        seconds @ ..86_400 => format!("{} h ago", seconds / 3600),
        seconds @ ..172_800 => format!("{} day ago", seconds / 86_400),
        seconds @ ..1_209_600 => format!("{} days ago", seconds / 86_400),
        _ => then.to_zoned(TimeZone::system()).date().to_string(),
    }
}

/// An event in a line for people; `None` if it is not worth one.
pub fn event_text(event: &Event) -> Option<String> {
    let payload = &event.payload;
    let text = |name: &str| payload.get(name).and_then(Json::as_str).unwrap_or_default();
    let line = |text: &str| printable(&text.split_whitespace().collect::<Vec<_>>().join(" ")).to_string();
    let short = |text: &str| {
        let line = line(text);
        match line.char_indices().nth(120) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    };
    Some(match event.kind {
        Kind::Started => {
            let model = payload["model"]["id"].as_str()?;
            format!(
                "started: {} with {model}{}{}",
                text("directive"),
                capped(payload),
                unknown_price(payload, model)
            )
        }
        // What was put around the prompt needs no line; what the author wanted there and was left out does.
        Kind::ContextInjected => {
            let texts = |name: &str| payload[name].as_array().cloned().unwrap_or_default();
            let missing = texts("missing");
            let missing = missing.iter().filter_map(Json::as_str).map(str::to_owned);
            let silent = texts("hooks");
            let silent = silent.iter().filter_map(|hook| Some(failed_hook(hook, hook["failed"].as_str()?)));
            let missing: Vec<String> = missing.chain(silent).collect();
            if missing.is_empty() {
                return None;
            }
            format!("left out of the context: {}", short(&missing.join("; ")))
        }
        Kind::Hook if payload["decided"] == true && payload["result"]["action"] == "retry" => {
            format!("  failed: {}; the hook {} requests a retry", short(text("about")), line(text("hook")))
        }
        // A hook that did what it is for needs no line.
        Kind::Hook => format!("  {}", short(&failed_hook(payload, payload["failed"].as_str()?))),
        Kind::CognitionIn => format!("turn {}: asking", payload["turn"]),
        Kind::CognitionOut => {
            let calls = payload["message"]["metadata"]["tool_calls"].as_array().map_or(0, Vec::len);
            let said: String = payload["message"]["content"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|part| part["value"].as_str())
                .collect();
            let usage = &payload["cost"];
            let tokens = usage["input_tokens"].as_u64()? + usage["output_tokens"].as_u64()?;
            let what = match (calls, said.trim().is_empty()) {
                (0, _) => short(&said),
                (1, true) => "one call".to_owned(),
                (calls, true) => format!("{calls} calls"),
                (_, false) => short(&said),
            };
            let note = match text("note") {
                "" => String::new(),
                note => format!("\n  note: {}", printable(note)),
            };
            format!("turn {}: {what} ({} tokens so far){note}", payload["turn"], grouped(tokens))
        }
        Kind::ToolStart => format!("  {} {}", text("tool"), short(&payload["arguments"].to_string())),
        Kind::ToolResult if payload["is_error"] == true => format!("  failed: {}", short(text("result"))),
        Kind::Denied => format!("  denied: {}", short(text("result"))),
        Kind::ToolUnknown => format!("  not repeated: {} may have run", text("tool")),
        Kind::HookUnknown => format!("  unknown: the hook {} may have run {}", text("hook"), text("item_id")),
        Kind::Nudge => "  reminded".to_owned(),
        Kind::Retry => {
            let counted = match payload.get("estimated") {
                Some(guess) => format!(" (counted as about {} tokens)", grouped(tokens_of(guess))),
                None => String::new(),
            };
            // None if a limit was reached, which is reported next.
            let pause = payload["pause_seconds"].as_f64();
            let pause = pause.map_or(String::new(), |pause| format!("; retry in {pause:.1} s"));
            format!("  attempt {} failed{counted}: {}{pause}", payload["attempt"], short(text("error")))
        }
        Kind::Limit => format!("limit reached: {}", text("limit_code")),
        Kind::Resumed => {
            let changed = payload["prompt_changed"].as_str().map(|changed| format!("; {changed}"));
            format!(
                "resumed{}{}{}{}",
                stopped_tools(payload),
                changed.unwrap_or_default(),
                capped(payload),
                unknown_price(payload, text("model"))
            )
        }
        Kind::Interrupted if payload["told_to_end"] == true => {
            "interrupted: its process was asked to stop".to_owned()
        }
        Kind::Interrupted => format!("interrupted: its process died{}", stopped_tools(payload)),
        Kind::Handoff => "the context window is full; another thread continues".to_owned(),
        Kind::Continued => format!("continued by {}", text("continuation_thread_id")),
        Kind::Disclosed => "  sections opened".to_owned(),
        Kind::Completed => "completed".to_owned(),
        Kind::Cancelled => "cancelled".to_owned(),
        Kind::Suspended => format!("suspended: {}", line(payload["error"]["message"].as_str()?)),
        Kind::Failed => format!("failed: {}", line(payload["error"]["message"].as_str()?)),
        _ => return None,
    })
}

/// Limits that a thread did not get as they were asked for.
fn capped(payload: &Json) -> String {
    let reported = |cap: &Json| {
        let name = printable(cap["limit"].as_str()?).to_string();
        // JSON writes small numbers with an exponent.
        let number = |value: &Json| match value.as_f64().filter(|_| value.is_f64()) {
            Some(number) => number.to_string(),
            None => value.to_string(),
        };
        let (granted, wanted) = (number(&cap["granted"]), number(&cap["wanted"]));
        Some(format!("\n  note: {name} is {granted}, not {wanted}: the parent has no more left"))
    };
    payload["capped"].as_array().into_iter().flatten().filter_map(reported).collect()
}

/// That the price of a model is unknown, for a line below another one.
fn unknown_price(payload: &Json, model: &str) -> String {
    match payload["unpriced"] == true {
        true => format!("\n  note: {}", printable(&cuebook_run::unpriced(model))),
        false => String::new(),
    }
}

/// Tools that a process left running when it died.
fn stopped_tools(payload: &Json) -> String {
    payload["tools_stopped"].as_u64().map_or(String::new(), |count| format!("; {}", stopped(count)))
}

/// So many tools of a process that died were stopped.
pub fn stopped(count: u64) -> String {
    match count {
        1 => "stopped 1 tool that was left running".to_owned(),
        count => format!("stopped {count} tools that were left running"),
    }
}

/// What was read and written, of an estimate.
fn tokens_of(guess: &Json) -> u64 {
    let number = |name: &str| guess[name].as_u64().unwrap_or(0);
    number("input").saturating_add(number("output"))
}

/// A hook that could not do what it is for.
fn failed_hook(reported: &Json, why: &str) -> String {
    let text = |name: &str| reported[name].as_str().unwrap_or_default();
    format!("the hook {} failed: {}: {why}", text("hook"), text("item_id"))
}

/// A number with commas between its thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_relative_to_now() {
        let then = Timestamp::from_second(1_700_000_000).unwrap();
        let after = |seconds: i64| ago(then, Timestamp::from_second(1_700_000_000 + seconds).unwrap());
        // A clock may have been set back.
        assert_eq!([after(-5), after(59), after(60)], ["just now", "just now", "1 min ago"]);
        assert_eq!([after(3599), after(3600), after(86_399)], ["59 min ago", "1 h ago", "23 h ago"]);
        assert_eq!(
            [after(86_400), after(172_800), after(1_209_599)],
            ["1 day ago", "2 days ago", "13 days ago"]
        );
        assert!(after(1_300_000).starts_with("2023-11-1"));
    }

    #[test]
    fn a_line_stays_on_its_line() {
        assert_eq!(cut("abcdef", 7), "abcdef");
        assert_eq!(cut("abcdef", 6), "abcd…");
        assert_eq!(cut("äöü", 3), "ä…");
        assert_eq!(cut("abc", 0), "…");
    }

    #[test]
    fn progress_says_turns_tokens_spend_seconds_and_what_is_done() {
        let cost = Cost { turns: 1, input_tokens: 1200, elapsed: Duration::from_secs(3), ..Cost::default() };
        assert_eq!(progress(&cost, "rye_execute"), "1 turn · 1,200 tokens · 0.00 · 3 s · rye_execute");
        let cost = Cost { unpriced: true, ..cost };
        assert_eq!(progress(&cost, ""), "1 turn · 1,200 tokens · cost unknown · 3 s");
        let cost = Cost { spend: Money::from_units(0.5), ..cost };
        assert_eq!(progress(&cost, ""), "1 turn · 1,200 tokens · at least 0.50 · 3 s");
    }

    #[test]
    fn knowledge_that_is_left_out_of_the_context_is_reported() {
        let thread = ThreadId::known("a/b/b-1");
        let reported = |missing: Json| {
            let payload = serde_json::json!({"knowledge": [], "hooks": [], "missing": missing});
            let entry = cuebook_run::Entry::new(Kind::ContextInjected, payload);
            event_text(&Event::chain(
                None,
                &thread,
                &cuebook_run::first_hash(),
                1,
                jiff::Timestamp::UNIX_EPOCH,
                &entry,
            ))
        };
        let missing = serde_json::json!(["Unsigned item: .ai/knowledge/a.md"]);
        assert_eq!(
            reported(missing).as_deref(),
            Some("left out of the context: Unsigned item: .ai/knowledge/a.md")
        );
        assert_eq!(reported(serde_json::json!([])), None);
    }

    #[test]
    fn failed_hooks_and_child_costs_are_reported() {
        let thread = ThreadId::known("a/b/b-1");
        let reported = |kind: Kind, payload: Json| {
            let entry = cuebook_run::Entry::new(kind, payload);
            event_text(&Event::chain(
                None,
                &thread,
                &cuebook_run::first_hash(),
                1,
                jiff::Timestamp::UNIX_EPOCH,
                &entry,
            ))
        };
        let hook = serde_json::json!({"hook": "h", "item_id": "a/b", "failed": "not found"});
        assert_eq!(
            reported(Kind::Hook, hook.clone()).as_deref(),
            Some("  the hook h failed: a/b: not found")
        );
        assert_eq!(reported(Kind::Hook, serde_json::json!({"hook": "h", "item_id": "a/b"})), None);
        let around = serde_json::json!({"knowledge": [], "hooks": [hook], "missing": []});
        assert_eq!(
            reported(Kind::ContextInjected, around).as_deref(),
            Some("left out of the context: the hook h failed: a/b: not found")
        );
        let cost = serde_json::json!({"turns": 2, "spend": 0.1, "children_spend": 0.2});
        assert_eq!(
            summary("a", "completed", Some(&cost)),
            "completed: a; 2 turns, 0 tokens, 0.3 spent, 0.0 s"
        );
        let unpriced = |spend: f64| serde_json::json!({"turns": 1, "spend": spend, "spend_known": false});
        assert!(summary("a", "completed", Some(&unpriced(0.0))).contains("0 tokens, cost unknown, 0.0 s"));
        assert!(
            summary("a", "completed", Some(&unpriced(0.5))).contains("0 tokens, at least 0.5 spent, 0.0 s")
        );
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
