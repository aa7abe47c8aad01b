//! Leases of copies: how long a copy may be read without its owner being heard.
//!
//! The links of memory processes fail one side at a time: an owner may lose the holder of a copy that
//! still believes its link is up. So the holder reads its copies of an owner's objects only within its
//! *lease* with that owner. Each response of the owner renews it, from the moment at which the request
//! was made; a holder that sends nothing else asks for that alone. The owner notes how long each lease
//! may run at most, and a release that cannot reach a holder waits until then.
//!
//! Both count on their own monotonic clocks: the holder begins earlier than the owner, and the owner
//! adds [`MARGIN`] for clocks that run at different speeds.

use dosmos_proto::Nanos;

/// How long a lease runs. It bounds how long a release waits for a holder that is cut off.
pub(crate) const LEASE: Nanos = Nanos::from_millis(2_000);
/// What the owner adds: clocks may differ by an eighth in speed.
pub(crate) const MARGIN: Nanos = Nanos::from_millis(250);
/// A lease with less left than this is renewed.
pub(crate) const RENEW_BELOW: Nanos = Nanos::from_millis(1_000);
/// How long to wait for a renewal before asking again.
pub(crate) const RETRY: Nanos = Nanos::from_millis(250);

/// How long an application process that is asked for an object which is delegated to it may be silent before the
/// object is taken from it.
pub(crate) const MAX_SILENCE: Nanos = Nanos::from_millis(2_000);
