//! MPI jobs: the launcher runs `mpirun`, and each worker is one of its hosts.

use std::path::Path;
use std::process::Command;

use super::control_plane::{ControlPlane, TestDir};
use super::run::printed;
use crate::muster::{command, finish};

/// Nodes with room for one member each.
const POOL: &str = "
kind: Pool
metadata: {name: cloud}
spec:
  tier: on-demand
  provider: {simulated: {boot: {launch: 10s, register: 5s, sigma: 0.3}}}
  offerings:
  - {instanceType: small, zone: a, price: 1, allocatable: {cpu: 100m, memory: 4Gi}, bootTime: 20s}
  limits: {nodes: 3}
";

fn job(launcher: &str, worker: &str) -> String {
    format!(
        "
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {{name: ring}}
spec:
  slotsPerWorker: 2
  mpiReplicaSpecs:
    Launcher:
      template: {{spec: {{containers: [{{name: l, image: mpi, command: [sh, -c, '{launcher}'], resources: {{requests: {{cpu: 10m, memory: 64Mi}}}}}}]}}}}
    Worker:
      replicas: 2
      template: {{spec: {{containers: [{{name: w, image: mpi, {worker} resources: {{requests: {{cpu: 10m, memory: 32Mi}}}}}}]}}}}
"
    )
}

/// Whether the programs are installed; prints a message if not. A skipped test does not fail.
fn is_installed(programs: &[&str]) -> bool {
    let runs = |program: &&str| {
        let said = Command::new(program).arg("--version").output();
        said.is_ok_and(|said| said.status.success())
    };
    let missing = programs.iter().find(|program| !runs(program));
    if let Some(missing) = missing {
        eprintln!("SKIPPED: there is no {missing} here (Debian: openmpi-bin, libopenmpi-dev)");
    }
    missing.is_none()
}

fn run(place: &TestDir, text: &str) -> crate::muster::Outcome {
    let file = place.0.join("job.yaml");
    std::fs::write(&file, text).expect("written");
    let data = place.data();
    finish(command().args(["run", "--speed", "60"]).arg(file).arg("--data").arg(data))
}

fn said_by_launcher(data: &Path) -> Vec<String> {
    let mut lines: Vec<String> = printed(data, 1)[0].lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn mpi_program_runs_on_the_nodes_of_its_workers() {
    if !is_installed(&["mpirun", "mpicc"]) {
        return;
    }
    let place = TestDir::new("mpi of mine");
    let example =
        std::fs::read_to_string(crate::muster::root().join("examples/workloads/mpi.yaml"));
    let text = format!("{}---{POOL}", example.expect("an example"));
    let outcome = run(&place, &text).exits(0);
    let said = said_by_launcher(&place.data());
    assert_eq!(said.len(), 5, "{said:?}\n{}", outcome.err);
    assert_eq!(said[0], "pi is about 3.141592654");
    let mut nodes = Vec::new();
    for (rank, line) in said[1..].iter().enumerate() {
        let (begins, node) = line.split_once(", node ").expect("a node");
        assert_eq!(begins, format!("rank {rank} of 4 is on worker {}", rank / 2));
        nodes.push(node.to_owned());
    }
    assert!(nodes[0] == nodes[1] && nodes[1] != nodes[2] && nodes[2] == nodes[3], "{nodes:?}");
}

#[test]
fn failed_mpi_rank_fails_the_gang_and_leaves_no_process() {
    if !is_installed(&["mpirun"]) {
        return;
    }
    let place = TestDir::new("mpi-fails");
    let launcher =
        "mpirun --allow-run-as-root sh -c \"[ \\$OMPI_COMM_WORLD_RANK = 3 ] && exit 7; sleep 300\"";
    let outcome = run(&place, &job(launcher, "")).exits(1);
    assert!(outcome.out.contains("Failed"), "{}", outcome.out);
    assert!(outcome.out.contains("returned 7"), "{}", outcome.out);
    assert_eq!(place.processes(), [], "all are gone");
}

#[test]
fn cancelled_mpi_job_leaves_no_ranks() {
    if !is_installed(&["mpirun"]) {
        return;
    }
    let place = TestDir::new("mpi-cancelled");
    let up = ControlPlane::start(&place.data(), &[]);
    let (code, answer) =
        up.apply(&job("mpirun --allow-run-as-root sleep 300", ""), None).expect("an answer");
    assert_eq!(code, 200, "{answer}");
    let ranks = || place.processes().iter().filter(|(_, what)| what.trim() == "sleep 300").count();
    up.until("four ranks run", |_| (ranks() == 4).then_some(()));
    let (code, answer) = up.post("/v1/namespaces/default/gangs/ring/cancel", "");
    assert_eq!(code, 200, "{answer}");
    up.until_over("ring");
    assert_eq!(ranks(), 0);
}

/// Needs no MPI: the launcher does what `mpirun` does.
#[test]
fn processes_of_a_launcher_belong_to_the_worker_they_run_on() {
    let place = TestDir::new("door");
    // The worker and the process started through the remote shell print the same.
    let account = "echo $MUSTER_ROLE $MUSTER_ROLE_INDEX $OWN; cat /proc/self/cgroup";
    let launcher = format!(
        "cat $MUSTER_HOSTFILE; echo --; \
         $OMPI_MCA_plm_rsh_agent ring-worker-1 \"echo \\${{RANK:-no}} rank; {}\"; \
         $OMPI_MCA_plm_rsh_agent nowhere true; echo $?",
        account.replace('$', "\\$"),
    );
    let worker = format!(
        "command: [sh, -c, '{account}; exec sleep infinity'], env: [{{name: OWN, value: mine}}],"
    );
    run(&place, &job(&launcher, &worker)).exits(0);
    let all = printed(&place.data(), 1);
    let [launcher, _, second] = all.as_slice() else { panic!("three members: {all:?}") };
    assert!(second.starts_with("worker 1 mine\n"), "{second}");
    let expected =
        format!("ring-worker-0 slots=2\nring-worker-1 slots=2\n--\nno rank\n{second}255\n");
    assert_eq!(*launcher, expected);
}
