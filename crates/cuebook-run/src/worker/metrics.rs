//! What a worker counts, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::record::{Cost, Status};
use crate::store::{Claim, QueueState};

/// What a worker has done since it began.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    taken: AtomicU64,
    taken_over: AtomicU64,
    turns: AtomicU64,
    tools: AtomicU64,
    retries: AtomicU64,
    input_tokens: AtomicU64,
    output_tokens: AtomicU64,
    spend_nanos: AtomicU64,
    wait_micros: AtomicU64,
    ended: Mutex<BTreeMap<&'static str, u64>>,
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Metrics {
    pub(super) fn took(&self, claim: &Claim) {
        add(&self.taken, 1);
        add(&self.wait_micros, u64::try_from(claim.waited.as_micros()).unwrap_or(u64::MAX));
    }

    pub(super) fn took_over(&self, threads: usize) {
        add(&self.taken_over, threads as u64);
    }

    pub(super) fn turn(&self) {
        add(&self.turns, 1);
    }

    pub(super) fn tool(&self) {
        add(&self.tools, 1);
    }

    pub(super) fn retry(&self) {
        add(&self.retries, 1);
    }

    pub(super) fn ended(&self, status: Status, cost: &Cost) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner).entry(status.as_str()).or_default() += 1;
        add(&self.input_tokens, cost.input_tokens);
        add(&self.output_tokens, cost.output_tokens);
        add(&self.spend_nanos, u64::try_from(cost.spend.nanos()).unwrap_or_default());
    }

    /// All figures: those of this worker, and those of its queue.
    pub(super) fn text(&self, running: usize, concurrency: usize, queue: Option<&QueueState>) -> String {
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, String)]| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(text, "{name}{labels} {value}");
            }
        };
        let one = |value: f64| vec![(String::new(), number(value))];
        let count = |counter: &AtomicU64| one(counter.load(Ordering::Relaxed) as f64);
        if let Some(queue) = queue {
            let state = |name: &str, value: u64| (format!("{{state=\"{name}\"}}"), value.to_string());
            family(
                "cuebook_queue_threads",
                "gauge",
                "Threads in the queue, on all workers.",
                &[
                    state("waiting", queue.waiting),
                    state("scheduled", queue.scheduled),
                    state("running", queue.running),
                    state("damaged", queue.damaged),
                ],
            );
            let oldest = queue.oldest_wait.unwrap_or_default().as_secs_f64();
            family(
                "cuebook_queue_oldest_wait_seconds",
                "gauge",
                "How long the first waiting thread is due.",
                &one(oldest),
            );
            let alive = queue.workers.iter().filter(|worker| worker.alive).count();
            family("cuebook_workers", "gauge", "Workers of the queue that are alive.", &one(alive as f64));
        }
        family("cuebook_worker_running", "gauge", "Threads that this worker runs.", &one(running as f64));
        family(
            "cuebook_worker_concurrency",
            "gauge",
            "Threads that this worker runs at most.",
            &one(concurrency as f64),
        );
        let counters: [(&str, &str, &AtomicU64); 7] = [
            ("cuebook_worker_taken_total", "Threads that this worker took.", &self.taken),
            (
                "cuebook_worker_taken_over_total",
                "Threads that this worker took from dead workers.",
                &self.taken_over,
            ),
            ("cuebook_worker_turns_total", "Answers of models.", &self.turns),
            ("cuebook_worker_tool_calls_total", "Tools that were started.", &self.tools),
            ("cuebook_worker_retries_total", "Requests that failed and were sent again.", &self.retries),
            ("cuebook_worker_input_tokens_total", "Tokens read, of threads that ended.", &self.input_tokens),
            (
                "cuebook_worker_output_tokens_total",
                "Tokens written, of threads that ended.",
                &self.output_tokens,
            ),
        ];
        for (name, help, counter) in counters {
            family(name, "counter", help, &count(counter));
        }
        let wait = "How long threads were due before this worker took them.";
        for (name, help, sum, unit) in [
            ("cuebook_worker_spend_total", "Money spent, of threads that ended.", &self.spend_nanos, 1e9),
            ("cuebook_worker_wait_seconds_total", wait, &self.wait_micros, 1e6),
        ] {
            family(name, "counter", help, &one(sum.load(Ordering::Relaxed) as f64 / unit));
        }
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let ended: Vec<(String, String)> = ended
            .into_iter()
            .map(|(status, count)| (format!("{{status=\"{status}\"}}"), count.to_string()))
            .collect();
        family("cuebook_worker_ended_total", "counter", "Threads that came to rest here.", &ended);
        text
    }
}

/// A figure as Prometheus reads it.
fn number(value: f64) -> String {
    value.to_string()
}
