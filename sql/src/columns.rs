//! The columns of the table `records`: names, types, and what of a chunk each is made of.
//!
//! Names are those of `dosmos query events --format json`; whatever has a unit has it in its name. What does not apply is null: the
//! variable of a barrier, the barrier of everything else, the element range of an access without one.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

/// A column of the table `records`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Column {
    StartNs,
    Start,
    AtS,
    DurationNs,
    WaitNs,
    ServiceNs,
    Op,
    Origin,
    Ap,
    Mp,
    Owner,
    Variable,
    Object,
    Barrier,
    Bytes,
    Version,
    Side,
    Optimized,
    InProcess,
    Atomic,
    First,
    OwnClock,
    Ahead,
    Posted,
    Sampled,
    Failed,
    Waiting,
    Count,
    RangeFirst,
    RangeEnd,
    EventManager,
}

/// What a column depends on. The first four have few values in a chunk: a condition on them is worked out once per value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// What kind of record it is.
    Kind,
    /// The object.
    Object,
    /// The application process.
    Process,
    /// The source that the chunk is from.
    Source,
    /// Each record's own.
    Row,
}

impl Column {
    pub(crate) const ALL: [Self; 31] = [
        Self::StartNs,
        Self::Start,
        Self::AtS,
        Self::DurationNs,
        Self::WaitNs,
        Self::ServiceNs,
        Self::Op,
        Self::Origin,
        Self::Ap,
        Self::Mp,
        Self::Owner,
        Self::Variable,
        Self::Object,
        Self::Barrier,
        Self::Bytes,
        Self::Version,
        Self::Side,
        Self::Optimized,
        Self::InProcess,
        Self::Atomic,
        Self::First,
        Self::OwnClock,
        Self::Ahead,
        Self::Posted,
        Self::Sampled,
        Self::Failed,
        Self::Waiting,
        Self::Count,
        Self::RangeFirst,
        Self::RangeEnd,
        Self::EventManager,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::StartNs => "start_ns",
            Self::Start => "start",
            Self::AtS => "at_s",
            Self::DurationNs => "duration_ns",
            Self::WaitNs => "wait_ns",
            Self::ServiceNs => "service_ns",
            Self::Op => "op",
            Self::Origin => "origin",
            Self::Ap => "ap",
            Self::Mp => "mp",
            Self::Owner => "owner",
            Self::Variable => "variable",
            Self::Object => "object",
            Self::Barrier => "barrier",
            Self::Bytes => "bytes",
            Self::Version => "version",
            Self::Side => "side",
            Self::Optimized => "optimized",
            Self::InProcess => "in_process",
            Self::Atomic => "atomic",
            Self::First => "first",
            Self::OwnClock => "own_clock",
            Self::Ahead => "ahead",
            Self::Posted => "posted",
            Self::Sampled => "sampled",
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Count => "count",
            Self::RangeFirst => "range_first",
            Self::RangeEnd => "range_end",
            Self::EventManager => "event_manager",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }

    pub(crate) fn part(self) -> Part {
        match self {
            Self::Op
            | Self::Origin
            | Self::Side
            | Self::Optimized
            | Self::InProcess
            | Self::Atomic
            | Self::First
            | Self::OwnClock
            | Self::Ahead
            | Self::Posted
            | Self::Sampled
            | Self::Failed
            | Self::Waiting => Part::Kind,
            Self::Variable | Self::Object | Self::Barrier => Part::Object,
            Self::Ap => Part::Process,
            Self::EventManager => Part::Source,
            Self::StartNs
            | Self::Start
            | Self::AtS
            | Self::DurationNs
            | Self::WaitNs
            | Self::ServiceNs
            | Self::Mp
            | Self::Owner
            | Self::Bytes
            | Self::Version
            | Self::Count
            | Self::RangeFirst
            | Self::RangeEnd => Part::Row,
        }
    }

    fn field(self) -> Field {
        let kind = match self {
            Self::Start => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            Self::AtS => DataType::Float64,
            Self::Op
            | Self::Origin
            | Self::Side
            | Self::Ap
            | Self::Mp
            | Self::Owner
            | Self::Variable
            | Self::Barrier
            | Self::EventManager => DataType::Utf8View,
            Self::Optimized
            | Self::InProcess
            | Self::Atomic
            | Self::First
            | Self::OwnClock
            | Self::Ahead
            | Self::Posted
            | Self::Sampled
            | Self::Failed
            | Self::Waiting => DataType::Boolean,
            Self::StartNs
            | Self::DurationNs
            | Self::WaitNs
            | Self::ServiceNs
            | Self::Object
            | Self::Bytes
            | Self::Version
            | Self::Count
            | Self::RangeFirst
            | Self::RangeEnd => DataType::Int64,
        };
        let nullable = matches!(
            self,
            Self::Variable | Self::Barrier | Self::RangeFirst | Self::RangeEnd
        );
        Field::new(self.name(), kind, nullable)
    }
}

/// The schema of some columns.
pub(crate) fn schema_of(columns: &[Column]) -> SchemaRef {
    let fields: Vec<Field> = columns.iter().map(|c| c.field()).collect();
    Arc::new(Schema::new(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_found_by_its_name() {
        for column in Column::ALL {
            assert_eq!(Column::named(column.name()), Some(column));
        }
        assert_eq!(Column::named("nothing"), None);
        assert_eq!(schema_of(&Column::ALL).fields().len(), Column::ALL.len());
    }
}
