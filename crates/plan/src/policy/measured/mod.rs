//! Queue orders from the scheduling literature, kept for measurements only.
//!
//! They can be chosen by name like any other and are not listed in the product's help
//! ([`QueueOrder::PRODUCT_NAMES`](crate::QueueOrder::PRODUCT_NAMES)).

pub(super) mod easy_plus_plus;
pub(super) mod easy_sjbf;
pub(super) mod edf;
pub(super) mod sjf;
pub(super) mod wfp;
