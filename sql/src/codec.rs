//! A scan of `records` on its way to a worker: columns, conditions, limit. What it reads there is the worker's own store.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
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

use crate::columns::{Column, schema_of};
use crate::exec::{RecordsExec, properties};
use crate::names::Names;
use crate::predicate::Predicate;
use crate::source::{Silent, Source};

/// A scan that a worker carries out on its store, in as many partitions as all the others.
pub(crate) struct WorkerScan {
    columns: Vec<Column>,
    predicate: Predicate,
    limit: Option<usize>,
    zero: Nanos,
    partitions: usize,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl WorkerScan {
    pub(crate) fn new(
        columns: Vec<Column>,
        predicate: Predicate,
        limit: Option<usize>,
        zero: Nanos,
        partitions: usize,
    ) -> Self {
        let schema = schema_of(&columns);
        Self {
            columns,
            predicate,
            limit,
            zero,
            partitions,
            properties: properties(&schema, partitions),
            schema,
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
        let columns: Vec<&str> = self.columns.iter().map(|c| c.name()).collect();
        write!(f, "WorkerScan: columns=[{}]", columns.join(", "))?;
        for condition in self.predicate.given() {
            write!(f, ", {condition}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for WorkerScan {
    fn name(&self) -> &'static str {
        "WorkerScan"
    }

    fn schema(&self) -> SchemaRef {
        self.schema.clone()
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
        self.predicate.each_given(each)
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
        let columns = sent.columns.iter().map(|name| {
            let unknown = || internal_datafusion_err!("no column {name}; is it another version?");
            Column::named(name).ok_or_else(unknown)
        });
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
        Ok(Arc::new(scan.with_partitions(partitions)))
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
        let conditions = scan.predicate.given().iter();
        let conditions = conditions.map(|c| serialize_physical_expr(c, self));
        let sent = Sent {
            columns: scan.columns.iter().map(|c| c.name().to_owned()).collect(),
            conditions: conditions.collect::<Result<_>>()?,
            limit: scan.limit.map(|limit| limit as u64),
            zero: scan.zero.0,
            partitions: scan.partitions as u32,
        };
        bytes.extend(sent.encode_to_vec());
        Ok(())
    }
}
