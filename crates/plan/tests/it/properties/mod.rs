//! Properties of every plan, on random cases with printed seeds.

mod idempotence;
mod placement_oracle;
mod promised_starts;
pub(crate) mod random_runs;
mod scratch_overlay;
pub(crate) mod seeds;
pub(crate) mod story;
