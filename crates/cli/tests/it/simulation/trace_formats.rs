//! `muster simulate --trace`: logs, pod lists, node lists and availability records of others, recognised by their first
//! line.

use std::path::Path;

use crate::muster::{Outcome, empty_dir, muster, muster_in, write};

/// The first summary of a run.
#[track_caller]
fn summary(args: &[&str]) -> serde_json::Value {
    let run = muster(&[&["simulate", "--json"], args].concat()).exits(0);
    run.json()[0].clone()
}

#[test]
fn gpu_cluster_log_becomes_gangs_of_nodes() {
    let dir = empty_dir("itp");
    // Two nodes of eight: the first job takes both, the second waits for them, the third fits beside neither.
    let log = "job_id,submission_time,duration,num_gpu\na,100,50,16\nb,110,20,12\nc,120,5,8\n";
    write(&dir, "log.csv", log);
    let args = ["simulate", "--trace", "log.csv", "--nodes", "2", "--policy", "fifo"];
    let starts = ["--starts", "starts.csv"];
    let run = muster_in(&dir, &[&args[..], &starts].concat()).exits(0);
    assert_eq!(run.err, "");
    let starts = std::fs::read_to_string(dir.join("starts.csv")).expect("it was written");
    assert_eq!(starts, "a,100\nb,150\nc,170\n");
    // On nodes of four GPUs the same jobs are larger gangs.
    let run = muster_in(&dir, &[&args[..], &["--gpus-per-node", "4", "--json"]].concat()).exits(0);
    assert_eq!(run.json()[0]["ended"], 1, "only the job of 8 GPUs fits into two nodes of four");
}

#[test]
fn example_traces_run() {
    let jobs = ["--trace", "examples/traces/jobs.csv", "--nodes", "8"];
    assert_eq!(summary(&jobs)["ended"], 7);
    let pods = "examples/traces/pods.csv";
    let pods = summary(&["--trace", pods, "--nodes", "examples/traces/nodes.csv"]);
    assert_eq!((&pods["ended"], &pods["max_wait_s"]), (&5.into(), &0.0.into()));
    let run = muster(&["simulate", "--trace", "examples/traces/jobs.csv", "--nodes", "8"]).exits(0);
    assert_eq!(
        run.err,
        "warning: examples/traces/jobs.csv:6: 1 record skipped, this the first: no run time is given: it \
         never ran\n"
    );
}

#[test]
fn users_and_virtual_clusters_are_in_the_report() {
    let dir = empty_dir("philly");
    write(&dir, "log.csv", "jobid,vc,user,submitted_time,runtime,num_gpus\nx,team-a,ann,0,9,1\n");
    let args = ["simulate", "--trace", "log.csv", "--nodes", "1", "--report", "page.html"];
    muster_in(&dir, &args).exits(0);
    let page = std::fs::read_to_string(dir.join("page.html")).expect("it was written");
    assert!(page.contains("team-a") && page.contains("log.csv"));
}

#[test]
fn trace_format_is_recognised_by_the_first_line() {
    let dir = empty_dir("known");
    write(&dir, "a", "; MaxProcs: 4\n1 0 -1 9 1 -1 -1 1 9 -1 1 1 1 1 1 -1 -1 -1\n");
    write(&dir, "b", "submit_s,run_s,members\n0,9,1\n");
    for (file, supply) in [("a", ["--procs", "2"]), ("b", ["--nodes", "1"])] {
        let args = [&["simulate", "--json", "--trace", file], &supply[..]].concat();
        assert_eq!(muster_in(&dir, &args).exits(0).json()[0]["ended"], 1, "{file}");
    }
    let refused = muster_in(&dir, &["simulate", "--trace", "b", "--procs", "2"]).exits(2);
    let error = "error: --procs is for a trace in Standard Workload Format, and none is given\n";
    assert_eq!(refused.err, error);
}

/// One zone of a pool, and a gang that needs two nodes.
const POOL: &str = "\
kind: Pool
metadata: {name: spot}
spec:
  tier: spot
  provider: {simulated: {boot: {sigma: 0}}}
  offerings:
  - {instanceType: gpu, zone: a, price: 1, gpu: {model: X, memory: 80Gi, count: 8}, allocatable: {cpu: 8}, bootTime: 4m}
---
kind: Gang
metadata: {name: pair, annotations: {sim.muster.sh/run-time: 30m}}
spec:
  roles: [{name: worker, min: 2, resources: {nvidia.com/gpu: 8, cpu: 1}}]
";

#[test]
fn zone_grants_and_reclaims_nodes_as_recorded() {
    let dir = empty_dir("availability");
    write(&dir, "pool.yaml", POOL);
    let simulate = |data: &str| {
        let record = format!("{{\"metadata\": {{\"gap_seconds\": 600}}, \"data\": {data}}}");
        write(&dir, "zone.json", record);
        let args = ["simulate", "--json", "pool.yaml", "--availability", "a=zone.json"];
        muster_in(&dir, &args).exits(0).json()[0].clone()
    };
    let plenty = simulate("[2]");
    assert_eq!((&plenty["rollbacks"], &plenty["lost_gpu_hours"]), (&0.into(), &0.0.into()));
    let late = simulate("[1, 1, 2, 2, 2, 2, 2, 2]");
    assert!(late["rollbacks"].as_u64() > Some(0) && late["ended"] == 1, "{late}");
    let torn = simulate("[2, 2, 1, 2, 2, 2, 2, 2, 2, 2]");
    assert!(torn["lost_gpu_hours"].as_f64() > Some(0.0) && torn["ended"] == 1, "{torn}");
}

/// Inputs that must be refused, with their errors.
#[track_caller]
fn refused(dir: &Path, args: &[&str]) -> Outcome {
    let refused = muster_in(dir, &[&["simulate"], args].concat()).exits(2);
    assert_eq!(refused.out, "");
    refused
}

#[test]
fn bad_traces_are_refused_with_file_line_and_column() {
    let dir = empty_dir("bad-imports");
    let pods =
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n";
    for (text, error) in [
        (
            "jobid,submitted_time,duration,gpus\na,noon,5,1\n".to_owned(),
            "t:2: column submitted_time: `noon` is neither a number of seconds nor a date and time",
        ),
        (
            "job_id,submit_time,duration,num_gpu\na,0,5,many\n".to_owned(),
            "t:2: column num_gpu: `many` is not a whole number",
        ),
        ("job_id,submit_time,duration\na,0,5\n".to_owned(), "t: column `num_gpu` is missing"),
        (
            format!("{pods}p,1,1,1,1500,0,1,0\n"),
            "t:2: column gpu_milli: `1500` is not a share of a GPU: 1 to 1000 thousandths, below 1000 only of \
             a single one",
        ),
        (
            "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,1000\n".to_owned(),
            "t: column `creation_time` is missing",
        ),
    ] {
        write(&dir, "t", text);
        let refused = refused(&dir, &["--trace", "t", "--nodes", "2"]);
        assert_eq!(refused.err, format!("error: {error}\n"));
    }
    write(&dir, "n", "sn,cpu_milli,memory_mib,gpu,model\nx,1,1,-1,\n");
    let refused_nodes = refused(&dir, &["--workload", "training", "--nodes", "n"]);
    assert_eq!(refused_nodes.err, "error: n:2: column gpu: `-1` is below zero\n");
    let list = refused(&dir, &["--trace", "n", "--nodes", "2"]);
    let error = "error: n: this is a list of nodes, not a trace of jobs: give it with --nodes\n";
    assert_eq!(list.err, error);
}

#[test]
fn bad_availability_record_is_refused() {
    let dir = empty_dir("bad-availability");
    write(&dir, "pool.yaml", POOL);
    write(&dir, "zone.json", "{\"metadata\": {\"gap_seconds\": 600}, \"data\": [1, \"two\"]}");
    write(&dir, "good.json", "{\"metadata\": {\"gap_seconds\": 600}, \"data\": [1]}");
    let with = |record: &str| refused(&dir, &["pool.yaml", "--availability", record]).err;
    assert_eq!(
        with("a=zone.json"),
        "error: zone.json:1:52: invalid type: string \"two\", expected u32\n"
    );
    assert_eq!(
        with("b=good.json"),
        "error: --availability b=good.json: no pool has an offering in zone b\n"
    );
    assert!(with("a=gone.json").starts_with("error: gone.json: cannot be opened: "));
    assert!(with("a").contains("a zone and a file belong here, such as us-east-1a=record.json"));
}
