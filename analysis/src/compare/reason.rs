//! Why one run is faster: where the processes' time differs.

use std::cmp::Reverse;

use dosmos_proto::Nanos;
use dosmos_trace::record::Op;
use serde::Serialize;

use super::phased::Sums;
use super::rows::Row;

/// A number of accesses, or the time of one, that differs by less than this is the same.
const SAME: f64 = 0.1;
/// A share of inter-group accesses that differs by this is named.
const FARTHER: f64 = 0.2;
/// What is less than this part of the difference is not a reason.
const WORTH_NAMING: f64 = 0.1;
/// Reasons named at most.
const NAMED: usize = 3;

/// Where processes spent more or less time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reason {
    /// The variable or barrier; none: outside accesses.
    pub variable: Option<String>,
    /// The operation; none: outside accesses.
    pub op: Option<Op>,
    /// Process time in the second run less that in the first one, nanoseconds.
    pub change_ns: i64,
    /// The same in words.
    pub text: String,
}

/// What differs in the direction of `difference` (of process time, nanoseconds), the largest first. Barriers come last:
/// who waits there waits for what another one does.
pub(super) fn reasons(rows: &[Row], computing: Option<(u64, u64)>, difference: f64) -> Vec<Reason> {
    let of_rows = rows.iter().map(of_row);
    let mut all: Vec<Reason> = of_rows.chain(computing.map(of_computing)).collect();
    all.retain(|r| {
        let change = r.change_ns as f64;
        change.signum() == difference.signum() && change.abs() >= WORTH_NAMING * difference.abs()
    });
    all.sort_by_key(|r| {
        (
            r.op == Some(Op::Barrier),
            Reverse(r.change_ns.unsigned_abs()),
        )
    });
    all.truncate(NAMED);
    all
}

fn of_row(row: &Row) -> Reason {
    let (before, after) = row.time_ns();
    let what = match row.op {
        Op::Barrier => format!("waiting at {}", row.variable),
        op => format!("{} of {}", plural(op), row.variable),
    };
    let text = match (&row.first, &row.second) {
        (Some(a), Some(b)) => format!("{what}: {}", both(a, b)),
        (Some(_), None) => format!("no {what} any more ({} less)", Nanos(before)),
        (None, _) => format!("{what} only in the second run ({})", Nanos(after)),
    };
    Reason {
        variable: Some(row.variable.clone()),
        op: Some(row.op),
        change_ns: difference(before, after),
        text,
    }
}

fn of_computing((before, after): (u64, u64)) -> Reason {
    Reason {
        variable: None,
        op: None,
        change_ns: difference(before, after),
        text: format!(
            "time outside accesses: {} → {}",
            Nanos(before),
            Nanos(after)
        ),
    }
}

fn difference(before: u64, after: u64) -> i64 {
    let change = i128::from(after) - i128::from(before);
    change.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// What of an operation differs: the time of one, their number, where they were served.
fn both(a: &Sums, b: &Sums) -> String {
    let differs = |x: f64, y: f64| (x - y).abs() > SAME * x.max(y);
    let (each_a, each_b) = (a.mean_ns(), b.mean_ns());
    let each = format!("{} → {} each", Nanos(each_a), Nanos(each_b));
    let count = format!("{} → {} of them", a.count, b.count);
    let slower = differs(each_a as f64, each_b as f64);
    let mut text = match (slower, differs(a.count as f64, b.count as f64)) {
        (true, true) => format!("{each}, {count}"),
        (false, true) => count,
        (_, false) => each,
    };
    let (far_a, far_b) = (a.inter_share(), b.inter_share());
    if (far_a - far_b).abs() >= FARTHER {
        text += &format!(
            " ({:.0} % → {:.0} % inter-group)",
            100.0 * far_a,
            100.0 * far_b
        );
    }
    text
}

fn plural(op: Op) -> String {
    format!("{}s", op.name())
}
