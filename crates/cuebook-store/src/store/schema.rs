//! The tables, and how older ones become the present ones.
//!
//! A step of [`STEPS`] is never changed once it was published; a new one is put behind it. A store of version `n` has gone
//! through the first `n` steps.

/// The steps. Every statement is understood by both kinds of stores.
pub(crate) const STEPS: &[&[&str]] = &[
    FIRST,
    &[
        // How many of the tokens are a guess.
        "ALTER TABLE cuebook_threads ADD COLUMN estimated BIGINT NOT NULL DEFAULT 0",
    ],
    &[
        // Whether the price of a model is not known that it asked, or that a thread below it asked. The logs tell it.
        "ALTER TABLE cuebook_threads ADD COLUMN unpriced BIGINT NOT NULL DEFAULT 0",
        "UPDATE cuebook_threads SET unpriced = 1 WHERE id IN (
            WITH RECURSIVE above (id) AS (
                SELECT thread FROM cuebook_events
                WHERE kind IN ('thread_started', 'thread_resumed') AND payload LIKE '%\"unpriced\":true%'
                UNION
                SELECT t.parent FROM cuebook_threads t JOIN above ON t.id = above.id WHERE t.parent IS NOT NULL
            ) SELECT id FROM above
        )",
    ],
    &[
        // Which key authenticates the log (none in earlier versions), and what authenticates the row.
        "ALTER TABLE cuebook_threads ADD COLUMN log_key TEXT",
        "ALTER TABLE cuebook_threads ADD COLUMN seal TEXT",
    ],
    QUEUE,
    // What is left of the requests and tokens that a provider takes from a key.
    &["CREATE TABLE cuebook_rates (
        name TEXT NOT NULL PRIMARY KEY,
        state TEXT NOT NULL
    )"],
];

/// Threads that wait for a worker or that a worker runs, and the workers.
const QUEUE: &[&str] = &[
    // A row is claimed if it has a token. `ready` is set when it is due, so that a worker reads no row that is not.
    "CREATE TABLE cuebook_queue (
        thread TEXT NOT NULL PRIMARY KEY,
        queue TEXT NOT NULL,
        log_key TEXT NOT NULL,
        prompt TEXT NOT NULL,
        provider_key TEXT NOT NULL,
        priority BIGINT NOT NULL,
        due_at BIGINT NOT NULL,
        queued_at BIGINT NOT NULL,
        sandbox BIGINT NOT NULL,
        seal TEXT NOT NULL,
        ready BIGINT NOT NULL,
        damaged BIGINT NOT NULL,
        deaths BIGINT NOT NULL,
        host TEXT,
        pid BIGINT,
        began BIGINT,
        token TEXT
    )",
    "CREATE INDEX cuebook_queue_ready ON cuebook_queue (queue, log_key, priority DESC, due_at, thread)
        WHERE ready = 1 AND damaged = 0 AND token IS NULL",
    "CREATE INDEX cuebook_queue_later ON cuebook_queue (due_at) WHERE ready = 0",
    "CREATE INDEX cuebook_queue_claimed ON cuebook_queue (log_key) WHERE token IS NOT NULL",
    "CREATE TABLE cuebook_workers (
        host TEXT NOT NULL,
        pid BIGINT NOT NULL,
        began BIGINT NOT NULL,
        name TEXT NOT NULL,
        log_key TEXT NOT NULL,
        queue TEXT NOT NULL,
        concurrency BIGINT NOT NULL,
        lease BIGINT NOT NULL,
        draining BIGINT NOT NULL,
        started_at BIGINT NOT NULL,
        beat_at BIGINT NOT NULL,
        PRIMARY KEY (host, pid, began)
    )",
];

/// The tables as they were at first.
const FIRST: &[&str] = &[
    // The account is part of the row: an event, what it cost and where the thread stands change with one statement.
    "CREATE TABLE cuebook_threads (
        id TEXT NOT NULL PRIMARY KEY,
        prompt TEXT NOT NULL,
        parent TEXT,
        created_at BIGINT NOT NULL,
        continuation_of TEXT,
        status TEXT NOT NULL,
        updated_at BIGINT NOT NULL,
        completed_at BIGINT,
        host TEXT,
        pid BIGINT,
        began BIGINT,
        token TEXT,
        taken_at BIGINT,
        cancel BIGINT NOT NULL,
        model TEXT,
        turns BIGINT NOT NULL,
        input_tokens BIGINT NOT NULL,
        output_tokens BIGINT NOT NULL,
        elapsed BIGINT NOT NULL,
        spawned BIGINT NOT NULL,
        result TEXT,
        continued_by TEXT,
        last_seq BIGINT NOT NULL,
        last_hash TEXT NOT NULL,
        spend_limit BIGINT NOT NULL,
        spent BIGINT NOT NULL,
        children BIGINT NOT NULL,
        held BIGINT NOT NULL,
        reserved BIGINT NOT NULL,
        claim BIGINT NOT NULL,
        open_children BIGINT NOT NULL,
        settled BIGINT NOT NULL
    )",
    "CREATE INDEX cuebook_threads_created ON cuebook_threads (created_at)",
    "CREATE INDEX cuebook_threads_parent ON cuebook_threads (parent)",
    "CREATE INDEX cuebook_threads_running ON cuebook_threads (host) WHERE status = 'running'",
    "CREATE TABLE cuebook_events (
        thread TEXT NOT NULL,
        seq BIGINT NOT NULL,
        at BIGINT NOT NULL,
        kind TEXT NOT NULL,
        payload TEXT NOT NULL,
        hash TEXT NOT NULL,
        PRIMARY KEY (thread, seq)
    )",
    // A sign of life is one row of a process, however many threads it holds.
    "CREATE TABLE cuebook_beats (
        host TEXT NOT NULL,
        pid BIGINT NOT NULL,
        began BIGINT NOT NULL,
        at BIGINT NOT NULL,
        PRIMARY KEY (host, pid, began)
    )",
];

/// What the present version is called.
pub(crate) fn version() -> usize {
    STEPS.len()
}
