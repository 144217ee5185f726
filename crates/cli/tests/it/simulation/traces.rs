//! `muster simulate` on traces.

use std::path::Path;

use crate::muster::{Outcome, empty_dir, muster_in, write};

/// Submission, run time and processors of the jobs of a log.
fn swf(jobs: &[(u32, u32, u32)]) -> String {
    let mut log = String::from("; Version: 2.2\n; MaxProcs: 4\n");
    for (i, (submit, run, procs)) in jobs.iter().enumerate() {
        let id = i + 1;
        log +=
            &format!("{id} {submit} -1 {run} {procs} -1 -1 {procs} {run} -1 1 1 1 1 1 -1 -1 -1\n");
    }
    log
}

/// On four processors. By hand: 1 takes three until 10; 2 needs two and waits for it; 3 would fit at once but was
/// submitted later; at 10 both start; 4 needs all four and gets them when 2 ends at 15.
const LOG: &[(u32, u32, u32)] = &[(0, 10, 3), (1, 5, 2), (2, 3, 1), (3, 4, 4)];

fn starts(dir: &Path, args: &[&str]) -> String {
    let args = [&["simulate", "--starts", "starts.csv"], args].concat();
    let run = muster_in(dir, &args).exits(0);
    assert_eq!(run.err, "");
    std::fs::read_to_string(dir.join("starts.csv")).expect("it was written")
}

#[test]
fn fifo_starts_agree_with_those_computed_by_hand() {
    let dir = empty_dir("fifo");
    write(&dir, "log.swf", swf(LOG));
    let fifo = ["--swf", "log.swf", "--policy", "fifo"];
    assert_eq!(starts(&dir, &fifo), "1,0\n2,10\n3,10\n4,15\n");
    assert_eq!(
        starts(&dir, &["--swf", "log.swf", "--policy", "fifo-overtake"]),
        "1,0\n2,10\n3,2\n4,15\n"
    );
    // Of several policies, the starts of the first are written.
    let both = ["--swf", "log.swf", "--policy", "fifo", "--policy", "fifo-overtake"];
    assert_eq!(starts(&dir, &both), "1,0\n2,10\n3,10\n4,15\n");
    // On a larger machine no job waits.
    assert_eq!(starts(&dir, &["--swf", "log.swf", "--procs", "10"]), "1,0\n2,1\n3,2\n4,3\n");
}

#[test]
fn figures_agree_with_the_starts() {
    let dir = empty_dir("figures");
    write(&dir, "log.swf", swf(LOG));
    let run =
        muster_in(&dir, &["simulate", "--swf", "log.swf", "--policy", "fifo", "--json"]).exits(0);
    let summary = &run.json()[0];
    // Waits 0, 9, 8 and 12; slowdowns of jobs of at most ten seconds are bounded by ten.
    assert_eq!(summary["mean_wait_s"], 7.25);
    assert_eq!(summary["max_wait_s"], 12.0);
    assert_eq!(summary["makespan_s"], 19.0);
    assert_eq!(summary["avg_bsld"], (1.0 + 1.4 + 1.1 + 1.6) / 4.0);
}

#[test]
fn table_of_jobs_runs_on_gpu_nodes() {
    let dir = empty_dir("table");
    // Two nodes of two GPUs: the first gang takes all four, the second waits for it, to the millisecond.
    let table = "name,submit_s,run_s,members,gpus\n\
                 first,0.5,10.25,2,2\n\
                 second,1,5,4,1\n\
                 \"third, with a comma\",20,1,1,0.5\n";
    write(&dir, "jobs.csv", table);
    let supply = ["--csv", "jobs.csv", "--nodes", "2", "--gpus-per-node", "2"];
    let expected = "first,0.500\nsecond,10.750\n\"third, with a comma\",20\n";
    assert_eq!(starts(&dir, &supply), expected);
}

/// A trace that must be refused.
#[track_caller]
fn refused(dir: &Path, option: &str, file: &str, text: &str) -> Outcome {
    write(dir, file, text);
    let refused = muster_in(dir, &["simulate", "--nodes", "2", option, file]).exits(2);
    assert_eq!(refused.out, "");
    refused
}

#[test]
fn malformed_trace_is_refused_with_file_line_and_column() {
    let dir = empty_dir("malformed");
    for (text, error) in [
        (
            "submit_s,run_s,members\n0,10,1\n5,ten,1\n",
            "t.csv:3: column run_s: `ten` is not a number of seconds",
        ),
        ("submit_s,run_s,members\n0,10,0\n", "t.csv:2: column members: `0` must be at least 1"),
        ("submit_s,run_s,members\n0,10\n", "t.csv:2: 2 columns where 3 belong"),
        ("submit_s,run_s\n0,10\n", "t.csv: column `members` is missing"),
        ("", "t.csv: column `submit_s` is missing"),
    ] {
        assert_eq!(refused(&dir, "--csv", "t.csv", text).err, format!("error: {error}\n"));
    }
    let log = swf(LOG).replace("3 2 -1 3 1", "3 2 -1 x 1");
    let error = "error: t.swf:5: column 4 (run time): `x` is not a number of seconds\n";
    assert_eq!(refused(&dir, "--swf", "t.swf", &log).err, error);
    let error = "error: t.swf:1: 3 columns where 18 belong\n";
    assert_eq!(refused(&dir, "--swf", "t.swf", "1 2 3\n").err, error);
}

#[test]
fn missing_trace_is_refused() {
    let dir = empty_dir("no-trace");
    for option in ["--swf", "--csv"] {
        let refused = muster_in(&dir, &["simulate", "--nodes", "2", option, "gone"]).exits(2);
        assert!(refused.err.starts_with("error: gone: cannot be opened: "), "{}", refused.err);
    }
}

#[test]
fn log_without_a_machine_size_asks_for_procs() {
    let dir = empty_dir("no-machine");
    write(&dir, "log.swf", swf(LOG).replace("; MaxProcs: 4\n", ""));
    let refused = muster_in(&dir, &["simulate", "--swf", "log.swf"]).exits(2);
    assert_eq!(
        refused.err,
        "error: log.swf: the header names no MaxProcs: give the size of the machine with --procs, \
         or give --nodes or manifests\n"
    );
    muster_in(&dir, &["simulate", "--swf", "log.swf", "--procs", "4"]).exits(0);
}

#[test]
fn unusable_records_are_skipped_and_the_first_is_located() {
    let dir = empty_dir("skipped");
    write(
        &dir,
        "log.swf",
        swf(&[(0, 10, 3), (1, 5, 0), (2, 3, 0)]).replace(" 0 -1 -1 0 ", " -1 -1 -1 -1 "),
    );
    let run = muster_in(&dir, &["simulate", "--swf", "log.swf", "--json"]).exits(0);
    assert_eq!(run.json()[0]["jobs"], 1);
    let said = "warning: log.swf:4: 2 records skipped, this the first: ";
    assert!(run.err.starts_with(said), "{}", run.err);
}

#[test]
fn refused_job_is_named_with_its_reason() {
    let dir = empty_dir("refused");
    write(&dir, "jobs.csv", "submit_s,run_s,members,topology\n0,10,1,shelf\n0,10,1,rack\n");
    let run =
        muster_in(&dir, &["simulate", "--csv", "jobs.csv", "--nodes", "2", "--json"]).exits(0);
    assert_eq!(run.json()[0]["ended"], 1);
    let [why, left, job] = run.err.lines().collect::<Vec<_>>()[..] else { panic!("{}", run.err) };
    assert!(why.starts_with("warning: job-1 is refused: ") && why.contains("shelf"), "{why}");
    assert_eq!((left, job), ("warning: muster: 1 of 2 jobs unfinished:", "  job-1: was refused"));
}
