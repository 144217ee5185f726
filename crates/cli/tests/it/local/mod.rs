//! The embedded control plane as its users meet it: the program, its database, real processes.

mod again;
mod booting;
mod elastic;
mod hostile;
mod http;
mod kills;
mod leftovers;
mod manners;
mod mpi;
mod rights;
mod run;
mod stage;
mod troubles;
