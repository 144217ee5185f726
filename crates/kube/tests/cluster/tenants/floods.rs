//! Floods: however much a tenant submits in its namespace, and however much of it is refused, others start on time and
//! the requests to the API server stay bounded.

use std::time::{Duration, Instant};

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use muster_testkit::cluster::Role;
use serde_json::json;

use super::tenancy::gang;
use super::{TENANT, Tenancy, VICTIM};
use crate::fixture::api_request::{ApiRequest, Verb, busiest_second, summary};
use crate::fixture::controller::Controller;
use crate::fixture::deny_policy::deny_pods_in;
use crate::fixture::proxy::Proxy;
use crate::observer::Kind;

/// Gangs whose pods are refused.
const REFUSED: u32 = 40;
/// For how long requests are counted.
const WHILE: Duration = Duration::from_secs(30);

/// Writes in the tenant's namespace.
fn for_tenant(requests: &[ApiRequest]) -> Vec<ApiRequest> {
    let mine = requests.iter().filter(|one| one.path.contains(&format!("/namespaces/{TENANT}/")));
    mine.filter(|one| one.verb.writes()).cloned().collect()
}

fn creates(requests: &[ApiRequest]) -> usize {
    requests.iter().filter(|one| one.verb == Verb::Create && one.resource == "pods").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_members_are_retried_slowly_and_the_lease_is_kept() {
    let Some(tenancy) = Tenancy::start(4).await else { return };
    deny_pods_in(&tenancy, TENANT).await;
    let proxy = Proxy::start(&tenancy, 1).await;
    let mut controller = Controller::start_through(&proxy, &tenancy, &["--lease-duration", "15s"]);
    tenancy.victim_starts("before", 1, 8).await;
    let began = Instant::now();
    for at in 0..REFUSED {
        tenancy.tenant_applies(&gang(TENANT, &format!("refused-{at}"), 10_000, 1, "")).await;
    }
    tenancy.victim_starts("train", 2, 8).await;
    eprintln!("the victim started {:?} after the first of them", began.elapsed());
    tokio::time::sleep_until((began + WHILE).into()).await;
    let requests = for_tenant(&proxy.requests_since(began));
    eprintln!(
        "in {:?}: {}; busiest second {}",
        began.elapsed(),
        summary(&requests),
        busiest_second(&requests)
    );
    // A probe for each, a burst, and then two refusals a second.
    let most = (REFUSED + 64 + 2 * 30 + 20) as usize;
    assert!(creates(&requests) >= REFUSED as usize, "no member was tried");
    assert!(creates(&requests) <= most, "{} of at most {most}", creates(&requests));
    assert!(!controller.has_ended(), "the lease was lost");
    tenancy.victim_starts("after", 1, 8).await;
    // The Gang reports it, although there is no pod.
    tenancy
        .until_status(TENANT, "refused-0", |status| {
            status["message"].as_str().is_some_and(|message| message.contains("cannot be created"))
        })
        .await;
    assert_eq!(tenancy.pods(TENANT).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn gangs_over_their_bounds_are_reported_and_delay_no_other() {
    let Some(tenancy) = Tenancy::start(3).await else { return };
    let proxy = Proxy::start(&tenancy, 1).await;
    let args =
        ["--leader-elect=false", "--max-gang-members", "100", "--max-gangs-per-namespace", "20"];
    let _controller = Controller::start_through(&proxy, &tenancy, &args);
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
                status["message"]
                    .as_str()
                    .is_some_and(|message| message.contains("--max-gang-members"))
            })
            .await;
    }
    let mut left_out = 0;
    tenancy
        .until("ten are left out", async || {
            left_out = 0;
            for at in 0..30 {
                let message =
                    tenancy.status(TENANT, &format!("many-{at}")).await["message"].clone();
                let message = message.as_str().unwrap_or_default().to_owned();
                left_out += u32::from(message.contains("--max-gangs-per-namespace"));
            }
            (left_out == 10).then_some(())
        })
        .await;
    assert!(tenancy.pods(TENANT).await.len() <= 30, "members of a gang that is too large");
    // Rewritten over and over: the requests of the controller are bounded by those of the tenant.
    let gangs: Api<DynamicObject> =
        Api::namespaced_with(tenancy.client(Role::Tenant).await, TENANT, &Kind::Gang.resource());
    for round in 0..20 {
        let patch = Patch::Merge(json!({"spec": {"roles": [{"name": "worker", "min": 102 + round,
            "resources": {"nvidia.com/gpu": 1}, "template": {"spec": {"containers": [{"name": "worker", "image": "none"}]}}}]}}));
        gangs.patch("more", &PatchParams::default(), &patch).await.expect("rewritten");
    }
    tenancy.victim_starts("after", 1, 8).await;
    let requests = for_tenant(&proxy.requests_since(began));
    eprintln!(
        "in {:?}: {}; busiest second {}",
        began.elapsed(),
        summary(&requests),
        busiest_second(&requests)
    );
    assert!(creates(&requests) <= 40, "{}", summary(&requests));
    let events = requests.iter().filter(|one| one.resource == "events").count();
    let most = 25 + 2 * began.elapsed().as_secs() as usize + 2;
    assert!(events <= most, "{events} events, at most {most}");
    assert_eq!(tenancy.bound(VICTIM, "").await, 3);
}
