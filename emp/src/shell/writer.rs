//! The writer thread: the only one that touches the store's writing side. Gathers what is pending into
//! one commit, writes it, and only then lets it be known.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use dosmos_trace::store::StoreWriter;

use super::state::Shared;

/// How long records may wait for company. Short enough for a screen, long enough for chunks of a
/// useful size.
const GATHER: Duration = Duration::from_millis(100);
/// A commit this large does not wait.
const ENOUGH: usize = 8192;
/// Pause after a failed write.
const RETRY: Duration = Duration::from_millis(500);

/// Starts the writer thread; it ends, closing the store, once `closing` is set and nothing is pending.
pub(super) fn start(shared: Arc<Shared>, store: StoreWriter) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name("trace-writer".into())
        .spawn(move || write_until_closed(&shared, store))
}

fn write_until_closed(shared: &Shared, mut store: StoreWriter) {
    loop {
        let (commit, waiters, last) = {
            let mut state = shared.lock();
            while state.manager.pending().is_empty() && state.waiters.is_empty() && !state.closing {
                state = shared.wait(state);
            }
            let hurry = |s: &super::state::State| {
                s.closing || !s.waiters.is_empty() || s.manager.pending().records() >= ENOUGH
            };
            if !hurry(&state) {
                let gathered = shared.work.wait_timeout_while(state, GATHER, |s| !hurry(s));
                state = gathered
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .0;
            }
            let waiters = std::mem::take(&mut state.waiters);
            (state.manager.take_pending(), waiters, state.closing)
        };
        let mut written = Ok(());
        if !commit.records.is_empty() || !commit.events.is_empty() || !commit.marks.is_empty() {
            written = write(shared, &mut store, &commit, last);
            let now = shared.clock.now();
            if let Err(e) = store.maintain(now, || shared.lock().manager.snapshot()) {
                tracing::warn!("the store cannot be looked after: {e}");
            }
        }
        for waiter in waiters {
            // Whoever stopped waiting does not want to know.
            let _ = waiter.send(written.clone());
        }
        if last && shared.lock().manager.pending().is_empty() {
            break;
        }
    }
    if let Err(e) = store
        .save(&shared.lock().manager.snapshot())
        .and_then(|()| store.close())
    {
        tracing::error!("cannot close the store: {e}");
    }
}

/// Writes a commit, again and again until the store takes it; gives up only at the end of the process.
fn write(
    shared: &Shared,
    store: &mut StoreWriter,
    commit: &dosmos_trace::store::Commit,
    mut last: bool,
) -> Result<(), String> {
    loop {
        match store.commit(commit) {
            Ok(()) => {
                let gone = !shared.store_is_there();
                let mut state = shared.lock();
                if gone {
                    state.lose_store(&shared.store);
                } else if !state.trouble.is_empty() {
                    tracing::info!("the store can be written again");
                    state.trouble.clear();
                }
                state.durable(commit);
                drop(state);
                shared.room.notify_waiters();
                shared.due.notify_waiters();
                return Ok(());
            }
            Err(e) => {
                let trouble = format!("the trace store cannot be written: {e}");
                let mut state = shared.lock();
                if state.trouble != trouble {
                    tracing::error!(
                        "{trouble}; records are kept by the memory processes, up to their bound: \
                         make room, then start this event manager again"
                    );
                    state.trouble.clone_from(&trouble);
                }
                for waiter in std::mem::take(&mut state.waiters) {
                    let _ = waiter.send(Err(trouble.clone()));
                }
                if last {
                    return Err(trouble);
                }
                last = state.closing;
                drop(state);
                std::thread::sleep(RETRY);
            }
        }
    }
}
