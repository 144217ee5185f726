//! Promises about waiting and quota: promised starts, overtaking, and limits of queues.

pub(super) mod promised_starts;

pub(super) mod overtaking;

mod excused;
pub(super) mod quota;

pub use excused::excused;
