use crate::intake::manifests::*;
use crate::intake::record::Task;

const JOB: &str = "
apiVersion: batch/v1
kind: Job
metadata: {name: hello, namespace: team}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  backoffLimit: 3
  template:
    metadata: {annotations: {muster.sh/queue: research}}
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: busybox, command: [echo], args: [hello], env: [{name: A, value: b}], resources: {requests: {cpu: 1}}}
";

#[test]
fn job_becomes_a_gang_of_local_commands() {
    let intake = read("job.yaml", JOB).expect("a job");
    let [gang] = intake.gangs.as_slice() else { panic!("one gang") };
    assert_eq!(&*gang.spec.name, "team/hello");
    assert_eq!(gang.spec.min_members(), 2);
    assert_eq!(gang.run_policy.retries, 3);
    let [Task::Run(run)] = gang.tasks.as_slice() else { panic!("one command") };
    assert_eq!(run.command, ["echo", "hello"]);
    assert_eq!(run.env.get("A").map(String::as_str), Some("b"));
    assert!(gang.warnings[0].contains("`busybox` is not pulled"), "{:?}", gang.warnings);
    assert!(intake.queues.is_empty());
}

#[test]
fn findings_beside_a_job_keep_their_lines() {
    let text = format!("{JOB}---\nkind: Gang\nmetadata: {{name: a}}\nspec: {{rols: []}}\n");
    let findings = read("both.yaml", &text).expect_err("a typo");
    let line = JOB.lines().count() + 4;
    assert!(findings.iter().any(|finding| finding.line == line), "{findings:?}");
}

#[test]
fn workload_without_a_command_is_refused() {
    let text = JOB.replace("command: [echo], args: [hello], ", "");
    let findings = read("job.yaml", &text).expect_err("no command");
    assert!(findings[0].reason.contains("says no command"), "{findings:?}");
}

#[test]
fn arguments_without_command_are_refused() {
    let text = JOB.replace("command: [echo], ", "");
    let findings = read("job.yaml", &text).expect_err("no command");
    assert!(findings[0].reason.contains("says no command"), "{findings:?}");
}

#[test]
fn variable_from_a_secret_gives_a_warning() {
    let secret = "{name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}";
    let text = JOB.replace("{name: A, value: b}", &format!("{{name: A, value: b}}, {secret}"));
    let intake = read("job.yaml", &text).expect("a job");
    let warnings = &intake.gangs[0].warnings;
    assert!(warnings.iter().any(|one| one.contains("variable KEY is not set")), "{warnings:?}");
    assert!(!warnings.iter().any(|one| one.contains("variable A")), "{warnings:?}");
}

#[test]
fn mpi_workers_without_command_sleep_and_slots_must_be_positive() {
    let job = |slots: &str| {
        format!(
            "
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {{name: ring}}
spec:
  slotsPerWorker: {slots}
  mpiReplicaSpecs:
    Launcher: {{template: {{spec: {{containers: [{{name: l, image: mpi, command: [mpirun, ring]}}]}}}}}}
    Worker: {{replicas: 2, template: {{spec: {{containers: [{{name: w, image: mpi}}]}}}}}}
"
        )
    };
    let intake = read("mpi.yaml", &job("2")).expect("a job");
    let gang = &intake.gangs[0];
    let commands: Vec<String> = gang
        .tasks
        .iter()
        .map(|task| match task {
            Task::Run(run) => run.command.join(" "),
            Task::Pass(_) => "passes".to_owned(),
        })
        .collect();
    assert_eq!(commands, ["mpirun ring", "sleep infinity"]);
    let mpi = gang.mpi.as_ref().expect("a job of MPI");
    assert_eq!((mpi.slots, mpi.with_launcher), (2, false));
    for wrong in ["0", "-1", "many"] {
        let findings = read("mpi.yaml", &job(wrong)).expect_err("no number of slots");
        assert!(findings[0].reason.contains("slotsPerWorker"), "{findings:?}");
    }
}

#[test]
fn workload_names_with_control_characters_or_paths_are_refused() {
    let job = |name: &str, namespace: &str| {
        let object = serde_json::json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"template": {"spec": {"containers": [{"name": "a", "command": ["true"]}]}}},
        });
        read("jobs.json", &object.to_string())
    };
    assert!(job("good.name-1", "team-a").is_ok());
    let long = "a".repeat(300);
    for bad in ["", "../..", "a\nb", "\u{1b}[2J", "\0", "a/b", "A", "a b", &long] {
        let findings = job(bad, "team-a").expect_err("no name");
        assert_eq!(findings[0].field, "metadata.name", "{bad:?}");
        assert!(!findings[0].reason.contains(char::is_control), "{findings:?}");
        let findings = job("good", bad).expect_err("no namespace");
        assert_eq!(findings[0].field, "metadata.namespace", "{bad:?}");
    }
}
