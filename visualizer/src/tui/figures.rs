//! The numbers on the screen as a table.

use dosmos_analysis::GainFrom;
use dosmos_analysis::efficiency::Instead;
use dosmos_client::text;

use crate::state::health::Row as HealthRow;
use crate::state::{PathRow, Screen, State};

/// The numbers on the screen as CSV, with a header line; times in nanoseconds since the start of the run.
pub fn csv(state: &State) -> String {
    let mut table = Table::default();
    match state.navigation.screen() {
        Screen::Overview if state.phases.shown() => phases(&mut table, state),
        Screen::Overview => overview(&mut table, state),
        Screen::Variables => variables(&mut table, state),
        Screen::Histogram => histogram(&mut table, state),
        Screen::VariableHistory | Screen::ProcessHistory => history(&mut table, state),
        Screen::Findings if state.path.shown() => path(&mut table, state),
        Screen::Findings => findings(&mut table, state),
        Screen::Groups => groups(&mut table, state),
        Screen::Health => health(&mut table, state),
    }
    text::csv(table.0)
}

#[derive(Default)]
struct Table(Vec<Vec<String>>);

impl Table {
    fn row<T: ToString>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells = cells.into_iter().map(|c| c.to_string());
        self.0.push(cells.collect());
    }
}

fn overview(table: &mut Table, state: &State) {
    table.row([
        "name",
        "depth",
        "accesses",
        "rate_per_s",
        "local",
        "intra",
        "inter",
        "dropped",
    ]);
    for row in state.tree.rows().iter() {
        let f = &row.figures;
        // Empty where not all of it is known.
        let told = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
        let [local, intra, inter] = [0, 1, 2].map(|at| told(f.origins.map(|o| o[at])));
        let rate = f.rate.map_or_else(String::new, |r| format!("{r:.1}"));
        let (depth, accesses) = (row.depth.to_string(), told(f.accesses.exactly()));
        let lost = told(f.dropped.exactly());
        table.row([
            row.label.clone(),
            depth,
            accesses,
            rate,
            local,
            intra,
            inter,
            lost,
        ]);
    }
}

fn phases(table: &mut Table, state: &State) {
    let figures = ["phase", "from_ns", "time_ns", "efficiency", "load_balance"];
    let lost = Instead::ALL.map(|to| format!("lost_to_{}", to.name().replace(' ', "_")));
    let figures = figures.map(str::to_owned).into_iter();
    table.row(figures.chain(["communication".to_owned()]).chain(lost));
    let start = state.data.extent().from;
    for phase in state.phases.rows().iter() {
        let e = &phase.efficiency;
        let name = std::iter::once(phase.name.clone());
        let whole = [(phase.range.from - start).0, e.span_ns];
        let shares = [e.parallel, e.load_balance, e.communication].into_iter();
        let shares = shares.chain(Instead::ALL.map(|to| e.lost_to(to)));
        let whole = whole.iter().map(u64::to_string);
        table.row(
            name.chain(whole)
                .chain(shares.map(|share| format!("{share:.4}"))),
        );
    }
}

fn variables(table: &mut Table, state: &State) {
    table.row([
        "variable",
        "type",
        "group",
        "owners",
        "objects",
        "copies",
        "reads",
        "cached_reads",
        "writes",
        "acquires",
        "delayed",
        "mean_wait_ns",
        "mean_hold_ns",
        "local",
        "intra",
        "inter",
    ]);
    for v in state.variables.rows() {
        let words = [&v.name, &v.layout, &v.group, &v.owners];
        let mut cells: Vec<String> = words.into_iter().cloned().collect();
        let counts = [
            v.objects,
            v.copies,
            v.reads,
            v.reads_copies,
            v.writes,
            v.acquires,
            v.delayed,
        ];
        cells.extend(counts.iter().map(u64::to_string));
        let mean = |t: Option<dosmos_proto::Nanos>| t.map_or_else(String::new, |t| t.0.to_string());
        cells.extend([mean(v.wait), mean(v.hold)]);
        cells.extend(v.origins.iter().map(u64::to_string));
        table.row(cells);
    }
}

fn histogram(table: &mut Table, state: &State) {
    table.row(["from_ns", "to_ns", "local", "intra", "inter", "cached"]);
    let Some(charted) = state.charts.histogram() else {
        return;
    };
    let per = charted.scale.per_column.0;
    for (i, b) in (0u64..).zip(&charted.answer.buckets) {
        let first = (charted.scale.from - charted.scale.start).0;
        let from = first.saturating_add(i.saturating_mul(per));
        let to = from.saturating_add(per);
        table.row([from, to, b.local, b.intra, b.inter, b.optimized]);
    }
}

fn history(table: &mut Table, state: &State) {
    table.row([
        "start_ns",
        "duration_ns",
        "wait_ns",
        "op",
        "origin",
        "cached",
        "process",
        "variable",
        "object",
        "count",
    ]);
    let Some(charted) = state.charts.history() else {
        return;
    };
    let catalog = &state.data.catalog;
    let start = state.data.extent().from;
    for p in &charted.answer.points {
        // What the accesses of a gathered point differ in is left out.
        let one = |several: bool, name: String| if several { String::new() } else { name };
        let objects = p.several.objects;
        table.row([
            (p.start - start).0.to_string(),
            p.duration.0.to_string(),
            p.wait.0.to_string(),
            one(p.several.ops, p.op.to_string()),
            p.origin.to_string(),
            p.optimized.to_string(),
            one(p.several.aps, catalog.topology.ap_name(p.ap)),
            one(objects, catalog.name_of(p.object.var)),
            one(objects, p.object.index.to_string()),
            p.count.to_string(),
        ]);
    }
}

fn findings(table: &mut Table, state: &State) {
    table.row([
        "kind",
        "target",
        "severity",
        "projected_gain",
        "gain_from",
        "completeness",
        "processes",
        "groups",
        "from_ns",
        "to_ns",
        "advice",
    ]);
    let Some(analysed) = state.analysis.part() else {
        return;
    };
    let start = state.data.extent().from.0;
    for &i in state.analysis.findings().iter() {
        let f = &analysed.analysis.findings[i];
        let gain = f
            .predicted_gain
            .map_or_else(String::new, |g| format!("{g:.4}"));
        let from = match f.gain_from {
            None => "",
            Some(GainFrom::Replay) => "replay",
            Some(GainFrom::Costs) => "costs",
        };
        table.row([
            f.kind.to_string(),
            f.target(),
            format!("{:.4}", f.severity),
            gain,
            from.to_owned(),
            format!("{:.4}", f.completeness),
            f.aps.join(" "),
            f.groups.join(" "),
            f.from_ns.saturating_sub(start).to_string(),
            f.to_ns.saturating_sub(start).to_string(),
            f.advice.clone(),
        ]);
    }
}

fn path(table: &mut Table, state: &State) {
    table.row([
        "row",
        "process",
        "doing",
        "of",
        "time_ns",
        "share",
        "at",
        "waiting",
        "times",
        "because_by",
    ]);
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    for row in state.path.rows().iter() {
        table.row(match row {
            PathRow::Part(p) => [
                "path".to_owned(),
                name(&p.process),
                p.doing.to_owned(),
                name(&p.of),
                p.time_ns.to_string(),
                format!("{:.4}", p.share),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
            ],
            PathRow::Delay(d) => [
                "waited for".to_owned(),
                name(&d.process),
                d.because.to_owned(),
                name(&d.because_of),
                d.waited_ns.to_string(),
                format!("{:.4}", d.share),
                d.of.clone(),
                d.waiting.join(" "),
                d.times.to_string(),
                name(&d.because_by),
            ],
        });
    }
}

fn groups(table: &mut Table, state: &State) {
    let Some(analysed) = state.analysis.part() else {
        return;
    };
    let m = &analysed.analysis.groups;
    let name = |g: usize| m.groups.get(g).cloned().unwrap_or_default();
    let titles = ["process", "group_current", "group_proposed"].map(str::to_owned);
    table.row(
        titles
            .into_iter()
            .chain(m.variables.iter().map(|v| v.name.clone())),
    );
    for (ap, accesses) in m.aps.iter().zip(&m.accesses) {
        let head = [ap.name.clone(), name(ap.today), name(ap.proposed)];
        table.row(head.into_iter().chain(accesses.iter().map(u64::to_string)));
    }
}

fn health(table: &mut Table, state: &State) {
    table.row([
        "name",
        "records",
        "dropped",
        "lag_ns",
        "pending",
        "cpu_ns",
        "monitor_ns",
        "clock_offset_ns",
        "clock_error_ns",
    ]);
    let time = |t: Option<dosmos_proto::Nanos>| t.map_or_else(String::new, |t| t.0.to_string());
    for row in state.health.iter() {
        match row {
            HealthRow::Manager(m) => {
                let (records, lost) = (m.records.to_string(), m.lost.to_string());
                let pending = m.pending.to_string();
                let none = String::new;
                let head = [m.name.clone(), records, lost, time(m.lag), pending];
                table.row(head.into_iter().chain([none(), none(), none(), none()]));
            }
            HealthRow::Process(p) => table.row([
                p.name.clone(),
                p.recorded.to_string(),
                p.lost.to_string(),
                time(p.lag),
                p.unsent.to_string(),
                time(p.cpu),
                p.monitor.0.to_string(),
                p.offset.to_string(),
                p.clock_error.0.to_string(),
            ]),
        }
    }
}
