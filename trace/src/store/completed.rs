//! How meta-objects are made of records that tell only what applications did, as those of a file may.

use std::collections::HashSet;

use dosmos_proto::{CopyPolicy, EmpId, Nanos, VarId};

use super::entry::{Event, Item};
use super::snapshot::Snapshot;
use crate::meta::{HandOver, MetaState};
use crate::record::{Flags, Op, Origin, Record, Side};

/// The fold of records without those of the owners: every remote access is also counted at its owner,
/// an acquire that waited counts as delayed, and a release ends the copies, or renews them where that is
/// the variable's policy.
#[derive(Debug, Default)]
pub(super) struct CompletedFold {
    updated: HashSet<VarId>,
}

impl CompletedFold {
    /// Takes one entry of the log into account.
    pub(super) fn take(&mut self, state: &mut Snapshot, item: Item<'_>) {
        match item {
            Item::Record(record) => self.record(&mut state.metas, record),
            Item::Event(event) => {
                if let Event::Variable(variable) = event
                    && variable.spec().policy() == CopyPolicy::Update
                {
                    self.updated.insert(variable.id());
                }
                state.take(item);
            }
        }
    }

    fn record(&self, state: &mut MetaState, record: &Record) {
        if !record.is_access() || record.op == Op::Barrier {
            state.apply(record);
            return;
        }
        if record.op == Op::Acquire && record.wait > Nanos::ZERO {
            state.apply(&Record {
                wait: Nanos::ZERO,
                flags: Flags {
                    waiting: true,
                    ..record.flags
                },
                ..*record
            });
        }
        state.apply(record);
        let elsewhere = record.flags.in_process && record.peer != record.mp;
        if (record.origin != Origin::Local || elsewhere) && !record.flags.optimized {
            state.apply(&Record {
                side: Side::Owner,
                ..*record
            });
        }
        if record.op == Op::Release {
            self.end_copies(state, record);
        }
    }

    fn end_copies(&self, state: &mut MetaState, release: &Record) {
        for copy_at in state.copies_of(release.object) {
            // An imported store has one event manager, so nothing is due to another.
            let _ = state.hand_over(&HandOver {
                object: release.object,
                copy_at,
                primary_emp: EmpId(0),
                dropped: !self.updated.contains(&release.object.var),
            });
        }
    }
}
