//! The processes of a run: spawned behind the gate, limited by control groups, killed to the last one.

pub(crate) mod spawn;

pub(crate) mod gate;

pub(crate) mod mpi_door;

pub(crate) mod cgroup;

pub(crate) mod leftovers;
