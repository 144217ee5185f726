//! The columns a table may have.

use crate::trace::parse::columns::columns;

columns! {
    /// A column a table may have.
    pub(crate) enum Column, strict: true, required: [Submit, Run, Members],
    Submit: "submit_s",
    Run: "run_s",
    Members: "members",
    Min: "min",
    Name: "name",
    Gpus: "gpus",
    Cpu: "cpu",
    Memory: "memory",
    Queue: "queue",
    User: "user",
    Priority: "priority",
    Estimate: "estimate_s",
    Topology: "topology",
    Deadline: "deadline_s",
    CostOfWaiting: "cost_of_waiting",
}
