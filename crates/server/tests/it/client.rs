//! A small HTTP client, and a server to connect to.

use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::HeaderMap;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use muster_server::{Config, Tokens, bind};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::host::Toy;

/// A server of the toy host on its own port.
pub(crate) struct Started {
    pub(crate) host: Arc<Toy>,
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

/// One token for each role.
pub(crate) fn tokens() -> Tokens {
    let text = "tokens:\n\
        - {name: vera, token: token-of-vera-viewer, role: viewer}\n\
        - {name: otto, token: token-of-otto-sales, role: user, queues: [sales]}\n\
        - {name: rosa, token: token-of-rosa-research, role: user, queues: [research]}\n\
        - {name: adam, token: token-of-adam-admin, role: admin}\n";
    Tokens::parse("tokens.yaml", text).unwrap()
}

/// Starts a server.
pub(crate) async fn start(configure: impl FnOnce(&mut Config)) -> Started {
    let mut config = Config { listen: vec![([127, 0, 0, 1], 0).into()], ..Config::default() };
    configure(&mut config);
    let bound = bind(config).await.unwrap();
    let (address, host) = (bound.addresses()[0], Toy::new());
    let (stop, stopped) = oneshot::channel();
    let serving = host.clone();
    let served =
        tokio::spawn(async move { bound.serve(serving, async { _ = stopped.await }).await });
    Started { host, address, stop, served }
}

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answered {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// The code of an error response.
    pub(crate) fn code(&self) -> String {
        let json = self.json();
        assert!(!json["error"]["message"].as_str().unwrap().is_empty(), "{self:?}");
        assert_eq!(self.header("content-type"), "application/json", "{self:?}");
        json["error"]["code"].as_str().unwrap().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A request to send. Reads as `server.ask("GET /v1/gangs").send().await`.
pub(crate) struct Ask {
    address: SocketAddr,
    line: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl Ask {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn body(mut self, kind: &str, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header("content-type", kind)
    }

    pub(crate) async fn open(self) -> Response<Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let (method, path) = self.line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(path);
        request = request.header("host", self.address.to_string());
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        sender.send_request(request.body(Full::new(self.body)).unwrap()).await.unwrap()
    }

    pub(crate) async fn send(self) -> Answered {
        let (parts, body) = self.open().await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answered { status: parts.status.as_u16(), headers: parts.headers, text }
    }
}

impl Started {
    /// A request, such as `GET /v1/gangs`.
    pub(crate) fn ask(&self, line: &str) -> Ask {
        Ask { address: self.address, line: line.into(), headers: vec![], body: Bytes::new() }
    }

    pub(crate) async fn get(&self, path: &str) -> Answered {
        self.ask(&format!("GET {path}")).send().await
    }

    pub(crate) async fn apply(&self, yaml: &str) -> Answered {
        self.ask("POST /v1/apply").body("application/yaml", yaml.to_owned()).send().await
    }

    /// Shuts it down, and waits for that.
    pub(crate) async fn end(self) {
        self.stop.send(()).unwrap();
        self.served.await.unwrap();
    }
}

/// A gang in a manifest.
pub(crate) fn gang(name: &str) -> String {
    format!(
        "kind: Gang\nmetadata: {{name: {name}, namespace: research}}\n\
         spec: {{queue: research, roles: [{{name: worker, min: 2, resources: {{cpu: 1}}}}]}}\n"
    )
}

/// One server-sent event.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Event {
    pub(crate) event: String,
    pub(crate) id: String,
    pub(crate) data: String,
}

/// A client that follows the feed.
pub(crate) struct Events {
    body: Incoming,
    text: String,
}

impl Events {
    pub(crate) async fn open(ask: Ask) -> Self {
        let response = ask.open().await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), text: String::new() }
    }

    /// The next block, also a block without data; `None` at the end.
    pub(crate) async fn block(&mut self) -> Option<Event> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let mut event = Event::default();
                for line in block.lines() {
                    match line.split_once(": ") {
                        Some(("event", text)) => event.event = text.into(),
                        Some(("id", text)) => event.id = text.into(),
                        Some(("data", text)) => event.data = text.into(),
                        _ => {}
                    }
                }
                self.text = rest.to_owned();
                return Some(event);
            }
            let frame = self.body.frame().await?.ok()?;
            self.text += std::str::from_utf8(frame.data_ref().unwrap()).unwrap();
        }
    }

    /// The next event that has data.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            let block = self.block().await?;
            if !block.data.is_empty() {
                return Some(block);
            }
        }
    }
}
