//! Keeps a batch to a limit of money.
//!
//! Before a question is sent, the most that it can cost is held; the answer says what it cost. So what is spent and what is held
//! never exceed the limit together, whatever is on its way.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cuebook_run::Money;

/// What was spent, and what may be.
#[derive(Debug)]
pub(crate) struct Spend {
    limit: Option<Money>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    spent: Money,
    held: Money,
}

impl Spend {
    pub(crate) fn new(limit: Option<Money>, spent: Money) -> Spend {
        Spend { limit, state: Mutex::new(State { spent, held: Money::ZERO }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds the most that a question can cost; says whether the limit allows it.
    pub(crate) fn hold(&self, most: Money) -> bool {
        let mut state = self.state();
        if self.limit.is_some_and(|limit| state.spent + state.held + most > limit) {
            return false;
        }
        state.held = state.held + most;
        true
    }

    /// Gives back what was held, and counts what it cost.
    pub(crate) fn pay(&self, held: Money, cost: Money) {
        let mut state = self.state();
        state.held = state.held - held;
        state.spent = state.spent + cost;
    }

    pub(crate) fn spent(&self) -> Money {
        self.state().spent
    }

    pub(crate) fn limit(&self) -> Option<Money> {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_and_spent_money_never_exceeds_the_limit() {
        let cents = |amount: i64| Money::from_nanos(amount * 10_000_000);
        let spend = Spend::new(Some(cents(10)), cents(1));
        assert!(spend.hold(cents(6)));
        assert!(!spend.hold(cents(4)));
        spend.pay(cents(6), cents(2));
        assert!(spend.hold(cents(7)));
        assert!(!spend.hold(Money::from_nanos(1)));
        assert_eq!(spend.spent(), cents(3));
    }
}
