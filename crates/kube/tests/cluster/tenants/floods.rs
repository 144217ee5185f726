//! Floods: however much a tenant asks for in its namespace, and however much of it is refused, others start on time and the
//! API server is asked no more than it can bear.

use std::time::{Duration, Instant};

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use muster_testkit::cluster::Role;
use serde_json::json;

use super::tenancy::gang;
use super::{TENANT, Tenancy, VICTIM};
use crate::asked::{Asked, Verb, busiest_second, summary};
use crate::controller::Controller;
use crate::observer::Kind;
use crate::proxy::Proxy;
use crate::refusal::refuse_pods_of;

/// Gangs whose pods are refused.
const REFUSED: u32 = 40;
/// For how long requests are counted.
const WHILE: Duration = Duration::from_secs(30);

/// Requests for the tenant's namespace that would change something.
fn for_tenant(asked: &[Asked]) -> Vec<Asked> {
    let mine = asked.iter().filter(|one| one.path.contains(&format!("/namespaces/{TENANT}/")));
    mine.filter(|one| one.verb.writes()).cloned().collect()
}

fn creates(asked: &[Asked]) -> usize {
    asked.iter().filter(|one| one.verb == Verb::Create && one.resource == "pods").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_members_are_retried_slowly_and_the_lease_is_kept() {
    let Some(tenancy) = Tenancy::start(4).await else { return };
    refuse_pods_of(&tenancy, TENANT).await;
    let proxy = Proxy::start(&tenancy, 1).await;
    let mut controller = Controller::behind(&proxy, &tenancy, &["--lease-duration", "15s"]);
    tenancy.victim_starts("before", 1, 8).await;
    let began = Instant::now();
    for at in 0..REFUSED {
        tenancy.tenant_applies(&gang(TENANT, &format!("refused-{at}"), 10_000, 1, "")).await;
    }
    tenancy.victim_starts("train", 2, 8).await;
    eprintln!("the victim started {:?} after the first of them", began.elapsed());
    tokio::time::sleep_until((began + WHILE).into()).await;
    let asked = for_tenant(&proxy.asked(began));
    eprintln!(
        "in {:?}: {}; busiest second {}",
        began.elapsed(),
        summary(&asked),
        busiest_second(&asked)
    );
    // A probe for each, a burst, and then two refusals a second.
    let most = (REFUSED + 64 + 2 * 30 + 20) as usize;
    assert!(creates(&asked) >= REFUSED as usize, "it was not even tried");
    assert!(creates(&asked) <= most, "{} of at most {most}", creates(&asked));
    assert!(!controller.has_ended(), "the lease was lost");
    tenancy.victim_starts("after", 1, 8).await;
    // Their owner is told, although there is no pod to tell.
    tenancy
        .until_status(TENANT, "refused-0", |status| {
            status["message"].as_str().is_some_and(|said| said.contains("cannot be made"))
        })
        .await;
    assert_eq!(tenancy.pods(TENANT).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn gangs_and_members_beyond_their_bounds_are_told_and_hold_no_other_back() {
    let Some(tenancy) = Tenancy::start(3).await else { return };
    let proxy = Proxy::start(&tenancy, 1).await;
    let args =
        ["--leader-elect=false", "--max-gang-members", "100", "--max-gangs-per-namespace", "20"];
    let _controller = Controller::behind(&proxy, &tenancy, &args);
    tenancy.victim_starts("before", 1, 8).await;
    let began = Instant::now();
    tenancy.tenant_applies(&gang(TENANT, "huge", 1_000_000, 1, "")).await;
    tenancy.tenant_applies(&gang(TENANT, "more", 101, 1, "")).await;
    // None of them fits on any node, so all of them wait.
    for at in 0..30 {
        tenancy.tenant_applies(&gang(TENANT, &format!("many-{at}"), 1, 9, "")).await;
    }
    tenancy.victim_starts("train", 1, 8).await;
    for name in ["huge", "more"] {
        tenancy
            .until_status(TENANT, name, |status| {
                status["message"].as_str().is_some_and(|said| said.contains("--max-gang-members"))
            })
            .await;
    }
    let mut left_out = 0;
    tenancy
        .until("ten are left out", async || {
            left_out = 0;
            for at in 0..30 {
                let said = tenancy.status(TENANT, &format!("many-{at}")).await["message"].clone();
                let said = said.as_str().unwrap_or_default().to_owned();
                left_out += u32::from(said.contains("--max-gangs-per-namespace"));
            }
            (left_out == 10).then_some(())
        })
        .await;
    assert!(tenancy.pods(TENANT).await.len() <= 30, "members of a gang that is too large");
    // Deleted and made again, over and over: what is asked for is bounded by what the tenant asks.
    let gangs: Api<DynamicObject> =
        Api::namespaced_with(tenancy.client(Role::Tenant).await, TENANT, &Kind::Gang.resource());
    for round in 0..20 {
        let patch = Patch::Merge(json!({"spec": {"roles": [{"name": "worker", "min": 102 + round,
            "resources": {"nvidia.com/gpu": 1}, "template": {"spec": {"containers": [{"name": "worker", "image": "none"}]}}}]}}));
        gangs.patch("more", &PatchParams::default(), &patch).await.expect("rewritten");
    }
    tenancy.victim_starts("after", 1, 8).await;
    let asked = for_tenant(&proxy.asked(began));
    eprintln!(
        "in {:?}: {}; busiest second {}",
        began.elapsed(),
        summary(&asked),
        busiest_second(&asked)
    );
    assert!(creates(&asked) <= 40, "{}", summary(&asked));
    let events = asked.iter().filter(|one| one.resource == "events").count();
    let most = 25 + 2 * began.elapsed().as_secs() as usize + 2;
    assert!(events <= most, "{events} events, at most {most}");
    assert_eq!(tenancy.bound(VICTIM, "").await, 3);
}
