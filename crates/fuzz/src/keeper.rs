//! The keeper's protocol: journals of runs, and lines of the socket between a keeper and the control plane.

use muster_local::fuzzing::{check_journal, check_line};

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "keeper",
    run,
    words: &[
        "{\"begun\":",
        "{\"ready\":",
        "{\"opened\":",
        "{\"started\":",
        "{\"stopping\":",
        "{\"resized\":",
        "{\"exited\":",
        "{\"warned\":",
        "{\"ended\":",
        "\"at\":",
        "\"pid\":",
        "\"boot\":",
        "\"groups\":",
        "\"members\":",
        "\"next\":",
        "\"rank\":",
        "\"code\":",
        "\"signal\":",
        "\"ending\":",
        "\"failed\":",
        "\"succeeded\"",
        "{\"stop\":",
        "{\"resize\":",
        "\"grace_ms\":",
        "\"why\":",
        "\n",
        "}",
        "{",
        "[",
        "]",
        ",",
        "null",
        "-1",
        "1e400",
        "4294967296",
        "18446744073709551616",
        "9223372036854775807",
        "\\u0000",
        "\"",
    ],
    rounds: 40_000,
};

fn run(data: &[u8]) {
    check_journal(data);
    for line in data.split(|byte| *byte == b'\n') {
        check_line(line);
    }
}
