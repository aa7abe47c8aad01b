//! Fusion of the table of variables: the first variables of all event managers, without asking
//! any of them for more than is needed to be sure.
//!
//! Every source is asked for the beginning of its own order. A variable whose figures are all at one
//! source competes with its final key; of one that is split, the parts are fetched and added: the keys, where
//! they add up, and otherwise all figures. As long as
//! a source may still hold back something that belongs on the page, it is asked for more (the threshold
//! algorithm of Fagin, Lotem and Naor, 2003). With n rows wanted of `m` sources about
//! `rows + 8·m` entries travel, not `rows · m`.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dosmos_proto::VarId;
use dosmos_trace::query::table::{
    self, RankQuery, Ranking, Sums, Table, TableQuery, VariableFigures, order,
};
use dosmos_trace::query::{QueryError, TraceSource};
use futures::future::join_all;

/// Entries beyond its share that a source is asked for at first.
const SLACK: u32 = 8;
/// Rounds of asking for more after which the order is given as it is, with a note.
const ROUNDS: usize = 8;

/// What a source has said of its order so far.
struct Part {
    name: String,
    source: Arc<dyn TraceSource>,
    got: Ranking,
    /// Why it says no more.
    failed: Option<QueryError>,
}

/// The merged page.
pub(crate) async fn merged(
    sources: &[Arc<dyn TraceSource>],
    query: &TableQuery,
) -> Result<Table, QueryError> {
    let mut merge = Merge {
        query,
        wanted: query.offset.saturating_add(query.limit) as usize,
        parts: sources
            .iter()
            .map(|source| Part {
                name: source.name(),
                source: source.clone(),
                got: Ranking {
                    more: true,
                    ..Ranking::default()
                },
                failed: None,
            })
            .collect(),
        keys: BTreeMap::new(),
        figures: BTreeMap::new(),
    };
    merge.run().await
}

struct Merge<'a> {
    query: &'a TableQuery,
    /// Rows from the beginning to the end of the page.
    wanted: usize,
    parts: Vec<Part>,
    /// Merged keys of the split variables that have come up.
    keys: BTreeMap<VarId, f64>,
    /// Added figures of those of them whose keys do not add up.
    figures: BTreeMap<VarId, VariableFigures>,
}

/// A variable in the merged order.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    key: f64,
    name: &'a str,
    id: VarId,
}

impl Merge<'_> {
    async fn run(&mut self) -> Result<Table, QueryError> {
        let share = self.wanted.div_ceil(self.parts.len().max(1)) as u32 + SLACK;
        let mut behind: Vec<usize> = (0..self.parts.len()).collect();
        let mut certain = false;
        for round in 0..ROUNDS {
            // Twice as much each time: few rounds however far down the page is.
            let take = share.saturating_mul(1 << round.saturating_sub(1));
            self.ask(&behind, take).await;
            self.add_up_split().await;
            behind = self.behind();
            if behind.is_empty() {
                certain = true;
                break;
            }
        }
        self.all_failed()?;
        self.page(certain).await
    }

    /// Asks some sources for the next entries of their orders.
    async fn ask(&mut self, which: &[usize], take: u32) {
        let asked = which.iter().map(|&i| {
            let part = &self.parts[i];
            let query = RankQuery {
                pattern: self.query.pattern.clone(),
                sort: self.query.sort,
                reverse: self.query.reverse,
                skip: part.got.entries.len() as u32,
                take,
                among: Vec::new(),
            };
            async move { part.source.rank(&query).await }
        });
        let answers = join_all(asked).await;
        for (&i, answer) in which.iter().zip(answers) {
            let part = &mut self.parts[i];
            match answer {
                Ok(mut more) => {
                    let mut entries = std::mem::take(&mut part.got.entries);
                    entries.append(&mut more.entries);
                    part.got = Ranking { entries, ..more };
                }
                Err(error) => {
                    part.failed = Some(error);
                    part.got.more = false;
                    part.got.next_split = None;
                }
            }
        }
    }

    /// Fetches and adds the parts of split variables that came up.
    async fn add_up_split(&mut self) {
        let entries = self.parts.iter().flat_map(|p| &p.got.entries);
        let new: BTreeSet<VarId> = entries
            .filter(|e| e.split && !self.keys.contains_key(&e.variable))
            .map(|e| e.variable)
            .collect();
        let new: Vec<VarId> = new.into_iter().collect();
        if self.query.sort.adds_up() {
            return self.add_up_keys(new).await;
        }
        for row in self.describe(&new).await {
            let id = row.variable.id();
            self.keys.insert(id, self.key(&row));
            self.figures.insert(id, row);
        }
    }

    /// Fetches and adds the parts' keys of some variables.
    async fn add_up_keys(&mut self, wanted: Vec<VarId>) {
        if wanted.is_empty() {
            return;
        }
        self.keys.extend(wanted.iter().map(|id| (*id, 0.0)));
        let query = RankQuery {
            pattern: self.query.pattern.clone(),
            sort: self.query.sort,
            reverse: self.query.reverse,
            skip: 0,
            take: wanted.len() as u32,
            among: wanted,
        };
        let query = &query;
        let asked = self.parts.iter().map(|part| async move {
            match part.failed {
                None => part.source.rank(query).await.map(|r| r.entries),
                Some(_) => Ok(Vec::new()),
            }
        });
        let answers = join_all(asked).await;
        let wanted: BTreeSet<VarId> = query.among.iter().copied().collect();
        for (part, answer) in self.parts.iter_mut().zip(answers) {
            let answer = answer.and_then(|entries| {
                match entries.iter().all(|e| wanted.contains(&e.variable)) {
                    true => Ok(entries),
                    false => Err(QueryError::Unavailable {
                        source_name: part.name.clone(),
                        why: "it ranked variables that it was not asked for; run the same version everywhere".into(),
                    }),
                }
            });
            match answer {
                Err(error) => part.failed = Some(error),
                Ok(entries) => {
                    for entry in entries {
                        *self.keys.entry(entry.variable).or_default() += entry.key;
                    }
                }
            }
        }
    }

    /// The added figures of some variables, from all sources that answer.
    async fn describe(&mut self, wanted: &[VarId]) -> Vec<VariableFigures> {
        if wanted.is_empty() {
            return Vec::new();
        }
        let parts = &self.parts;
        let asked = parts.iter().map(|part| async move {
            match part.failed {
                None => part.source.describe(wanted).await.map(|t| t.rows),
                Some(_) => Ok(Vec::new()),
            }
        });
        let answers = join_all(asked).await;
        let mut rows: BTreeMap<VarId, VariableFigures> = BTreeMap::new();
        for (part, answer) in self.parts.iter_mut().zip(answers) {
            match answer {
                Err(error) => part.failed = Some(error),
                Ok(answer) => {
                    for row in answer {
                        let id = row.variable.id();
                        let known = rows.entry(id).or_insert_with(|| VariableFigures {
                            variable: row.variable.clone(),
                            sums: Sums::default(),
                        });
                        known.sums.add(&row.sums);
                    }
                }
            }
        }
        rows.into_values().collect()
    }

    fn compare(&self, a: Candidate<'_>, b: Candidate<'_>) -> Ordering {
        let (a, b) = ((a.key, a.name, a.id), (b.key, b.name, b.id));
        order(self.query.sort, self.query.reverse, a, b)
    }

    /// Everything that came up, in the merged order.
    fn candidates(&self) -> Vec<Candidate<'_>> {
        let mut seen = BTreeSet::new();
        let entries = self.parts.iter().flat_map(|p| &p.got.entries);
        let mut all: Vec<Candidate<'_>> = entries
            .filter(|e| seen.insert(e.variable))
            .map(|e| Candidate {
                key: self.keys.get(&e.variable).copied().unwrap_or(e.key),
                name: &e.name,
                id: e.variable,
            })
            .collect();
        all.sort_by(|a, b| self.compare(*a, *b));
        all
    }

    fn key(&self, row: &VariableFigures) -> f64 {
        row.sums
            .key(self.query.sort, row.variable.spec().layout().objects())
    }

    /// The sources that may hold back something that belongs on the page.
    fn behind(&self) -> Vec<usize> {
        let candidates = self.candidates();
        let more = |p: &Part| p.got.more;
        let Some(last) = self.wanted.checked_sub(1).and_then(|at| candidates.get(at)) else {
            // Not enough rows yet (or none wanted).
            let with_more = self.parts.iter().enumerate().filter(|(_, p)| more(p));
            return with_more
                .filter(|_| self.wanted > 0)
                .map(|(i, _)| i)
                .collect();
        };
        // Parts of one variable may each be held back and be large only together.
        let together: f64 = self.parts.iter().filter_map(|p| p.got.next_split).sum();
        let together =
            self.query.sort.at_most_the_sum() && !self.query.reverse && together >= last.key;
        let behind = |p: &Part| {
            let at_most = p.got.entries.last();
            let alone = at_most.is_none_or(|e| {
                let held_back = Candidate {
                    key: e.key,
                    name: &e.name,
                    id: e.variable,
                };
                self.compare(held_back, *last) == Ordering::Less
            });
            more(p) && (alone || together && p.got.next_split.is_some())
        };
        let indexed = self.parts.iter().enumerate();
        indexed.filter(|(_, p)| behind(p)).map(|(i, _)| i).collect()
    }

    fn all_failed(&mut self) -> Result<(), QueryError> {
        if self.parts.iter().any(|p| p.failed.is_none()) {
            return Ok(());
        }
        let failed = self.parts.iter_mut().find_map(|p| p.failed.take());
        Err(failed.unwrap_or_else(|| QueryError::Unavailable {
            source_name: "nobody".into(),
            why: "there is no event manager to ask".into(),
        }))
    }

    async fn page(&mut self, certain: bool) -> Result<Table, QueryError> {
        let candidates = self.candidates();
        let offset = self.query.offset as usize;
        let ids: Vec<VarId> = candidates
            .iter()
            .skip(offset)
            .take(self.query.limit as usize)
            .map(|c| c.id)
            .collect();
        let known: Vec<VariableFigures> = ids
            .iter()
            .filter_map(|id| self.figures.remove(id))
            .collect();
        let have: BTreeSet<VarId> = known.iter().map(|r| r.variable.id()).collect();
        let missing: Vec<VarId> = ids
            .iter()
            .copied()
            .filter(|id| !have.contains(id))
            .collect();
        let mut rows = self.describe(&missing).await;
        rows.extend(known);
        let mut ranking = Ranking::default();
        for part in &self.parts {
            ranking.completeness.merge(&part.got.completeness);
            ranking.known += part.got.known;
            ranking.matched += part.got.matched;
            if part.failed.is_some() {
                ranking.completeness.missing.push(part.name.clone());
            }
        }
        if !certain {
            let note =
                "the order is approximate: too many variables are spread over event managers";
            ranking.completeness.notes.push(note.into());
        }
        let described = table::VariableTable {
            rows,
            ..Default::default()
        };
        Ok(table::page(self.query.offset, &ids, ranking, described))
    }
}
