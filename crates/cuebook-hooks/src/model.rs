//! A language model behind a command.
//!
//! Cuebook knows no model and no vendor. The user names a program that reads a prompt from stdin and prints the answer, as
//! `llm`, `ollama run` and many others do. The user chose the program, so it runs with the user's rights; what a hook says
//! reaches it on stdin and in two variables, never in its arguments and never through a shell.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cuebook::hooks::{Model, ModelRequest, Refusal};

/// The longest question, instructions included.
const LONGEST_QUESTION: usize = 1 << 20;
/// The longest answer.
const LONGEST_ANSWER: u64 = 1 << 20;
/// How many characters of the error output are reported, counted from the end, where the reason usually is.
const ERRORS_TOLD: usize = 2000;
/// How many bytes of it are kept: enough for as many of the longest characters.
const ERRORS_KEPT: usize = 4 * ERRORS_TOLD + 4;
/// How long we wait for the last of the error output of a program that ended; a child that it left behind may hold it open.
const GRACE: Duration = Duration::from_millis(200);

/// Answers by running a program.
///
/// ```no_run
/// use cuebook_hooks::model::CommandModel;
///
/// let model = CommandModel::new(vec!["ollama".into(), "run".into(), "llama3.2".into()]);
/// # let _ = model;
/// ```
#[derive(Debug, Clone)]
pub struct CommandModel {
    command: Vec<String>,
}

impl CommandModel {
    /// A model that is asked by a program with these arguments. An empty command stands for no model.
    pub fn new(command: Vec<String>) -> CommandModel {
        CommandModel { command }
    }

    fn start(&self, request: &ModelRequest) -> Result<Running, Refusal> {
        let Some((program, arguments)) = self.command.split_first() else {
            let message = "llm_call: no program is configured";
            return Err(Refusal::failed(message));
        };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let max_tokens = request.max_tokens.map(|max_tokens| max_tokens.to_string());
        for (name, value) in [("CUEBOOK_MODEL", &request.model), ("CUEBOOK_MAX_TOKENS", &max_tokens)] {
            match value {
                Some(value) => command.env(name, value),
                // Ours may come from an outer Cuebook, whose hook meant something else.
                None => command.env_remove(name),
            };
        }
        // A group of its own, so that the program's children can be ended with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        end_with_us(&mut command);
        let child = command
            .spawn()
            .map_err(|error| Refusal::failed(format!("llm_call: {program:?} does not start: {error}")))?;
        Ok(Running { child, ended: false })
    }
}

impl Model for CommandModel {
    fn ask(&self, request: &ModelRequest) -> Result<String, Refusal> {
        let started = Instant::now();
        let question = question(request)?;
        check_name(request.model.as_deref())?;
        let mut running = self.start(request)?;
        let program = &self.command[0];
        let late = || {
            Refusal::new(
                "TimeoutError",
                format!("llm_call: {program:?} did not end within {:?}", request.timeout),
            )
        };
        let left = || request.timeout.saturating_sub(started.elapsed());

        let (answers, errors) = running.talk(question).map_err(|error| broken(program, &error))?;
        // The program is waited for after its output, and not before: until then its number, which is that of its group too,
        // cannot come to belong to another.
        let answer = match answers.recv_timeout(left()) {
            Ok(answer) => answer.map_err(|error| broken(program, &error))?,
            Err(RecvTimeoutError::Timeout) => return Err(late()),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(broken(program, &io::Error::other("no output")));
            }
        };
        if answer.len() as u64 > LONGEST_ANSWER {
            let message =
                format!("llm_call: the answer of {program:?} is longer than {LONGEST_ANSWER} bytes");
            return Err(Refusal::new("OSError", message));
        }
        let Some(status) = running.wait(left).map_err(|error| broken(program, &error))? else {
            return Err(late());
        };
        if !status.success() {
            let printed = errors.shown_text();
            let colon = if printed.is_empty() { "" } else { ": " };
            return Err(Refusal::failed(format!("llm_call: {program:?} failed ({status}){colon}{printed}")));
        }
        let mut answer = String::from_utf8(answer).map_err(|_| {
            Refusal::new("ValueError", format!("llm_call: the answer of {program:?} is not text in UTF-8"))
        })?;
        if answer.ends_with('\n') {
            answer.pop();
            if answer.ends_with('\r') {
                answer.pop();
            }
        }
        Ok(answer)
    }
}

/// What the program reads: the instructions, a blank line, and the prompt.
fn question(request: &ModelRequest) -> Result<String, Refusal> {
    let system = request.system.as_deref().filter(|system| !system.is_empty());
    if request.prompt.len() + system.map_or(0, str::len) > LONGEST_QUESTION {
        let message = format!("llm_call: the prompt is longer than {LONGEST_QUESTION} bytes");
        return Err(Refusal::new("ValueError", message));
    }
    let Some(system) = system else { return Ok(request.prompt.clone()) };
    let end = if system.ends_with('\n') { "" } else { "\n" };
    Ok(format!("{system}{end}\n{}", request.prompt))
}

/// A model's name goes into scripts like `--model $CUEBOOK_MODEL`, so it must not look like an option or like two words.
fn check_name(name: Option<&str>) -> Result<(), Refusal> {
    let Some(name) = name else { return Ok(()) };
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:/@+[]".contains(c);
    if name.len() <= 200 && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(fits) {
        return Ok(());
    }
    Err(Refusal::new("ValueError", format!("llm_call: {name:?} is not the name of a model")))
}

fn broken(program: &str, error: &io::Error) -> Refusal {
    Refusal::failed(format!("llm_call: {program:?}: {error}"))
}

/// A program that runs. Unless it was seen to end, it is killed with its children when this is dropped.
#[derive(Debug)]
struct Running {
    child: Child,
    ended: bool,
}

impl Running {
    /// Writes the question and reads the answer and the errors, each on a thread of its own, because the program may do all
    /// of it in any order. The threads end with the pipes; there is no wait for them.
    fn talk(&mut self, question: String) -> io::Result<(Receiver<io::Result<Vec<u8>>>, Errors)> {
        if let Some(mut stdin) = self.child.stdin.take() {
            // A program that does not read all of the question is free to.
            spawn(move || drop(stdin.write_all(question.as_bytes())))?;
        }
        let (sender, answers) = mpsc::channel();
        if let Some(stdout) = self.child.stdout.take() {
            spawn(move || {
                let mut answer = Vec::new();
                let read = stdout.take(LONGEST_ANSWER + 1).read_to_end(&mut answer);
                // If the time is over, there is no listener any more.
                let _ = sender.send(read.map(|_| answer));
            })?;
        }
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let (sender, end) = mpsc::channel();
        if let Some(stderr) = self.child.stderr.take() {
            let tail = Arc::clone(&tail);
            spawn(move || keep_tail(stderr, &tail, &sender))?;
        }
        Ok((answers, Errors { tail, end }))
    }

    /// Waits for the end of the program, at most as long as there is time left.
    fn wait(&mut self, left: impl Fn() -> Duration) -> io::Result<Option<ExitStatus>> {
        // Its output has ended, so this is a matter of milliseconds for most.
        let mut pause = Duration::from_micros(200);
        loop {
            if let Some(status) = self.child.try_wait()? {
                self.ended = true;
                return Ok(Some(status));
            }
            let left = left();
            if left.is_zero() {
                return Ok(None);
            }
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        #[cfg(unix)]
        {
            let group = rustix::process::Pid::from_child(&self.child);
            // Fails only if there is nothing to kill.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Has the system end the program when the thread that waits for it is gone, however that comes about: with a group of its own
/// it does not hear of a Ctrl-C.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn end_with_us(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    let ask = || Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?);
    // SAFETY: between `fork` and `exec` it makes one system call and touches no memory that others could hold.
    unsafe { command.pre_exec(ask) };
}

#[cfg(not(target_os = "linux"))]
fn end_with_us(_: &mut Command) {}

/// The end of what a program printed on stderr.
#[derive(Debug)]
struct Errors {
    tail: Arc<Mutex<VecDeque<u8>>>,
    end: Receiver<()>,
}

impl Errors {
    fn shown_text(&self) -> String {
        // At the end, or when the time is over, the existing part is reported.
        let _ = self.end.recv_timeout(GRACE);
        let bytes: Vec<u8> =
            self.tail.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        // Spinners and colours are meant for a terminal.
        let text: String = String::from_utf8_lossy(&bytes)
            .chars()
            .filter(|c| !c.is_control() || "\n\t".contains(*c))
            .collect();
        let text = text.trim();
        let start = text.char_indices().rev().nth(ERRORS_TOLD - 1).map_or(0, |(start, _)| start);
        text[start..].to_owned()
    }
}

fn keep_tail(mut stderr: ChildStderr, tail: &Mutex<VecDeque<u8>>, end: &Sender<()>) {
    let mut buffer = [0; 4096];
    loop {
        match stderr.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
                tail.extend(&buffer[..read]);
                let surplus = tail.len().saturating_sub(ERRORS_KEPT);
                tail.drain(..surplus);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let _ = end.send(());
}

/// Like `thread::spawn`, which panics if there can be no further thread.
fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("llm_call".into()).spawn(work).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(prompt: &str, system: Option<&str>) -> ModelRequest {
        ModelRequest {
            prompt: prompt.into(),
            system: system.map(String::from),
            model: None,
            max_tokens: None,
            timeout: Duration::from_secs(10),
        }
    }

    #[test]
    fn instructions_come_before_the_prompt() {
        for (system, wanted) in [
            (None, "Hi\n"),
            (Some(""), "Hi\n"),
            (Some("Be brief."), "Be brief.\n\nHi\n"),
            (Some("Be brief.\n"), "Be brief.\n\nHi\n"),
        ] {
            assert_eq!(question(&request("Hi\n", system)).unwrap(), wanted);
        }
    }

    #[test]
    fn a_question_has_a_limit() {
        let longest = "x".repeat(LONGEST_QUESTION);
        assert!(question(&request(&longest, None)).is_ok());
        assert_eq!(question(&request(&longest, Some("y"))).unwrap_err().exception, "ValueError");
    }

    #[test]
    fn a_name_of_a_model_is_one_word() {
        for name in ["gpt-4o", "anthropic/claude-3.5:beta", "llama3:8b-q4_K_M", "sonnet[1m]", "m@1+2"] {
            assert!(check_name(Some(name)).is_ok(), "{name}");
        }
        let long = "x".repeat(201);
        for name in ["", "-o/tmp/x", "a b", "a;b", "$(a)", "a\0", "a\n", "ä", "*", &long] {
            assert_eq!(check_name(Some(name)).unwrap_err().exception, "ValueError", "{name}");
        }
    }

    #[test]
    fn without_a_command_there_is_no_model() {
        let refusal = CommandModel::new(Vec::new()).ask(&request("Hi", None)).unwrap_err();
        assert_eq!(refusal.message, "llm_call: no program is configured");
    }
}
