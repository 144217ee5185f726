//! The list of nodes: `sn,cpu_milli,memory_mib,gpu,model`.

use std::io::BufRead;
use std::path::Path;

use muster_core::constraint::Labels;
use muster_core::device::GpuKind;
use muster_core::node::NodeSpec;
use muster_core::resource::{CPU, MEMORY};

use crate::trace::defaults;
use crate::trace::error::TraceError;
use crate::trace::formats::openb::{device_count, mebibytes, number};
use crate::trace::parse::columns::{columns, rows};
use crate::trace::parse::names::Names;
use crate::trace::parse::open;

columns! {
    /// A column a list of nodes has.
    pub(crate) enum Column, strict: false, required: [Name, Cpu, Memory, Gpus, Model],
    Name: "sn",
    Cpu: "cpu_milli",
    Memory: "memory_mib",
    Gpus: "gpu",
    Model: "model",
}

/// Reads a list of nodes, gzipped or not.
pub fn read_nodes(path: &Path) -> Result<Vec<NodeSpec>, TraceError> {
    parse_nodes(path, open(path)?)
}

/// Reads a list of nodes from `input`; `file` is what errors call it.
pub fn parse_nodes(file: &Path, input: impl BufRead) -> Result<Vec<NodeSpec>, TraceError> {
    let mut names = Names::default();
    let mut nodes = Vec::new();
    rows::<Column>(file, input, |row| {
        let name = row.required(Column::Name, |name| names.only(name, row.line()))?;
        let cpu = row.required(Column::Cpu, number)?;
        let memory = row.required(Column::Memory, mebibytes)?;
        let gpus = row.required(Column::Gpus, device_count)?;
        let model = names.share(row.get(Column::Model).unwrap_or_default());
        let resource = names.share(defaults::GPU);
        nodes.push(NodeSpec {
            name,
            labels: Labels::new(),
            taints: Vec::new(),
            allocatable: [(names.share(CPU), cpu), (names.share(MEMORY), memory)].into(),
            gpu: (gpus > 0).then_some(GpuKind { resource, model, memory: 0 }),
            gpus,
            ready: true,
            claim: None,
            others: false,
        });
        Ok(())
    })?;
    Ok(nodes)
}
