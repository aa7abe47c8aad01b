//! The circles of a directed graph: its strongly connected components of more than one node (Tarjan 1972).

use std::collections::{BTreeMap, BTreeSet};

/// From each node to those its arrows lead to.
pub type Graph<N> = BTreeMap<N, BTreeSet<N>>;

/// All circles, each with its nodes in order.
pub fn circles<N: Ord + Clone>(graph: &Graph<N>) -> Vec<BTreeSet<N>> {
    let mut search = Search {
        graph,
        index: BTreeMap::new(),
        low: BTreeMap::new(),
        stack: Vec::new(),
        found: Vec::new(),
    };
    for node in graph.keys() {
        if !search.index.contains_key(node) {
            search.visit(node);
        }
    }
    search.found
}

struct Search<'a, N> {
    graph: &'a Graph<N>,
    index: BTreeMap<N, usize>,
    low: BTreeMap<N, usize>,
    stack: Vec<N>,
    found: Vec<BTreeSet<N>>,
}

impl<N: Ord + Clone> Search<'_, N> {
    fn visit(&mut self, node: &N) {
        let number = self.index.len();
        self.index.insert(node.clone(), number);
        self.low.insert(node.clone(), number);
        self.stack.push(node.clone());
        for next in self.graph.get(node).into_iter().flatten() {
            let reached = if !self.index.contains_key(next) {
                self.visit(next);
                self.low[next]
            } else if self.stack.contains(next) {
                self.index[next]
            } else {
                continue;
            };
            let low = self.low.get_mut(node).unwrap();
            *low = reached.min(*low);
        }
        if self.low[node] == number {
            let from = self.stack.iter().position(|n| n == node).unwrap();
            let component: BTreeSet<N> = self.stack.drain(from..).collect();
            if component.len() > 1 {
                self.found.push(component);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(arrows: &[(char, char)]) -> Graph<char> {
        let mut graph = Graph::new();
        for (from, to) in arrows {
            graph.entry(*from).or_insert_with(BTreeSet::new).insert(*to);
        }
        graph
    }

    #[test]
    fn circles_are_found_and_nothing_else() {
        assert!(circles(&graph(&[('a', 'b'), ('b', 'c'), ('a', 'c')])).is_empty());
        assert!(circles(&graph(&[('a', 'a')])).is_empty());
        let found = circles(&graph(&[
            ('a', 'b'),
            ('b', 'c'),
            ('c', 'b'),
            ('c', 'd'),
            ('d', 'e'),
            ('e', 'f'),
            ('f', 'd'),
        ]));
        let expected = [BTreeSet::from(['d', 'e', 'f']), BTreeSet::from(['b', 'c'])];
        assert_eq!(found, expected);
    }
}
