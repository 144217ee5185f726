//! RBAC of each role, and installation of CRDs.

use kube::Api;
use kube::api::{DynamicObject, ListParams};
use muster_testkit::cluster::{ApplyError, Cluster, Role, Setup};

use super::{kind, nodes, pods};

fn is_forbidden<T>(result: &Result<T, kube::Error>) -> bool {
    matches!(result, Err(kube::Error::Api(status)) if status.code == 403)
}

#[tokio::test]
async fn each_role_has_its_own_permissions_only() {
    let Some(cluster) = Cluster::start_or_skip(Setup::bare()).await else { return };
    let all = ListParams::default();
    let note = "{apiVersion: v1, kind: ConfigMap, metadata: {name: note, namespace: default}}";
    let may_write = async |role| match cluster.apply_as(role, note).await {
        Ok(()) => true,
        Err(ApplyError::Refused(_, kube::Error::Api(status))) if status.code == 403 => false,
        Err(error) => panic!("{role:?}: {error}"),
    };
    let may_see_pods = async |role| !is_forbidden(&pods(&cluster, role).await.list(&all).await);
    let may_see_nodes = async |role| !is_forbidden(&nodes(&cluster, role).await.list(&all).await);
    let may =
        async |role| (may_see_pods(role).await, may_see_nodes(role).await, may_write(role).await);
    assert_eq!(may(Role::Admin).await, (true, true, true));
    assert_eq!(may(Role::User).await, (true, false, true));
    assert_eq!(may(Role::Viewer).await, (true, false, false));
    assert_eq!(may(Role::Observer).await, (true, true, false));
    assert_eq!(may(Role::Muster).await, (false, false, false), "its manifests say what it may");
}

#[tokio::test]
async fn kind_of_an_applied_crd_is_served_at_once() {
    let Some(cluster) = Cluster::start_or_skip(Setup::bare()).await else { return };
    let yaml = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tunes.testbed.muster.sh}
spec:
  group: testbed.muster.sh
  scope: Namespaced
  names: {kind: Tune, plural: tunes, singular: tune}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {beats: {type: integer}}}}}}
---
apiVersion: testbed.muster.sh/v1
kind: Tune
metadata: {name: march, namespace: default}
spec: {beats: 4}
";
    cluster.apply(yaml).await.expect("applied");
    let tunes: Api<DynamicObject> = Api::namespaced_with(
        cluster.client(Role::Observer).await,
        "default",
        &kind("testbed.muster.sh", "v1", "Tune"),
    );
    assert_eq!(tunes.get("march").await.expect("it is there").data["spec"]["beats"], 4);
}
