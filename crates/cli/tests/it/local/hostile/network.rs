//! Clients without a credential: other local users, pages in a browser, and arbitrary connections.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, Instant};

use super::{as_nobody, gang, wrapped};
use crate::local::control_plane::{ControlPlane, TestDir};
use crate::local::http::{ask, json};
use crate::muster::{command, empty_dir, finish, write, write_private};

#[test]
fn every_operation_but_health_needs_a_credential() {
    let place = TestDir::new("hostile-none");
    let up = ControlPlane::start(&place.data(), &["--no-local"]);
    let (_, document) = ask(up.address(), "GET", "/openapi.json", &[], "").expect("open");
    let document = json(&document);
    let half = format!("Bearer {}", &up.token()[..32]);
    let mut asked = 0;
    for (path, methods) in document["paths"].as_object().expect("paths") {
        let open = matches!(path.as_str(), "/healthz" | "/readyz" | "/openapi.json");
        let path = path.replace("{namespace}", "default").replace("{name}", "a");
        for method in methods.as_object().expect("methods").keys() {
            let method = method.to_uppercase();
            for shown in ["", "Bearer ", "Bearer null", "Basic bG9jYWw6", &half] {
                let headers = [("authorization", shown)];
                let headers = if shown.is_empty() { &headers[1..] } else { &headers[..] };
                let (code, _) = ask(up.address(), &method, &path, headers, "").expect("an answer");
                assert_eq!(code, if open { 200 } else { 401 }, "{method} {path} with `{shown}`");
                asked += 1;
            }
        }
    }
    assert!(asked > 100, "{asked}");
    assert_eq!(up.get("/v1/whoami")["role"], "admin");
}

#[test]
fn another_local_user_reads_no_file_and_runs_no_command() {
    let place = TestDir::new("hostile-user");
    let data = place.data();
    // The mode that a careless administrator leaves.
    std::fs::create_dir_all(&data).expect("made");
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).expect("ours");
    let up = ControlPlane::start(&data, &[]);
    let secret = gang("secret", "default", "echo $KEY; sleep 60")
        .replace("command:", "env: {KEY: hunter2}, command:");
    assert_eq!(up.apply(&secret, None).expect("an answer").0, 200);
    up.until("it talks", |_| {
        let said = std::fs::read_to_string(data.join("runs/1/logs/0.out")).unwrap_or_default();
        said.contains("hunter2").then_some(())
    });
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("there").mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for file in ["muster.db", "muster.db-wal", "server.json", "token", "audit.jsonl", "lock"] {
        assert_eq!(mode(&data.join(file)) & 0o077, 0, "{file}");
    }
    let socket = data.join("runs/1/socket");
    assert_eq!(mode(&socket) & 0o077, 0, "the socket of a keeper");
    let url = format!("http://{}", up.address());
    let path = |file: &str| data.join(file).to_string_lossy().into_owned();
    for file in [
        "muster.db",
        "muster.db-wal",
        "server.json",
        "token",
        "runs/1/run.json",
        "runs/1/logs/0.out",
    ] {
        let Some((read, said)) = as_nobody(&["cat", &path(file)]) else { return };
        assert!(!read && said.contains("Permission denied"), "{file}: {said}");
    }
    let curl = |more: &[&str]| {
        let all = [&["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}"], more].concat();
        as_nobody(&all).expect("asked before").1
    };
    let mine = gang("theirs", "default", "id");
    assert_eq!(curl(&[&format!("{url}/v1/whoami")]), "401");
    assert_eq!(curl(&["--data-binary", &mine, &format!("{url}/v1/apply")]), "401");
    assert_eq!(
        curl(&["-X", "DELETE", &format!("{url}/v1/namespaces/default/gangs/secret")]),
        "401"
    );
    assert_eq!(curl(&[&format!("{url}/v1/namespaces/default/gangs/secret/logs")]), "401");
    assert_eq!(curl(&[&format!("{url}/healthz")]), "200");
    assert_eq!(up.get("/v1/gangs")["items"].as_array().expect("items").len(), 1);
}

#[test]
fn sign_in_cookie_is_unusable_for_other_origins() {
    let place = TestDir::new("hostile-page");
    let up = ControlPlane::start(&place.data(), &["--no-local"]);
    let wrong = ask(up.address(), "GET", "/login?token=guess", &[], "").expect("an answer");
    assert_eq!(wrong.0, 401);
    // The tests' HTTP client returns no headers: they are read here.
    let mut stream = TcpStream::connect(up.address()).expect("a connection");
    let head = format!(
        "GET /login?token={} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
        up.token(),
        up.address()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("one");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!answer.contains(up.token()), "the cookie is not the token: {answer}");
    let cookie = cookie.split(';').next().expect("a pair").to_owned();
    let own = format!("http://{}", up.address());
    let page = |method: &str, path: &str, more: &[(&str, &str)]| {
        let headers = [&[("cookie", cookie.as_str())], more].concat();
        let body =
            if method == "POST" { "kind: Queue\nmetadata: {name: q}\nspec: {}\n" } else { "" };
        ask(up.address(), method, path, &headers, body).expect("an answer").0
    };
    assert_eq!(page("GET", "/v1/whoami", &[]), 200);
    assert_eq!(page("POST", "/v1/apply", &[]), 403, "it does not say whose page it is");
    assert_eq!(page("POST", "/v1/apply", &[("origin", "http://127.0.0.1:3000")]), 403);
    assert_eq!(page("POST", "/v1/apply", &[("origin", "null")]), 403);
    assert_eq!(page("GET", "/v1/gangs", &[("sec-fetch-site", "same-site")]), 403);
    assert_eq!(page("POST", "/v1/apply", &[("origin", &own)]), 200);
}

#[test]
fn silent_connections_block_no_client_and_fail_no_gang() {
    // This process needs as many file handles.
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("raised");
    let place = TestDir::new("hostile-silent");
    let program = wrapped(&place, "ulimit -n 1024");
    let up = ControlPlane::start_as(&program, &place.data(), &[]);
    let due = gang("due", "default", "true").replace(
        "metadata: {name: due}",
        "metadata: {name: due, annotations: {sim.muster.sh/submit-after: 3s}}",
    );
    assert_eq!(up.apply(&due, None).expect("an answer").0, 200);
    let began = Instant::now();
    let mut silent = Vec::new();
    for _ in 0..1_300 {
        silent.extend(TcpStream::connect(up.address()));
    }
    assert!(silent.len() > 1_200, "{} connections", silent.len());
    for _ in 0..10 {
        assert_eq!(up.get("/v1/whoami")["name"], "local");
    }
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    let over = up.until_over("due");
    assert_eq!(over["status"]["phase"], "Succeeded", "{over}");
    // Silent connections are closed after five seconds.
    let mut last = silent.pop().expect("one");
    last.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    assert!(matches!(last.read(&mut [0; 1]), Ok(0) | Err(_)));
}

#[test]
fn process_on_the_port_of_a_dead_control_plane_gets_no_token() {
    let place = TestDir::new("hostile-port");
    let up = ControlPlane::start(&place.data(), &["--no-local"]);
    let (address, token) = (up.address().to_owned(), up.token().to_owned());
    up.kill();
    assert!(place.data().join("server.json").exists(), "a stale note");
    let thief = TcpListener::bind(&address).expect("the port is free");
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = thief.accept().expect("a client");
        let mut head = [0; 4_096];
        let read = stream.read(&mut head).expect("a request");
        let _ = stream.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n");
        String::from_utf8_lossy(&head[..read]).into_owned()
    });
    let mut whoami = command();
    whoami.args(["whoami"]).env("MUSTER_DATA", place.data()).env("MUSTER_CONFIG", "/nowhere");
    finish(whoami.env_remove("MUSTER_TOKEN").env_remove("MUSTER_SERVER")).exits(1);
    let heard = heard.join().expect("heard");
    assert!(heard.starts_with("GET /v1/whoami"), "{heard}");
    assert!(!heard.contains(&token) && !heard.contains("authorization"), "{heard}");
}

#[test]
fn taken_port_ends_the_command_before_anything_starts() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    for round in 0..6 {
        let dir = empty_dir(&format!("hostile-taken-{round}"));
        let data = dir.join("data");
        let mut up = command();
        up.args(["up", "--listen", &address, "--data"]).arg(&data);
        let ended = finish(&mut up).exits(2);
        assert!(ended.err.contains("cannot listen on"), "{}", ended.err);
        assert!(!ended.err.contains("panicked"), "{}", ended.err);
        assert!(!data.join("muster.db").exists(), "nothing was started");
    }
}

#[test]
fn root_for_others_and_readable_token_files_are_refused() {
    let dir = empty_dir("hostile-root");
    let tokens = "tokens: [{name: a, token: token-of-a-0123456, role: admin}]\n";
    write(&dir, "open.yaml", tokens);
    let up = |more: &[&str]| {
        let mut up = command();
        up.args(["up", "--no-local", "--data"]).arg(dir.join("data")).args(more).current_dir(&dir);
        finish(&mut up)
    };
    let refused = up(&["--tokens", "open.yaml"]).exits(2);
    assert!(refused.err.contains("chmod 600 open.yaml"), "{}", refused.err);
    if !muster_local::may_change_user() {
        assert!(as_nobody(&["true"]).is_none());
        return;
    }
    write_private(&dir, "theirs.yaml", tokens);
    std::os::unix::fs::chown(dir.join("theirs.yaml"), Some(65_534), None).expect("given away");
    assert!(up(&["--tokens", "theirs.yaml"]).exits(2).err.contains("belongs to another user"));
    write_private(&dir, "tokens.yaml", tokens);
    assert!(up(&["--tokens", "tokens.yaml"]).exits(2).err.contains("runAs: USER"));
    assert!(up(&["--no-credentials"]).exits(2).err.contains("--allow-root"));
    assert!(up(&["--listen", "0.0.0.0:0"]).exits(2).err.contains("for other machines"));
    let as_root = tokens.replace("role: admin", "role: admin, runAs: root");
    write_private(&dir, "as-root.yaml", as_root);
    assert!(up(&["--tokens", "as-root.yaml", "--allow-root"]).exits(2).err.contains("not root"));
}
