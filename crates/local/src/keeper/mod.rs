//! The keeper: a separate process for each run of a gang, between Muster and the workers.
//!
//! Workers must outlive the control plane, and their exits must not be lost. So the control plane writes a run plan
//! (`run_plan`), starts a keeper, and may be killed at any instant after that. The keeper holds all members behind one gate
//! (`processes::gate`), opens it when the last member is ready, keeps their output (`output::log_file`) while the disk has
//! room (`output::disk_room`), enforces limits with a control group per run (`processes::cgroup`), lets `mpirun` start ranks
//! beside members (`processes::mpi_door`), and records what happens (`journal`). A restarted control plane reads the journal,
//! or connects to the keeper that still lives through its socket (`socket`).
//!
//! The gate is a pipe that every member reads from. The keeper opens it by writing one byte per member. A keeper that dies
//! before that closes the pipe by dying, and every member exits without having run. A keeper that dies later takes its
//! members with it: the kernel kills them when their parent dies, and their descendants are killed with the run's control
//! group, or found by their marks (`processes::leftovers`).
//!
//! Deliberately not here: any decision. A keeper never restarts a gang, nor moves it.

pub(crate) mod run_plan;

pub(crate) mod journal;

pub(crate) mod files;

pub(crate) mod run;

pub(crate) mod processes;

pub(crate) mod output;

pub(crate) mod socket;

pub mod fuzzing;
