//! The journal of a batch: every answer that was paid for, on disk before anything else happens with it.
//!
//! It is a file beside the output, `.NAME.journal`, which only its owner may read. It only grows: a line of JSON for each event. A process
//! that is killed leaves at most one line without its end, which the next one drops. One process at a time writes it; the system
//! frees the lock of a process that dies.
//!
//! | line | what it says |
//! | --- | --- |
//! | `{"run": {"began": …}}` | a run began; a run that continues another one uses its time |
//! | `{"key": …, "answer": …}` | the model answered a question |
//! | `{"key": …, "failed": …}` | a question failed; the next run asks it again |
//! | `{"job": …}` | a job of a provider's batch interface was submitted, or is over |
//! | `{"done": true}` | the output was written |

mod index;
mod others;
mod record;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use cuebook::{Code, Diagnostic, Error, ErrorKind, Result, files};
use cuebook_run::Money;
use serde_json::{Value as Json, json};

use crate::key::Key;
use index::Index;
use others::Others;
pub use record::{Answered, Failed, QuestionRecord};

/// Bytes of a line at most: the largest answer, escaped.
const LONGEST: u64 = 128 << 20;
/// How much of a line is read at first.
const FIRST: usize = 4 << 10;

/// The journal of a batch.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    state: Mutex<State>,
    synced: Condvar,
    /// For reading: what was answered before.
    reader: Mutex<File>,
    /// The journals of other processes that work on the same data set.
    others: Option<Mutex<Others>>,
}

#[derive(Debug)]
struct State {
    file: File,
    length: u64,
    synced: u64,
    syncing: bool,
    index: Index,
    /// What the run that is not done yet has cost, in all its processes.
    spent: Money,
    /// When that run began.
    began: Option<String>,
    /// Which run writes, so that a failure of an earlier one is asked again.
    run: u64,
    answered: u64,
    /// Jobs that were submitted and are not over, oldest first.
    jobs: Vec<Json>,
    broken: bool,
}

impl Journal {
    /// The journal of an output file.
    pub fn path_of(output: &Path) -> PathBuf {
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        output.with_file_name(format!(".{name}.journal"))
    }

    /// Opens the journal of an output file, makes one if there is none, and begins a run.
    ///
    /// # Errors
    ///
    /// `CB904` if another process has it, `CB905` if it is damaged, and the errors of files.
    pub fn open(output: &Path, now: &str) -> Result<Journal> {
        Journal::open_at(Journal::path_of(output), now)
    }

    /// Opens a journal in a folder that several processes share, on one machine or on many: it has the answers of all of them. A
    /// process continues a journal that no process has, so the folder has at most as many as processes ran at once.
    ///
    /// # Errors
    ///
    /// `CB905` if a journal is damaged, and the errors of files.
    pub fn share(folder: &Path, now: &str) -> Result<Journal> {
        let mut number = 1_u32;
        loop {
            match Journal::open_at(folder.join(format!("{number}.journal")), now) {
                Err(error) if error.code() == Code::BatchBusy => number += 1,
                Err(error) => return Err(error),
                Ok(journal) => {
                    let others = Others::new(folder, &journal.path)?;
                    return Ok(Journal { others: Some(Mutex::new(others)), ..journal });
                }
            }
        }
    }

    fn open_at(path: PathBuf, now: &str) -> Result<Journal> {
        let name = path.to_string_lossy().into_owned();
        let file = open(&path).map_err(|error| files::write_error(&name, &error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(busy(&name)),
            Err(TryLockError::Error(error)) => return Err(files::write_error(&name, &error)),
        }
        let reader = File::open(&path).map_err(|error| files::io_error(&name, &error))?;
        let mut state = State::read_all(file, &name, &reader)?;
        let length = state.file.metadata().map_err(|error| files::io_error(&name, &error))?.len();
        if length > state.length {
            // The line that a process did not finish.
            state.file.set_len(state.length).map_err(|error| files::write_error(&name, &error))?;
        }
        state.synced = state.length;
        let began = state.began.clone().unwrap_or_else(|| now.to_owned());
        let journal = Journal::new(path, state, reader);
        journal.append(json!({"run": {"began": began}}), |state, _| {
            state.began = Some(began.clone());
            state.run += 1;
        })?;
        Ok(journal)
    }

    /// The journal of an output file for a look: nothing is written, and no lock is taken. `None` if there is none.
    ///
    /// # Errors
    ///
    /// `CB905` if it is damaged, and the errors of files.
    pub fn look(output: &Path) -> Result<Option<Journal>> {
        Journal::look_at(Journal::path_of(output))
    }

    fn look_at(path: PathBuf) -> Result<Option<Journal>> {
        let name = path.to_string_lossy().into_owned();
        if files::look(&path).map_err(|error| files::io_error(&name, &error))?.is_none() {
            return Ok(None);
        }
        let open = || File::open(&path).map_err(|error| files::io_error(&name, &error));
        let (file, reader) = (open()?, open()?);
        let state = State::read_all(file, &name, &reader)?;
        Ok(Some(Journal::new(path, state, reader)))
    }

    fn new(path: PathBuf, state: State, reader: File) -> Journal {
        let (state, reader) = (Mutex::new(state), Mutex::new(reader));
        Journal { path, state, synced: Condvar::new(), reader, others: None }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// When the run began. A run that continues one that was killed has its time, so that a prompt with a date stays the same.
    pub fn began(&self) -> String {
        self.state().began.clone().unwrap_or_default()
    }

    /// How many questions have an answer.
    pub fn answers(&self) -> u64 {
        self.state().answered
    }

    /// What the run has cost so far, in all its processes.
    pub fn spent(&self) -> Money {
        self.state().spent
    }

    /// Jobs that were submitted and are not over, oldest first.
    pub fn jobs(&self) -> Vec<Json> {
        self.state().jobs.clone()
    }

    /// What is known of a question: its answer, or why it failed in this run.
    ///
    /// # Errors
    ///
    /// `CB905` or an error of files if the journal cannot be read.
    pub fn get(&self, key: Key) -> Result<Option<QuestionRecord>> {
        match (self.own(key)?, &self.others) {
            (None, Some(others)) => others.lock().unwrap_or_else(PoisonError::into_inner).answer(key),
            (own, _) => Ok(own),
        }
    }

    fn own(&self, key: Key) -> Result<Option<QuestionRecord>> {
        Ok(self.get_at(key)?.map(|(_, kept)| kept))
    }

    /// What this journal knows of a question, with its place in the index. The place changes when answers are added.
    pub(crate) fn get_at(&self, key: Key) -> Result<Option<(usize, QuestionRecord)>> {
        let (places, run): (Vec<(usize, u64)>, u64) = {
            let state = self.state();
            (state.index.places(key).collect(), state.run)
        };
        let name = self.name();
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        for (slot, place) in places {
            let line = read_line(&reader, place).map_err(|error| files::io_error(&name, &error))?;
            let Ok(line) = serde_json::from_slice::<Json>(&line) else { continue };
            if line["key"].as_str().and_then(Key::read) == Some(key) {
                let kept = QuestionRecord::read(&line).filter(|kept| kept.counts_in(run));
                return Ok(kept.map(|kept| (slot, kept)));
            }
        }
        Ok(None)
    }

    /// Keeps an answer. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// An error of files; the batch must not go on then.
    pub fn answered(&self, key: Key, answer: &Answered) -> Result<()> {
        self.collected(key, answer)?;
        self.sync()
    }

    /// Keeps an answer that the provider keeps too. It is on disk when [`Journal::job`] returns.
    ///
    /// # Errors
    ///
    /// As [`Journal::answered`].
    pub fn collected(&self, key: Key, answer: &Answered) -> Result<()> {
        let cost = answer.cost;
        self.write(answer.to_json(key), |state, place| {
            state.note(key, place);
            state.answered += 1;
            state.spent = state.spent + cost;
        })
    }

    /// Keeps that a question failed.
    ///
    /// # Errors
    ///
    /// As [`Journal::answered`].
    pub fn failed(&self, key: Key, failed: &Failed) -> Result<()> {
        let run = self.state().run;
        let cost = failed.cost;
        self.write(failed.to_json(key, run), |state, place| {
            state.note(key, place);
            state.spent = state.spent + cost;
        })?;
        // The next run asks again in any case, so only what was paid must be on disk.
        if cost == Money::ZERO { Ok(()) } else { self.sync() }
    }

    /// Keeps what became of a job: it was submitted, or it is over (`"over": true`).
    ///
    /// # Errors
    ///
    /// As [`Journal::answered`].
    pub fn job(&self, job: Json) -> Result<()> {
        let noted = job.clone();
        self.append(json!({"job": job}), |state, _| state.note_job(noted))
    }

    /// Ends the run: the output was written.
    ///
    /// # Errors
    ///
    /// As [`Journal::answered`].
    pub fn done(&self) -> Result<()> {
        self.append(json!({"done": true}), |state, _| {
            (state.began, state.spent) = (None, Money::ZERO);
        })
    }

    /// Writes a line, and waits until it is on disk.
    fn append(&self, line: Json, note: impl FnOnce(&mut State, u64)) -> Result<()> {
        self.write(line, note)?;
        self.sync()
    }

    /// Writes a line.
    fn write(&self, line: Json, note: impl FnOnce(&mut State, u64)) -> Result<()> {
        let mut bytes = line.to_string().into_bytes();
        bytes.push(b'\n');
        let mut state = self.state();
        if state.broken {
            return Err(self.write_failed(&io::Error::other("an earlier write has failed")));
        }
        let place = state.length;
        if let Err(error) = state.file.write_all(&bytes) {
            // Half of a line would join the next one. If it cannot be taken back, nothing more is written.
            let back = state.file.set_len(place);
            state.broken |= back.is_err();
            return Err(self.write_failed(&error));
        }
        state.length += bytes.len() as u64;
        note(&mut state, place);
        Ok(())
    }

    fn write_failed(&self, error: &io::Error) -> Error {
        files::write_error(&self.name(), error)
    }

    /// Waits until all that was written is on disk. Lines that come meanwhile share one sync.
    fn sync(&self) -> Result<()> {
        let mut state = self.state();
        let end = state.length;
        while state.synced < end {
            if state.broken {
                return Err(self.write_failed(&io::Error::other("a write of another row has failed")));
            }
            if state.syncing {
                state = self.synced.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.syncing = true;
            let (target, file) = (state.length, state.file.try_clone());
            drop(state);
            let synced = file.and_then(|file| file.sync_data());
            state = self.state();
            state.syncing = false;
            match &synced {
                Ok(()) => state.synced = state.synced.max(target),
                Err(_) => state.broken = true,
            }
            self.synced.notify_all();
            if let Err(error) = synced {
                return Err(self.write_failed(&error));
            }
        }
        Ok(())
    }
}

/// Reads lines while the journal is opened.
struct Lookup<'a> {
    reader: &'a File,
    name: &'a str,
}

impl State {
    fn read_all(file: File, name: &str, reader: &File) -> Result<State> {
        let mut state = State {
            file,
            length: 0,
            synced: 0,
            syncing: false,
            index: Index::new(),
            spent: Money::ZERO,
            began: None,
            run: 0,
            answered: 0,
            jobs: Vec::new(),
            broken: false,
        };
        state.read(name, &mut Lookup { reader, name })?;
        Ok(state)
    }

    /// Reads a journal to its last whole line, from its beginning or from where it was read to.
    fn read(&mut self, name: &str, lookup: &mut Lookup<'_>) -> Result<()> {
        let file = self.file.try_clone().map_err(|error| files::io_error(name, &error))?;
        let mut reader = BufReader::with_capacity(1 << 16, file);
        reader.seek(SeekFrom::Start(self.length)).map_err(|error| files::io_error(name, &error))?;
        let mut line = Vec::new();
        let (mut number, mut invalid) = (0_u64, None);
        loop {
            line.clear();
            let read = (&mut reader).take(LONGEST).read_until(b'\n', &mut line);
            let read = read.map_err(|error| files::io_error(name, &error))?;
            if read == 0 {
                break;
            }
            number += 1;
            if let Some((wrong, why)) = invalid.take() {
                // It was not the last one, so no process that died has left it.
                return Err(damaged(name, wrong, why));
            }
            let place = self.length;
            match (line.ends_with(b"\n"), serde_json::from_slice::<Json>(&line)) {
                (true, Ok(json)) => {
                    self.note_line(&json, place, lookup)?;
                    self.length += read as u64;
                }
                (false, _) => break,
                (true, Err(_)) => invalid = Some((number, "it is not JSON")),
            }
        }
        Ok(())
    }

    fn note_line(&mut self, line: &Json, place: u64, lookup: &mut Lookup<'_>) -> Result<()> {
        if let Some(key) = line["key"].as_str().and_then(Key::read) {
            let known: Vec<(usize, u64)> = self.index.places(key).collect();
            let mut same = None;
            for (slot, place) in known {
                let other =
                    read_line(lookup.reader, place).map_err(|error| files::io_error(lookup.name, &error))?;
                let other: Json = serde_json::from_slice(&other).unwrap_or_default();
                if other["key"] == line["key"] {
                    same = Some(slot);
                }
            }
            match same {
                Some(slot) => self.index.replace(slot, place),
                None => self.index.add(key, place),
            }
            self.answered += u64::from(line.get("answer").is_some());
            self.spent = self.spent + Money::from_nanos(line["cost"].as_i64().unwrap_or_default());
        } else if let Some(run) = line.get("run") {
            self.began = run["began"].as_str().map(str::to_owned);
            self.run += 1;
        } else if line.get("done").is_some() {
            (self.began, self.spent) = (None, Money::ZERO);
        } else if let Some(job) = line.get("job") {
            self.note_job(job.clone());
        }
        Ok(())
    }

    fn note_job(&mut self, job: Json) {
        self.jobs.retain(|known| known["id"] != job["id"]);
        if job["over"] != true {
            self.jobs.push(job);
        }
    }

    /// Notes the newest place of a key: a question that failed before may have its answer now.
    fn note(&mut self, key: Key, place: u64) {
        let known: Vec<(usize, u64)> = self.index.places(key).collect();
        let same = known.into_iter().find(|(_, place)| {
            let line = self.file.try_clone().and_then(|file| read_line(&file, *place));
            let line = line.ok().and_then(|line| serde_json::from_slice::<Json>(&line).ok());
            line.is_some_and(|line| line["key"].as_str().and_then(Key::read) == Some(key))
        });
        match same {
            Some((slot, _)) => self.index.replace(slot, place),
            None => self.index.add(key, place),
        }
    }
}

/// One line, from its place in the file to its end.
fn read_line(mut reader: &File, place: u64) -> io::Result<Vec<u8>> {
    reader.seek(SeekFrom::Start(place))?;
    let mut line = Vec::new();
    let mut buffer = [0; FIRST];
    while (line.len() as u64) < LONGEST {
        let read = reader.read(&mut buffer)?;
        let end = buffer[..read].iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&buffer[..end.unwrap_or(read)]);
        if end.is_some() || read == 0 {
            break;
        }
    }
    Ok(line)
}

fn open(path: &Path) -> io::Result<File> {
    files::plain_target(path)?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true).read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn busy(name: &str) -> Error {
    let diagnostic = Diagnostic::new(Code::BatchBusy, "another process works on this batch")
        .file(name)
        .hint("wait for it or stop it, or write to another file with --out");
    Error::new(ErrorKind::Usage, diagnostic)
}

fn damaged(name: &str, line: u64, why: &str) -> Error {
    let diagnostic = Diagnostic::new(Code::BadJournal, format!("line {line} is invalid: {why}"))
        .file(name)
        .hint("remove this line; Cuebook then asks for its row again");
    Error::new(ErrorKind::Config, diagnostic).with("line", line)
}

#[cfg(test)]
mod tests;
