//! `muster simulate --openb`: how many of a cluster's GPUs a list of pods can allocate.

use std::path::{Path, PathBuf};

use crate::muster::{Outcome, empty_dir, muster, muster_in, write};

const NODES: &str = "sn,cpu_milli,memory_mib,gpu,model\n\
                     a,32000,65536,2,T4\nb,32000,65536,2,P100\nc,16000,65536,0,\n";
/// Half of the pods ask for a whole GPU, half for half a GPU, and two for none.
const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n\
                    p0,4000,1024,1,1000\np1,4000,1024,1,500\np2,4000,1024,1,1000\np3,4000,1024,1,500\n\
                    p4,2000,1024,0,0\np5,2000,1024,0,0\n";

fn lists(name: &str, nodes: &str, pods: &str) -> PathBuf {
    let dir = empty_dir(name);
    write(&dir, "nodes.csv", nodes);
    write(&dir, "pods.csv", pods);
    dir
}

fn pack(dir: &Path, more: &[&str]) -> Outcome {
    muster_in(dir, &[&["simulate", "--openb", "nodes.csv", "pods.csv"], more].concat())
}

#[test]
fn all_gpus_are_allocated_where_requests_divide_them() {
    let dir = lists("packing", NODES, PODS);
    let run = pack(&dir, &["--seeds", "5", "--inflate", "2", "--json"]).exits(0);
    assert_eq!(run.err, "");
    let summary = &run.json()[0];
    assert_eq!(
        (&summary["gpus"], &summary["seeds"], &summary["nodes"]),
        (&4.into(), &5.into(), &3.into())
    );
    assert_eq!(summary["allocated_percent_mean"], 100.0);
    assert_eq!(summary["allocated_percent_sd"], 0.0);
    assert_eq!(summary["allocated_percent"].as_array().map(Vec::len), Some(5));
    assert!(summary["asked_percent_mean"].as_f64() >= Some(200.0), "{summary}");
    assert!(summary["dropped_mean"].as_f64() > Some(0.0), "{summary}");
}

#[test]
fn longer_pod_list_is_cut_and_shorter_one_is_repeated() {
    let dir = lists("packing_cut", NODES, PODS);
    for (inflate, least, most) in [("0.5", 50.0, 62.5), ("1", 100.0, 112.5)] {
        let summary = pack(&dir, &["--inflate", inflate, "--json"]).exits(0).json()[0].clone();
        let asked = summary["asked_percent_mean"].as_f64().expect("a number");
        assert!((least..=most).contains(&asked), "{inflate}: {summary}");
    }
}

#[test]
fn pods_get_only_the_gpu_models_they_ask_for() {
    let pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n\
                x,1000,1,1,1000,T4|V100\ny,1000,1,1,1000,T4\n";
    let dir = lists("packing_models", NODES, pods);
    let summary = pack(&dir, &["--inflate", "3", "--json"]).exits(0).json()[0].clone();
    assert_eq!(summary["allocated_percent_mean"], 50.0, "only one node of two has the model");
}

#[test]
fn same_seed_gives_same_figures() {
    let dir = lists("packing_seed", NODES, PODS);
    let args = ["--seeds", "3", "--json"];
    assert_eq!(pack(&dir, &args).exits(0).out, pack(&dir, &args).exits(0).out);
}

#[test]
fn default_output_is_a_table() {
    let args = ["simulate", "--openb", "examples/traces/nodes.csv", "examples/traces/pods.csv"];
    let run = muster(&[&args[..], &["--seeds", "2"]].concat()).exits(0);
    assert_eq!(run.err, "");
    assert!(run.out.contains("GPUs allocated, % of all, mean"), "{}", run.out);
}

#[test]
fn bad_lists_are_refused_with_position_and_reason() {
    let refusal =
        |name: &str, nodes: &str, pods: &str| pack(&lists(name, nodes, pods), &[]).exits(2).err;
    let head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n";
    assert_eq!(
        refusal("packing_share", NODES, &format!("{head}a,1,1,2,500\n")),
        "error: pods.csv:2: column gpu_milli: `500` is not a share of a GPU: 1 to 1000 thousandths, below 1000 \
         only of a single one\n"
    );
    assert_eq!(
        refusal("packing_nodes", "sn,cpu_milli,memory_mib,gpu,model\nn,1,1,two,T4\n", PODS),
        "error: nodes.csv:2: column gpu: `two` is not a whole number\n"
    );
    assert_eq!(
        refusal("packing_none", "sn,cpu_milli,memory_mib,gpu,model\nn,1,1,0,\n", PODS),
        "error: nodes.csv: no node has a GPU, there is nothing to fill\n"
    );
    assert_eq!(
        refusal("packing_cpu", NODES, &format!("{head}a,1,1,0,0\n")),
        "error: pods.csv: no pod asks for a GPU, there is nothing to place\n"
    );
}

#[test]
fn options_without_meaning_for_packing_are_refused() {
    let dir = lists("packing_misused", NODES, PODS);
    for more in
        [&["--policy", "easy"][..], &["--nodes", "4"], &["--inflate", "0"], &["--seeds", "0"]]
    {
        let run = pack(&dir, more).exits(2);
        assert!(run.err.contains(more[0]), "{}", run.err);
    }
    assert!(muster(&["simulate", "--seeds", "3"]).exits(2).err.contains("--openb"));
}
