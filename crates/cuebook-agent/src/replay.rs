//! A run as lines that can be compared: nothing but what is the same each time that the same run is made again.
//!
//! No time, no duration, no text of a model stands in them. Two runs with the same lines took the same way; where they part, the
//! first line that differs says what happened.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cuebook::Code;

use super::{Halt, Observer, Permit, Step};

/// Hears the steps of a run, and writes lines in the form of Prompty's replay journal.
#[derive(Debug)]
pub struct Replay {
    session: String,
    turn: String,
    kept: Mutex<ReplayState>,
}

#[derive(Debug, Default)]
struct ReplayState {
    lines: Vec<String>,
    /// How often the model answered.
    turns: u32,
    checkpoints: u32,
}

impl Replay {
    /// The lines of a run of this name, which is a part of a session.
    pub fn new(session: impl Into<String>, turn: impl Into<String>) -> Replay {
        Replay { session: session.into(), turn: turn.into(), kept: Mutex::default() }
    }

    /// The lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.kept().lines.clone()
    }

    fn kept(&self) -> MutexGuard<'_, ReplayState> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self, kept: &mut ReplayState, kind: &str, more: &str) {
        kept.lines.push(format!("session:{kind}:{}:{}{more}", self.session, self.turn));
    }

    fn end(&self, kept: &mut ReplayState, status: &str) {
        kept.lines.push(format!("turn:turn_end:{}:{status}", kept.turns));
        self.session(kept, "session_end", &format!(":{status}"));
        let (session, checkpoints) = (&self.session, kept.checkpoints);
        kept.lines.push(format!("summary:{session}:{status}:turns=1:checkpoints={checkpoints}"));
    }
}

impl Observer for Replay {
    fn step(&self, step: &Step<'_>) {
        let kept = &mut *self.kept();
        // Rounds are counted from zero, and a round begins with a question.
        let round = kept.turns.saturating_sub(1);
        let asked = kept.turns;
        let mut turn = |line: String| kept.lines.push(format!("turn:{line}"));
        match step {
            Step::Started => {
                self.session(kept, "session_start", "");
                kept.lines.push("turn:turn_start:0".into());
            }
            Step::Asking => turn(format!("llm_start:{asked}")),
            Step::Answered { .. } => {
                turn(format!("llm_complete:{asked}"));
                kept.turns += 1;
                kept.checkpoints += 1;
                self.session(kept, "checkpoint_created", "");
            }
            Step::Permission { call } => turn(format!("permission_requested:{round}:{}-permission", call.id)),
            Step::Permitted { permit, .. } => {
                turn(format!("permission_completed:{round}:{}", **permit == Permit::Allowed));
            }
            Step::Performing { call, .. } => turn(format!("tool_execution_start:{round}:{}", call.name)),
            Step::PerformedCall { call, performed, ran } => {
                let (name, success) = (&call.name, !performed.is_error);
                let kind = performed.error_kind.as_deref().filter(|_| !success);
                let kind = kind.map(|kind| format!(":{kind}")).unwrap_or_default();
                if *ran {
                    turn(format!("tool_execution_complete:{round}:{name}:{success}{kind}"));
                }
                turn(format!("tool_result:{round}:{name}:{success}{kind}"));
            }
            Step::Updated { .. } => turn(format!("messages_updated:{round}")),
            Step::Done { .. } => self.end(kept, "success"),
            Step::Stopped { halt: Halt::Cancelled(_), .. } => {
                turn(format!("cancelled:{asked}"));
                self.end(kept, "cancelled");
            }
            Step::Stopped { halt, .. } => {
                turn(format!("error:{asked}:{}", kind_of(halt)));
                self.end(kept, "error");
            }
            _ => {}
        }
    }
}

/// The word for why a run stopped.
fn kind_of(halt: &Halt) -> String {
    match halt {
        Halt::Cancelled(_) => "cancelled".into(),
        Halt::Indeterminate(_) => "reconciliation_required".into(),
        Halt::Failed(error) | Halt::Suspended(error) => match error.code() {
            Code::LimitReached => "max_iterations".into(),
            code => code.name().replace('-', "_"),
        },
    }
}
