//! The unit of capacity: GPUs or cores.

use muster_core::gang::{GangSpec, Request};
use muster_core::node::NodeSpec;
use muster_core::resource::CPU;

use crate::job::Job;

/// The unit of capacity: GPUs where any job requests one, cores otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// GPUs, in thousandths of a device.
    Gpu,
    /// Cores, in thousandths.
    Cpu,
}

impl Measure {
    /// The measure for a workload.
    pub fn of(jobs: &[Job]) -> Self {
        let asks_gpu = |job: &Job| job.gang.roles.iter().any(|role| role.request.gpu_milli() > 0);
        if jobs.iter().any(asks_gpu) { Self::Gpu } else { Self::Cpu }
    }

    /// Capacity of a whole gang: with every role at its minimum, and at its maximum.
    pub(crate) fn of_gang(self, gang: &GangSpec) -> (u64, u64) {
        let mut sum = (0, 0);
        for role in &gang.roles {
            let each = self.of_request(&role.request);
            sum.0 += each * u64::from(role.min);
            sum.1 += each * u64::from(role.max);
        }
        sum
    }

    /// Capacity of a node.
    pub(crate) fn of_node(self, node: &NodeSpec) -> u64 {
        match self {
            Self::Gpu => u64::from(node.gpus) * 1_000,
            Self::Cpu => node.allocatable.get(CPU).copied().unwrap_or(0),
        }
    }

    fn of_request(self, request: &Request) -> u64 {
        match self {
            Self::Gpu => request.gpu_milli(),
            Self::Cpu => request.amounts.get(CPU).copied().unwrap_or(0),
        }
    }
}
