//! This machine as a node: its CPUs, its memory, and its GPUs if it shows any.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use muster_core::device::GpuKind;
use muster_core::node::NodeSpec;
use muster_core::resource::{CPU, MEMORY};

/// What the system and Muster itself are left, in bytes.
const LEFT_FREE: u64 = 512 << 20;

/// This machine, as it is now.
pub fn this_machine() -> NodeSpec {
    let name: Arc<str> = rustix::system::uname().nodename().to_string_lossy().as_ref().into();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let mut allocatable: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    allocatable.insert(CPU.into(), cpus * 1_000);
    allocatable.insert(MEMORY.into(), memory().saturating_sub(LEFT_FREE));
    let (gpu, gpus) = gpus().unzip();
    let mut labels = BTreeMap::new();
    labels.insert(Arc::from("kubernetes.io/hostname"), name.clone());
    NodeSpec {
        name,
        labels: labels.into_iter().collect(),
        taints: Vec::new(),
        allocatable: allocatable.into_iter().collect(),
        gpu,
        gpus: gpus.unwrap_or(0),
        ready: true,
        claim: None,
    }
}

fn memory() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = total.and_then(|total| total.trim().strip_suffix("kB")?.trim().parse().ok());
    kibibytes.unwrap_or(1u64 << 20) << 10
}

/// What `nvidia-smi` shows, if it is there: the kind of the first device, and how many are of it.
fn gpus() -> Option<(GpuKind, u16)> {
    let asked = ["--query-gpu=name,memory.total", "--format=csv,noheader,nounits"];
    let output = Command::new("nvidia-smi").args(asked).output().ok()?;
    if !output.status.success() {
        return None;
    }
    read_gpus(&String::from_utf8_lossy(&output.stdout))
}

fn read_gpus(text: &str) -> Option<(GpuKind, u16)> {
    let device = |line: &str| -> Option<(Arc<str>, u64)> {
        let (name, memory) = line.rsplit_once(',')?;
        let model = name.trim().trim_start_matches("NVIDIA ").split(' ').next()?;
        Some((model.into(), memory.trim().parse::<u64>().ok()? << 20))
    };
    let devices: Vec<_> = text.lines().filter_map(device).collect();
    let (model, memory) = devices.first()?.clone();
    let same = devices.iter().filter(|(one, _)| *one == model).count();
    let kind = GpuKind { resource: "nvidia.com/gpu".into(), model, memory };
    Some((kind, u16::try_from(same).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_their_driver_shows_them() {
        let text = "NVIDIA H100 80GB HBM3, 81559\nNVIDIA H100 80GB HBM3, 81559\n";
        let (kind, count) = read_gpus(text).expect("two devices");
        assert_eq!((&*kind.model, kind.memory >> 20, count), ("H100", 81_559, 2));
        assert_eq!(read_gpus("No devices were found\n"), None);
    }

    #[test]
    fn this_machine_has_something_to_offer() {
        let node = this_machine();
        assert!(node.allocatable.get(CPU).is_some_and(|cpu| *cpu >= 1_000));
        assert!(node.allocatable.get(MEMORY).is_some_and(|memory| *memory > 0));
    }
}
