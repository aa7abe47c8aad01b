//! `dosmos-bench kernels`: the sweeps of MAD, SAD and BAD (docs/design/models.md#workload-kernels) on real processes.

pub(super) mod figure;
pub(super) mod plot;
pub(super) mod sweeps;

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, bail};
use dosmos_cli::args::Format;
use dosmos_cli::output::{self, Table};
use dosmos_examples::kernels::{BarrierOutcome, Experiment, Outcome};
use serde_json::{Value, json};

use crate::args::KernelsArgs;
use crate::machine::machine;
use crate::run::{json_lines, run_on};
use crate::statistics::spread;
use figure::Figure;
use sweeps::Sweep;

/// The sweep of barriers, which has clusters of its own.
const BARRIERS: &str = "bad";
/// Barriers of each kind.
const BARRIER_ROUNDS: &str = "200";
/// Microseconds between one process's arrival and the next's.
const SKEWS: &str = "0,100,1000";

pub(crate) async fn run(args: KernelsArgs) -> anyhow::Result<()> {
    let all = sweeps::all(args.max_n);
    if args.list {
        list(&all);
        return Ok(());
    }
    if args.max_n == 0 || args.time == 0 || args.repeats == 0 {
        bail!("--max-n, --time and --repeats must be at least 1");
    }
    let known = |name: &String| name == BARRIERS || all.iter().any(|s| s.name == name);
    if let Some(unknown) = args.sweeps.iter().find(|n| !known(n)) {
        bail!("there is no sweep {unknown}; `dosmos-bench kernels --list` names them");
    }
    let chosen = |name: &str| args.sweeps.is_empty() || args.sweeps.iter().any(|n| n == name);
    let mut figures = Vec::new();
    for sweep in all.iter().filter(|s| chosen(s.name)) {
        output::note(&format!("{}: {}", sweep.name, sweep.about));
        let measured = measure(sweep, &args).await?;
        if let Some(dir) = &args.plot {
            write_curves(dir, sweep, &measured)?;
        }
        figures.extend(measured);
    }
    let mut barriers = Vec::new();
    if chosen(BARRIERS) {
        output::note("bad: barriers");
        barriers = measure_barriers(args.max_n + 1).await?;
    }
    print(args.format, &figures, &barriers)
}

fn write_curves(dir: &Path, sweep: &Sweep, figures: &[Figure]) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let chart = plot::of_sweep(sweep.name, sweep.about, sweep.varied, figures);
    let path = dir.join(format!("{}.svg", sweep.name));
    std::fs::write(&path, chart.svg()?).with_context(|| format!("cannot write {}", path.display()))
}

fn list(all: &[Sweep]) {
    for sweep in all {
        let (name, about, varied) = (sweep.name, sweep.about, sweep.varied);
        output::text(&format!("{name:12} {about:36} varied: {varied}\n"));
    }
    output::text("bad          barriers, by kind                    varied: processes, skew\n");
}

pub(super) async fn measure(sweep: &Sweep, args: &KernelsArgs) -> anyhow::Result<Vec<Figure>> {
    let experiments: Vec<&Experiment> = sweep.points.iter().map(|p| &p.experiment).collect();
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("experiments.json");
    std::fs::write(&file, serde_json::to_string(&experiments)?)?;
    let (file, time, repeats) = (
        file.display().to_string(),
        args.time.to_string(),
        args.repeats.to_string(),
    );
    let app = [
        "kernels",
        "--experiments",
        &file,
        "--time",
        &time,
        "--repeats",
        &repeats,
    ];
    let said = run_on(&cluster(args.max_n + 1), &app).await?;
    let outcomes: Vec<Outcome> = json_lines(&said)?;
    let places: HashMap<&str, _> = sweep
        .points
        .iter()
        .map(|p| (p.experiment.name.as_str(), (&p.series, p.x)))
        .collect();
    outcomes
        .into_iter()
        .map(|outcome| {
            let place = places.get(outcome.name.as_str());
            let (series, x) = place.with_context(|| format!("who asked for {}?", outcome.name))?;
            Ok(Figure {
                sweep: sweep.name,
                series: (*series).clone(),
                x: *x,
                outcome,
            })
        })
        .collect()
}

pub(super) async fn measure_barriers(most: usize) -> anyhow::Result<Vec<BarrierOutcome>> {
    let mut outcomes = Vec::new();
    let mut processes = 2;
    while processes <= most {
        let app = ["kernels", "--barriers", BARRIER_ROUNDS, "--skew", SKEWS];
        let said = run_on(&cluster(processes), &app).await?;
        outcomes.extend(json_lines::<BarrierOutcome>(&said)?);
        processes *= 2;
    }
    Ok(outcomes)
}

/// Two groups of two memory processes, application processes dealt out in turn: the test process is at
/// `mp0`, and each further one at the next.
fn cluster(processes: usize) -> String {
    let mut text = "name = \"kernels\"\n[defaults]\nlisten = \"unix\"\n".to_owned();
    let mut add = |line: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
    };
    for group in ["north", "south"] {
        add(format!("[[group]]\nname = \"{group}\""));
    }
    add("[[emp]]\nname = \"emp0\"".into());
    for i in 0..4 {
        let group = if i < 2 { "north" } else { "south" };
        add(format!(
            "[[mp]]\nname = \"mp{i}\"\ngroup = \"{group}\"\nemp = \"emp0\""
        ));
    }
    for i in 0..processes {
        add(format!("[[ap]]\nname = \"ap{i}\"\nmp = \"mp{}\"", i % 4));
    }
    text
}

fn print(format: Format, figures: &[Figure], barriers: &[BarrierOutcome]) -> anyhow::Result<()> {
    if let Format::Json = format {
        let all = json!({
            "machine": machine(),
            "grains": figures.iter().map(item).collect::<Vec<_>>(),
            "barriers": barriers.iter().map(barrier_item).collect::<Vec<_>>(),
        });
        output::text(&(serde_json::to_string_pretty(&all)? + "\n"));
        return Ok(());
    }
    let mut text = format!("{}\n", machine());
    if !figures.is_empty() {
        text += &format!("\n{}", grain_table(figures).render(format));
    }
    if !barriers.is_empty() {
        text += &format!("\n{}", barrier_table(barriers).render(format));
    }
    output::text(&text);
    Ok(())
}

fn item(f: &Figure) -> Value {
    let o = &f.outcome;
    json!({
        "sweep": f.sweep, "series": f.series, "x": f.x, "n": o.n, "grains": o.grains,
        "t_ns": o.t_ns, "efficiency": o.efficiency, "interference": o.interference,
        "words_per_second": o.words_per_second,
    })
}

fn barrier_item(b: &BarrierOutcome) -> Value {
    let [min, median, max] = spread(b.t_ns.clone());
    json!({
        "kind": b.kind, "processes": b.processes, "skew_us": b.skew_us, "rounds": b.t_ns.len(),
        "t_ns": { "min": min, "median": median, "max": max },
    })
}

pub(super) fn grain_table(figures: &[Figure]) -> Table {
    let mut table = Table::new(&[
        "sweep", "series", "x", "N", "T (µs)", "spread", "ξ", "θ", "spread", "words/s",
    ]);
    for f in figures {
        let o = &f.outcome;
        let micros = o.t_ns.iter().map(|t| t / 1e3).collect();
        let [least, time, most] = spread(micros);
        let [_, efficiency, _] = spread(o.efficiency.clone());
        let [low, interference, high] = spread(o.interference.clone());
        let [_, rate, _] = spread(o.words_per_second.clone());
        table.row([
            f.sweep.to_owned(),
            f.series.clone(),
            f.x.to_string(),
            o.n.to_string(),
            format!("{time:.1}"),
            format!("{least:.1}–{most:.1}"),
            format!("{efficiency:.3}"),
            format!("{interference:.2}"),
            format!("{low:.2}–{high:.2}"),
            format!("{rate:.0}"),
        ]);
    }
    table
}

pub(super) fn barrier_table(barriers: &[BarrierOutcome]) -> Table {
    let mut table = Table::new(&[
        "barrier",
        "processes",
        "skew (µs)",
        "T_B (µs)",
        "spread",
        "rounds",
    ]);
    for b in barriers {
        let [min, median, max] = spread(b.t_ns.iter().map(|t| t / 1e3).collect());
        table.row([
            format!("{:?}", b.kind).to_lowercase(),
            b.processes.to_string(),
            b.skew_us.to_string(),
            format!("{median:.1}"),
            format!("{min:.1}–{max:.1}"),
            b.t_ns.len().to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosmos_cli::config::Cluster;

    #[test]
    fn the_cluster_has_as_many_processes_as_asked_for() {
        let cluster = Cluster::parse(&cluster(9)).unwrap();
        assert_eq!(cluster.topology.application_processes().len(), 9);
        assert_eq!(cluster.topology.groups().len(), 2);
    }
}
