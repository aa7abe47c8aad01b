//! The critical path, and who was waited for why: in the findings view, in place of the findings.

use dosmos_analysis::{Analysis, Delay, PathPart};
use dosmos_proto::{ApId, Topology};

use super::command::object_named;
use super::list::{List, Rows};

/// Of the path or of process time, what is less is not listed.
const LISTED: f64 = 0.005;

/// What can be selected.
#[derive(Clone, Debug, PartialEq)]
pub enum PathRow {
    /// What a process did on the critical path.
    Part(PathPart),
    /// What waits for a process cost, for one cause.
    Delay(Delay),
}

/// Where a row leads to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Leads {
    /// To the history of a process.
    Process(ApId),
    /// To the history of a variable, or of one of its objects.
    Variable(String, Option<u32>),
}

/// The parts of the path and, behind them, the delays; and whether they are shown.
#[derive(Clone, Debug, Default)]
pub struct PathRows {
    rows: Rows<PathRow>,
    parts: usize,
    shown: bool,
}

impl PathRows {
    /// Whether they are shown in place of the findings.
    pub fn shown(&self) -> bool {
        self.shown
    }

    /// Shows them, or again the findings.
    pub(super) fn toggle(&mut self) {
        self.shown = !self.shown;
    }

    /// Both kinds of rows: first the parts of the path, then the delays.
    pub fn rows(&self) -> &Rows<PathRow> {
        &self.rows
    }

    /// How many of the rows are parts of the path.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// The selection, and the number of rows.
    pub(super) fn list(&mut self) -> (&mut List, usize) {
        self.rows.list()
    }

    /// The delays from the selected one on: the process that was waited for waited itself for the next one's.
    pub fn chain<'a>(&self, delays: &'a [Delay]) -> Vec<&'a Delay> {
        let Some(PathRow::Delay(selected)) = self.rows.selected() else {
            return Vec::new();
        };
        let mut chain: Vec<&Delay> = delays.iter().filter(|d| *d == selected).collect();
        while let Some(next) = chain.last().and_then(|last| cause(last, delays))
            && !chain.contains(&next)
        {
            chain.push(next);
        }
        chain
    }

    /// Lists what the filter lets through of an analysis again.
    pub(super) fn refresh(&mut self, analysis: Option<&Analysis>, passes: impl Fn(&str) -> bool) {
        let path = analysis.and_then(|a| a.critical_path.as_ref());
        let parts = path.iter().flat_map(|path| &path.parts);
        let parts = parts.filter(|p| p.share >= LISTED && passes(&words_of_part(p)));
        let mut rows: Vec<PathRow> = parts.cloned().map(PathRow::Part).collect();
        self.parts = rows.len();
        let delays = analysis.map_or(&[][..], |a| &a.delays).iter();
        let delays = delays.filter(|d| d.share >= LISTED && passes(&words_of_delay(d)));
        rows.extend(delays.cloned().map(PathRow::Delay));
        self.rows.replace_by_key(rows, key);
    }

    /// Where the selected row leads to: what was waited for, otherwise the process.
    pub(super) fn leads(&self, topology: &Topology) -> Option<Leads> {
        let process = |name: Option<&String>| {
            let ap = topology.find_ap(name?)?;
            Some(Leads::Process(ap))
        };
        let variable = |name: &str| {
            let (name, object) = object_named(name);
            Some(Leads::Variable(name, object))
        };
        match self.rows.selected()? {
            PathRow::Part(part) => match (part.doing, &part.of) {
                ("access" | "remote" | "lock", Some(of)) => variable(of),
                _ => process(part.process.as_ref()),
            },
            PathRow::Delay(delay) => match (delay.because, delay.at) {
                ("held", _) => variable(delay.because_of.as_ref()?),
                ("late", _) => process(delay.because_by.as_ref().or(delay.process.as_ref())),
                (_, "barrier") => process(delay.process.as_ref()),
                _ => variable(&delay.of),
            },
        }
    }
}

/// The delay in which the process that `delay` waited for waited itself.
fn cause<'a>(delay: &Delay, delays: &'a [Delay]) -> Option<&'a Delay> {
    let (by, of) = (delay.because_by.as_ref()?, delay.because_of.as_ref()?);
    delays
        .iter()
        .find(|d| d.process.as_ref() == Some(by) && d.of == *of)
}

/// Variables that the rows of an analysis name.
pub(crate) fn variables_named(analysis: &Analysis) -> impl Iterator<Item = String> + '_ {
    let path = analysis.critical_path.iter();
    let of_parts = path.flat_map(|path| &path.parts);
    let of_parts = of_parts.filter_map(|part| part.of.as_ref());
    let delays = analysis.delays.iter();
    let of_delays = delays.flat_map(|d| std::iter::once(&d.of).chain(&d.because_of));
    of_parts.chain(of_delays).map(|name| object_named(name).0)
}

fn words_of_part(part: &PathPart) -> String {
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    format!("{} {} {}", part.doing, name(&part.process), name(&part.of))
}

fn words_of_delay(delay: &Delay) -> String {
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    let because = [&delay.process, &delay.because_of, &delay.because_by].map(name);
    format!(
        "{} {} {} {} {}",
        delay.at,
        delay.because,
        because.join(" "),
        delay.of,
        delay.waiting.join(" ")
    )
}

/// What stays selected when figures change.
fn key(row: &PathRow) -> [Option<String>; 4] {
    match row {
        PathRow::Part(p) => [
            Some(p.doing.to_owned()),
            p.process.clone(),
            p.of.clone(),
            None,
        ],
        PathRow::Delay(d) => [
            Some(format!("{} {}", d.at, d.because)),
            d.process.clone(),
            Some(d.of.clone()),
            d.because_of.clone(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `process` was waited for at `of`, because it waited for `because_of` that `by` held; none: it computed.
    fn delay(process: &str, of: &str, because: Option<(&str, &str)>) -> Delay {
        Delay {
            process: Some(process.to_owned()),
            at: "lock",
            of: of.to_owned(),
            because: if because.is_some() {
                "held"
            } else {
                "computing"
            },
            because_of: because.map(|(of, _)| of.to_owned()),
            because_by: because.map(|(_, by)| by.to_owned()),
            waiting: Vec::new(),
            times: 1,
            waited_ns: 1,
            share: 0.5,
            path_share: None,
            text: String::new(),
        }
    }

    fn chain(delays: &[Delay]) -> Vec<&str> {
        let mut rows = PathRows::default();
        let all = delays.iter().cloned().map(PathRow::Delay).collect();
        rows.rows.replace(all);
        let chain = rows.chain(delays).into_iter();
        chain
            .filter_map(|d| delays.iter().find(|o| *o == d)?.process.as_deref())
            .collect()
    }

    #[test]
    fn the_cause_of_the_cause_is_followed_to_its_end_and_not_in_a_circle() {
        let first = delay("ap3", "barrier solve", Some(("forces[2]", "ap1")));
        let second = delay("ap1", "forces[2]", Some(("sum[0]", "ap0")));
        let other = delay("ap1", "sum[0]", None);
        let last = delay("ap0", "sum[0]", None);
        let all = [first.clone(), other, last, second];
        assert_eq!(chain(&all), ["ap3", "ap1", "ap0"]);
        let back = delay("ap1", "forces[2]", Some(("sum[0]", "ap0")));
        let again = delay("ap0", "sum[0]", Some(("forces[2]", "ap1")));
        assert_eq!(chain(&[first, back, again]), ["ap3", "ap1", "ap0"]);
    }
}
