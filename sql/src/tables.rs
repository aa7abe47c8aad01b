//! The small tables: `objects`, `variables`, `processes`, `phases`, `findings`, `runs`. Their figures are those of `dosmos query`,
//! `dosmos check` and `dosmos runs`, under the names that those have in JSON and CSV.

use std::collections::BTreeSet;
use std::path::PathBuf;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use dosmos_analysis::Thresholds;
use dosmos_client::{Run, RunFigures, network_here};
use dosmos_proto::{Component, MpId};
use dosmos_trace::query::table::sums_of;
use dosmos_trace::query::{MetaQuery, ProcessStatus};

use crate::sheet::{
    Kind, Rows, external, flag, fraction, number, number_or_null, schema, text, text_or_null,
};

/// `variables`: figures summed over the objects of each.
pub(crate) struct Variables(pub(crate) Run);

#[async_trait]
impl Rows for Variables {
    fn schema(&self) -> SchemaRef {
        let texts = ["variable", "layout", "element", "policy", "group", "owners"];
        let numbers = [
            "rows",
            "columns",
            "objects",
            "copies",
            "reads",
            "reads_on_copies",
            "writes",
            "acquires",
            "releases",
            "delayed",
            "wait_ns",
            "hold_ns",
            "time_ns",
            "p50_ns",
            "p99_ns",
            "max_ns",
        ];
        schema(
            texts
                .map(|t| (t, Kind::Text))
                .into_iter()
                .chain(numbers.map(|n| (n, Kind::Number))),
        )
    }

    async fn rows(&self) -> Result<Vec<Vec<ScalarValue>>> {
        let source = self.0.source();
        let catalog = source.catalog().await.map_err(external)?;
        let metas = source
            .meta_objects(&MetaQuery::default())
            .await
            .map_err(external)?;
        let mut sums = sums_of(&metas);
        let topology = &catalog.topology;
        let rows = catalog.variables.iter().map(|v| {
            let spec = v.spec();
            let its = sums.remove(&v.id()).unwrap_or_default();
            let owners: BTreeSet<&MpId> = v.owners().iter().collect();
            let owners: Vec<String> = owners.into_iter().map(|mp| topology.mp_name(*mp)).collect();
            let times = its.times.all();
            let quantile = |q| number_or_null(times.quantile(q).map(|t| t.0));
            vec![
                text(spec.name()),
                text(spec.layout().to_string()),
                text(spec.layout().element().to_string()),
                text(spec.policy().to_string()),
                text(topology.group_name(v.group())),
                text(owners.join(" ")),
                number(spec.layout().rows()),
                number(spec.layout().columns()),
                number(spec.layout().objects().into()),
                number(its.copies),
                number(its.reads()),
                number(its.reads_on_copies),
                number(its.counts.writes),
                number(its.counts.acquires),
                number(its.counts.releases),
                number(its.delayed),
                number(its.wait.0),
                number(its.hold.0),
                number(times.total.0),
                quantile(0.5),
                quantile(0.99),
                number(times.longest.0),
            ]
        });
        Ok(rows.collect())
    }
}

/// `objects`: one row per meta-object, as `dosmos query meta` lists them.
pub(crate) struct Objects(pub(crate) Run);

#[async_trait]
impl Rows for Objects {
    fn schema(&self) -> SchemaRef {
        let texts = ["variable", "kind", "at", "group"];
        let numbers = [
            "object",
            "copies",
            "reads",
            "reads_on_copies",
            "writes",
            "acquires",
            "releases",
            "delayed",
            "wait_ns",
            "hold_ns",
            "version",
        ];
        schema(
            texts
                .map(|t| (t, Kind::Text))
                .into_iter()
                .chain(numbers.map(|n| (n, Kind::Number))),
        )
    }

    async fn rows(&self) -> Result<Vec<Vec<ScalarValue>>> {
        let source = self.0.source();
        let catalog = source.catalog().await.map_err(external)?;
        let metas = source
            .meta_objects(&MetaQuery::default())
            .await
            .map_err(external)?;
        let topology = &catalog.topology;
        let primaries = metas.primaries.iter().map(|p| {
            vec![
                text(catalog.name_of(p.object.var)),
                text("primary"),
                text(topology.mp_name(p.owner)),
                text(topology.group_name(p.group)),
                number(p.object.index.into()),
                number(p.copies_at.len() as u64),
                number(p.counts.reads + p.reads_on_copies),
                number(p.reads_on_copies),
                number(p.counts.writes),
                number(p.counts.acquires),
                number(p.counts.releases),
                number(p.delayed),
                number(p.wait.0),
                number(p.hold.0),
                number(p.version),
            ]
        });
        let secondaries = metas.secondaries.iter().map(|s| {
            let group = topology.mp(s.copy_at).map(|m| topology.group_name(m.group));
            let mut row = vec![
                text(catalog.name_of(s.object.var)),
                text("secondary"),
                text(topology.mp_name(s.copy_at)),
                text_or_null(group),
                number(s.object.index.into()),
                number_or_null(None),
                number(s.reads),
                number(s.reads),
            ];
            row.resize(15, number_or_null(None));
            row
        });
        Ok(primaries.chain(secondaries).collect())
    }
}

/// `processes`: what they count is known while they run only.
pub(crate) struct Processes(pub(crate) Run);

#[async_trait]
impl Rows for Processes {
    fn schema(&self) -> SchemaRef {
        let texts = ["process", "kind", "group", "reports_to", "state"];
        let numbers = [
            "requests",
            "served",
            "forwarded",
            "recorded",
            "dropped",
            "cpu_ns",
        ];
        schema(
            texts
                .map(|t| (t, Kind::Text))
                .into_iter()
                .chain(numbers.map(|n| (n, Kind::Number))),
        )
    }

    async fn rows(&self) -> Result<Vec<Vec<ScalarValue>>> {
        let source = self.0.source();
        let catalog = source.catalog().await.map_err(external)?;
        let status = source.status().await.map_err(external)?;
        let known: Vec<&ProcessStatus> = status
            .event_managers
            .iter()
            .flat_map(|e| &e.processes)
            .collect();
        let topology = &catalog.topology;
        let memory = (0..)
            .map(MpId)
            .zip(topology.memory_processes())
            .map(|(id, mp)| {
                let state = known.iter().find(|p| p.mp == id);
                let count = |of: fn(&ProcessStatus) -> u64| number_or_null(state.map(|p| of(p)));
                let cpu = state.and_then(|p| p.counters.cpu);
                vec![
                    text(mp.name.as_str()),
                    text(if mp.link { "link" } else { "memory" }),
                    text(topology.group_name(mp.group)),
                    text(topology.emp_name(mp.event_manager)),
                    text_or_null(state.map(|p| if p.connected { "up" } else { "gone" }.to_owned())),
                    count(|p| p.counters.requests),
                    count(|p| p.counters.served),
                    count(|p| p.counters.forwarded),
                    count(|p| p.counters.recorded),
                    count(|p| p.counters.dropped),
                    number_or_null(cpu.map(|t| t.0)),
                ]
            });
        let applications = topology.application_processes().iter().map(|ap| {
            let mp = topology.mp(ap.memory_process);
            let mut row = vec![
                text(ap.name.as_str()),
                text("application"),
                text_or_null(mp.map(|m| topology.group_name(m.group))),
                text(topology.mp_name(ap.memory_process)),
                text_or_null(None),
            ];
            row.resize(11, number_or_null(None));
            row
        });
        Ok(memory.chain(applications).collect())
    }
}

/// `phases`: where the time of each application process went, phase by phase.
pub(crate) struct Phases(pub(crate) Run);

#[async_trait]
impl Rows for Phases {
    fn schema(&self) -> SchemaRef {
        let times = Component::ALL.map(|c| format!("{}_ns", c.name().replace([' ', '-'], "_")));
        let fixed = [
            ("process", Kind::Text),
            ("phase", Kind::Number),
            ("start_ns", Kind::Number),
            ("wall_ns", Kind::Number),
        ];
        let times = times.iter().map(|t| (t.as_str(), Kind::Number));
        schema(fixed.into_iter().chain(times))
    }

    async fn rows(&self) -> Result<Vec<Vec<ScalarValue>>> {
        let source = self.0.source();
        let topology = source.outline(true).await.map_err(external)?.topology;
        let breakdown = source.breakdown().await.map_err(external)?;
        let rows = breakdown.phases.iter().map(|p| {
            let mut row = vec![
                text(topology.ap_name(p.ap)),
                number(p.phase),
                number(p.start.0),
                number(p.wall.0),
            ];
            row.extend(Component::ALL.map(|c| number(p.spent.time(c).0)));
            row
        });
        Ok(rows.collect())
    }
}

/// `findings`: what `dosmos check` finds, with its default thresholds.
pub(crate) struct Findings(pub(crate) Run);

#[async_trait]
impl Rows for Findings {
    fn schema(&self) -> SchemaRef {
        schema([
            ("kind", Kind::Text),
            ("variable", Kind::Text),
            ("object", Kind::Number),
            ("aps", Kind::Text),
            ("groups", Kind::Text),
            ("from_ns", Kind::Number),
            ("to_ns", Kind::Number),
            ("severity", Kind::Fraction),
            ("lost_ns", Kind::Number),
            ("completeness", Kind::Fraction),
            ("predicted_gain", Kind::Fraction),
            ("advice", Kind::Text),
            ("patch", Kind::Text),
            ("evidence", Kind::Text),
        ])
    }

    async fn rows(&self) -> Result<Vec<Vec<ScalarValue>>> {
        let network = network_here(None).map_err(external)?;
        let found = self.0.analyse(None, &Thresholds::default(), network).await;
        let found = found.map_err(external)?.analysis.findings;
        let rows = found.into_iter().map(|f| {
            let evidence = serde_json::Value::Object(f.evidence).to_string();
            vec![
                text(f.kind.name()),
                text_or_null(f.variable),
                number_or_null(f.object.map(u64::from)),
                text(f.aps.join(" ")),
                text(f.groups.join(" ")),
                number(f.from_ns),
                number(f.to_ns),
                fraction(Some(f.severity)),
                number(f.lost_ns),
                fraction(Some(f.completeness)),
                fraction(f.predicted_gain),
                text(f.advice),
                text_or_null(f.patch),
                text(evidence),
            ]
        });
        Ok(rows.collect())
    }
}

/// `runs`: the runs of a folder, as `dosmos runs` lists them.
pub(crate) struct Runs(pub(crate) PathBuf);

#[async_trait]
impl Rows for Runs {
    fn schema(&self) -> SchemaRef {
        schema([
            ("run", Kind::Text),
            ("path", Kind::Text),
            ("program", Kind::Text),
            ("running", Kind::Flag),
            ("started_ns", Kind::Number),
            ("length_ns", Kind::Number),
            ("processes", Kind::Number),
            ("efficiency", Kind::Fraction),
            ("bytes", Kind::Number),
            ("complete", Kind::Flag),
            ("lacking", Kind::Text),
        ])
    }

    async fn rows(&self) -> Result<Vec<Vec<ScalarValue>>> {
        // Without the folder there are no runs in it.
        let entries = match self.0.exists() {
            true => dosmos_client::runs(&self.0).map_err(external)?,
            false => Vec::new(),
        };
        let mut rows = Vec::new();
        for entry in entries {
            let figures = match entry.running {
                true => RunFigures::default(),
                false => entry.figures().await.unwrap_or_else(|e| RunFigures {
                    efficiency: None,
                    lacking: vec![dosmos_client::text::with_causes(&e)],
                }),
            };
            let metadata = entry.launch.metadata();
            rows.push(vec![
                text(entry.name.as_str()),
                text(entry.path.display().to_string()),
                text_or_null(entry.launch.program()),
                flag(entry.running),
                number(entry.started.0),
                number_or_null(entry.length.map(|l| l.0)),
                number_or_null(metadata.map(|m| m.ranks.len() as u64)),
                fraction(figures.efficiency),
                number(entry.bytes()),
                flag(!entry.running && figures.lacking.is_empty()),
                text(figures.lacking.join("; ")),
            ]);
        }
        Ok(rows)
    }
}
