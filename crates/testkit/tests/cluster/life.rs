//! Start and end of a cluster.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use muster_testkit::cluster::{Cluster, Role, Setup, StartError};
use muster_testkit::testbed::{self, Tool};

#[tokio::test]
async fn cluster_starts_with_the_requested_version() {
    let Some(cluster) = Cluster::start_or_skip(Setup::bare()).await else { return };
    let answer = cluster.client(Role::Viewer).await.apiserver_version().await.expect("a version");
    let version = cluster.version();
    assert_eq!(answer.git_version, format!("v1.{}.{}", version.minor, version.patch));
    assert_eq!((answer.major, answer.minor), ("1".to_owned(), version.minor.to_string()));
    if Tool::ApiServer.supplied().is_none() {
        let modules = testbed::workspace().join("testbed/kubernetes/go.mod");
        let modules = std::fs::read_to_string(modules).expect("the module file");
        let line = format!("k8s.io/kubernetes {}", answer.git_version);
        assert!(modules.contains(&line), "the server says {}", answer.git_version);
    }
}

#[tokio::test]
async fn two_clusters_are_independent() {
    let Some(one) = Cluster::start_or_skip(Setup::bare()).await else { return };
    let Some(other) = Cluster::start_or_skip(Setup::bare()).await else { return };
    one.apply("{apiVersion: v1, kind: Namespace, metadata: {name: here}}").await.expect("applied");
    let names = async |cluster: &Cluster| {
        let namespaces: Api<Namespace> = Api::all(cluster.client(Role::Admin).await);
        let list = namespaces.list(&Default::default()).await.expect("a list").items;
        list.into_iter().filter_map(|namespace| namespace.metadata.name).collect::<Vec<_>>()
    };
    assert!(names(&one).await.contains(&"here".to_owned()));
    assert!(!names(&other).await.contains(&"here".to_owned()));
}

#[tokio::test]
async fn program_that_does_not_start_shows_its_log() {
    match Cluster::start(&Setup::bare().gate("NoSuchGate")).await {
        Err(StartError::Missing(_)) => drop(Cluster::start_or_skip(Setup::bare()).await),
        Err(StartError::Ended(tool, log)) => {
            assert_eq!(tool, Tool::ApiServer);
            assert!(log.contains("NoSuchGate"), "{log}");
        }
        other => panic!("it started with a gate that does not exist: {other:?}"),
    }
}

#[tokio::test]
async fn dropped_cluster_leaves_no_process_and_no_folder() {
    let Some(cluster) = Cluster::start_or_skip(Setup::bare()).await else { return };
    let remains = Remains::of(&cluster);
    assert!(!remains.are_gone(), "what is looked for is there while the cluster runs");
    drop(cluster);
    assert!(remains.are_gone(), "{remains:?}");
}

/// The test runs itself again; the second process starts a cluster, prints its parts, and is killed.
#[tokio::test]
async fn killed_test_leaves_no_process_and_no_folder() {
    const SECOND: &str = "MUSTER_CLUSTER_TO_BE_KILLED";
    if std::env::var_os(SECOND).is_some() {
        let cluster = Cluster::start(&Setup::bare()).await.expect("a cluster");
        println!("{}", Remains::of(&cluster).to_line());
        std::thread::sleep(Duration::from_secs(300));
        panic!("nobody has killed it");
    }
    if Tool::ApiServer.path().is_none() || Tool::Etcd.path().is_none() {
        return drop(Cluster::start_or_skip(Setup::bare()).await);
    }
    let mut second = Command::new(std::env::current_exe().expect("this test's file"))
        .args(["--exact", "life::killed_test_leaves_no_process_and_no_folder", "--nocapture"])
        .env(SECOND, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(second.stdout.take().expect("piped")).lines();
    let remains = lines.map_while(Result::ok).find_map(|line| Remains::from_line(&line));
    let remains = remains.expect("it says what it started");
    assert!(!remains.are_gone());
    second.kill().expect("it can be killed");
    second.wait().expect("it is dead");
    let began = Instant::now();
    while !remains.are_gone() {
        assert!(began.elapsed() < Duration::from_secs(120), "{remains:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The parts of a cluster outside of this process.
#[derive(Debug)]
struct Remains {
    folder: PathBuf,
    processes: Vec<u32>,
}

impl Remains {
    fn of(cluster: &Cluster) -> Self {
        let processes = cluster.processes().into_iter().map(|(_, process)| process).collect();
        Self { folder: cluster.folder().to_owned(), processes }
    }

    fn are_gone(&self) -> bool {
        let alive = |process: &u32| Path::new("/proc").join(process.to_string()).exists();
        !self.folder.exists() && !self.processes.iter().any(alive)
    }

    fn to_line(&self) -> String {
        let processes: Vec<String> = self.processes.iter().map(ToString::to_string).collect();
        format!("remains {} {}", self.folder.display(), processes.join(" "))
    }

    fn from_line(line: &str) -> Option<Self> {
        let (_, line) = line.split_once("remains ")?;
        let (folder, processes) = line.split_once(' ')?;
        let processes = processes.split(' ').map_while(|number| number.parse().ok()).collect();
        Some(Self { folder: folder.into(), processes })
    }
}
