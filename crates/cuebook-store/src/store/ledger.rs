//! The rules of the ledger. They are the same for every store, and nothing else changes an account.
//!
//! - An account is *used* by what the thread spent, what its settled children spent, what it holds, and what is reserved for
//!   children that have not settled. Nothing is held or reserved that would make this more than the limit.
//! - A thread that has not settled *claims* its limit from its parent, or what it has used if that came out higher: a cost is
//!   recorded as it was, also when it exceeds the limit, and then shows in every account above at once.
//! - A thread that ended and whose children have all settled *settles*: its claim is let go, and what it and its children
//!   spent is counted as spent by its parent's children. That can settle the parent in turn.
//! - A thread without a limit ([`Money::MAX`]) claims nothing, so it can only have a parent without one. A thread without a
//!   limit always has enough.
//! - A thread that comes to rest holds nothing. What it did not release counts as spent, because the true figure is unknown. If its
//!   process died, that is what was read for the answer and what had come of it, where the log says what that costs.
//! - A settled thread that is taken up again *reopens*: what was counted for it is taken back, and it claims anew. If its
//!   parent has settled too, that one reopens first, with the whole of its limit, and so on upwards; it stays ended, and
//!   settles again when its children have. If any account on the way has too little left, nothing reopens.

use cuebook_text::Result;

use super::error::{self, AccountOwner};
use super::row::Row;
use super::rows::{Ancestors, Rows, readable};
use super::{Account, Authenticity, Change, Cost};
use crate::money::Money;
use crate::record::ThreadId;

impl Account {
    /// What of the limit is taken.
    fn used(&self) -> Money {
        self.spent + self.children + self.held + self.reserved
    }

    /// What the thread and its children spent for sure.
    fn total(&self) -> Money {
        self.spent + self.children
    }

    /// What it wants of its parent.
    fn claims(&self) -> Money {
        match self.limit {
            Money::MAX => Money::ZERO,
            limit => limit.max(self.used()),
        }
    }
}

/// Takes what a child claims out of its parent's account.
pub(crate) fn reserve(parent: &mut Row, child: &Account) -> Result<Money> {
    let (left, claim) = (parent.account.remaining(), child.claims());
    let wanted = if child.limit == Money::MAX { Money::MAX } else { claim };
    if wanted > left {
        return Err(error::exhausted(AccountOwner::Parents, &parent.record.id, left, wanted));
    }
    parent.account.reserved = parent.account.reserved + claim;
    parent.open += 1;
    Ok(claim)
}

/// Applies what changes to a row. [`balance`] has to follow.
pub(crate) fn change(rows: &mut Rows<'_>, row: &mut Row, change: &Change) -> Result<()> {
    rows.check([change.model.as_deref(), change.continued_by.as_ref().map(ThreadId::as_str)])?;
    if change.unpriced || change.cost.is_some_and(|cost| cost.unpriced) {
        unprice(rows, row)?;
    }
    if let Some(cost) = change.cost {
        row.record.cost = Cost { unpriced: row.record.cost.unpriced, ..cost };
        row.account.held = Money::ZERO;
        spend(row, cost.spend);
    }
    if let Some(limit) = change.spend_limit {
        set_limit(rows, row, limit)?;
    }
    if let Some(hold) = change.hold {
        let hold = hold.max(Money::ZERO);
        row.account.held = Money::ZERO;
        let left = row.account.remaining();
        if hold > left && hold > Money::ZERO {
            return Err(error::exhausted(AccountOwner::Own, &row.record.id, left, hold));
        }
        row.account.held = hold;
    }
    if let Some(result) = &change.result {
        row.record.result = Some(readable(result).unwrap_or_else(|| result.clone()));
    }
    if let Some(model) = &change.model {
        row.record.model = Some(model.clone());
    }
    if let Some(next) = &change.continued_by {
        row.record.continued_by = Some(next.clone());
    }
    if let Some(status) = change.status {
        row.record.status = status;
        if status.is_at_rest() {
            rest(row);
        }
    }
    Ok(())
}

/// What a thread spends is not known any more, and neither is what those above it spend together with it.
pub(crate) fn unprice(rows: &mut Rows<'_>, row: &mut Row) -> Result<()> {
    if std::mem::replace(&mut row.record.cost.unpriced, true) {
        return Ok(());
    }
    let mut above = row.record.parent.clone();
    while let Some(id) = above.take() {
        let mut row = rows.get(&id)?;
        // Each is visited once: it is unpriced from then on.
        if !std::mem::replace(&mut row.record.cost.unpriced, true) {
            above.clone_from(&row.record.parent);
            rows.put(row);
        }
    }
    Ok(())
}

/// A thread comes to rest. Answers with what it had not let go of.
pub(crate) fn rest(row: &mut Row) -> Money {
    let unknown = std::mem::take(&mut row.account.held);
    spend(row, row.account.spent + unknown);
    unknown
}

fn spend(row: &mut Row, spent: Money) {
    row.account.spent = spent.max(Money::ZERO);
    row.record.cost.spend = row.account.spent;
}

fn set_limit(rows: &mut Rows<'_>, row: &mut Row, limit: Money) -> Result<()> {
    let before = row.account.limit;
    // Less than what is used cannot be: nothing more, then.
    row.account.limit = limit.max(row.account.used()).max(Money::ZERO);
    let Some(parent) = &row.record.parent else { return Ok(()) };
    if row.account.limit <= before {
        return Ok(());
    }
    let left = rows.get(parent)?.account.remaining();
    let wanted = if limit == Money::MAX { Money::MAX } else { row.account.claims() - row.claim };
    if wanted > left {
        return Err(error::exhausted(AccountOwner::Parents, parent, left, wanted));
    }
    Ok(())
}

/// A thread keeps nothing but what it and its children have used, or may yet use.
pub(crate) fn give_up(row: &mut Row) {
    if row.account.limit != Money::MAX {
        row.account.limit = row.account.used();
    }
}

/// Puts a row back, and everything above it into balance: its claim is what it should be, and it settles if it is time.
pub(crate) fn balance(rows: &mut Rows<'_>, row: Row) -> Result<()> {
    let mut next = Some(row);
    let mut upwards = Ancestors::default();
    while let Some(mut row) = next.take() {
        upwards.step(&row.record.id)?;
        row.record.updated_at = rows.now;
        let settles = row.record.status.is_settled() && row.open == 0 && !row.account.settled;
        if let Some(id) = row.record.parent.clone().filter(|_| !row.account.settled) {
            let before = row.claim;
            row.claim = if settles { Money::ZERO } else { row.account.claims() };
            // Records that are not authenticated change no authenticated account.
            let counts = |parent: &Row| {
                row.record.authenticity == Authenticity::Own
                    || parent.record.authenticity == Authenticity::Old
            };
            if (settles || before != row.claim)
                && let Some(mut parent) = Some(rows.get(&id)?).filter(counts)
            {
                parent.account.reserved = parent.account.reserved + row.claim - before;
                if settles {
                    parent.account.children = parent.account.children + row.account.total();
                    parent.open = parent.open.saturating_sub(1);
                }
                next = Some(parent);
            }
        }
        row.account.settled |= settles;
        rows.put(row);
    }
    Ok(())
}

/// Opens the account of a thread again, and those above it that have settled.
pub(crate) fn reopen(rows: &mut Rows<'_>, id: &ThreadId) -> Result<()> {
    let mut settled = Vec::new();
    let mut above = Some(id.clone());
    let mut upwards = Ancestors::default();
    while let Some(id) = above.take() {
        upwards.step(&id)?;
        let row = rows.get(&id)?;
        if row.account.settled {
            above.clone_from(&row.record.parent);
            settled.push(row);
        }
    }
    for mut row in settled.into_iter().rev() {
        row.account.settled = false;
        if let Some(parent) = &row.record.parent {
            let mut parent = rows.get(parent)?;
            parent.account.children = parent.account.children - row.account.total();
            row.claim = reserve(&mut parent, &row.account)?;
            // What comes out higher than a limit shows above too; the parent's own claim can have changed.
            balance(rows, parent)?;
        }
        rows.put(row);
    }
    Ok(())
}

/// Whether a thread can have children: it has not ended.
pub(crate) fn can_have_children(row: &Row) -> bool {
    !row.account.settled && !row.record.status.is_settled()
}
