//! From the conditions of a query to a filter of the trace: which chunks may hold a row that meets them, and which records a
//! running event manager has to send.
//!
//! Guarantee: the filter lets every record pass that meets the conditions. What it lets pass beyond that, the conditions
//! themselves take away.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column as ColumnExpr, Literal, NotExpr};
use datafusion::physical_expr::utils::{Guarantee, LiteralGuarantee};
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use dosmos_proto::{ApId, Nanos, VarId};
use dosmos_trace::query::{Filter, TimeRange};
use dosmos_trace::record::{Op, Origin};

use crate::columns::Column;
use crate::names::Names;

/// The filter of these conditions, in the numbers of a source.
pub(crate) fn filter(conditions: &[Arc<dyn PhysicalExpr>], names: &Names) -> Filter {
    let mut wanted = Wanted::default();
    for condition in conditions.iter().flat_map(split_conjunction) {
        for guarantee in LiteralGuarantee::analyze(condition) {
            wanted.learn(&guarantee, names);
        }
        wanted.learn_flag(condition);
        wanted.learn_time(condition, names.zero());
    }
    wanted.filter()
}

/// What is known of the records that meet the conditions.
#[derive(Default)]
struct Wanted {
    variables: Option<Vec<VarId>>,
    objects: Option<Vec<u32>>,
    aps: Option<Vec<ApId>>,
    ops: Option<Vec<Op>>,
    origins: Option<Vec<Origin>>,
    from: u64,
    /// The first instant after it.
    to: Option<u64>,
    requester: bool,
    not_failed: bool,
    not_waiting: bool,
}

impl Wanted {
    fn learn(&mut self, guarantee: &LiteralGuarantee, names: &Names) {
        if guarantee.guarantee != Guarantee::In {
            return;
        }
        let literals = &guarantee.literals;
        match Column::named(&guarantee.column.name) {
            Some(Column::Variable) => {
                let known = resolved(literals.iter(), |l| {
                    Some(names.variables_named(text(l)?)?.to_vec())
                });
                both(&mut self.variables, known.map(|k| k.concat()));
            }
            Some(Column::Ap) => {
                let known = resolved(literals.iter(), |l| names.ap_named(text(l)?));
                both(&mut self.aps, known);
            }
            Some(Column::Op) => {
                let ops = literals.iter().filter_map(|l| {
                    let name = text(l)?;
                    Op::ALL.into_iter().find(|op| op.name() == name)
                });
                both(&mut self.ops, Some(ops.collect()));
            }
            Some(Column::Origin) => {
                let origins = literals.iter().filter_map(|l| {
                    let name = text(l)?;
                    Origin::ALL.into_iter().find(|o| o.name() == name)
                });
                both(&mut self.origins, Some(origins.collect()));
            }
            Some(Column::Object) => {
                let known = resolved(literals.iter(), |l| match l {
                    ScalarValue::Int64(Some(index)) => u32::try_from(*index).ok(),
                    _ => None,
                });
                both(&mut self.objects, known);
            }
            Some(Column::Side) => {
                self.requester |= literals.iter().all(|l| text(l) == Some("requester"));
            }
            _ => {}
        }
    }

    /// `NOT failed`, `NOT waiting`.
    fn learn_flag(&mut self, condition: &Arc<dyn PhysicalExpr>) {
        let negated = condition.downcast_ref::<NotExpr>();
        let column = negated.and_then(|n| n.arg().downcast_ref::<ColumnExpr>());
        match column.map(ColumnExpr::name) {
            Some("failed") => self.not_failed = true,
            Some("waiting") => self.not_waiting = true,
            _ => {}
        }
    }

    /// A column of time compared with a literal.
    fn learn_time(&mut self, condition: &Arc<dyn PhysicalExpr>, zero: Nanos) {
        let Some(comparison) = condition.downcast_ref::<BinaryExpr>() else {
            return;
        };
        let (left, right) = (comparison.left(), comparison.right());
        let turned = |op: Operator| op.swap();
        let read = |column: &Arc<dyn PhysicalExpr>, literal: &Arc<dyn PhysicalExpr>| {
            let column = column.downcast_ref::<ColumnExpr>()?;
            let literal = literal.downcast_ref::<Literal>()?;
            span(Column::named(column.name())?, literal.value(), zero)
        };
        let found = match (read(left, right), read(right, left)) {
            (Some(span), _) => Some((*comparison.op(), span)),
            (None, Some(span)) => turned(*comparison.op()).map(|op| (op, span)),
            (None, None) => None,
        };
        let Some((op, (first, last))) = found else {
            return;
        };
        if matches!(op, Operator::Eq | Operator::Gt | Operator::GtEq) {
            self.from = self.from.max(first);
        }
        if matches!(op, Operator::Eq | Operator::Lt | Operator::LtEq) {
            let to = last.saturating_add(1);
            self.to = Some(self.to.map_or(to, |known| known.min(to)));
        }
    }

    fn filter(self) -> Filter {
        let to = self.to.unwrap_or(u64::MAX);
        let limited = self.from > 0 || self.to.is_some();
        let mut filter = Filter {
            everything: !(self.requester && self.not_failed && self.not_waiting),
            range: limited.then_some(TimeRange {
                from: Nanos(self.from),
                to: Nanos(to),
            }),
            // A row is a whole record, wherever it ends.
            once: limited,
            ..Filter::default()
        };
        // An empty list would mean everything: where nothing can match, the conditions say so themselves.
        filter.variables = self.variables.unwrap_or_default();
        filter.aps = self.aps.unwrap_or_default();
        filter.ops = self.ops.unwrap_or_default();
        filter.origins = self.origins.unwrap_or_default();
        if let (1, Some([object])) = (filter.variables.len(), self.objects.as_deref()) {
            filter.object = Some(*object);
        }
        filter
    }
}

/// What all literals stand for; none if one of them stands for nothing known here.
fn resolved<'l, T>(
    literals: impl Iterator<Item = &'l ScalarValue>,
    of: impl Fn(&ScalarValue) -> Option<T>,
) -> Option<Vec<T>> {
    literals.filter(|l| !l.is_null()).map(of).collect()
}

/// Both must hold.
fn both<T: PartialEq>(known: &mut Option<Vec<T>>, more: Option<Vec<T>>) {
    if let Some(more) = more {
        match known {
            Some(known) => known.retain(|k| more.contains(k)),
            None => *known = Some(more),
        }
    }
}

fn text(literal: &ScalarValue) -> Option<&str> {
    literal.try_as_str().flatten()
}

/// The first and the last instant that a literal compared with this column can stand for.
fn span(column: Column, literal: &ScalarValue, zero: Nanos) -> Option<(u64, u64)> {
    let exactly = |at: i64| {
        let at = u64::try_from(at).unwrap_or(0);
        (at, at)
    };
    match (column, literal) {
        (Column::StartNs, ScalarValue::Int64(Some(at)))
        | (Column::Start, ScalarValue::TimestampNanosecond(Some(at), _)) => Some(exactly(*at)),
        (Column::AtS, ScalarValue::Float64(Some(at))) if at.is_finite() => {
            // As far as the number can be off, being rounded.
            let into = at * 1e9;
            let off = into.abs() * 1e-15 + 2.0;
            let at = |into: f64| (zero.0 as i128).saturating_add(into as i128).max(0);
            let clamp = |at: i128| u64::try_from(at).unwrap_or(u64::MAX);
            Some((clamp(at(into - off)), clamp(at(into + off))))
        }
        _ => None,
    }
}
