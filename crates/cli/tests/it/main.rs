//! The `muster` binary from outside: arguments and files in; standard output, standard error and exit code out.
//!
//! What `muster rehearse examples/quickstart.yaml` prints is kept in `snapshots/`. When it is meant to change, write it
//! anew and read the difference before it is committed:
//!
//! ```sh
//! SNAPSHOTS=overwrite cargo test -p muster-cli && git diff crates/cli/tests
//! ```

mod muster;

mod begin;
mod client;
mod crds;
mod help;
mod imports;
mod local;
mod manifests;
mod packing;
mod recording;
mod rehearse;
mod report;
mod simulate;
mod traces;
