//! Locks and barriers as spans for [OpenTelemetry](https://opentelemetry.io): OTLP in its JSON encoding, one
//! `ExportTraceServiceRequest` per line, as the collector's `otlpjsonfile` receiver reads it and its file exporter writes it.
//!
//! * A resource per application process: `service.name` is its name, `service.namespace` that of the run.
//! * A span for each acquire, release and barrier, and one for each section, from the grant to the release. An acquire,
//!   its section and the release of that are one trace; so are all arrivals at one opening of a barrier.
//! * A link from a section to the section of another process whose release handed the lock over.
//! * What is missing: events of a last span over the whole run.
//!
//! Guarantees: every such operation and section is there, once; identifiers depend on the run and the operation alone, so two
//! exports of a run are the same bytes; memory holds open sections and some hundred spans. The records of all stores come
//! together, in the order of their starts.

mod ids;
pub mod schema;
mod spans;

use std::collections::BTreeMap;
use std::io::{self, Write};

use dosmos_proto::ApId;
use dosmos_trace::query::Completeness;
use dosmos_trace::record::Record;

use crate::{Export, Run};
use schema::{KeyValue, Resource, ResourceSpans, Scope, ScopeSpans, Span, TracesData};
use spans::Spans;

/// Spans per line: some 700 bytes each, and the collector's receiver cuts lines at 1 MiB unless told otherwise.
const BATCH: usize = 300;

/// Writes OTLP.
#[derive(Debug)]
pub struct Otlp<W> {
    out: W,
    spans: Spans,
    /// Spans that are not written yet.
    batch: Batch,
}

/// Spans by the process that they are of.
#[derive(Debug, Default)]
struct Batch {
    spans: BTreeMap<ApId, Vec<Span>>,
    count: usize,
}

impl Batch {
    fn add(&mut self, ap: ApId, span: Span) {
        self.spans.entry(ap).or_default().push(span);
        self.count += 1;
    }
}

impl<W: Write> Otlp<W> {
    /// Writes to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        Self {
            out,
            spans: Spans::default(),
            batch: Batch::default(),
        }
    }

    fn flush(&mut self, run: &Run) -> io::Result<()> {
        let batch = std::mem::take(&mut self.batch);
        if batch.count == 0 {
            return Ok(());
        }
        let of_process = |(ap, spans)| of_resource(process(run, ap), spans);
        let resource_spans = batch.spans.into_iter().map(of_process).collect();
        self.line(&TracesData { resource_spans })
    }

    fn line(&mut self, data: &TracesData) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, data)?;
        self.out.write_all(b"\n")
    }
}

impl<W: Write> Export for Otlp<W> {
    fn begin(&mut self, run: &Run) -> io::Result<()> {
        self.spans = Spans::of(run);
        Ok(())
    }

    fn in_order_of_start(&self) -> bool {
        true
    }

    fn record(&mut self, run: &Run, record: &Record, pending: bool) -> io::Result<()> {
        let batch = &mut self.batch;
        self.spans
            .put(run, record, pending, |span| batch.add(record.ap, span));
        match self.batch.count >= BATCH {
            true => self.flush(run),
            false => Ok(()),
        }
    }

    fn end(&mut self, run: &Run, lacking: &Completeness) -> io::Result<()> {
        for (ap, span) in self.spans.open(run) {
            self.batch.add(ap, span);
            if self.batch.count >= BATCH {
                self.flush(run)?;
            }
        }
        self.flush(run)?;
        let whole = self.spans.whole(run, lacking);
        let resource_spans = vec![of_resource(program(run), vec![whole])];
        self.line(&TracesData { resource_spans })?;
        self.out.flush()
    }
}

fn of_resource(resource: Resource, spans: Vec<Span>) -> ResourceSpans {
    ResourceSpans {
        resource,
        scope_spans: vec![ScopeSpans {
            scope: Scope::dosmos(),
            spans,
        }],
    }
}

/// The resource of what an application process did.
fn process(run: &Run, ap: ApId) -> Resource {
    let mut resource = of_run(run, &run.names.ap(ap));
    let topology = &run.catalog.topology;
    if let Some(ap) = topology.ap(ap) {
        let name = run.names.mp(ap.memory_process).into_owned();
        resource
            .attributes
            .push(KeyValue::text("dosmos.memory_process", name));
        if let Some(mp) = topology.mp(ap.memory_process) {
            let group = run.names.group(mp.group).into_owned();
            resource
                .attributes
                .push(KeyValue::text("dosmos.group", group));
        }
    }
    resource
}

/// The resource of what is about the whole run.
fn program(run: &Run) -> Resource {
    of_run(run, schema::SERVICE)
}

fn of_run(run: &Run, service: &str) -> Resource {
    Resource::of(service, run.catalog.topology.name(), run.catalog.run)
}
