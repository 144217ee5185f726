//! Alibaba's GPU cluster of 2023 ("openb", published with the FGD scheduler): lists of pods and of nodes.

mod nodes;
mod pods;
#[cfg(test)]
mod tests;

pub use nodes::{parse_nodes, read_nodes};
pub use pods::{Pod, gang, jobs, parse_pods, read_pods};

pub(crate) use nodes::Column as NodeColumn;
pub(crate) use pods::Column as PodColumn;

use muster_core::device::MAX_DEVICES;

use crate::trace::parse::cell;
use crate::trace::parse::cell::CellError;

/// A mebibyte, in which these lists count memory.
const MIB: u64 = 1 << 20;

/// A whole number from zero on.
fn number(text: &str) -> Result<u64, CellError> {
    u64::try_from(cell::whole(text)?).map_err(|_| CellError::Negative)
}

/// GPUs of one pod or one node.
fn device_count(text: &str) -> Result<u16, CellError> {
    match number(text)? {
        count if count > MAX_DEVICES as u64 => Err(CellError::TooManyGpus { most: MAX_DEVICES }),
        count => Ok(count as u16),
    }
}

/// Mebibytes, in bytes.
fn mebibytes(text: &str) -> Result<u64, CellError> {
    number(text)?.checked_mul(MIB).ok_or(CellError::TooLarge)
}
