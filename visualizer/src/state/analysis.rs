//! The last analysis, as two views show it: its findings, and its groups; and in numbers, as the header shows it.

use dosmos_analysis::{Finding, Kind, Level};
use dosmos_client::Part;
use dosmos_proto::Nanos;
use dosmos_trace::query::{Catalog, TimeRange};

use super::list::{List, Rows};
use super::output::Output;
use super::screen::{Place, Screen};

/// The last analysis, with what is selected in it.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// Of the usual part of the run.
    usual: Option<Box<Part>>,
    /// Of a part that was chosen.
    chosen: Option<(TimeRange, Box<Part>)>,
    /// The part shown; none: the usual one.
    scope: Option<TimeRange>,
    error: Option<String>,
    findings: Rows<usize>,
    processes: List,
    column: usize,
    proposed: bool,
}

impl Analysis {
    /// What was analysed, and what was found.
    pub fn part(&self) -> Option<&Part> {
        of_scope(self.scope, self.usual.as_deref(), self.chosen.as_ref())
    }

    /// Why there is no newer analysis; none if there is.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Number of findings in the usual part of the run by level; none as long as no record has been looked at.
    pub fn levels(&self) -> Option<[(Level, usize); 3]> {
        let part = self.usual.as_ref().filter(|part| part.records > 0)?;
        let findings = &part.analysis.findings;
        let of = |level| findings.iter().filter(|f| f.level() == level).count();
        Some(Level::ALL.map(|level| (level, of(level))))
    }

    /// Positions of the findings that the filter lets through.
    pub fn findings(&self) -> &Rows<usize> {
        &self.findings
    }

    /// Copies the change of the cluster file that the selected finding advises.
    pub(super) fn copy_patch(&self, output: &mut Output) {
        match self.selected_finding().map(|f| f.patch.clone()) {
            Some(Some(patch)) => output.copy(patch),
            Some(None) => {
                output.complain("this finding has no patch: follow its advice in the program");
            }
            None => output.complain("no finding is selected"),
        }
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

    /// Where the evidence of the selected finding is: of a bad group in the group view, else in the history of the
    /// variable if it names one, otherwise of the first process it names.
    pub(super) fn opens(&self, here: Place, catalog: &Catalog) -> Option<Place> {
        let finding = self.selected_finding()?;
        if finding.kind == Kind::BadGroup {
            return Some(here.on(Screen::Groups));
        }
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

    /// Shows the group view where the evidence of the selected finding is: at the first process and the first variable it
    /// names.
    pub(super) fn point_at_evidence(&mut self) {
        let Some(finding) = self.selected_finding() else {
            return;
        };
        let (ap, variable) = (finding.aps.first().cloned(), finding.variable.clone());
        let Some(part) = self.part() else { return };
        let matrix = &part.analysis.groups;
        let row = matrix.order(self.proposed);
        let row = row
            .iter()
            .position(|&at| Some(&matrix.aps[at].name) == ap.as_ref());
        let columns = matrix.by_use();
        let column = columns
            .iter()
            .position(|&at| Some(&matrix.variables[at].name) == variable.as_ref());
        self.processes.select(row.unwrap_or(0));
        self.column = column.unwrap_or(0);
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
        let part = self.part();
        let length = part.map_or(0, |p| p.analysis.groups.aps.len());
        (&mut self.processes, length)
    }

    /// Moves the variables of the group view by this many columns.
    pub(super) fn scroll(&mut self, by: isize) {
        let part = self.part();
        let columns = part.map_or(0, |p| p.analysis.groups.variables.len());
        let to = self.column.saturating_add_signed(by);
        self.column = to.min(columns.saturating_sub(1));
    }

    /// Shows the proposed groups, or again those of today.
    pub(super) fn toggle_proposed(&mut self) {
        self.proposed = !self.proposed;
    }

    pub(super) fn take(&mut self, scope: Option<TimeRange>, result: Result<Box<Part>, String>) {
        self.error = match (result, scope) {
            (Ok(part), None) => {
                self.usual = Some(part);
                None
            }
            (Ok(part), Some(scope)) => {
                self.chosen = Some((scope, part));
                None
            }
            (Err(why), _) => Some(why),
        };
    }

    /// Lists the findings in this part of the run (none: the usual one) that the filter lets through again.
    pub(super) fn refresh(&mut self, scope: Option<TimeRange>, passes: impl Fn(&str) -> bool) {
        self.scope = scope;
        let part = of_scope(scope, self.usual.as_deref(), self.chosen.as_ref());
        let all = part.map_or(&[][..], |part| &part.analysis.findings);
        let key = |at: &usize| all.get(*at).map(|f| (f.kind, f.target()));
        self.findings.replace_by_key(shown(all, passes), key);
    }
}

fn of_scope<'a>(
    scope: Option<TimeRange>,
    usual: Option<&'a Part>,
    chosen: Option<&'a (TimeRange, Box<Part>)>,
) -> Option<&'a Part> {
    let Some(scope) = scope else {
        return usual;
    };
    let chosen = chosen.filter(|(of, _)| *of == scope);
    chosen.map(|(_, part)| &**part)
}

/// Positions of the findings that a filter lets through by kind, target or process, in the order of the time they cost.
fn shown(all: &[Finding], passes: impl Fn(&str) -> bool) -> Vec<usize> {
    let listed = |f: &Finding| {
        let words = format!("{} {} {}", f.kind, f.target(), f.aps.join(" "));
        passes(&words)
    };
    let mut shown: Vec<usize> = (0..all.len()).filter(|&i| listed(&all[i])).collect();
    // Whether the results are right comes before how long they take.
    let first = |f: &Finding| f.kind != Kind::DataRace;
    shown.sort_by(|&a, &b| {
        let (a, b) = (&all[a], &all[b]);
        let by_cost = b.severity.total_cmp(&a.severity);
        first(a).cmp(&first(b)).then(by_cost)
    });
    shown
}

/// The process time that a finding says is lost: its severity of the time of all processes.
pub fn time_lost(finding: &Finding, analysed: &Part, processes: usize) -> Nanos {
    let all = analysed.range.length().0 as f64 * processes.max(1) as f64;
    Nanos((finding.severity * all).max(0.0) as u64)
}
