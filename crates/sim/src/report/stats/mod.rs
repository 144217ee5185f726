//! Statistics that several figures share: time buckets, percentiles, and the largest of many.

pub(super) mod buckets;
pub(super) mod quantile;
pub(super) mod top;

pub use buckets::Grid;
pub use quantile::{Curve, Five};
pub use top::Top;
