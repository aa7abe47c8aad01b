//! A scan of `records` on its way to a worker: columns, conditions, limit, what it aggregates. What it reads there is the worker's own store.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{exec_err, internal_datafusion_err, internal_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use datafusion_proto::physical_plan::from_proto::parse_physical_expr;
use datafusion_proto::physical_plan::to_proto::serialize_physical_expr;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use datafusion_proto::protobuf::PhysicalExprNode;
use dosmos_proto::Nanos;
use dosmos_trace::store::StoreView;
use prost::Message;

use crate::aggregate::{Aggregation, Function};
use crate::columns::{Column, schema_of};
use crate::exec::{RecordsExec, properties};
use crate::names::Names;
use crate::predicate::Predicate;
use crate::scan::Scan;
use crate::source::{Silent, Source};

/// A scan that a worker carries out on its store, in as many partitions as all the others.
pub(crate) struct WorkerScan {
    scan: Arc<Scan>,
    limit: Option<usize>,
    zero: Nanos,
    partitions: usize,
    properties: Arc<PlanProperties>,
}

impl WorkerScan {
    pub(crate) fn new(
        scan: Arc<Scan>,
        limit: Option<usize>,
        zero: Nanos,
        partitions: usize,
    ) -> Self {
        Self {
            properties: properties(scan.schema(), partitions),
            scan,
            limit,
            zero,
            partitions,
        }
    }
}

impl fmt::Debug for WorkerScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as(DisplayFormatType::Default, f)
    }
}

impl DisplayAs for WorkerScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkerScan: {}", self.scan)
    }
}

impl ExecutionPlan for WorkerScan {
    fn name(&self) -> &'static str {
        "WorkerScan"
    }

    fn schema(&self) -> SchemaRef {
        self.scan.schema().clone()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        each: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.scan.predicate().each_given(each)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("the scan of a worker is carried out at the worker")
    }
}

/// As it is sent.
#[derive(Clone, PartialEq, Message)]
struct Sent {
    #[prost(string, repeated, tag = "1")]
    columns: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    conditions: Vec<PhysicalExprNode>,
    #[prost(uint64, optional, tag = "3")]
    limit: Option<u64>,
    #[prost(uint64, tag = "4")]
    zero: u64,
    #[prost(uint32, tag = "5")]
    partitions: u32,
    #[prost(message, optional, tag = "6")]
    aggregation: Option<SentAggregation>,
}

#[derive(Clone, PartialEq, Message)]
struct SentAggregation {
    #[prost(string, repeated, tag = "1")]
    groups: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    functions: Vec<SentFunction>,
    #[prost(message, repeated, tag = "3")]
    columns: Vec<SentColumn>,
}

#[derive(Clone, PartialEq, Message)]
struct SentFunction {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, optional, tag = "2")]
    column: Option<String>,
}

/// A column of the states.
#[derive(Clone, PartialEq, Message)]
struct SentColumn {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(bool, tag = "2")]
    nullable: bool,
}

impl SentAggregation {
    fn new(aggregation: &Aggregation) -> Self {
        let function = |f: &Function| SentFunction {
            name: f.name().to_owned(),
            column: f.column().map(|column| column.name().to_owned()),
        };
        let column = |field: &FieldRef| SentColumn {
            name: field.name().clone(),
            nullable: field.is_nullable(),
        };
        let fields = aggregation.schema().fields().iter();
        Self {
            groups: names(aggregation.groups()),
            functions: aggregation.functions().iter().map(function).collect(),
            columns: fields.map(column).collect(),
        }
    }

    fn read(self) -> Result<Aggregation> {
        let function = |f: &SentFunction| {
            let column = f.column.as_deref().map(named).transpose()?;
            let unknown = || internal_datafusion_err!("no {}; is it another version?", f.name);
            Function::named(&f.name, column).ok_or_else(unknown)
        };
        let groups = self.groups.iter().map(|name| named(name));
        let columns = self.columns.into_iter().map(|c| (c.name, c.nullable));
        let aggregation = Aggregation::new(
            groups.collect::<Result<_>>()?,
            self.functions.iter().map(function).collect::<Result<_>>()?,
            columns,
        );
        aggregation.ok_or_else(|| internal_datafusion_err!("a scan cannot aggregate like that"))
    }
}

fn names(columns: &[Column]) -> Vec<String> {
    columns.iter().map(|c| c.name().to_owned()).collect()
}

fn named(name: &str) -> Result<Column> {
    let unknown = || internal_datafusion_err!("no column {name}; is it another version?");
    Column::named(name).ok_or_else(unknown)
}

/// Most partitions that a worker is asked for.
const MOST_PARTITIONS: u32 = 1024;

/// Sends scans, and at a worker makes them scans of its store.
#[derive(Clone)]
pub(crate) struct Codec {
    store: Option<StoreView>,
}

impl Codec {
    /// Of whoever distributes a query.
    pub(crate) fn of_coordinator() -> Self {
        Self { store: None }
    }

    /// Of a worker.
    pub(crate) fn of_store(store: StoreView) -> Self {
        Self { store: Some(store) }
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Codec")
    }
}

impl PhysicalExtensionCodec for Codec {
    fn try_decode(
        &self,
        bytes: &[u8],
        _: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(view) = &self.store else {
            return exec_err!("only a worker has a store to scan");
        };
        let malformed = |e| DataFusionError::External(Box::new(e));
        let sent = Sent::decode(bytes).map_err(malformed)?;
        let columns = sent.columns.iter().map(|name| named(name));
        let columns: Vec<Column> = columns.collect::<Result<_>>()?;
        let schema = schema_of(&Column::ALL);
        let conditions = sent.conditions.iter();
        let conditions = conditions.map(|c| parse_physical_expr(c, context, &schema, self));
        let predicate = Predicate::new(conditions.collect::<Result<_>>()?)?;
        let names = Names::of(&view.catalog(), Nanos(sent.zero));
        let source = Source::store(view.clone(), names);
        let limit = sent.limit.and_then(|limit| usize::try_from(limit).ok());
        let partitions = sent.partitions.clamp(1, MOST_PARTITIONS) as usize;
        let scan = RecordsExec::new(
            &[source],
            &Silent::default(),
            columns,
            predicate,
            limit,
            partitions,
        );
        let scan = scan.with_partitions(partitions);
        Ok(Arc::new(match sent.aggregation {
            Some(aggregation) => scan.aggregated(aggregation.read()?),
            None => scan,
        }))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let Some(scan) = node.downcast_ref::<WorkerScan>() else {
            return exec_err!("{} cannot be sent to a worker", node.name());
        };
        let conditions = scan.scan.predicate().given().iter();
        let conditions = conditions.map(|c| serialize_physical_expr(c, self));
        let sent = Sent {
            columns: names(scan.scan.columns()),
            conditions: conditions.collect::<Result<_>>()?,
            limit: scan.limit.map(|limit| limit as u64),
            zero: scan.zero.0,
            partitions: scan.partitions as u32,
            aggregation: scan.scan.aggregation().map(SentAggregation::new),
        };
        bytes.extend(sent.encode_to_vec());
        Ok(())
    }
}
