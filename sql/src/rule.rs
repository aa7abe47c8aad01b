//! The rule of the planner that has scans aggregate.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column as ColumnExpr, Literal};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};

use crate::aggregate::{Aggregation, Function};
use crate::columns::{Column, schema_of};
use crate::exec::RecordsExec;

/// Replaces the first step of an aggregation, with the scan below it, by a scan that aggregates, where that gives the same states.
#[derive(Debug)]
pub(crate) struct AggregateInScan;

impl PhysicalOptimizerRule for AggregateInScan {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let replaced = plan.transform_up(|node| {
            Ok(match in_scan(&node) {
                Some(scan) => Transformed::yes(Arc::new(scan) as Arc<dyn ExecutionPlan>),
                None => Transformed::no(node),
            })
        });
        replaced.data()
    }

    fn name(&self) -> &'static str {
        "AggregateInScan"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The scan that does what this node and those below it do.
fn in_scan(node: &Arc<dyn ExecutionPlan>) -> Option<RecordsExec> {
    let step = node.downcast_ref::<AggregateExec>()?;
    let by = step.group_expr();
    let plain = *step.mode() == AggregateMode::Partial
        && step.limit_options().is_none()
        && !by.has_grouping_set()
        && step.filter_expr().iter().all(Option::is_none);
    let scan = scan_below(step.input())?;
    if !plain || scan.is_limited() {
        return None;
    }
    let groups = by.expr().iter().map(|(by, _)| column(by));
    let functions = step.aggr_expr().iter().map(|f| function(f));
    let schema = step.schema();
    let named = schema.fields().iter();
    let named = named.map(|field| (field.name().clone(), field.is_nullable()));
    let aggregation = Aggregation::new(
        groups.collect::<Option<_>>()?,
        functions.collect::<Option<_>>()?,
        named,
    )?;
    let types = |schema: &datafusion::arrow::datatypes::Schema| -> Vec<DataType> {
        let fields = schema.fields().iter();
        fields.map(|f| f.data_type().clone()).collect()
    };
    (types(aggregation.schema()) == types(&schema)).then(|| scan.aggregated(aggregation))
}

/// The scan that a node passes the rows of on, and nothing else.
fn scan_below(node: &Arc<dyn ExecutionPlan>) -> Option<&RecordsExec> {
    if let Some(scan) = node.downcast_ref::<RecordsExec>() {
        return Some(scan);
    }
    let dealt_out = node.downcast_ref::<RepartitionExec>();
    let dealt_out =
        dealt_out.is_some_and(|r| matches!(r.partitioning(), Partitioning::RoundRobinBatch(_)));
    if !dealt_out && node.downcast_ref::<CooperativeExec>().is_none() {
        return None;
    }
    match node.children()[..] {
        [below] => scan_below(below),
        _ => None,
    }
}

fn column(expression: &Arc<dyn PhysicalExpr>) -> Option<Column> {
    Column::named(expression.downcast_ref::<ColumnExpr>()?.name())
}

fn function(of: &AggregateFunctionExpr) -> Option<Function> {
    if of.is_distinct() || !of.order_bys().is_empty() {
        return None;
    }
    let arguments = of.expressions();
    let [argument] = &arguments[..] else {
        return None;
    };
    let name = of.fun().name();
    if name == "count" {
        let literal = argument.downcast_ref::<Literal>();
        let counts_all = match (literal, column(argument)) {
            (Some(literal), _) => !literal.value().is_null(),
            (None, Some(column)) => !schema_of(&[column]).field(0).is_nullable(),
            (None, None) => false,
        };
        return counts_all.then_some(Function::Count);
    }
    let of = match argument.downcast_ref::<CastExpr>() {
        // Means are of numbers with a fraction.
        Some(cast) if name == "avg" && *cast.cast_type() == DataType::Float64 => {
            column(cast.expr())?
        }
        Some(_) => return None,
        None if name == "avg" => return None,
        None => column(argument)?,
    };
    Function::named(name, Some(of))
}
