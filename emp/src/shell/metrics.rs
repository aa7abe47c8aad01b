//! What an event manager tells Prometheus.

use dosmos_node::metrics::{Labels, Page};
use dosmos_trace::query::ProcessStatus;

use super::state::Shared;

/// The figures of now.
pub(super) fn page(shared: &Shared) -> Page {
    let status = shared.status();
    let (accesses, lags) = {
        let state = shared.lock();
        (state.manager.accesses().clone(), state.lags())
    };
    let mut page = Page::new("dosmos_emp", &status.name, "emp");
    let stored = status.records as f64;
    page.gauge("store_records", "Records in the store", stored);
    let bytes = status.stored_bytes as f64;
    page.gauge("store_bytes", "Size of the store on disk", bytes);
    let chunks = status.chunks as f64;
    page.gauge("store_chunks", "Chunks in the store", chunks);
    page.gauge(
        "store_trouble",
        "1 if the store cannot be written",
        f64::from(u8::from(!status.trouble.is_empty())),
    );
    page.gauge(
        "pending_records",
        "Records received and not yet on disk",
        status.pending as f64,
    );
    page.counter(
        "cpu_seconds",
        "Processor time used",
        status.cpu.as_secs_f64(),
    );
    let directions = [("out", status.exchanged_out), ("in", status.exchanged_in)];
    page.counter_of(
        "hand_overs",
        "Secondary meta-objects exchanged with other event managers",
        directions.map(|(direction, n)| (vec![("direction", direction.to_owned())], n as f64)),
    );
    let mp = |p: &ProcessStatus| -> Labels { vec![("mp", shared.topology.mp_name(p.mp))] };
    let of = |figure: fn(&ProcessStatus) -> f64| {
        let series = status.processes.iter().map(move |p| (mp(p), figure(p)));
        series.collect::<Vec<_>>()
    };
    page.gauge_of(
        "connected",
        "1 if the memory process is connected",
        of(|p| f64::from(u8::from(p.connected))),
    );
    page.counter_of(
        "records",
        "Records the memory process has made",
        of(|p| p.counters.recorded as f64),
    );
    page.counter_of(
        "records_dropped",
        "Records the memory process has lost to a full buffer",
        of(|p| p.counters.dropped as f64),
    );
    page.gauge_of(
        "buffered_bytes",
        "Bytes of records at the memory process that are not on disk here",
        of(|p| p.counters.buffered_bytes as f64),
    );
    page.gauge_of(
        "clock_offset_seconds",
        "What the memory process adds to its clock",
        of(|p| p.clock_offset_ns as f64 / 1e9),
    );
    let lag = |(mp, lag): (dosmos_proto::MpId, dosmos_proto::Nanos)| {
        let labels = vec![("mp", shared.topology.mp_name(mp))];
        (labels, lag.as_secs_f64())
    };
    page.gauge_of(
        "lag_seconds",
        "Age that the newest record of the last batch had on arrival",
        lags.into_iter().map(lag),
    );
    accesses.add_to(&mut page);
    page
}
