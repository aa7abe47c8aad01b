//! What the charts over time show: accesses by origin (the histogram), or what was done, in lanes (the histories).

use std::collections::BTreeSet;

use dosmos_proto::Nanos;
use dosmos_trace::Op;
use dosmos_trace::query::{
    Catalog, Completeness, Filter, Histogram, History, HistoryPoint, TimeRange,
};

use super::event::{self, EventDetail, EventQuery};
use super::lanes::{self, Lane, LaneKey};
use super::list::{List, Rows};
use super::question::Charted;
use super::screen::{Place, Screen};
use super::window::Scale;

/// The answers that charts draw, and the lanes worked out from them.
#[derive(Clone, Debug, Default)]
pub struct Charts {
    op: Option<Op>,
    histogram: Option<Charted<Histogram>>,
    history: Option<Charted<History>>,
    lanes: Rows<Lane>,
    /// Lanes seen so far of the place shown.
    known: BTreeSet<LaneKey>,
    /// The event that was stepped to.
    chosen: Option<HistoryPoint>,
    /// What is known of the event that was looked at last.
    detail: Option<(EventQuery, EventDetail)>,
}

impl Charts {
    /// Only this operation is shown.
    pub fn op(&self) -> Option<Op> {
        self.op
    }

    /// The histogram shown.
    pub fn histogram(&self) -> Option<&Charted<Histogram>> {
        self.histogram.as_ref()
    }

    /// The history shown.
    pub fn history(&self) -> Option<&Charted<History>> {
        self.history.as_ref()
    }

    /// Lanes of the history.
    pub fn lanes(&self) -> &Rows<Lane> {
        &self.lanes
    }

    /// What is missing in the answers.
    pub fn completeness(&self) -> impl Iterator<Item = &Completeness> {
        let histogram = self.histogram.iter().map(|h| &h.answer.completeness);
        histogram.chain(self.history.iter().map(|h| &h.answer.completeness))
    }

    /// The records that the chart of a place is about.
    pub(super) fn filter(&self, shown: Place, scale: Scale) -> Filter {
        // A histogram counts accesses to variables; arriving at a barrier is none.
        let all = match shown.screen {
            Screen::Histogram => &Op::ALL[..4],
            _ => &[],
        };
        let mut filter = Filter {
            range: Some(scale.range()),
            ops: self.op.map_or_else(|| all.to_vec(), |op| vec![op]),
            ..Filter::default()
        };
        if shown.screen == Screen::ProcessHistory {
            filter.aps.extend(shown.process);
        } else if let Some(variable) = shown.variable {
            filter.variables.push(variable);
            filter.object = shown.object;
        }
        filter
    }

    /// Where the selected lane leads to.
    pub(super) fn opens(&self, here: Place) -> Option<Place> {
        match self.lanes.selected()?.key {
            LaneKey::Ap(ap) => Some(here.process_history(ap)),
            LaneKey::Object(object) => Some(here.variable_history(object.var, Some(object.index))),
            LaneKey::Barrier(_) | LaneKey::SeveralAps | LaneKey::SeveralObjects => None,
        }
    }

    /// The points of the selected lane, in order of their start.
    fn points(&self, by_process: bool) -> impl Iterator<Item = &HistoryPoint> {
        let lane = self.lanes.selected().map(|lane| lane.key);
        let points = self.history.iter().flat_map(|h| &h.answer.points);
        points.filter(move |p| Some(lanes::lane_of(p, by_process)) == lane)
    }

    /// The event of the selected lane at the cursor.
    pub(super) fn event(&self, cursor: Nanos, by_process: bool) -> Option<&HistoryPoint> {
        let mut points = self.points(by_process);
        if let Some(chosen) = self.chosen.filter(|c| c.start == cursor)
            && let Some(point) = points.find(|p| **p == chosen)
        {
            return Some(point);
        }
        let scale = self.history.as_ref()?.scale;
        let (from, to) = scale.bounds(scale.column(cursor))?;
        let column = TimeRange { from, to };
        event::at_cursor(self.points(by_process), cursor, column)
    }

    /// Chooses the event of the selected lane `by` (1 or -1) from the one at the cursor: when it begins. Without a
    /// cursor the first or the last one.
    pub(super) fn step_event(
        &mut self,
        cursor: Option<Nanos>,
        by: isize,
        by_process: bool,
    ) -> Option<Nanos> {
        let points: Vec<HistoryPoint> = self.points(by_process).copied().collect();
        let at = cursor.and_then(|cursor| self.event(cursor, by_process).copied());
        let at = at.and_then(|event| points.iter().position(|p| *p == event));
        let next = match (at, cursor) {
            (Some(at), _) => at.checked_add_signed(by),
            (None, Some(cursor)) => {
                let after = points.partition_point(|p| p.start <= cursor);
                if by > 0 {
                    Some(after)
                } else {
                    after.checked_sub(1)
                }
            }
            (None, None) if by > 0 => Some(0),
            (None, None) => points.len().checked_sub(1),
        };
        self.chosen = next.and_then(|at| points.get(at).copied());
        self.chosen.map(|p| p.start)
    }

    /// What is known of the event looked at last.
    pub fn detail(&self) -> Option<&(EventQuery, EventDetail)> {
        self.detail.as_ref()
    }

    pub(super) fn take_detail(&mut self, query: EventQuery, detail: EventDetail) {
        self.detail = Some((query, detail));
    }

    /// The selection among the lanes, and their number.
    pub(super) fn list(&mut self) -> (&mut List, usize) {
        self.lanes.list()
    }

    /// Shows only this operation; none: all.
    pub(super) fn only(&mut self, op: Option<Op>) {
        self.op = op;
        self.histogram = None;
        self.history = None;
    }

    /// Shows only this operation; all if it does already.
    pub(super) fn toggle(&mut self, op: Op) {
        self.only((self.op != Some(op)).then_some(op));
    }

    /// Forgets what is shown, for another place.
    pub(super) fn clear(&mut self) {
        *self = Self {
            op: self.op,
            ..Self::default()
        };
    }

    pub(super) fn take_histogram(&mut self, answer: Histogram, scale: Scale) {
        self.histogram = Some(Charted { answer, scale });
    }

    pub(super) fn take_history(&mut self, answer: History, scale: Scale) {
        self.history = Some(Charted { answer, scale });
    }

    /// Works out the lanes again, by process or by object, of those that the filter lets through.
    pub(super) fn refresh(
        &mut self,
        catalog: &Catalog,
        by_process: bool,
        passes: impl Fn(&str) -> bool,
    ) {
        let Some(history) = &self.history else {
            return self.lanes.clear();
        };
        let known = self.known.iter().copied();
        let mut lanes = lanes::lanes(&history.answer, catalog, history.scale, by_process, known);
        self.known.extend(lanes.iter().map(|l| l.key));
        lanes.retain(|lane| passes(&lane.label));
        self.lanes.replace_by_key(lanes, |lane| lane.key);
    }
}
