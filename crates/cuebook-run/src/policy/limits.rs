//! How far a thread may go: how often it may ask a model, how much it may read, write, spend, start, and how long it may take.
//!
//! Limits come from defaults, then from the directive, then from the starter of the thread, and are never wider than those of
//! the parent. They are looked at before a model is asked; what a store enforces across processes (money, children) is not done here.

use std::fmt::Display;
use std::time::Duration;

use cuebook::error::{did_you_mean, nearest};
use cuebook::json::type_of;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use serde_json::{Map, Value as Json, json};

use crate::money::Money;
use crate::record::Cost;

/// The names of limits, in the order in which people should read of them.
const NAMES: [&str; 8] =
    ["calls", "depth", "duration_seconds", "spawns", "spend", "spend_currency", "tokens", "turns"];

/// What limits that a caller gives are called in errors.
pub(crate) const OVERRIDES: &str = "limit overrides";

/// How far a thread may go.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadLimits {
    /// How often it may ask a model.
    pub turns: u64,
    /// How many tokens it may read and write.
    pub tokens: u64,
    /// How much money it and its children may spend.
    pub spend: Money,
    /// The currency of that.
    pub currency: String,
    /// How many children it may start.
    pub spawns: u64,
    /// How many generations may come below it.
    pub depth: i64,
    /// How long it may run.
    pub duration: Duration,
    /// How many calls one answer of its model may make.
    pub calls: u64,
}

/// How many calls one answer may make without a setting, as in logs of earlier versions.
const CALLS: u64 = 64;

impl ThreadLimits {
    /// The limits of a thread without any of its own.
    ///
    /// ```
    /// use cuebook_run::policy::limits::ThreadLimits;
    ///
    /// assert_eq!(ThreadLimits::defaults().turns, 25);
    /// ```
    pub fn defaults() -> ThreadLimits {
        ThreadLimits {
            turns: 25,
            tokens: 200_000,
            spend: Money::from_units(1.0),
            currency: "USD".to_owned(),
            spawns: 50,
            depth: 10,
            duration: Duration::from_secs(1800),
            calls: CALLS,
        }
    }

    /// No limits at all: what a run in memory has that answers for itself.
    pub fn unlimited() -> ThreadLimits {
        ThreadLimits {
            turns: u64::MAX,
            tokens: u64::MAX,
            spend: Money::MAX,
            currency: "USD".to_owned(),
            spawns: u64::MAX,
            depth: i64::MAX,
            duration: Duration::from_secs(u64::MAX),
            calls: u64::MAX,
        }
    }

    /// The limits of a thread: the defaults, then what its directive says, then what its caller says, all of it within its parent's.
    ///
    /// # Errors
    ///
    /// `CB715` if a name is unknown or a value is no amount, `CB716` if the parent may have no children any more.
    pub fn resolve(
        defaults: &ThreadLimits,
        directive: Option<&Map<String, Json>>,
        overrides: &Map<String, Json>,
        parent: Option<&ThreadLimits>,
    ) -> Result<ThreadLimits> {
        let mut limits = defaults.clone();
        if let Some(directive) = directive {
            limits = limits.with(directive, "directive <limits>")?;
        }
        limits = limits.with(overrides, OVERRIDES)?;
        let Some(parent) = parent else { return Ok(limits) };
        let says_currency = directive.is_some_and(|limits| limits.contains_key("spend_currency"))
            || overrides.contains_key("spend_currency");
        limits.within(parent, says_currency)
    }

    /// These limits with others in their place, as a file or a caller names them. Errors show `whose`.
    ///
    /// # Errors
    ///
    /// `CB715` if a name is unknown or a value is no amount.
    pub fn with(&self, given: &Map<String, Json>, whose: &str) -> Result<ThreadLimits> {
        let mut limits = self.clone();
        for (name, value) in given {
            let amount = Amount { name, value, whose };
            match name.as_str() {
                "turns" => limits.turns = amount.whole()?,
                "tokens" => limits.tokens = amount.whole()?,
                "spawns" => limits.spawns = amount.whole()?,
                "calls" => limits.calls = amount.whole()?,
                "depth" => limits.depth = i64::try_from(amount.whole()?).unwrap_or(i64::MAX),
                "spend" => limits.spend = Money::from_units(amount.number()?),
                "duration_seconds" => limits.duration = amount.duration()?,
                "spend_currency" => limits.currency = amount.currency()?,
                _ => return Err(unknown(name, whose)),
            }
        }
        Ok(limits)
    }

    fn within(mut self, parent: &ThreadLimits, says_currency: bool) -> Result<ThreadLimits> {
        if self.currency != parent.currency {
            if says_currency {
                let message = format!(
                    "the limits are in {}, but the parent thread's are in {}",
                    self.currency, parent.currency
                );
                let hint =
                    format!("a child spends its parent's budget: write spend_currency={}", parent.currency);
                return Err(bad(message).hint(hint).into_error());
            }
            self.currency = parent.currency.clone();
        }
        self.turns = self.turns.min(parent.turns);
        self.tokens = self.tokens.min(parent.tokens);
        self.spend = self.spend.min(parent.spend);
        self.spawns = self.spawns.min(parent.spawns);
        self.duration = self.duration.min(parent.duration);
        self.calls = self.calls.min(parent.calls);
        self.depth = self.depth.min(parent.depth.saturating_sub(1));
        if self.depth < 0 {
            let message = format!("Depth limit exhausted (resolved depth={})", self.depth);
            let diagnostic = Diagnostic::new(Code::LimitReached, message).hint(
                Hint::command_line("the first thread sets the depth: start it with --limit depth=N")
                    .for_programs("the first thread sets the depth: start it with a larger `depth`"),
            );
            return Err(Error::new(ErrorKind::Limit, diagnostic)
                .with("limit_code", "depth_exceeded")
                .with("current_value", self.depth));
        }
        Ok(self)
    }

    /// The first limit that has been reached, if any, in the order turns, tokens, spend, duration. To be asked before each call of a model.
    pub fn check(&self, cost: &Cost) -> Option<Reached> {
        let reached = |limit, current, most| Some(self.reached(limit, current, most));
        if u64::from(cost.turns) >= self.turns {
            return reached("turns", json!(cost.turns), json!(self.turns));
        }
        if cost.tokens() >= self.tokens {
            return reached("tokens", json!(cost.tokens()), json!(self.tokens));
        }
        if cost.spend >= self.spend {
            return reached("spend", cost.spend.to_json(), self.spend.to_json());
        }
        if cost.elapsed >= self.duration {
            return reached("duration_seconds", seconds(cost.elapsed), seconds(self.duration));
        }
        None
    }

    /// The limit on money, if more was spent than it allows: an answer can cost more than was held for it.
    pub fn check_spend(&self, cost: &Cost) -> Option<Reached> {
        let (current, most) = (cost.spend.to_json(), self.spend.to_json());
        (cost.spend > self.spend).then(|| self.reached("spend", current, most))
    }

    /// The limit on calls, if one answer makes more of them.
    pub fn check_calls(&self, calls: usize) -> Option<Reached> {
        let calls = calls as u64;
        (calls > self.calls).then(|| self.reached("calls", json!(calls), json!(self.calls)))
    }

    fn reached(&self, limit: &'static str, current: Json, most: Json) -> Reached {
        let currency = self.currency.clone();
        Reached { limit, current, most, currency, reserved: Money::ZERO, next: None }
    }

    /// The limits as scripts and logs see them.
    pub fn to_json(&self) -> Json {
        json!({
            "turns": self.turns,
            "tokens": self.tokens,
            "spend": self.spend.to_json(),
            "spend_currency": self.currency,
            "spawns": self.spawns,
            "depth": self.depth,
            "duration_seconds": seconds(self.duration),
            "calls": self.calls,
        })
    }

    /// What [`ThreadLimits::to_json`] wrote into a log.
    ///
    /// # Errors
    ///
    /// `CB715` if it is something else.
    pub fn from_json(json: &Json) -> Result<ThreadLimits> {
        let whose = "the thread's log";
        let Json::Object(map) = json else {
            let message = format!("the limits in {whose} must be an object, not {}", type_of(json));
            return Err(bad(message).into_error());
        };
        // Earlier versions did not know `calls`.
        if let Some(name) = NAMES[1..].iter().find(|name| !map.contains_key(**name)) {
            return Err(bad(format!("the limits in {whose} have no `{name}`")).into_error());
        }
        ThreadLimits { calls: CALLS, ..ThreadLimits::unlimited() }.with(map, whose)
    }
}

/// An amount with two digits that count, and never less than it is.
fn round_up(amount: f64) -> f64 {
    if amount <= 0.0 {
        return 0.0;
    }
    let unit = 10f64.powi(amount.log10().floor() as i32 - 1);
    (amount / unit - 1e-9).ceil() * unit
}

/// Whole seconds as a whole number, to the thousandth otherwise.
pub(crate) fn seconds(duration: Duration) -> Json {
    if duration.subsec_millis() == 0 {
        return json!(duration.as_secs());
    }
    json!((duration.as_secs_f64() * 1000.0).round() / 1000.0)
}

/// A value that was given for a limit.
struct Amount<'a> {
    name: &'a str,
    value: &'a Json,
    whose: &'a str,
}

impl Amount<'_> {
    fn wrong(&self, wanted: &str) -> Error {
        let shown = match self.value {
            Json::Array(_) | Json::Object(_) => type_of(self.value).to_owned(),
            other => other.to_string(),
        };
        let message = format!("the limit `{}` in {} must be {wanted}, not {shown}", self.name, self.whose);
        bad(message).hint(format!("write {}={}", self.name, example(self.name))).into_error()
    }

    /// A number that is not negative.
    fn number(&self) -> Result<f64> {
        let number = self.value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| self.wrong("a number, 0 or more"))
    }

    /// A whole number that is not negative. `5.0` is one: XML and JSON write it now and then.
    fn whole(&self) -> Result<u64> {
        if let Some(whole) = self.value.as_u64() {
            return Ok(whole);
        }
        let number = self.value.as_f64().filter(|number| *number >= 0.0 && number.fract() == 0.0);
        number.map(|number| number as u64).ok_or_else(|| self.wrong("a whole number, 0 or more"))
    }

    fn duration(&self) -> Result<Duration> {
        if let Some(whole) = self.value.as_u64() {
            return Ok(Duration::from_secs(whole));
        }
        // What is longer than can be counted is as good as for ever.
        Ok(Duration::try_from_secs_f64(self.number()?).unwrap_or(Duration::from_secs(u64::MAX)))
    }

    fn currency(&self) -> Result<String> {
        let text = self.value.as_str().map(str::trim);
        let text = text.filter(|text| !text.is_empty() && text.chars().all(char::is_alphanumeric));
        text.map(str::to_owned).ok_or_else(|| self.wrong("the name of a currency"))
    }
}

fn example(name: &str) -> &'static str {
    match name {
        "tokens" => "200000",
        "spend" => "1.50",
        "spend_currency" => "USD",
        "duration_seconds" => "1800",
        _ => "25",
    }
}

fn unknown(name: &str, whose: &str) -> Error {
    let message = format!("Unknown limit '{name}' in {whose}. Valid limits: {}", NAMES.join(", "));
    let near = did_you_mean(&nearest(name, NAMES));
    bad(message).hint(near.unwrap_or_else(|| "use one of these names".to_owned())).into_error()
}

fn bad(message: String) -> LimitsError {
    LimitsError(Diagnostic::new(Code::BadLimit, message))
}

/// An error of limits in the making.
struct LimitsError(Diagnostic);

impl LimitsError {
    fn hint(self, hint: impl Into<Hint>) -> LimitsError {
        LimitsError(self.0.hint(hint))
    }

    fn into_error(self) -> Error {
        Error::new(ErrorKind::Limit, self.0)
    }
}

/// A number in plain decimals: JSON writes small ones with an exponent.
fn plain(number: &Json) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(decimal) => decimal.to_string(),
        None => number.to_string(),
    }
}

/// A limit that has been reached.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Reached {
    /// Its name: `turns`, `tokens`, `spend`, `calls` or `duration_seconds`.
    pub limit: &'static str,
    /// How much was used.
    pub current: Json,
    /// How much may be used.
    pub most: Json,
    /// The currency of the thread.
    pub currency: String,
    /// What is neither spent nor left, because it is reserved for children that have not ended.
    pub reserved: Money,
    /// What the next answer would need, as far as it is known: so much money, or so many tokens.
    pub next: Option<Json>,
}

impl Reached {
    /// What hooks and scripts know it by: `turns_exceeded`.
    pub fn code(&self) -> &'static str {
        match self.limit {
            "turns" => "turns_exceeded",
            "tokens" => "tokens_exceeded",
            "spend" => "spend_exceeded",
            "calls" => "calls_exceeded",
            _ => "duration_seconds_exceeded",
        }
    }

    /// Which limit it is, how much was used, and how to go on.
    pub fn message(&self, thread: impl Display) -> String {
        format!("{}; continue with `{}`", self.what(), self.resume(thread))
    }

    fn what(&self) -> String {
        let (current, most) = (&plain(&self.current), &plain(&self.most));
        match self.limit {
            "turns" => format!("the thread used {current} of {most} turns"),
            "tokens" if self.current.as_u64() < self.most.as_u64() => {
                format!(
                    "the thread used {current} of {most} tokens, and the next request needs more than remain"
                )
            }
            "tokens" => format!("the thread used {current} of {most} tokens"),
            "spend" if self.reserved > Money::ZERO => format!(
                "the thread spent {current} of {most} {}; {} is reserved for its children",
                self.currency,
                plain(&self.reserved.to_json())
            ),
            "spend" => format!("the thread spent {current} of {most} {}", self.currency),
            "calls" => format!("the model made {current} calls in one answer; the limit is {most}"),
            _ => format!("the thread ran for {current} of {most} seconds"),
        }
    }

    /// The command that resumes the thread with twice the room, and with enough for one more answer.
    fn resume(&self, thread: impl Display) -> String {
        let thread = thread.to_string();
        let plain = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
        let thread =
            if thread.chars().all(plain) { thread } else { format!("'{}'", thread.replace('\'', r"'\''")) };
        format!("cuebook thread resume {thread} --limit {}={}", self.limit, self.more())
    }

    fn more(&self) -> String {
        let current = self.current.as_f64().unwrap_or(0.0);
        let used = current.max(self.most.as_f64().unwrap_or(0.0));
        let next = self.next.as_ref().and_then(Json::as_f64).unwrap_or(0.0);
        let least = current + self.reserved.units() + next;
        if used <= 0.0 && example(self.limit).parse().unwrap_or(0.0) >= least {
            return example(self.limit).to_owned();
        }
        let more = (used * 2.0).max(least);
        match self.limit {
            "calls" => plain(&self.current),
            "spend" if more > used * 2.0 => Money::from_units(round_up(more)).to_string(),
            "spend" => Money::from_units(more).to_string(),
            _ => format!("{}", more.ceil() as u64),
        }
    }

    /// What the next answer would need, in words.
    fn needs(&self) -> String {
        match (&self.next, self.limit) {
            (Some(next), "spend") => {
                let next = Money::from_units(round_up(next.as_f64().unwrap_or(0.0)));
                format!("the next answer may cost about {next} {}: ", self.currency)
            }
            (Some(next), "tokens") => format!("the next request and its answer need about {next} tokens: "),
            _ => String::new(),
        }
    }

    /// The event that hooks get.
    pub fn to_json(&self) -> Json {
        let mut json =
            json!({"limit_code": self.code(), "current_value": self.current, "current_max": self.most});
        if self.reserved > Money::ZERO {
            json["reserved"] = self.reserved.to_json();
        }
        if let Some(next) = &self.next {
            json["needed"] = next.clone();
        }
        json
    }

    /// `CB716`, with the way to resume the thread.
    pub fn into_error(self, thread: impl Display) -> Error {
        let thread = thread.to_string();
        let (needs, command) = (self.needs(), self.resume(&thread));
        let hint = Hint::command_line(format!("{needs}continue with `{command}`"))
            .for_programs(format!("{needs}resume the thread with a larger limit"))
            .with_command(command);
        let diagnostic = Diagnostic::new(Code::LimitReached, self.what()).hint(hint);
        let error = Error::new(ErrorKind::Limit, diagnostic)
            .with("thread_id", thread)
            .with("limit_code", self.code())
            .with("current_value", &self.current)
            .with("current_max", &self.most);
        match self.next {
            Some(next) => error.with("needed", next),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(json: Json) -> Map<String, Json> {
        json.as_object().cloned().unwrap()
    }

    fn resolve(directive: Json, overrides: Json, parent: Option<&ThreadLimits>) -> Result<ThreadLimits> {
        ThreadLimits::resolve(&ThreadLimits::defaults(), Some(&map(directive)), &map(overrides), parent)
    }

    #[test]
    fn overrides_win_over_the_directive_and_both_over_the_defaults() {
        let limits = resolve(json!({"turns": 6, "tokens": 4096}), json!({"turns": 30}), None).unwrap();
        assert_eq!((limits.turns, limits.tokens, limits.spawns), (30, 4096, 50));
    }

    #[test]
    fn a_child_never_goes_further_than_its_parent() {
        let parent =
            ThreadLimits { turns: 5, depth: 3, spend: Money::from_units(0.5), ..ThreadLimits::defaults() };
        let limits =
            resolve(json!({"turns": 100, "spend": 9, "tokens": 7}), json!({"spawns": 3}), Some(&parent))
                .unwrap();
        let expected = ThreadLimits { turns: 5, tokens: 7, spawns: 3, depth: 2, ..parent };
        assert_eq!(limits, expected);
    }

    #[test]
    fn the_last_generation_has_no_children() {
        let parent = ThreadLimits { depth: 0, ..ThreadLimits::defaults() };
        let error = resolve(json!({}), json!({}), Some(&parent)).unwrap_err();
        assert_eq!(error.code(), Code::LimitReached);
        assert_eq!(error.diagnostic().message, "Depth limit exhausted (resolved depth=-1)");
    }

    #[test]
    fn an_unknown_name_is_reported_with_the_nearest_one() {
        let error = resolve(json!({"max_turns": 3}), json!({}), None).unwrap_err();
        assert_eq!(error.code(), Code::BadLimit);
        assert_eq!(
            error.diagnostic().message,
            "Unknown limit 'max_turns' in directive <limits>. Valid limits: calls, depth, duration_seconds, spawns, spend, \
             spend_currency, tokens, turns"
        );
        assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `turns`?"));
    }

    #[test]
    fn only_amounts_and_whole_floats_are_accepted() {
        for wrong in [json!(-1), json!("1e3"), json!(true), json!(null), json!(2.5), json!([3])] {
            let error = resolve(json!({}), json!({"turns": wrong}), None).unwrap_err();
            assert_eq!(error.code(), Code::BadLimit, "{wrong}");
        }
        for wrong in [json!(-0.5), json!("free")] {
            assert!(resolve(json!({}), json!({"spend": wrong}), None).is_err(), "{wrong}");
            assert!(resolve(json!({}), json!({"duration_seconds": wrong}), None).is_err(), "{wrong}");
        }
        assert!(resolve(json!({"spend_currency": ""}), json!({}), None).is_err());
        let limits =
            resolve(json!({"turns": 5.0, "duration_seconds": 1.5}), json!({"spend": 1e300}), None).unwrap();
        assert_eq!(
            (limits.turns, limits.duration, limits.spend),
            (5, Duration::from_millis(1500), Money::MAX)
        );
        assert_eq!(
            resolve(json!({}), json!({"depth": "deep"}), None).unwrap_err().diagnostic().message,
            "the limit `depth` in limit overrides must be a whole number, 0 or more, not \"deep\""
        );
    }

    #[test]
    fn a_child_spends_its_parents_currency() {
        let parent = ThreadLimits { currency: "EUR".into(), ..ThreadLimits::defaults() };
        assert_eq!(resolve(json!({}), json!({}), Some(&parent)).unwrap().currency, "EUR");
        let error = resolve(json!({"spend_currency": "USD"}), json!({}), Some(&parent)).unwrap_err();
        assert_eq!(error.code(), Code::BadLimit);
    }

    #[test]
    fn limits_are_reached_in_their_order_and_at_the_limit_itself() {
        let cost = |turns, tokens, spend, seconds| Cost {
            turns,
            input_tokens: tokens,
            output_tokens: 1,
            estimated: 0,
            spend: Money::from_units(spend),
            elapsed: Duration::from_secs(seconds),
            unpriced: false,
        };
        let limits = ThreadLimits::defaults();
        let limit = |cost: Cost| limits.check(&cost).map(|reached| reached.limit);
        assert_eq!(limit(cost(24, 10, 0.9, 1799)), None);
        assert_eq!(limit(cost(25, 300_000, 2.0, 9999)), Some("turns"));
        assert_eq!(limit(cost(1, 199_999, 2.0, 9999)), Some("tokens"));
        assert_eq!(limit(cost(1, 1, 1.0, 9999)), Some("spend"));
        assert_eq!(limit(cost(1, 1, 0.0, 1800)), Some("duration_seconds"));
        let none = ThreadLimits { turns: 0, ..ThreadLimits::unlimited() };
        assert_eq!(none.check(&Cost::default()).unwrap().code(), "turns_exceeded");
        assert_eq!(ThreadLimits::unlimited().check(&cost(u32::MAX, u64::MAX - 9, 1e9, 1 << 40)), None);
    }

    #[test]
    fn a_reached_limit_says_how_much_was_used_and_how_to_go_on() {
        let reached = |limit, current, most| Reached {
            limit,
            current,
            most,
            currency: "USD".into(),
            reserved: Money::ZERO,
            next: None,
        };
        let turns = reached("turns", json!(25), json!(25));
        assert_eq!(
            turns.message("web/build/build-1"),
            "the thread used 25 of 25 turns; continue with `cuebook thread resume web/build/build-1 --limit turns=50`"
        );
        let spend = reached("spend", json!(0.052), json!(0.05)).into_error("a b");
        assert_eq!(spend.code(), Code::LimitReached);
        assert_eq!(spend.diagnostic().message, "the thread spent 0.052 of 0.05 USD");
        assert_eq!(
            spend.diagnostic().hint.as_deref(),
            Some("continue with `cuebook thread resume 'a b' --limit spend=0.104`")
        );
        assert_eq!(spend.field("limit_code"), Some(&json!("spend_exceeded")));
        let small = reached("spend", json!(0.0), json!(0.000_001));
        assert!(
            small.message("t").starts_with("the thread spent 0 of 0.000001 USD;"),
            "{}",
            small.message("t")
        );
        assert!(reached("turns", json!(0), json!(0)).message("t").ends_with("--limit turns=25`"));
    }

    #[test]
    fn the_way_on_leaves_room_for_an_answer() {
        let spend = Reached {
            limit: "spend",
            current: json!(0.00004),
            most: json!(0.0001),
            currency: "USD".into(),
            reserved: Money::from_units(0.00001),
            next: Some(json!(0.012_345)),
        };
        // Twice as much as next to nothing would stop it again at once.
        let error = spend.clone().into_error("t");
        assert_eq!(
            error.diagnostic().hint.as_deref(),
            Some(
                "the next answer may cost about 0.013 USD: continue with `cuebook thread resume t --limit spend=0.013`"
            )
        );
        let plenty = Reached { next: Some(json!(0.00001)), ..spend.clone() };
        assert!(plenty.message("t").ends_with("--limit spend=0.0002`"), "{}", plenty.message("t"));
        let tokens =
            Reached { limit: "tokens", current: json!(50), most: json!(10), next: Some(json!(700)), ..spend };
        assert!(tokens.message("t").ends_with("--limit tokens=751`"), "{}", tokens.message("t"));
        assert_eq!([0.0, 1.0, 0.0999, 123.4].map(round_up), [0.0, 1.0, 0.1, 130.0]);
    }

    #[test]
    fn limits_come_back_from_a_log_as_they_went_in() {
        let limits =
            ThreadLimits { duration: Duration::from_millis(2500), depth: 0, ..ThreadLimits::defaults() };
        for limits in [limits, ThreadLimits::unlimited()] {
            assert_eq!(ThreadLimits::from_json(&limits.to_json()).unwrap(), limits);
        }
        assert!(ThreadLimits::from_json(&json!({"turns": 1})).is_err());
        assert!(ThreadLimits::from_json(&json!([])).is_err());
    }
}
