//! What a caller says to a run that is under way: a message for the model, or a request to stop.
//!
//! Both are handles that can be cloned and used from any thread.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cuebook::chat::{Message, Role};

/// Messages that wait for the model. They are put into the conversation before the model is asked the next time, in the order in
/// which they were sent, all that wait at once; a tool that runs is not disturbed.
///
/// ```
/// use cuebook_agent::Steering;
///
/// let steering = Steering::new();
/// steering.clone().send("in French, please");
/// let mut conversation = Vec::new();
/// assert_eq!(steering.pour(&mut conversation), 1);
/// assert_eq!(conversation[0].role.as_str(), "user");
/// assert!(!steering.is_waiting());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Steering {
    waiting: Arc<Mutex<Vec<Message>>>,
}

impl Steering {
    /// Nothing waits yet.
    pub fn new() -> Steering {
        Steering::default()
    }

    /// Lets the model hear this as the user's words.
    pub fn send(&self, text: impl Into<String>) {
        self.send_message(Message::text(Role::User, text));
    }

    /// Lets the model hear this message.
    pub fn send_message(&self, message: Message) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }

    /// Whether something waits.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Takes all that waits.
    pub fn drain(&self) -> Vec<Message> {
        mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts all that waits at the end of a conversation. Returns how many messages that were.
    pub fn pour(&self, conversation: &mut Vec<Message>) -> usize {
        let waiting = self.drain();
        let count = waiting.len();
        conversation.extend(waiting);
        count
    }
}

/// Stops a run. It is looked at before the model is asked and before each call of a tool, and handed to the code that asks the model.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// There is no request to stop yet.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// A flag of the caller: there is a request to stop when it is set.
    pub fn flag(flag: Arc<AtomicBool>) -> Cancel {
        Cancel(flag)
    }

    /// Stop as soon as possible.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether there is a request to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
