//! Killed at any instant, again and again: nothing is half done, nothing is left over.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, ListParams};
use muster_kube::objects::NodeClaim;
use muster_testkit::cluster::{Cluster, Role};

use crate::controller::Controller;
use crate::observer::Observer;
use crate::stage;
use crate::words::{POOL, job};

/// How often the controller is killed, and how many gangs run meanwhile; more of both with `MUSTER_KILLS=200`.
fn kills() -> u32 {
    std::env::var("MUSTER_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(30)
}

/// A small generator: what it gives is printed by its seed, and comes again with `MUSTER_SEED`.
struct Chance(u64);

impl Chance {
    fn new() -> Self {
        let given = std::env::var("MUSTER_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(1, |now| now.as_millis() as u64)
        });
        eprintln!("seed {seed}: MUSTER_SEED={seed} plays it again");
        Self(seed | 1)
    }
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

async fn done(cluster: &Cluster) -> usize {
    let jobs: Api<Job> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let all = jobs.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
    let is_done =
        |job: &&Job| job.status.as_ref().is_some_and(|status| status.completion_time.is_some());
    all.iter().filter(is_done).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_is_killed_again_and_again_leaves_nothing_half_done() {
    let Some(cluster) = stage::cluster().await else { return };
    let observer = Observer::start(cluster.client(Role::Observer).await);
    cluster.apply(POOL).await.expect("a pool");
    let mut chance = Chance::new();
    let gangs = kills() / 2;
    for at in 0..gangs {
        let (pods, gpus) = (1 + chance.below(4) as u32, 1 << chance.below(4));
        let job = job(&format!("train-{at}"), pods, gpus);
        cluster.apply_as(Role::User, &job).await.expect("a job");
    }
    for _ in 0..kills() {
        let controller = Controller::start(&cluster, &["--no-lease"]);
        tokio::time::sleep(Duration::from_millis(100 + chance.below(900))).await;
        controller.kill();
    }
    let _controller = Controller::start(&cluster, &["--no-lease"]);
    cluster
        .until("every job is done", async || (done(&cluster).await == gangs as usize).then_some(()))
        .await;
    assert_eq!(observer.findings().await, Vec::<String>::new());
    let claims: Api<NodeClaim> = Api::all(cluster.client(Role::Observer).await);
    cluster
        .until("no node is left over", async || {
            let all = claims.list(&ListParams::default()).await.ok()?.items;
            all.is_empty().then_some(())
        })
        .await;
    assert_eq!(observer.findings().await, Vec::<String>::new());
    eprintln!("the longest window was {:?}", observer.window());
}
