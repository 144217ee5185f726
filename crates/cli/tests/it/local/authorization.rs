//! Roles and queues of tokens, on the real control plane.

use super::control_plane::{ControlPlane, TestDir};
use super::http::ask;

const TOKENS: &str = "
tokens:
- {name: root, token: root-token-0123456789, role: admin}
- {name: eve, token: viewer-token-0123456789, role: viewer}
- {name: ada, token: ada-token-0123456789ab, role: user, queues: [research]}
- {name: bob, token: bob-token-0123456789ab, role: user, queues: [sales]}
";

fn gang(name: &str, queue: &str) -> String {
    format!(
        "{{\"kind\": \"Gang\", \"metadata\": {{\"name\": \"{name}\"}}, \"spec\": {{\"queue\": \"{queue}\", \
         \"roles\": [{{\"name\": \"w\", \"min\": 1, \"run\": {{\"command\": [\"sleep\", \"60\"]}}}}]}}}}"
    )
}

#[test]
fn viewers_change_nothing_and_users_only_their_queues() {
    let place = TestDir::new("rights");
    crate::muster::write_private(&place.0, "tokens.yaml", TOKENS);
    let file = place.0.join("tokens.yaml");
    let up =
        ControlPlane::start(&place.data(), &["--allow-root", "--tokens", &file.to_string_lossy()]);
    let asked = |token: &str, method: &str, path: &str, body: &str| {
        let bearer = format!("Bearer {token}");
        let kind = if path == "/v1/apply" { "application/yaml" } else { "application/json" };
        let headers = [("authorization", bearer.as_str()), ("content-type", kind)];
        ask(up.address(), method, path, &headers, body).expect("an answer")
    };
    let (root, eve) = ("root-token-0123456789", "viewer-token-0123456789");
    let (ada, bob) = ("ada-token-0123456789ab", "bob-token-0123456789ab");
    let queues = "kind: Queue\nmetadata: {name: research}\nspec: {}\n---\nkind: Queue\nmetadata: {name: sales}\nspec: {}\n";
    assert_eq!(asked(ada, "POST", "/v1/apply", queues).0, 403);
    assert_eq!(asked(root, "POST", "/v1/apply", queues).0, 200);
    assert_eq!(asked(ada, "POST", "/v1/apply", &gang("mine", "research")).0, 200);
    let mine = "/v1/namespaces/default/gangs/mine";
    assert_eq!(asked("nobody", "GET", mine, "").0, 401);
    for stranger in [eve, bob] {
        assert_eq!(asked(stranger, "GET", mine, "").0, 200);
        assert_eq!(asked(stranger, "POST", "/v1/apply", &gang("theirs", "research")).0, 403);
        assert_eq!(asked(stranger, "POST", "/v1/apply", &gang("mine", "sales")).0, 403);
        for change in ["cancel", "hold", "release"] {
            assert_eq!(asked(stranger, "POST", &format!("{mine}/{change}"), "").0, 403, "{change}");
        }
        assert_eq!(asked(stranger, "POST", &format!("{mine}/scale"), "{\"max\": 2}").0, 403);
        assert_eq!(asked(stranger, "DELETE", mine, "").0, 403);
        assert_eq!(asked(stranger, "DELETE", "/v1/queues/research", "").0, 403);
    }
    assert_eq!(asked(eve, "POST", "/v1/apply", &gang("eves", "sales")).0, 403);
    assert_eq!(asked(bob, "POST", "/v1/apply", &gang("bobs", "sales")).0, 200);
    let (_, shown) = asked(eve, "GET", mine, "");
    assert!(shown.contains("\"user\":\"ada\"") && !shown.contains("Cancelled"), "{shown}");
    assert_eq!(asked(ada, "POST", &format!("{mine}/cancel"), "").0, 200);
    // Also after its end, the name and the output of a gang belong to its queue.
    up.until("it is over", |_| {
        let (_, shown) = asked(eve, "GET", mine, "");
        shown.contains("Cancelled").then_some(())
    });
    assert_eq!(asked(bob, "POST", "/v1/apply", &gang("mine", "sales")).0, 403);
    // Only an admin may set the user of a gang.
    let forged = gang("forged", "sales").replace("\"queue\"", "\"user\": \"ada\", \"queue\"");
    assert_eq!(asked(bob, "POST", "/v1/apply", &forged).0, 200);
    let (_, shown) = asked(eve, "GET", "/v1/namespaces/default/gangs/forged", "");
    assert!(shown.contains("\"user\":\"bob\""), "{shown}");
    assert_eq!(asked(root, "DELETE", "/v1/namespaces/default/gangs/bobs", "").0, 204);
}
