//! The last analysis, as two views show it: its findings, and its groups.

use dosmos_analysis::Finding;
use dosmos_client::Part;
use dosmos_proto::Nanos;
use dosmos_trace::query::{Catalog, TimeRange};

use super::list::{List, Rows};
use super::screen::{Place, Screen};

/// The last analysis, with what is selected in it.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    part: Option<Box<Part>>,
    findings: Rows<usize>,
    processes: List,
    column: usize,
    proposed: bool,
}

impl Analysis {
    /// What was analysed, and what was found.
    pub fn part(&self) -> Option<&Part> {
        self.part.as_deref()
    }

    /// Positions of the findings that the filter lets through.
    pub fn findings(&self) -> &Rows<usize> {
        &self.findings
    }

    /// The selected finding.
    pub fn selected_finding(&self) -> Option<&Finding> {
        self.part()?
            .analysis
            .findings
            .get(*self.findings.selected()?)
    }

    /// Selection among the processes of the group view.
    pub fn processes(&self) -> List {
        self.processes
    }

    /// First variable shown in the group view.
    pub fn column(&self) -> usize {
        self.column
    }

    /// The group view is drawn as proposed, not as it is today.
    pub fn proposed(&self) -> bool {
        self.proposed
    }

    /// Where the selected finding leads to: the history of the variable if it names one, otherwise of the first process
    /// it names; the group view for findings about groups alone.
    pub(super) fn opens(&self, here: Place, catalog: &Catalog) -> Option<Place> {
        let finding = self.selected_finding()?;
        let named = finding.variable.as_deref();
        let mut variables = catalog.variables.iter();
        let variable = named.and_then(|name| variables.find(|v| v.spec().name() == name));
        let process = finding.aps.first();
        let process = process.and_then(|name| catalog.topology.find_ap(name));
        Some(match (variable, process) {
            (Some(variable), _) => here.variable_history(variable.id(), finding.object),
            (None, Some(process)) if named.is_none() => here.process_history(process),
            _ => here.on(Screen::Groups),
        })
    }

    /// When the selected finding happened; none if that is not in the run.
    pub(super) fn range(&self, extent: TimeRange) -> Option<TimeRange> {
        let finding = self.selected_finding()?;
        let range = TimeRange {
            from: Nanos(finding.from_ns).max(extent.from),
            to: Nanos(finding.to_ns).min(extent.to),
        };
        (range.from < range.to).then_some(range)
    }

    /// The selection among the findings, and their number.
    pub(super) fn findings_list(&mut self) -> (&mut List, usize) {
        self.findings.list()
    }

    /// The selection among the processes of the group view, and their number.
    pub(super) fn processes_list(&mut self) -> (&mut List, usize) {
        let part = self.part.as_ref();
        let length = part.map_or(0, |p| p.analysis.groups.aps.len());
        (&mut self.processes, length)
    }

    /// Moves the variables of the group view by this many columns.
    pub(super) fn scroll(&mut self, by: isize) {
        let part = self.part.as_ref();
        let columns = part.map_or(0, |p| p.analysis.groups.variables.len());
        let to = self.column.saturating_add_signed(by);
        self.column = to.min(columns.saturating_sub(1));
    }

    /// Shows the proposed groups, or again those of today.
    pub(super) fn toggle_proposed(&mut self) {
        self.proposed = !self.proposed;
    }

    pub(super) fn take(&mut self, part: Box<Part>) {
        self.part = Some(part);
    }

    /// Lists the findings that the filter lets through again.
    pub(super) fn refresh(&mut self, passes: impl Fn(&str) -> bool) {
        let all = self.part.as_ref();
        let all = all.map_or(&[][..], |p| &p.analysis.findings);
        let key = |at: &usize| all.get(*at).map(|f| (f.kind, f.target()));
        self.findings.replace_by_key(shown(all, passes), key);
    }
}

/// Positions of the findings that a filter lets through by kind, target or process, in the order of the time they cost.
fn shown(all: &[Finding], passes: impl Fn(&str) -> bool) -> Vec<usize> {
    let listed = |f: &Finding| {
        let words = format!("{} {} {}", f.kind, f.target(), f.aps.join(" "));
        passes(&words)
    };
    let mut shown: Vec<usize> = (0..all.len()).filter(|&i| listed(&all[i])).collect();
    shown.sort_by(|&a, &b| all[b].severity.total_cmp(&all[a].severity));
    shown
}

/// The process time that a finding says is lost: its severity of the time of all processes.
pub fn time_lost(finding: &Finding, analysed: &Part, processes: usize) -> Nanos {
    let all = analysed.range.length().0 as f64 * processes.max(1) as f64;
    Nanos((finding.severity * all).max(0.0) as u64)
}
