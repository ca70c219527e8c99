//! The requests and tokens that a provider takes in a minute from one key, shared by all processes on a store.
//!
//! A budget is two buckets, for requests and for tokens. The file of the provider may give their sizes (`rate`), and the provider says in
//! the headers of its replies how much is left. Processes on several machines keep both in a row of their database: they read it,
//! and write it if it is still the same, so a process that stops in between blocks no other process. Processes of one machine keep
//! both in a small file below the user's folder, which each of them locks for a moment. The name is a hash of the address and the
//! key. Where neither can be written, the budget is that of this process: a limit of the provider then shows as status 429, which is
//! repeated after a pause.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cuebook::files;
use cuebook::sha256::hex;
use jiff::Timestamp;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::pause;
use crate::store::Store;

/// The folder of budgets, below the user's `.ai`.
const FOLDER: &str = "state/rates";
/// The longest single pause: others may give something back meanwhile.
const LONGEST: Duration = Duration::from_secs(5);
/// The shortest: shorter ones only cost processor time.
const SHORTEST: Duration = Duration::from_millis(5);
/// Bytes of a budget's file.
const LARGEST: u64 = 4 << 10;
/// A bucket is filled within a minute.
const MINUTE: f64 = 60.0;

/// As long as a reply or a row of a store can make all processes wait, in seconds.
const MAX_PAUSE: f64 = 600.0;

/// Budgets of less than this in a minute are mistakes.
const LEAST: f64 = 0.001;

/// How much a provider takes in a minute.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rate {
    /// Requests.
    pub requests: Option<f64>,
    /// Tokens that are read.
    pub tokens: Option<f64>,
}

/// One bucket: what is left of it, and how much it holds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Bucket {
    /// How much it holds; `None` if that is not known, so that nothing is held back.
    size: Option<f64>,
    left: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct State {
    requests: Bucket,
    tokens: Bucket,
    /// When it was filled last, in milliseconds.
    at: i64,
}

/// A budget.
#[derive(Debug)]
pub struct Budget {
    given: Rate,
    kept: Kept,
    own: Mutex<State>,
}

/// Where a budget is kept.
#[derive(Debug)]
enum Kept {
    /// In the memory of this process.
    Here,
    File(PathBuf),
    /// In a store, under this name.
    Store(Arc<dyn Store>, String),
}

impl Bucket {
    /// Fills it for some time.
    fn fill(&mut self, seconds: f64) {
        if let Some(size) = self.size {
            self.left = (self.left + size * seconds / MINUTE).min(size);
        }
    }

    /// How many seconds it takes until this much is in it.
    fn lacks(&self, amount: f64) -> f64 {
        match self.size {
            // More than it can hold goes when it is full.
            Some(size) if size > 0.0 => ((amount.min(size) - self.left) * MINUTE / size).max(0.0),
            _ => 0.0,
        }
    }

    fn take(&mut self, amount: f64) {
        if self.size.is_some() {
            self.left -= amount;
        }
    }

    /// Learns its size.
    fn resize(&mut self, size: f64) {
        if self.size.is_none() {
            self.left = size;
        }
        self.size = Some(size);
        self.left = self.left.min(size);
    }
}

impl State {
    /// Whether it holds anything back.
    fn is_known(&self) -> bool {
        self.requests.size.is_some() || self.tokens.size.is_some()
    }

    /// Fills both until a moment, in milliseconds.
    fn fill(&mut self, now: i64) {
        // A file of another year gives at most one whole bucket. Clocks of two machines differ: no moment counts twice.
        let passed = now.saturating_sub(self.at);
        let seconds = passed.clamp(0, 60_000) as f64 / 1000.0;
        self.requests.fill(seconds);
        self.tokens.fill(seconds);
        if !(-60_000..0).contains(&passed) {
            self.at = now;
        }
    }

    fn read(text: &str) -> State {
        let json: Json = serde_json::from_str(text).unwrap_or_default();
        let bucket = |name: &str| {
            let size = json[name]["size"].as_f64().filter(|size| *size >= LEAST);
            let left = json[name]["left"].as_f64().unwrap_or_default();
            // No row makes anybody wait longer than a reply can.
            let left = size.map_or(0.0, |size| left.clamp(-size * MAX_PAUSE / MINUTE, size));
            Bucket { size, left }
        };
        State {
            requests: bucket("requests"),
            tokens: bucket("tokens"),
            at: json["at"].as_i64().unwrap_or_default(),
        }
    }

    fn to_json(self) -> Json {
        let bucket = |bucket: Bucket| json!({"size": bucket.size, "left": bucket.left});
        json!({"requests": bucket(self.requests), "tokens": bucket(self.tokens), "at": self.at})
    }
}

impl Budget {
    /// A budget that only this process has.
    pub fn of_this_process(given: Rate) -> Budget {
        Budget { given, kept: Kept::Here, own: Mutex::default() }
    }

    /// The budget of a key at an address, which all processes share that have the same user's folder.
    pub fn shared(user: &Path, base_url: &str, key: &str, given: Rate) -> Budget {
        let file = user.join(FOLDER).join(format!("{}.json", Budget::name(base_url, key)));
        Budget { kept: Kept::File(file), ..Budget::of_this_process(given) }
    }

    /// The same for all processes on a store, on any machine.
    pub fn on_store(store: Arc<dyn Store>, base_url: &str, key: &str, given: Rate) -> Budget {
        Budget { kept: Kept::Store(store, Budget::name(base_url, key)), ..Budget::of_this_process(given) }
    }

    fn name(base_url: &str, key: &str) -> String {
        let mut hasher = Sha256::new();
        hasher.update(b"cuebook rate budget\n");
        hasher.update(base_url.as_bytes());
        hasher.update(b"\n");
        hasher.update(key.as_bytes());
        hex(&hasher.finalize()[..16])
    }

    fn own(&self) -> MutexGuard<'_, State> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state that all processes see, or that of this process where it is kept nowhere else.
    fn change(
        &self,
        now: Timestamp,
        change: impl Fn(&mut State) -> Option<Duration> + Send + Sync + Clone + 'static,
    ) -> Option<Duration> {
        let given = self.given;
        let now = now.as_millisecond();
        let step = move |state: &mut State, now: i64| {
            state.fill(now);
            if let Some(size) = given.requests {
                state.requests.resize(size);
            }
            if let Some(size) = given.tokens {
                state.tokens.resize(size);
            }
            change(state)
        };
        if let Kept::Store(store, name) = &self.kept {
            let (step, before) = (step.clone(), *self.own());
            let changed = store.change_rate(
                name,
                Arc::new(move |text, ahead| {
                    let mut state = text.filter(|text| !text.is_empty()).map_or(before, State::read);
                    let wait = step(&mut state, now + ahead);
                    // Without a setting and without a header, nothing is written.
                    let is_known = state.is_known();
                    let kept = if is_known {
                        state.to_json().to_string()
                    } else {
                        text.unwrap_or_default().to_owned()
                    };
                    (kept, wait)
                }),
            );
            if let Ok(wait) = changed {
                return wait;
            }
        }
        let mut own = self.own();
        let mut file = match &self.kept {
            Kept::File(path) => {
                let mut state = *own;
                let wait = step(&mut state, now);
                // Without a setting and without a header, no file is made.
                if !state.is_known() && !path.exists() {
                    return wait;
                }
                open(path).ok()
            }
            _ => None,
        };
        if let Some(state) = file.as_mut().and_then(read) {
            *own = state;
        }
        let result = step(&mut own, now);
        if let Some(file) = &mut file {
            // A budget that cannot be written is that of this process.
            let _ = write(file, *own);
        }
        result
    }

    /// Takes a request of about so many tokens out of the budget, or says how long to wait before the next try.
    pub fn take(&self, tokens: u64, now: Timestamp) -> Option<Duration> {
        let tokens = tokens as f64;
        self.change(now, move |state| {
            let lacking = state.requests.lacks(1.0).max(state.tokens.lacks(tokens));
            if lacking > 0.0 {
                return Some(Duration::from_secs_f64(lacking.min(LONGEST.as_secs_f64())).max(SHORTEST));
            }
            state.requests.take(1.0);
            state.tokens.take(tokens);
            None
        })
    }

    /// Learns from the headers of a reply how much the provider takes, and how much of it is left.
    pub fn learn(&self, headers: &[(String, String)], now: Timestamp) {
        let header = |name: &str| {
            let (_, value) = headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
            value.trim().parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount >= 0.0)
        };
        let of = |openai: &str, anthropic: &str| {
            let limit = header(&format!("x-ratelimit-limit-{openai}"))
                .or_else(|| header(&format!("anthropic-ratelimit-{anthropic}-limit")));
            let left = header(&format!("x-ratelimit-remaining-{openai}"))
                .or_else(|| header(&format!("anthropic-ratelimit-{anthropic}-remaining")));
            (limit, left)
        };
        let (requests, tokens) = (of("requests", "requests"), of("tokens", "input-tokens"));
        let pause = pause::wanted(headers, now).filter(|_| header("retry-after").is_some());
        if requests == (None, None) && tokens == (None, None) && pause.is_none() {
            return;
        }
        let given = self.given;
        self.change(now, move |state| {
            let learn =
                |bucket: &mut Bucket, given: Option<f64>, (limit, left): (Option<f64>, Option<f64>)| {
                    if let Some(limit) = limit.filter(|limit| *limit >= LEAST) {
                        // The user may want less than the provider allows, and not more.
                        bucket.resize(given.map_or(limit, |given| given.min(limit)));
                    }
                    if let (Some(left), Some(_)) = (left, bucket.size) {
                        bucket.left = bucket.left.min(left);
                    }
                };
            learn(&mut state.requests, given.requests, requests);
            learn(&mut state.tokens, given.tokens, tokens);
            if let (Some(pause), Some(size)) = (pause, state.requests.size) {
                // All processes wait as long as the provider asks one of them to.
                let pause = pause.as_secs_f64().min(MAX_PAUSE);
                state.requests.left = state.requests.left.min(-size * pause / MINUTE);
            }
            None
        });
    }
}

/// Opens and locks the file of a budget. The lock ends with the file, also where its process is killed.
fn open(path: &Path) -> std::io::Result<File> {
    files::plain_target(path)?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    file.lock()?;
    Ok(file)
}

fn read(file: &mut File) -> Option<State> {
    let mut text = String::new();
    (&*file).take(LARGEST).read_to_string(&mut text).ok()?;
    // A file that was just made holds nothing.
    (!text.trim().is_empty()).then(|| State::read(&text))
}

fn write(file: &mut File, state: State) -> std::io::Result<()> {
    let text = state.to_json().to_string();
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn header(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn requests_of_a_minute_wait_when_they_are_used_up() {
        let budget = Budget::of_this_process(Rate { requests: Some(60.0), tokens: None });
        assert!((0..60).all(|_| budget.take(1, at(0)).is_none()));
        assert_eq!(budget.take(1, at(0)), Some(Duration::from_secs(1)));
        assert_eq!(budget.take(1, at(1)), None);
    }

    #[test]
    fn a_request_larger_than_a_minute_waits_for_a_full_bucket() {
        let budget = Budget::of_this_process(Rate { requests: None, tokens: Some(600.0) });
        assert_eq!(budget.take(10_000, at(0)), None);
        assert_eq!(budget.take(1, at(1)), Some(LONGEST));
    }

    #[test]
    fn no_header_and_no_row_stops_a_process() {
        let budget = Budget::of_this_process(Rate { requests: Some(60.0), tokens: None });
        budget.learn(&[header("x-ratelimit-limit-requests", "1e-30")], at(0));
        budget.learn(&[header("retry-after", "4294967295")], at(0));
        assert_eq!(budget.take(1, at(0)), Some(LONGEST));
        // Ten minutes pass until the budget is filled again.
        assert_eq!((1..20).filter_map(|minute| budget.take(1, at(60 * minute))).count(), 10);
        for row in
            [r#"{"requests":{"size":1e-300,"left":-1e300}}"#, r#"{"requests":{"size":60,"left":-1e18}}"#]
        {
            let state = State::read(row);
            assert!(state.requests.left >= -600.0, "{row}");
        }
    }

    #[test]
    fn without_settings_and_headers_nothing_waits() {
        let budget = Budget::of_this_process(Rate::default());
        assert!((0..10_000).all(|_| budget.take(1_000_000, at(0)).is_none()));
    }

    #[test]
    fn processes_share_what_one_of_them_has_learned() {
        let folder = tempfile::tempdir().unwrap();
        let budget = || Budget::shared(folder.path(), "https://api.example.com", "key", Rate::default());
        let (one, two) = (budget(), budget());
        assert_eq!(two.take(1, at(0)), None);
        assert!(!folder.path().join(FOLDER).exists(), "nothing is known of the key");
        let headers =
            [header("x-ratelimit-limit-requests", "60"), header("x-ratelimit-remaining-requests", "1")];
        one.learn(&headers, at(0));
        assert_eq!(two.take(1, at(0)), None);
        assert_eq!(one.take(1, at(0)), Some(Duration::from_secs(1)));
        let other = Budget::shared(folder.path(), "https://api.example.com", "other", Rate::default());
        assert_eq!(other.take(1, at(0)), None);
    }

    #[test]
    fn a_pause_for_one_process_is_one_for_all() {
        let folder = tempfile::tempdir().unwrap();
        let rate = Rate { requests: Some(60.0), tokens: None };
        let budget = || Budget::shared(folder.path(), "https://api.example.com", "key", rate);
        budget().learn(&[header("retry-after", "3")], at(0));
        assert_eq!(budget().take(1, at(0)), Some(Duration::from_secs(4)));
    }

    #[test]
    fn a_damaged_file_starts_a_new_budget() {
        let folder = tempfile::tempdir().unwrap();
        let budget =
            || Budget::shared(folder.path(), "https://a", "key", Rate { requests: Some(1.0), tokens: None });
        assert_eq!(budget().take(1, at(0)), None);
        let file = std::fs::read_dir(folder.path().join(FOLDER)).unwrap().next().unwrap().unwrap().path();
        std::fs::write(&file, "{\"requests\": ").unwrap();
        assert_eq!(budget().take(1, at(0)), None);
        assert!(budget().take(1, at(0)).is_some());
    }
}
