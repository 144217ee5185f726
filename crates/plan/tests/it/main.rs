//! The planner's cases and properties. A case is a text; see [`dsl`] for how it is written.

mod architecture;
mod dsl;

mod placing;

mod complaints;
mod gentle;
mod growth;
mod moving;
mod notices;
mod preemption;
mod reclaim;
mod repair;
mod rotation;
mod surplus;
mod tenants;
mod ways;

mod constraints;
mod fragments;
mod gpus;
mod roles;
mod topology;

mod avoidance;
mod failures;
mod limits;
mod mended;
mod provisioning;

mod adoption;
mod choice;
mod retries;
mod shortfall;
mod spreading;
mod stages;
mod top_up_limits;
mod top_ups;

mod consolidation;
mod giving_back;
mod schedules;
mod stopped_nodes;
mod targets;

mod deadlines;
mod disciplines;
mod impossible;
mod queueing;
mod running;
mod shares;
mod start_times;
mod supply;
mod unoffered;

mod oracle;
mod overlay;
mod promises;
mod random_runs;
mod repeats;
mod seeds;
mod story;
