//! Figures of a running process for Prometheus, in the OpenMetrics text format.
//!
//! * [`Page`]: the families of one scrape. It is made when somebody asks, from what the process counts anyway: being
//!   watched costs the hot path nothing more.
//! * [`AccessCounts`]: what such a process counts, access by access, in fixed memory.
//! * [`serve`]: `GET /metrics` over HTTP, bounded in connections and time.
//!
//! Invariant: the number of series does not grow with variables, objects or application processes: labels are
//! operations, origins and the memory processes that report to one event manager.

mod counts;
mod page;
mod serve;

pub use counts::AccessCounts;
pub use page::{Labels, Page};
pub use serve::{MetricsError, MetricsListener, serve};
