//! Who uses which variable how much, and in which group each stands: today and in the best
//! assignment found. What a group view shows.

use serde::Serialize;

/// An application process's row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MatrixAp {
    /// Its name.
    pub name: String,
    /// Its group, an index into [`GroupMatrix::groups`].
    pub today: usize,
    /// Its group in the proposed assignment.
    pub proposed: usize,
}

/// A variable's column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MatrixVariable {
    /// Its name.
    pub name: String,
    /// The groups that own objects of it, most accessed first; indices into [`GroupMatrix::groups`].
    pub today: Vec<usize>,
    /// The same in the proposed assignment.
    pub proposed: Vec<usize>,
}

/// Application processes × variables.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GroupMatrix {
    /// Paths of all groups.
    pub groups: Vec<String>,
    /// Rows, in order of process.
    pub aps: Vec<MatrixAp>,
    /// Columns, in order of variable.
    pub variables: Vec<MatrixVariable>,
    /// Accesses: row × column.
    pub accesses: Vec<Vec<u64>>,
    /// Cost of all accesses today, nanoseconds.
    pub cost_today_ns: f64,
    /// The same in the proposed assignment, nanoseconds; equal to today's if nothing is to be changed.
    pub cost_proposed_ns: f64,
}

impl GroupMatrix {
    /// Whether the proposed assignment differs from today's.
    pub fn proposes_a_change(&self) -> bool {
        self.aps.iter().any(|a| a.today != a.proposed)
            || self.variables.iter().any(|v| v.today != v.proposed)
    }

    /// Positions of the variables, most accessed first.
    pub fn by_use(&self) -> Vec<usize> {
        let uses = |v: usize| -> u64 {
            let rows = self.accesses.iter();
            rows.filter_map(|row| row.get(v)).sum()
        };
        let mut all: Vec<usize> = (0..self.variables.len()).collect();
        all.sort_by_cached_key(|&v| (std::cmp::Reverse(uses(v)), v));
        all
    }

    /// Positions of the processes, by group (the proposed one if asked for) and then in their own order.
    pub fn order(&self, proposed: bool) -> Vec<usize> {
        let group = |ap: &MatrixAp| if proposed { ap.proposed } else { ap.today };
        let mut all: Vec<usize> = (0..self.aps.len()).collect();
        all.sort_by_key(|&a| (group(&self.aps[a]), a));
        all
    }
}
