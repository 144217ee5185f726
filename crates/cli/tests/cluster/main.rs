//! `muster why` against a real API server, with statuses written as a controller writes them.

use std::path::Path;
use std::process::Command;

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use muster_testkit::cluster::{Cluster, Role, Setup};
use serde_json::{Value, json};

/// Code, standard output and standard error of `muster`, with an otherwise empty environment.
fn muster(
    kubeconfig: &Path,
    home: &Path,
    env: &[(&str, &str)],
    args: &[&str],
) -> (i32, String, String) {
    let said = Command::new(env!("CARGO_BIN_EXE_muster"))
        .args(args)
        .env_clear()
        .env("HOME", home)
        .env("KUBECONFIG", kubeconfig)
        .envs(env.iter().copied())
        .output()
        .expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (said.status.code().unwrap_or(-1), text(&said.stdout), text(&said.stderr))
}

async fn write(cluster: &Cluster, kind: (&str, &str, &str), name: &str, status: Value) {
    let (group, version, kind) = kind;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let client = cluster.client(Role::Admin).await;
    let objects: Api<DynamicObject> = Api::namespaced_with(client, "team-a", &resource);
    let patch = Patch::Merge(json!({ "status": status }));
    objects.patch_status(name, &PatchParams::default(), &patch).await.expect("a status");
}

fn gang(name: &str) -> String {
    format!(
        "---\napiVersion: muster.sh/v1alpha1\nkind: Gang\nmetadata: {{name: {name}, namespace: team-a}}\nspec: {{roles: [{{name: worker, min: 2}}]}}\n"
    )
}

const POD: &str = "
---
apiVersion: v1
kind: Pod
metadata: {name: alone, namespace: team-a}
spec:
  schedulerName: muster
  containers: [{name: worker, image: none}]
";

#[tokio::test(flavor = "multi_thread")]
async fn why_explains_gangs_and_pods_of_a_cluster() {
    let Some(cluster) = Cluster::start_or_skip(Setup::bare()).await else { return };
    let crds = muster_api::crd::definitions();
    let crds: String = crds.iter().map(|crd| format!("---\n{}\n", crd.object)).collect();
    cluster.apply(&crds).await.expect("the CRDs are good");
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a}\n";
    cluster
        .apply(&format!("{namespace}{}{}{POD}", gang("late.job"), gang("busy")))
        .await
        .expect("objects");
    let own = |kind| ("muster.sh", "v1alpha1", kind);
    let waits = json!({"phase": "Waiting", "message": "#3 in line: no room", "position": 3, "waitingSince": "2026-01-01T00:00:00Z"});
    write(&cluster, own("Gang"), "late.job", waits).await;
    write(&cluster, own("Gang"), "busy", json!({"phase": "Running", "message": "running"})).await;
    let status = json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "it fits nowhere"}]});
    write(&cluster, ("", "v1", "Pod"), "alone", status).await;

    let kubeconfig = cluster.kubeconfig(Role::Observer);
    let home = cluster.folder().to_owned();
    // A control plane that was found on this machine, and not named, is not asked when a namespace is given.
    let data = home.join("data");
    std::fs::create_dir_all(&data).expect("a folder");
    std::fs::write(data.join("server.json"), r#"{"url": "http://127.0.0.1:1"}"#).expect("a file");
    let found = [("MUSTER_DATA", data.to_str().expect("a path"))];
    let why = |name: &str| muster(&kubeconfig, &home, &found, &["why", "-n", "team-a", name]);

    let (code, out, err) = why("late");
    assert_eq!((code, &*err), (0, ""), "{out}");
    assert!(out.starts_with("team-a/late.job: #3 in line: no room\n"), "{out}");
    assert!(out.contains("number 3 in line"), "{out}");
    assert_eq!(why("busy"), (0, "team-a/busy: running\n".to_owned(), String::new()));
    assert_eq!(why("alone"), (0, "team-a/alone: it fits nowhere\n".to_owned(), String::new()));
    let (code, out, err) = why("nobody");
    assert_eq!((code, &*out), (1, ""), "{err}");
    assert!(err.contains("no gang and no pod in namespace team-a is called nobody"), "{err}");
    assert!(err.contains("busy, late.job"), "{err}");

    // A control plane that is named is asked.
    let named = [&["why", "-n", "team-a", "busy", "--server", "http://127.0.0.1:1"][..]];
    for args in named {
        let (code, _, err) = muster(&kubeconfig, &home, &found, args);
        assert!(code == 1 && err.contains("127.0.0.1:1"), "{code} {err}");
    }
    let server = [("MUSTER_SERVER", "http://127.0.0.1:1")];
    let (code, _, err) = muster(&kubeconfig, &home, &server, &["why", "-n", "team-a", "busy"]);
    assert!(code == 1 && err.contains("127.0.0.1:1"), "{code} {err}");
    let (code, out, _) =
        muster(&kubeconfig, &home, &server, &["why", "--kube", "-n", "team-a", "busy"]);
    assert_eq!((code, &*out), (0, "team-a/busy: running\n"));
}
