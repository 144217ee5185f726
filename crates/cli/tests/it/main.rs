//! The `muster` binary from outside: arguments and files in; standard output, standard error and exit code out.
//!
//! The output of `muster rehearse examples/quickstart.yaml` is stored in `simulation/snapshots/`. When it is meant to change,
//! rewrite it and read the difference before committing:
//!
//! ```sh
//! SNAPSHOTS=overwrite cargo test -p muster-cli && git diff crates/cli/tests
//! ```

mod muster;

mod commands;
mod local;
mod simulation;
