//! Cases: a small list in, pods, jobs, nodes or a refusal out.

use std::path::Path;

use muster_core::time::{Span, Time};
use proptest::prelude::*;

use crate::trace::error::TraceError;
use crate::trace::formats::openb::*;
use crate::trace::read::Replay;

const HEAD: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,\
                    deletion_time,scheduled_time";

fn replay(rows: &str) -> Result<Replay, TraceError> {
    let file = Path::new("pods.csv");
    jobs(file, parse_pods(file, format!("{HEAD}\n{rows}").as_bytes())?)
}

fn refusal(row: &str) -> String {
    replay(&format!("{row}\n")).unwrap_err().to_string()
}

fn nodes(rows: &str) -> Result<Vec<muster_core::node::NodeSpec>, TraceError> {
    let text = format!("sn,cpu_milli,memory_mib,gpu,model\n{rows}");
    parse_nodes(Path::new("nodes.csv"), text.as_bytes())
}

#[test]
fn pods_are_gangs_of_one_that_run_as_long_as_they_were_scheduled() {
    let replay = replay(
        "whole,12000,16384,8,1000,,LS,Running,50,200,80\n\
         part,6000,1024,1,460,V100M16|V100M32,BE,Failed,10,40,10\n\
         none,500,0,0,0,,BE,Succeeded,20,21,20\n\
         never,500,0,0,0,,BE,Pending,20,21,\n",
    )
    .unwrap();
    let [part, none, whole] = &replay.jobs[..] else { panic!("{replay:?}") };
    assert_eq!((whole.submit, whole.run), (Time(50_000), Span::secs(120)));
    let role = &part.gang.roles[0];
    assert_eq!((role.min, role.request.gpu_milli()), (1, 460));
    assert_eq!(role.constraints.gpu_models, ["V100M16".into(), "V100M32".into()]);
    assert_eq!(role.request.amounts["memory"], 1 << 30);
    assert_eq!(whole.gang.roles[0].request.gpu.as_ref().map(|gpu| gpu.count), Some(8));
    assert_eq!(none.gang.roles[0].request.gpu, None);
    assert_eq!(replay.skipped.iter().map(|skip| skip.line).collect::<Vec<_>>(), [5]);
}

#[test]
fn list_without_times_can_be_read_and_not_replayed() {
    let file = Path::new("pods.csv");
    let text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,1,2,1000\n";
    let pods = parse_pods(file, text.as_bytes()).unwrap();
    assert_eq!(pods[0].request.gpu_milli(), 2_000);
    let refusal = jobs(file, pods).unwrap_err().to_string();
    assert_eq!(refusal, "pods.csv: column `creation_time` is missing");
}

#[test]
fn bad_pods_are_refused_with_file_line_column_and_reason() {
    assert_eq!(
        refusal("a,1000,1,2,500,,LS,Running,0,1,0"),
        "pods.csv:2: column gpu_milli: `500` is not a share of a GPU: 1 to 1000 thousandths, below 1000 only of \
         a single one"
    );
    assert_eq!(
        refusal("a,1000,1,65,1000,,LS,Running,0,1,0"),
        "pods.csv:2: column num_gpu: `65` is more GPUs than a node can have (64)"
    );
    assert_eq!(
        refusal("a,-5,1,1,1000,,LS,Running,0,1,0"),
        "pods.csv:2: column cpu_milli: `-5` is below zero"
    );
    assert_eq!(
        refusal("a,1,99999999999999,1,1000,,LS,Running,0,1,0"),
        "pods.csv:2: column memory_mib: `99999999999999` is too large"
    );
    assert_eq!(
        refusal("a,1,1,1,1000,,LS,Running,,1,0"),
        "pods.csv:2: column creation_time: `` is empty, and this column is required"
    );
    assert_eq!(
        refusal("a,1,1,1,1000,,LS,Running,0,soon,0"),
        "pods.csv:2: column deletion_time: `soon` is not a number of seconds"
    );
    assert_eq!(refusal("a,1,1"), "pods.csv:2: 3 columns where 11 belong");
}

#[test]
fn nodes_have_their_model_and_machines_without_gpus_have_none() {
    let nodes = nodes("n-0,64000,262144,2,P100\nn-1,96000,1024,0,\n").unwrap();
    let kind = nodes[0].gpu.as_ref().unwrap();
    assert_eq!((&*nodes[0].name, nodes[0].gpus, &*kind.model), ("n-0", 2, "P100"));
    assert_eq!((nodes[0].allocatable["cpu"], nodes[1].allocatable["memory"]), (64_000, 1 << 30));
    assert_eq!((nodes[1].gpus, &nodes[1].gpu), (0, &None));
}

#[test]
fn bad_nodes_are_refused_with_file_line_column_and_reason() {
    let refusal = |rows: &str| nodes(rows).unwrap_err().to_string();
    assert_eq!(refusal("n,1,1,two,P100\n"), "nodes.csv:2: column gpu: `two` is not a whole number");
    assert_eq!(
        refusal("n,1,1,1,P100\nn,1,1,1,P100\n"),
        "nodes.csv:3: column sn: `n` is also the name on line 2"
    );
    let bare = parse_nodes(Path::new("nodes.csv"), "sn,gpu\n".as_bytes()).unwrap_err();
    assert_eq!(bare.to_string(), "nodes.csv: column `cpu_milli` is missing");
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "(?s).{0,300}") {
        let _ = replay(&text);
        let _ = nodes(&text);
    }
}
