//! A proxy in front of the API server that answers badly when told to, and counts what it is asked.
//!
//! What becomes of the n-th request to a path hangs on the seed alone, so that a run can be played again as far as its
//! requests are the same.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use muster_testkit::cluster::{Cluster, Role};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::asked::{Asked, Verb};
use crate::chance::Chance;
use crate::fate::{Fate, Faults, fate};

/// Answers that are kept of one list.
const KEPT: usize = 12;

type Answer = Response<UnsyncBoxBody<Bytes, Broken>>;

/// Why there is no answer: the connection ends instead.
#[derive(Debug, thiserror::Error)]
#[error("cut off")]
pub(crate) struct Broken;

/// A proxy. It ends when it is dropped.
pub(crate) struct Proxy {
    desk: Arc<Desk>,
    kubeconfig: PathBuf,
    open: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// What all connections share.
struct Desk {
    client: Client,
    seed: u64,
    books: Mutex<Books>,
    /// Counted up to end every watch.
    cuts: watch::Sender<u32>,
}

#[derive(Default)]
struct Books {
    faults: Faults,
    asked: Vec<Asked>,
    /// How often each path was asked for.
    times: BTreeMap<String, u32>,
    /// What lists were answered with, the last of them.
    lists: BTreeMap<String, Vec<Bytes>>,
    /// Which pods were to be bound to which nodes.
    bindings: Vec<(String, String)>,
}

impl Proxy {
    /// A proxy that passes everything on, as Muster.
    pub(crate) async fn start(cluster: &Cluster, seed: u64) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("it has one");
        let kubeconfig = cluster.folder().join("proxy.kubeconfig");
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": format!("http://{address}")}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": ""}}],
        });
        std::fs::write(&kubeconfig, text.to_string()).expect("a file");
        let client = cluster.client(Role::Muster).await;
        let desk = Desk { client, seed, books: Mutex::default(), cuts: watch::Sender::new(0) };
        let desk = Arc::new(desk);
        let (open, opened) = watch::channel(true);
        let task = tokio::spawn(listen(desk.clone(), listener, address, opened));
        Self { desk, kubeconfig, open, task }
    }

    /// The file by which a program finds it.
    pub(crate) fn kubeconfig(&self) -> &PathBuf {
        &self.kubeconfig
    }

    /// From now on these faults strike.
    pub(crate) fn set(&self, faults: Faults) {
        self.desk.books().faults = faults;
    }

    /// Ends every watch.
    pub(crate) fn cut(&self) {
        self.desk.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Ends every connection and takes no new ones, until it is opened again.
    pub(crate) fn open(&self, open: bool) {
        self.open.send_replace(open);
    }

    /// Everything it was asked since then.
    pub(crate) fn asked(&self, since: Instant) -> Vec<Asked> {
        let books = self.desk.books();
        books.asked.iter().filter(|asked| asked.at >= since).cloned().collect()
    }

    /// Which pods were to be bound to which nodes.
    pub(crate) fn bindings(&self) -> Vec<(String, String)> {
        self.desk.books().bindings.clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes connections for as long as it is open.
async fn listen(
    desk: Arc<Desk>,
    first: TcpListener,
    address: SocketAddr,
    mut open: watch::Receiver<bool>,
) {
    let mut first = Some(first);
    while open.wait_for(|open| *open).await.is_ok() {
        let listener = match first.take() {
            Some(listener) => listener,
            None => TcpListener::bind(address).await.expect("the port it had"),
        };
        let mut connections = JoinSet::new();
        loop {
            let stream = tokio::select! {
                accepted = listener.accept() => accepted.expect("a connection").0,
                _ = open.wait_for(|open| !*open) => break,
                Some(_) = connections.join_next() => continue,
            };
            let desk = desk.clone();
            let service = service_fn(move |request| desk.clone().answer(request));
            let server = hyper::server::conn::http1::Builder::new();
            connections.spawn(async move {
                // It ends with an error whenever somebody hangs up, which is what it is for.
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    }
}

impl Desk {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect("nobody panics with it")
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Answer, Broken> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| Broken)?.to_bytes();
        let asked = Asked::read(&parts);
        let (fate, delay) = self.note(&asked, &body);
        tokio::time::sleep(delay).await;
        match fate {
            Fate::Refused(code) => return Ok(refusal(code)),
            Fate::TooLate => {
                let event = json!({"type": "ERROR", "object": status(410)});
                return Ok(whole(200, format!("{event}\n").into()));
            }
            Fate::Old(number) => {
                let books = self.books();
                let kept = books.lists.get(&asked.path).filter(|kept| !kept.is_empty());
                if let Some(kept) = kept {
                    return Ok(whole(200, kept[(number % kept.len() as u64) as usize].clone()));
                }
            }
            Fate::Passes { .. } | Fate::Unanswered { .. } => {}
        }
        let mut request = Request::builder().method(parts.method).uri(&asked.path);
        for name in [ACCEPT, CONTENT_TYPE] {
            if let Some(value) = parts.headers.get(&name) {
                request = request.header(name, value);
            }
        }
        let request = request.body(Body::from(body)).map_err(|_| Broken)?;
        let answer = self.client.send(request).await.map_err(|_| Broken)?;
        match fate {
            Fate::Unanswered { closed: true } => return Err(Broken),
            Fate::Unanswered { closed: false } => return Ok(refusal(500)),
            _ => {}
        }
        let (parts, body) = answer.into_parts();
        let code = parts.status.as_u16();
        if asked.verb == Verb::Watch && code == 200 {
            let Fate::Passes { ends } = fate else { return Err(Broken) };
            return Ok(self.follow(body, ends));
        }
        let body = body.collect_bytes().await.map_err(|_| Broken)?;
        if asked.verb == Verb::List && code == 200 {
            let mut books = self.books();
            let kept = books.lists.entry(asked.path).or_default();
            kept.push(body.clone());
            let from = kept.len().saturating_sub(KEPT);
            kept.drain(..from);
        }
        Ok(whole(code, body))
    }

    /// Writes a request down, and says what becomes of it.
    fn note(&self, asked: &Asked, body: &Bytes) -> (Fate, Duration) {
        let mut books = self.books();
        books.asked.push(asked.clone());
        if asked.verb == Verb::Bind {
            let binding: Value = serde_json::from_slice(body).unwrap_or_default();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (pod, node) = (&binding["metadata"]["uid"], &binding["target"]["name"]);
            books.bindings.push((text(pod), text(node)));
        }
        let nth = books.times.entry(asked.path.clone()).or_default();
        *nth += 1;
        let mut chance = Chance::of(self.seed, (&asked.path, *nth));
        fate(&books.faults, asked, &mut chance)
    }

    /// A watch, until it ends, is cut, or has lasted long enough.
    fn follow(&self, body: Body, ends: Option<(Duration, bool)>) -> Answer {
        let mut cuts = self.cuts.subscribe();
        let (lasts, in_order) = ends.unwrap_or((Duration::MAX, true));
        let end = async move {
            tokio::select! {
                () = tokio::time::sleep(lasts) => {}
                _ = cuts.changed() => {}
            }
        };
        let said = body.into_data_stream().map_ok(Frame::data).map_err(|_| Broken);
        let last = stream::iter((!in_order).then_some(Err(Broken)));
        let said = said.take_until(end.boxed()).chain(last);
        Response::new(BodyExt::boxed_unsync(StreamBody::new(said)))
    }
}

/// An answer that is there in full.
fn whole(code: u16, body: Bytes) -> Answer {
    let body = Full::new(body).map_err(|never: Infallible| match never {}).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = code.try_into().expect("a code");
    answer.headers_mut().insert(CONTENT_TYPE, "application/json".parse().expect("a type"));
    answer
}

fn refusal(code: u16) -> Answer {
    let mut answer = whole(code, status(code).to_string().into());
    if code == 429 {
        answer.headers_mut().insert(RETRY_AFTER, "1".parse().expect("a number"));
    }
    answer
}

/// What an API server says with a code.
fn status(code: u16) -> Value {
    let (reason, message) = match code {
        409 => ("Conflict", "the object has been modified; please apply your changes again"),
        410 => ("Expired", "too old resource version"),
        429 => ("TooManyRequests", "too many requests, please try again later"),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        _ => ("InternalError", "something is broken"),
    };
    let mut status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message,
    });
    if code == 429 {
        status["details"] = json!({"retryAfterSeconds": 1});
    }
    status
}
