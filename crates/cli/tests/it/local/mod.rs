//! The embedded control plane as users see it: the program, its database, real processes.

mod control_plane;
mod http;

mod mpi;
mod run;

mod elastic;
mod provisioning;
mod requests;
mod scale_and_retry;

mod failures;
mod kills;
mod leftovers;

mod authorization;
mod hostile;
