//! Who has arrived at which opening of which barrier.

use dosmos_proto::{GroupId, Nanos, VarId};
use dosmos_trace::query::BarrierName;
use rustc_hash::FxHashMap;

use super::chains::Chain;

/// A barrier, and which of its openings.
pub(super) type Opening = (VarId, u32);

#[derive(Clone, Debug, Default)]
struct State {
    /// Who arrived when, by numbers.
    arrived: Vec<(usize, Nanos)>,
    left: usize,
    /// Once it is open: who arrived last, and its chain then.
    opened: Option<(usize, (Chain, Nanos))>,
}

/// What a process that leaves needs to know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened {
    /// Who arrived last.
    pub(super) last: usize,
    /// Its chain, and when that ends.
    pub(super) chain: (Chain, Nanos),
    /// Everybody else has left.
    pub(super) was_the_last: bool,
}

/// The barriers of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Barriers {
    groups: FxHashMap<VarId, Option<GroupId>>,
    openings: FxHashMap<Opening, State>,
}

impl Barriers {
    pub(super) fn new(names: &[BarrierName]) -> Self {
        Self {
            groups: names.iter().map(|b| (b.id, b.group)).collect(),
            openings: FxHashMap::default(),
        }
    }

    /// Whose barrier it is; none: of all.
    pub(super) fn group(&self, barrier: VarId) -> Option<GroupId> {
        self.groups.get(&barrier).copied().flatten()
    }

    /// A process arrives.
    pub(super) fn arrives(&mut self, opening: Opening, number: usize, at: Nanos) {
        let state = self.openings.entry(opening).or_default();
        state.arrived.push((number, at));
    }

    /// Who has arrived, if nobody has left yet.
    pub(super) fn opens(&self, opening: Opening) -> Option<Vec<(usize, Nanos)>> {
        let state = self.openings.get(&opening)?;
        state.opened.is_none().then(|| state.arrived.clone())
    }

    /// It is open, for all to follow `chain`, that of the process `last`.
    pub(super) fn opened(&mut self, opening: Opening, last: usize, chain: (Chain, Nanos)) {
        if let Some(state) = self.openings.get_mut(&opening) {
            state.opened = Some((last, chain));
        }
    }

    /// A process leaves; none if it is not open.
    pub(super) fn leaves(&mut self, opening: Opening) -> Option<Opened> {
        let state = self.openings.get_mut(&opening)?;
        state.left += 1;
        let was_the_last = state.left >= state.arrived.len();
        let (last, chain) = state.opened?;
        if was_the_last {
            self.openings.remove(&opening);
        }
        Some(Opened {
            last,
            chain,
            was_the_last,
        })
    }
}
