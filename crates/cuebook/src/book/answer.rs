//! What another thread will give, as a future. No runtime is needed.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// What one side has left for the other.
struct Shared<T> {
    value: Option<T>,
    /// Whether the sender is gone.
    ended: bool,
    waiting: Option<Waker>,
}

type Slot<T> = Arc<Mutex<Shared<T>>>;

/// Gives the value. Dropping it without one ends the wait as well.
pub(super) struct Sender<T>(Slot<T>);

/// Waits for the value; `None` if the sender ended without one.
pub(super) struct Answer<T>(Slot<T>);

/// A sender, and the future of what it sends.
pub(super) fn channel<T>() -> (Sender<T>, Answer<T>) {
    let slot = Arc::new(Mutex::new(Shared { value: None, ended: false, waiting: None }));
    (Sender(slot.clone()), Answer(slot))
}

impl<T> Sender<T> {
    pub(super) fn send(self, value: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).value = Some(value);
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.ended = true;
        let waiting = shared.waiting.take();
        drop(shared);
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

impl<T> Future for Answer<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.ended {
            return Poll::Ready(shared.value.take());
        }
        shared.waiting = Some(context.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use futures_executor::block_on;

    use super::*;

    #[test]
    fn a_value_arrives_from_another_thread() {
        let (sender, answer) = channel();
        let thread = std::thread::spawn(move || sender.send(7));
        assert_eq!(block_on(answer), Some(7));
        thread.join().unwrap();
    }

    #[test]
    fn a_sender_that_panics_ends_the_wait() {
        let (sender, answer) = channel::<u8>();
        let thread = std::thread::spawn(move || {
            let _sender = sender;
            panic!("no value");
        });
        assert_eq!(block_on(answer), None);
        assert!(thread.join().is_err());
    }
}
