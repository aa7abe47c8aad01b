//! Chains of dependences: what the longest chain that leads to an instant of a process consists of.
//!
//! Chains of processes have their beginnings in common. A node holds what was added to the chain of its parent since; a
//! parent that one other alone continues is joined with it now and then, so there are at most about twice as many nodes as
//! chains, however long the run.

use dosmos_proto::ApId;
use rustc_hash::FxHashMap;

use super::tally::{Doing, Tally, bound};

/// Entries of a node; beyond them the smallest are put together.
const MOST: usize = 8_192;
/// Nodes before it is first looked for those that can be joined.
const FIRST: usize = 64;

/// By process (none: several), what it did: nanoseconds.
pub(super) type Sums = FxHashMap<(Option<ApId>, Doing), u64>;

/// A chain up to an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chain(usize);

#[derive(Clone, Debug, Default)]
struct Node {
    parent: Option<usize>,
    /// Chains that end here, and nodes that continue it; 0: unused.
    users: usize,
    sums: Sums,
}

/// All chains.
#[derive(Clone, Debug)]
pub(super) struct Chains {
    nodes: Vec<Node>,
    unused: Vec<usize>,
    /// Number of nodes in use at which the next ones are joined.
    join_at: usize,
}

impl Default for Chains {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            unused: Vec::new(),
            join_at: FIRST,
        }
    }
}

impl Chains {
    /// One with nothing in it.
    pub(super) fn begin(&mut self) -> Chain {
        self.node(Node {
            users: 1,
            ..Node::default()
        })
    }

    /// Once more the same.
    pub(super) fn share(&mut self, chain: Chain) -> Chain {
        self.nodes[chain.0].users += 1;
        chain
    }

    /// `chain` with what `ap` did since.
    pub(super) fn extend(&mut self, chain: Chain, ap: ApId, did: &Tally) -> Chain {
        let new = match self.nodes[chain.0].users {
            1 => chain,
            _ => self.node(Node {
                parent: Some(chain.0),
                users: 1,
                sums: Sums::default(),
            }),
        };
        let sums = &mut self.nodes[new.0].sums;
        for (doing, time) in did.once() {
            *sums.entry((Some(ap), doing)).or_default() += time;
        }
        keep_small(sums);
        self.join();
        new
    }

    /// One chain less.
    pub(super) fn end(&mut self, chain: Chain) {
        let mut next = Some(chain.0);
        while let Some(at) = next {
            let node = &mut self.nodes[at];
            node.users -= 1;
            if node.users > 0 {
                return;
            }
            next = std::mem::take(node).parent;
            self.unused.push(at);
        }
    }

    /// All that it consists of.
    pub(super) fn sums(&self, chain: Chain) -> Sums {
        let mut all = Sums::default();
        let mut next = Some(chain.0);
        while let Some(at) = next {
            for (what, time) in &self.nodes[at].sums {
                *all.entry(*what).or_default() += time;
            }
            next = self.nodes[at].parent;
        }
        all
    }

    /// Nodes in use.
    pub(super) fn len(&self) -> usize {
        self.nodes.len() - self.unused.len()
    }

    fn node(&mut self, node: Node) -> Chain {
        match self.unused.pop() {
            Some(at) => {
                self.nodes[at] = node;
                Chain(at)
            }
            None => {
                self.nodes.push(node);
                Chain(self.nodes.len() - 1)
            }
        }
    }

    /// Joins nodes with parents that nobody else uses, when there are many.
    fn join(&mut self) {
        if self.len() < self.join_at {
            return;
        }
        for at in 0..self.nodes.len() {
            while let Some(parent) = self.nodes[at].parent
                && self.nodes[at].users > 0
                && self.nodes[parent].users == 1
            {
                let parent_node = std::mem::take(&mut self.nodes[parent]);
                self.unused.push(parent);
                self.nodes[at].parent = parent_node.parent;
                add(&mut self.nodes[at].sums, parent_node.sums);
            }
        }
        self.join_at = 2 * self.len() + FIRST;
    }
}

/// Adds `more` to `sums`.
fn add(sums: &mut Sums, mut more: Sums) {
    if sums.len() < more.len() {
        std::mem::swap(sums, &mut more);
    }
    for (what, time) in more {
        *sums.entry(what).or_default() += time;
    }
    keep_small(sums);
}

fn keep_small(sums: &mut Sums) {
    if sums.len() > MOST {
        bound(sums, MOST, (None, Doing::Other), |_| true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_share_their_beginnings_and_stay_few() {
        let mut chains = Chains::default();
        let mut of = [chains.begin(); 3];
        of[1] = chains.begin();
        of[2] = chains.begin();
        let mut did = Tally::default();
        did.add(Doing::Computing, 1);
        for round in 0..10_000 {
            let (from, to) = (round % 3, (round + 1) % 3);
            of[from] = chains.extend(of[from], ApId(from as u32), &did);
            let shared = chains.share(of[from]);
            chains.end(of[to]);
            of[to] = shared;
        }
        assert!(chains.len() < 200, "{}", chains.len());
        let sums = chains.sums(of[10_000 % 3]);
        assert_eq!(sums.values().sum::<u64>(), 10_000);
        assert_eq!(sums[&(Some(ApId(0)), Doing::Computing)], 3_334);
        of.into_iter().for_each(|chain| chains.end(chain));
        assert_eq!(chains.len(), 0);
    }
}
