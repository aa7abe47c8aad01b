//! Rows and lanes from answers; what is selected stays selected.

use dosmos_analysis::Finding;
use dosmos_trace::query::table::Table;

use super::variables::{self, VariableRow};
use super::{Screen, State, findings, health, lanes, tree};

impl State {
    /// The selected row of the table, if its page is here.
    pub fn selected_variable(&self) -> Option<&VariableRow> {
        self.variable_at(self.variable_list.selected)
    }

    /// The row at a position of the table's order, if it is here.
    pub fn variable_at(&self, position: usize) -> Option<&VariableRow> {
        self.variables.iter().find(|row| row.position == position)
    }

    /// The selected finding.
    pub fn selected_finding(&self) -> Option<&Finding> {
        let at = *self.findings.get(self.finding_list.selected)?;
        let analysed = self.data.analysed.as_ref()?;
        analysed.analysis.findings.get(at)
    }

    /// Whether the rows seen are here.
    pub(super) fn has_page(&self) -> bool {
        self.selected_variable().is_some()
    }

    /// Takes a page of the table. The selected variable is followed where it is on the page.
    pub(super) fn take_table(&mut self, table: Table) {
        let id = self.selected_variable().map(|row| row.id);
        self.data
            .meet(table.rows.iter().map(|r| r.variable.clone()).collect());
        self.data.table = table;
        self.variables = variables::rows(&self.data);
        let here = self.variables.iter().find(|row| Some(row.id) == id);
        if let Some(row) = here {
            self.variable_list.selected = row.position;
        }
        let matched = usize::try_from(self.data.table.matched).unwrap_or(usize::MAX);
        self.variable_list.step(0, matched);
    }

    /// Works out rows and lanes anew.
    pub(super) fn refresh(&mut self) {
        let passes = self.passes();
        let node = self.tree.get(self.tree_list.selected).map(|r| r.node);
        self.tree = tree::rows(&self.data, &self.folded, &passes);
        if let Some(at) = self.tree.iter().position(|r| Some(r.node) == node) {
            self.tree_list.selected = at;
        }
        self.tree_list.step(0, self.tree.len());
        self.refresh_findings();
        self.health = health::rows(&self.data, &passes);
        self.health_list.step(0, self.health.len());
        self.refresh_lanes();
    }

    fn refresh_findings(&mut self) {
        let selected = self.selected_finding().map(|f| (f.kind, f.target()));
        let all = self.data.analysed.as_ref();
        let all = all.map_or(&[][..], |a| &a.analysis.findings);
        let shown = findings::shown(all, self.passes());
        let same = |at: &usize| Some((all[*at].kind, all[*at].target())) == selected;
        let selected = shown.iter().position(same);
        self.findings = shown;
        if let Some(at) = selected {
            self.finding_list.selected = at;
        }
        self.finding_list.step(0, self.findings.len());
    }

    fn refresh_lanes(&mut self) {
        let Some(history) = &self.data.history else {
            self.lanes.clear();
            return;
        };
        let key = self.lanes.get(self.lane_list.selected).map(|l| l.key);
        let mut lanes = lanes::lanes(
            &history.answer,
            &self.data.catalog,
            history.scale,
            self.place.screen == Screen::VariableHistory,
            self.known_lanes.iter().copied(),
        );
        self.known_lanes.extend(lanes.iter().map(|l| l.key));
        let passes = self.passes();
        lanes.retain(|lane| passes(&lane.label));
        self.lanes = lanes;
        if let Some(at) = self.lanes.iter().position(|l| Some(l.key) == key) {
            self.lane_list.selected = at;
        }
        self.lane_list.step(0, self.lanes.len());
    }
}
