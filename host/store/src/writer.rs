//! The writer thread: takes closures in order, runs all queued ones in one transaction, and answers after its commit.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::mpsc;

/// The most closures in one transaction. Bounds how long the first of them waits for its answer.
const MAX_BATCH: usize = 1024;

/// A queued closure, and the channel for its result.
pub(crate) trait Work: Send {
    /// `Err` rolls back this closure only.
    fn run(&mut self, transaction: &Transaction<'_>) -> Result<(), ()>;
    /// Sends the result to the caller.
    fn answer(self: Box<Self>, commit: Result<(), &str>);
}

/// A request to the writer.
pub(crate) enum Order {
    /// Run this and commit it.
    Write(Box<dyn Work>),
    /// Run this between two transactions; it reads.
    Read(Box<dyn FnOnce(&Connection) + Send>),
    /// Run this between two transactions; it has its own.
    Alone(Box<dyn FnOnce(&mut Connection) + Send>),
}

/// Executes orders until every sender is dropped, then closes the database.
pub(crate) fn serve(mut connection: Connection, mut orders: mpsc::Receiver<Order>) {
    let mut next = orders.blocking_recv();
    while let Some(order) = next.take() {
        match order {
            Order::Read(read) => read(&connection),
            Order::Alone(work) => work(&mut connection),
            Order::Write(work) => next = transact(&mut connection, work, || orders.try_recv().ok()),
        }
        if next.is_none() {
            next = orders.blocking_recv();
        }
    }
    if let Err((_connection, error)) = connection.close() {
        tracing::warn!(%error, "cannot close the database cleanly; the next start recovers it");
    }
}

/// Executes one order on the caller's thread.
pub(crate) fn execute(connection: &mut Connection, order: Order) {
    match order {
        Order::Read(read) => read(connection),
        Order::Alone(work) => work(connection),
        Order::Write(work) => {
            let _nothing_waits = transact(connection, work, || None);
        }
    }
}

/// Runs `first` and the writes queued behind it as one transaction. Returns the order of another kind that ended the
/// sequence.
fn transact(
    connection: &mut Connection,
    first: Box<dyn Work>,
    mut waiting: impl FnMut() -> Option<Order>,
) -> Option<Order> {
    let mut batch = vec![first];
    let mut left_over = None;
    let outcome = run_batch(connection, &mut batch, || match waiting() {
        Some(Order::Write(work)) => Some(work),
        Some(other @ (Order::Read(_) | Order::Alone(_))) => {
            left_over = Some(other);
            None
        }
        None => None,
    })
    .map_err(|error| error.to_string());
    if let Err(error) = &outcome {
        tracing::error!(%error, changes = batch.len(), "cannot save changes");
    }
    for work in batch {
        work.answer(outcome.as_ref().copied().map_err(String::as_str));
    }
    left_over
}

/// Runs `batch` and what `more` adds, and commits. `Ok` means that all of it is on disk.
fn run_batch(
    connection: &mut Connection,
    batch: &mut Vec<Box<dyn Work>>,
    mut more: impl FnMut() -> Option<Box<dyn Work>>,
) -> rusqlite::Result<()> {
    let mut transaction = begin(connection)?;
    let mut done = 0;
    while let Some(work) = batch.get_mut(done) {
        if done > 0 {
            run_in_savepoint(&mut transaction, work.as_mut())?;
        } else if !run(&transaction, work.as_mut()) {
            // The first of a transaction needs no savepoint, which most transactions are spared by that.
            transaction.rollback()?;
            transaction = begin(connection)?;
        }
        done += 1;
        if done < MAX_BATCH {
            batch.extend(more());
        }
    }
    transaction.commit()
}

fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// `Err` only if the transaction as a whole can no longer be trusted.
fn run_in_savepoint(transaction: &mut Transaction<'_>, work: &mut dyn Work) -> rusqlite::Result<()> {
    transaction.execute_batch("SAVEPOINT work")?;
    transaction.execute_batch(if run(transaction, work) {
        "RELEASE work"
    } else {
        "ROLLBACK TO work; RELEASE work"
    })
}

/// Whether its changes are to be kept.
fn run(transaction: &Transaction<'_>, work: &mut dyn Work) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(|| work.run(transaction)));
    matches!(outcome, Ok(Ok(())))
}
