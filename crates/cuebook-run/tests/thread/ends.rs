//! Threads of processes that do not stop them.

use std::process::{Child, Command, Stdio};

use cuebook::Code;
use cuebook_mock::Script;
use cuebook_run::store::{Change, Holder, New, Store};
use cuebook_run::{Money, Status, ThreadId};

use crate::setup::Setup;

fn running(store: &dyn Store, holder: Option<Holder>) -> ThreadId {
    let new = New {
        prompt: "demo/work".to_owned(),
        parent: None,
        parent_holder: None,
        parent_spawns: None,
        spend: Money::ZERO,
        model: None,
        unpriced: false,
        continuation_of: None,
        holder,
        entries: Vec::new(),
    };
    store.begin(&new).unwrap().id
}

#[test]
fn cancel_reports_a_thread_that_still_runs_elsewhere() {
    let stage = Setup::new(Script::new());
    let store = stage.store();
    // It has just taken the thread up, which is a sign of life.
    let elsewhere = Holder { host: "elsewhere".to_owned(), ..Holder::of_this_process() };
    let id = running(&*store, Some(elsewhere));
    let error = stage.world.engine.cancel(None, &id, false).unwrap_err();
    assert_eq!(error.code(), Code::ThreadBusy);
    assert!(error.diagnostic().message.contains("on another machine"), "{error}");
    let record = store.record(&id).unwrap().unwrap();
    assert!(record.status == Status::Running && record.cancel);
}

/// A process that has nothing to do with the tests, and that they do not leave behind.
#[cfg(target_os = "linux")]
struct Stranger(Child);

#[cfg(target_os = "linux")]
impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

#[cfg(target_os = "linux")]
impl Stranger {
    fn holder(&self) -> Holder {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let began = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
        Holder { pid: self.0.id(), began, ..Holder::of_this_process() }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_program_of_another_user_is_never_ended() {
    let stage = Setup::new(Script::new());
    let store = stage.store();
    let mut stranger = Stranger(Command::new("sleep").arg("300").stdin(Stdio::null()).spawn().unwrap());
    let id = running(&*store, Some(stranger.holder()));
    let error = stage.world.engine.cancel(None, &id, false).unwrap_err();
    assert_eq!(error.code(), Code::ThreadBusy);
    assert!(error.diagnostic().hint.as_deref().unwrap().contains("kill -9"), "{error}");
    assert!(stranger.0.try_wait().unwrap().is_none(), "it was ended");
}

#[cfg(target_os = "linux")]
#[test]
fn a_deaf_process_is_killed_if_it_runs_the_thread() {
    let stage = Setup::new(Script::new());
    let store = stage.store();
    // A shell under our name, which does nothing when it is asked to end.
    let program = stage.world.project().join("cuebook");
    std::fs::copy(std::fs::canonicalize("/bin/sh").unwrap(), &program).unwrap();
    let script = "trap '' TERM; echo; while :; do read line || sleep 1; done";
    let mut command = Command::new(&program);
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
    // Another test may be about to start something, and still has the file open from the moment of its fork.
    let mut deaf = loop {
        match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {}
            spawned => break Stranger(spawned.unwrap()),
        }
    };
    std::io::Read::read_exact(&mut deaf.0.stdout.take().unwrap(), &mut [0]).unwrap();
    let (id, other) = (running(&*store, Some(deaf.holder())), running(&*store, Some(deaf.holder())));
    let error = stage.world.engine.cancel(None, &id, false).unwrap_err();
    assert_eq!(error.code(), Code::ThreadBusy);
    assert!(deaf.0.try_wait().unwrap().is_none(), "another thread was ended with it");
    let change = Change { status: Some(Status::Completed), ..Change::default() };
    let holder = store.record(&other).unwrap().unwrap().holder.unwrap();
    store.append(&other, &holder, &[], &change).unwrap();
    let cancelled = stage.world.engine.cancel(None, &id, false).unwrap();
    assert_eq!(cancelled.record.status, Status::Cancelled);
    assert!(deaf.0.try_wait().unwrap().is_some(), "it still runs");
}
