//! What a memory or link process tells Prometheus.

use dosmos_node::metrics::Page;

use super::shared::Shared;

/// The figures of now.
pub(super) fn page(shared: &Shared) -> Page {
    let (counters, accesses, batches) = {
        let state = shared.lock();
        (
            shared.counters(&state),
            state.recorder.accesses().clone(),
            state.recorder.unacknowledged(),
        )
    };
    let is_link = shared.topology.mp(shared.me).is_some_and(|p| p.link);
    let role = if is_link { "lp" } else { "mp" };
    let mut page = Page::new("dosmos_mp", &shared.topology.mp_name(shared.me), role);
    for (name, help, value) in [
        (
            "requests",
            "Requests of own application processes",
            counters.requests,
        ),
        (
            "served",
            "Requests of other memory processes",
            counters.served,
        ),
        (
            "forwarded",
            "Messages handed on to others",
            counters.forwarded,
        ),
        ("records", "Records made", counters.recorded),
        (
            "records_dropped",
            "Records lost to a full buffer",
            counters.dropped,
        ),
    ] {
        page.counter(name, help, value as f64);
    }
    if let Some(cpu) = counters.cpu {
        page.counter("cpu_seconds", "Processor time used", cpu.as_secs_f64());
    }
    page.counter(
        "monitor_seconds",
        "Of the processor time, what monitoring took",
        counters.monitor.as_secs_f64(),
    );
    let up = shared.is_recording_up();
    for (name, help, value) in [
        ("copies", "Copies held", counters.copies),
        ("objects", "Objects owned", counters.objects),
        (
            "buffered_bytes",
            "Bytes of records that the event manager has not acknowledged",
            counters.buffered_bytes,
        ),
        (
            "unacknowledged_batches",
            "Batches of records that the event manager has not acknowledged",
            batches,
        ),
        (
            "event_manager_up",
            "1 if the event manager is connected",
            u64::from(up),
        ),
    ] {
        page.gauge(name, help, value as f64);
    }
    accesses.add_to(&mut page);
    page
}
