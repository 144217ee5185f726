//! This machine as a node: CPUs, memory, and GPUs if there are any.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use muster_core::device::GpuKind;
use muster_core::node::NodeSpec;
use muster_core::resource::{CPU, MEMORY};

/// Memory reserved for the system and Muster itself, in bytes.
const LEFT_FREE: u64 = 512 << 20;

/// This machine as a node.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The spec for the planner.
    pub node: NodeSpec,
    /// The driver's number of each of the node's devices. With several GPU models, only devices of one model count.
    pub devices: Vec<u32>,
}

/// This machine, as it is now.
pub fn this_machine() -> Machine {
    let name: Arc<str> = rustix::system::uname().nodename().to_string_lossy().as_ref().into();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let mut allocatable: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    allocatable.insert(CPU.into(), cpus * 1_000);
    allocatable.insert(MEMORY.into(), memory().saturating_sub(LEFT_FREE));
    let (gpu, devices) = gpus().unzip();
    let devices: Vec<u32> = devices.unwrap_or_default();
    let mut labels = BTreeMap::new();
    labels.insert(Arc::from("kubernetes.io/hostname"), name.clone());
    let node = NodeSpec {
        name,
        labels: labels.into_iter().collect(),
        taints: Vec::new(),
        allocatable: allocatable.into_iter().collect(),
        gpu,
        gpus: u16::try_from(devices.len()).unwrap_or(u16::MAX),
        ready: true,
        claim: None,
        others: false,
    };
    Machine { node, devices }
}

fn memory() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = total.and_then(|total| total.trim().strip_suffix("kB")?.trim().parse().ok());
    kibibytes.unwrap_or(1u64 << 20) << 10
}

/// The GPUs that `nvidia-smi` lists, if it is there: the most frequent kind, and its device numbers.
fn gpus() -> Option<(GpuKind, Vec<u32>)> {
    let asked = ["--query-gpu=index,name,memory.total", "--format=csv,noheader,nounits"];
    let output = Command::new("nvidia-smi").args(asked).output().ok()?;
    if !output.status.success() {
        return None;
    }
    read_gpus(&String::from_utf8_lossy(&output.stdout))
}

fn read_gpus(text: &str) -> Option<(GpuKind, Vec<u32>)> {
    let device = |line: &str| -> Option<(u32, Arc<str>, u64)> {
        let (index, rest) = line.split_once(',')?;
        let (name, memory) = rest.rsplit_once(',')?;
        let model = name.trim().trim_start_matches("NVIDIA ").split(' ').next()?;
        let memory = memory.trim().parse::<u64>().ok()? << 20;
        Some((index.trim().parse().ok()?, model.into(), memory))
    };
    let mut kinds: Vec<(GpuKind, Vec<u32>)> = Vec::new();
    for (index, model, memory) in text.lines().filter_map(device) {
        match kinds.iter_mut().find(|(kind, _)| kind.model == model && kind.memory == memory) {
            Some((_, indices)) => indices.push(index),
            None => {
                let kind = GpuKind { resource: "nvidia.com/gpu".into(), model, memory };
                kinds.push((kind, vec![index]));
            }
        }
    }
    // The first of the most frequent kinds.
    kinds.into_iter().rev().max_by_key(|(_, indices)| indices.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_parsed_from_the_driver_output() {
        let text = "0, NVIDIA H100 80GB HBM3, 81559\n1, NVIDIA H100 80GB HBM3, 81559\n";
        let (kind, devices) = read_gpus(text).expect("two devices");
        assert_eq!((&*kind.model, kind.memory >> 20), ("H100", 81_559));
        assert_eq!(devices, [0, 1]);
        assert_eq!(read_gpus("No devices were found\n"), None);
    }

    #[test]
    fn mixed_gpu_models_expose_devices_of_the_most_frequent_model() {
        let text = "0, NVIDIA T400, 4096\n1, NVIDIA H100 80GB HBM3, 81559\n2, NVIDIA T400, 2048\n\
                    3, NVIDIA H100 80GB HBM3, 81559\n";
        let (kind, devices) = read_gpus(text).expect("devices");
        assert_eq!((&*kind.model, devices), ("H100", vec![1, 3]));
    }

    #[test]
    fn this_machine_has_cpu_and_memory() {
        let node = this_machine().node;
        assert!(node.allocatable.get(CPU).is_some_and(|cpu| *cpu >= 1_000));
        assert!(node.allocatable.get(MEMORY).is_some_and(|memory| *memory > 0));
    }
}
