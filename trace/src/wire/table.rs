//! The table of variables.

use dosmos_proto::{Malformed, Nanos, VarId, wire};

use super::meta::counts;
use crate::query::table::{
    NamePattern, RankQuery, Ranked, Ranking, SortKey, Sums, VariableFigures, VariableTable,
};
use crate::record::PerOrigin;

impl From<SortKey> for wire::SortKey {
    fn from(key: SortKey) -> Self {
        match key {
            SortKey::Name => Self::Name,
            SortKey::Objects => Self::Objects,
            SortKey::Copies => Self::Copies,
            SortKey::Reads => Self::Reads,
            SortKey::ReadsCopies => Self::ReadsCopies,
            SortKey::Writes => Self::Writes,
            SortKey::Acquires => Self::Acquires,
            SortKey::Delayed => Self::Delayed,
            SortKey::Wait => Self::Wait,
            SortKey::Hold => Self::Hold,
            SortKey::Inter => Self::Inter,
            SortKey::Time => Self::Time,
        }
    }
}

fn sort_key(key: wire::SortKey) -> SortKey {
    match key {
        wire::SortKey::Unspecified | wire::SortKey::Name => SortKey::Name,
        wire::SortKey::Objects => SortKey::Objects,
        wire::SortKey::Copies => SortKey::Copies,
        wire::SortKey::Reads => SortKey::Reads,
        wire::SortKey::ReadsCopies => SortKey::ReadsCopies,
        wire::SortKey::Writes => SortKey::Writes,
        wire::SortKey::Acquires => SortKey::Acquires,
        wire::SortKey::Delayed => SortKey::Delayed,
        wire::SortKey::Wait => SortKey::Wait,
        wire::SortKey::Hold => SortKey::Hold,
        wire::SortKey::Inter => SortKey::Inter,
        wire::SortKey::Time => SortKey::Time,
    }
}

impl From<RankQuery> for wire::RankRequest {
    fn from(q: RankQuery) -> Self {
        let (pattern, negate) = q
            .pattern
            .map_or_else(Default::default, |p| (p.text, p.negate));
        Self {
            pattern,
            negate,
            sort: wire::SortKey::from(q.sort).into(),
            reverse: q.reverse,
            skip: q.skip,
            take: q.take,
            among: q.among.into_iter().map(|v| v.0).collect(),
        }
    }
}

impl From<wire::RankRequest> for RankQuery {
    fn from(q: wire::RankRequest) -> Self {
        let sort = sort_key(q.sort());
        let negate = q.negate;
        Self {
            pattern: (!q.pattern.is_empty()).then_some(NamePattern {
                text: q.pattern,
                negate,
            }),
            sort,
            reverse: q.reverse,
            skip: q.skip,
            take: q.take,
            among: q.among.into_iter().map(VarId).collect(),
        }
    }
}

impl From<Ranking> for wire::Ranking {
    fn from(r: Ranking) -> Self {
        let entry = |e: Ranked| wire::Ranked {
            variable: e.variable.0,
            name: e.name,
            key: e.key,
            split: e.split,
        };
        Self {
            entries: r.entries.into_iter().map(entry).collect(),
            more: r.more,
            next_split: r.next_split,
            known: r.known,
            matched: r.matched,
            completeness: Some(r.completeness.into()),
        }
    }
}

impl From<wire::Ranking> for Ranking {
    fn from(r: wire::Ranking) -> Self {
        let entry = |e: wire::Ranked| Ranked {
            variable: VarId(e.variable),
            name: e.name,
            key: e.key,
            split: e.split,
        };
        Self {
            entries: r.entries.into_iter().map(entry).collect(),
            more: r.more,
            next_split: r.next_split,
            known: r.known,
            matched: r.matched,
            completeness: r.completeness.unwrap_or_default().into(),
        }
    }
}

impl From<VariableFigures> for wire::VariableFigures {
    fn from(f: VariableFigures) -> Self {
        let s = f.sums;
        let [local, intra, inter] = s.origins.into_array();
        Self {
            variable: Some(f.variable.into()),
            copies: s.copies,
            copies_listed: s.copies_listed,
            counts: Some(s.counts.into()),
            reads_on_copies: s.reads_on_copies,
            delayed: s.delayed,
            wait_ns: s.wait.0,
            hold_ns: s.hold.0,
            local,
            intra,
            inter,
            last_acquires: s.last_acquires.into_iter().map(Into::into).collect(),
            last_writes: s.last_writes.into_iter().map(Into::into).collect(),
            times: Some(s.times.into()),
        }
    }
}

impl TryFrom<wire::VariableFigures> for VariableFigures {
    type Error = Malformed;
    fn try_from(f: wire::VariableFigures) -> Result<Self, Malformed> {
        let variable = f.variable.ok_or_else(|| Malformed::missing("variable"))?;
        Ok(Self {
            variable: variable.try_into()?,
            sums: Sums {
                copies: f.copies,
                copies_listed: f.copies_listed,
                counts: counts(f.counts),
                reads_on_copies: f.reads_on_copies,
                delayed: f.delayed,
                wait: Nanos(f.wait_ns),
                hold: Nanos(f.hold_ns),
                origins: PerOrigin {
                    local: f.local,
                    intra: f.intra,
                    inter: f.inter,
                },
                last_acquires: f.last_acquires.into_iter().map(Into::into).collect(),
                last_writes: f.last_writes.into_iter().map(Into::into).collect(),
                times: f.times.unwrap_or_default().into(),
            },
        })
    }
}

impl From<VariableTable> for wire::VariableTable {
    fn from(t: VariableTable) -> Self {
        Self {
            rows: t.rows.into_iter().map(Into::into).collect(),
            completeness: Some(t.completeness.into()),
        }
    }
}

impl TryFrom<wire::VariableTable> for VariableTable {
    type Error = Malformed;
    fn try_from(t: wire::VariableTable) -> Result<Self, Malformed> {
        let rows: Result<Vec<_>, _> = t.rows.into_iter().map(TryInto::try_into).collect();
        Ok(Self {
            rows: rows?,
            completeness: t.completeness.unwrap_or_default().into(),
        })
    }
}
