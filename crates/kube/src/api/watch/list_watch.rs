//! Lists a kind once and then follows its changes, for ever and at a bounded pace.
//!
//! A watch that ends goes on from where it was; one that cannot begins anew with a list. A request that fails is sent again
//! after a pause that grows until one works.
//!
//! Every object is read by itself, straight from the answer as it arrives. One that cannot be read, or is larger than one
//! object may be, is left out alone: it counts as it was when it last could be read, or as not there.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use futures::{AsyncBufReadExt, StreamExt, pin_mut};
use http::HeaderValue;
use http::header::ACCEPT_ENCODING;
use kube::api::{ListParams, WatchParams};
use kube::core::{Request, Status};
use kube::runtime::watcher::Event;
use kube::{Client, ResourceExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::api::error_chain::with_causes;
use crate::api::resource_versions::{ResourceVersions, is_older};
use crate::api::retry::Backoff;
use crate::api::watch::decode::{Kept, Named, Omission};
use crate::api::watch::health::WatchHealth;
use crate::api::watch::list_page::{Items, ListMeta, NotAList};
use crate::objects::projection::Taken;

/// Objects per page of a list.
const PAGE: u32 = 500;
/// The first pause after something did not work; a few hundred milliseconds late is not late for a watch.
const PAUSE: Duration = Duration::from_millis(500);
/// A watch that lasts this long works, also if there was nothing to see.
const WORKS: Duration = Duration::from_secs(1);
/// How often a list that is older than what was seen is asked for again. Servers that count kinds apart would otherwise
/// be asked for ever.
const TRIES: u32 = 6;
/// Failures in a row after which a kind is said not to be followed, and a watch that cannot be read begins with a list.
const FAILURES: u32 = 3;
/// How often a kind is listed again because there is room for what was left out.
const LIST_EVERY: Duration = Duration::from_secs(30);

/// What was seen of a kind.
#[derive(Debug)]
pub(crate) enum Seen<K> {
    Event(Event<Taken<K>>),
    Omission(Omission),
}

/// Where what is seen goes.
pub(crate) trait Sink<K> {
    /// Whether anybody still wants it.
    async fn send(&self, seen: Seen<K>) -> bool;
    /// Waits until it is worth listing everything again.
    async fn has_room(&self);
}

/// Why a list or a watch did not work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broke {
    #[error(transparent)]
    Server(#[from] kube::Error),
    #[error("the server says {0:?}")]
    Said(Box<Status>),
    #[error(transparent)]
    NotAList(#[from] NotAList),
    #[error("the answer is not a change")]
    NotAChange,
    #[error("the answer broke off")]
    CutOff(#[from] std::io::Error),
    /// What came before is forgotten by the server.
    #[error("too old to go on from")]
    Expired,
    #[error("a list from the past")]
    Past,
    #[error("nobody listens any more")]
    Deaf,
}

/// One kind: where it is served, and what is kept of its objects.
pub(crate) struct Kind<K: Kept> {
    pub(crate) client: Client,
    pub(crate) url: String,
    pub(crate) fields: K::Fields,
    /// Bytes that are kept of one object, at most.
    pub(crate) bytes: usize,
    pub(crate) health: WatchHealth,
}

/// A change as it arrives, one in a line.
#[derive(Deserialize)]
pub(crate) struct Line<'a> {
    #[serde(rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) object: &'a RawValue,
}

impl<'a> Line<'a> {
    /// Reads a line; none if it is cut off, which is where a watch ends.
    pub(crate) fn of(line: &'a str) -> Result<Option<Self>, Broke> {
        match serde_json::from_str(line) {
            Ok(line) => Ok(Some(line)),
            Err(error) if error.is_eof() => Ok(None),
            Err(_) => Err(Broke::NotAChange),
        }
    }
}

/// What the server says when it cannot go on.
fn said(object: &RawValue) -> Broke {
    match serde_json::from_str::<Status>(object.get()) {
        Ok(status) if status.code == 410 => Broke::Expired,
        Ok(status) => Broke::Said(Box::new(status)),
        Err(_) => Broke::NotAChange,
    }
}

/// How far a kind is followed.
struct Way<'a> {
    newest: &'a ResourceVersions,
    /// What was seen last; nothing before the first list.
    version: Option<String>,
    /// Lists from the past, one after another.
    past: u32,
    listed: Instant,
    /// Whether there is room for what was left out.
    has_room: bool,
}

/// Follows a kind until nobody listens any more.
pub(crate) async fn follow<K>(kind: &Kind<K>, newest: &ResourceVersions, sink: &impl Sink<K>)
where
    K: Kept + ResourceExt + DeserializeOwned,
{
    let mut pauses = Backoff::from(PAUSE);
    let mut way = Way { newest, version: None, past: 0, listed: Instant::now(), has_room: false };
    loop {
        let began = Instant::now();
        let (listen, due) = (!way.has_room, way.has_room.then(|| way.listed + LIST_EVERY));
        let outcome = tokio::select! {
            outcome = way.step(kind, sink) => outcome,
            () = sink.has_room(), if listen => {
                way.has_room = true;
                continue;
            }
            () = until(due), if due.is_some() => Err(Broke::Expired),
        };
        let works = matches!(outcome, Ok(true)) || (outcome.is_ok() && began.elapsed() >= WORKS);
        match outcome {
            Ok(_) => way.past = 0,
            Err(Broke::Deaf) => return,
            Err(Broke::Expired) => way.version = None,
            Err(Broke::Past) => way.past += 1,
            Err(broke) => {
                let failures = kind.failed(&broke);
                let is_unreadable = matches!(broke, Broke::NotAChange);
                if is_unreadable && failures.is_multiple_of(FAILURES) {
                    way.version = None;
                }
            }
        }
        if works {
            pauses = Backoff::from(PAUSE);
            kind.health.note(&kind.url, |health| health.failures_in_a_row = 0);
        } else {
            tokio::time::sleep(pauses.next(None)).await;
        }
    }
}

async fn until(due: Option<Instant>) {
    if let Some(due) = due {
        tokio::time::sleep_until(due.into()).await;
    }
}

impl<K: Kept> Kind<K> {
    /// A watch that breaks begins again by itself. One that breaks again and again is an error: what it would have shown
    /// is not seen.
    fn failed(&self, broke: &Broke) -> u32 {
        let why = with_causes(broke);
        let health = self.health.note(&self.url, |health| {
            health.failures = health.failures.saturating_add(1);
            health.failures_in_a_row = health.failures_in_a_row.saturating_add(1);
            health.last_error = Some(why.clone());
        });
        let failures = health.failures_in_a_row;
        let is_refused =
            matches!(broke, Broke::Server(kube::Error::Api(status)) if status.code == 403);
        let is_news = failures.is_multiple_of(FAILURES) && (failures / FAILURES).is_power_of_two();
        if is_news || (is_refused && failures == 1) {
            tracing::error!(url = self.url, failures, why, "cannot be followed");
        } else {
            tracing::debug!(url = self.url, failures, why, "a watch broke and begins again");
        }
        failures
    }

    /// Reads an object, or says why it is left out.
    fn read(&self, json: &str) -> Result<Taken<K>, Omission> {
        K::read(json, &self.fields, self.bytes).map_err(|why| {
            self.health.note(&self.url, |health| health.left_out += 1);
            Named::of(json).left_out(why, json.len())
        })
    }
}

impl Way<'_> {
    /// Lists everything, or follows changes until the watch ends. Whether anything was seen.
    async fn step<K>(&mut self, kind: &Kind<K>, sink: &impl Sink<K>) -> Result<bool, Broke>
    where
        K: Kept + ResourceExt + DeserializeOwned,
    {
        let must_be_new = self.past < TRIES;
        match &mut self.version {
            Some(version) => watch(kind, self.newest, version, sink).await,
            none => {
                *none = Some(list(kind, self.newest, must_be_new, sink).await?);
                (self.listed, self.has_room) = (Instant::now(), false);
                kind.health.note(&kind.url, |health| health.lists += 1);
                Ok(true)
            }
        }
    }
}

/// Lists everything, and says of which version that is.
///
/// The first page has one object: of which version a list is may stand behind its items, and nothing is taken in of a list
/// from the past. All further pages are of the same version.
async fn list<K: Kept, S: Sink<K>>(
    kind: &Kind<K>,
    newest: &ResourceVersions,
    must_be_new: bool,
    sink: &S,
) -> Result<String, Broke> {
    let at_least = newest.now();
    let mut first = Vec::new();
    let mut params = ListParams::default().limit(1);
    let mut metadata = page(kind, &params, &mut first, None::<&S>).await?;
    let version = metadata.resource_version;
    if is_older(&version, at_least) {
        tracing::info!(version, at_least, url = kind.url, "a list from the past");
        if must_be_new {
            return Err(Broke::Past);
        }
    }
    tell(sink, Event::Init).await?;
    for seen in first {
        send(sink, seen).await?;
    }
    while !metadata.goes_on.is_empty() {
        params = params.limit(PAGE).continue_token(&metadata.goes_on);
        metadata = page(kind, &params, &mut Vec::new(), Some(sink)).await?;
    }
    newest.saw(&version);
    tell(sink, Event::InitDone).await?;
    Ok(version)
}

/// Reads one page of a list, object by object while it arrives. Without a sink they are held.
async fn page<K: Kept, S: Sink<K>>(
    kind: &Kind<K>,
    params: &ListParams,
    held: &mut Vec<Seen<K>>,
    sink: Option<&S>,
) -> Result<ListMeta, Broke> {
    let request = Request::new(&kind.url).list(params).map_err(kube::Error::BuildRequest)?;
    let body = kind.client.request_stream(request).await.map_err(broke)?;
    pin_mut!(body);
    let mut items = Items::new();
    loop {
        let bytes = body.fill_buf().await?;
        if bytes.is_empty() {
            return Ok(items.end()?);
        }
        let (complete, read) = (items.feed(bytes)?, bytes.len());
        body.consume_unpin(read);
        for item in complete {
            let seen = match kind.read(&String::from_utf8_lossy(&item)) {
                Ok(taken) => Seen::Event(Event::InitApply(taken)),
                Err(left) => Seen::Omission(left),
            };
            match sink {
                Some(sink) => send(sink, seen).await?,
                None => held.push(seen),
            }
        }
    }
}

/// Follows changes from a version until the watch ends, and says whether there were any.
async fn watch<K>(
    kind: &Kind<K>,
    newest: &ResourceVersions,
    version: &mut String,
    sink: &impl Sink<K>,
) -> Result<bool, Broke>
where
    K: Kept + ResourceExt + DeserializeOwned,
{
    let params = WatchParams::default();
    let request = Request::new(&kind.url).watch(&params, version);
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    // Servers may compress each change by itself, which clients cannot tell from the end.
    request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let mut lines = kind.client.request_stream(request).await.map_err(broke)?.lines();
    let mut any = false;
    // Servers and proxies end watches as they like.
    while let Some(Ok(line)) = lines.next().await {
        let (raw, is_gone) = match Line::of(&line)? {
            None => return Ok(any),
            Some(Line { kind, object }) => match &*kind {
                "ADDED" | "MODIFIED" => (object, false),
                "DELETED" => (object, true),
                "BOOKMARK" => {
                    goes_on(version, &Named::of(object.get()), newest);
                    continue;
                }
                _ => return Err(said(object)),
            },
        };
        let named = Named::of(raw.get());
        let seen = match is_gone {
            // Whatever it was: only its name matters now.
            true => {
                let object = named.as_object().ok_or(Broke::Expired)?;
                Seen::Event(Event::Delete(Taken { object, cost: 0 }))
            }
            false => match kind.read(raw.get()) {
                Ok(taken) => Seen::Event(Event::Apply(taken)),
                Err(left) => Seen::Omission(left),
            },
        };
        goes_on(version, &named, newest);
        any = true;
        send(sink, seen).await?;
    }
    Ok(any)
}

/// What was seen last. An object that does not say its version does not change from where a watch goes on.
fn goes_on(version: &mut String, named: &Named, newest: &ResourceVersions) {
    if !named.metadata.resource_version.is_empty() {
        version.clone_from(&named.metadata.resource_version);
        newest.saw(version);
    }
}

async fn tell<K>(sink: &impl Sink<K>, event: Event<Taken<K>>) -> Result<(), Broke> {
    send(sink, Seen::Event(event)).await
}

async fn send<K>(sink: &impl Sink<K>, seen: Seen<K>) -> Result<(), Broke> {
    if sink.send(seen).await { Ok(()) } else { Err(Broke::Deaf) }
}

fn broke(error: kube::Error) -> Broke {
    match error {
        kube::Error::Api(status) if status.code == 410 => Broke::Expired,
        error => Broke::Server(error),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use kube::Config;
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use crate::api::watch::list_watch::*;
    use crate::objects::node::Node;

    /// Serves lists and watches of nodes: each request of either is answered by the next of its answers.
    async fn served(lists: Vec<String>, watches: Vec<Vec<Value>>) -> Kind<Node> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move {
            let (mut lists, mut watches) = (lists.into_iter(), watches.into_iter());
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut asked = vec![0; 8_192];
                let read = stream.read(&mut asked).await.unwrap_or(0);
                let is_watch = String::from_utf8_lossy(&asked[..read]).contains("watch=true");
                let body = match is_watch {
                    true => {
                        watches.next().map(|all| all.iter().map(|one| format!("{one}\n")).collect())
                    }
                    false => lists.next(),
                };
                let Some(body) = body else { std::future::pending().await };
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let client = Client::try_from(Config::new(url.parse().expect("a URL"))).expect("a client");
        let url = "/api/v1/nodes".to_owned();
        Kind { client, url, fields: (), bytes: 128 << 10, health: WatchHealth::default() }
    }

    /// What was seen, in words, until so much was.
    struct Told {
        seen: RefCell<Vec<String>>,
        most: usize,
    }

    impl Sink<Node> for Told {
        async fn send(&self, seen: Seen<Node>) -> bool {
            let name = |taken: Taken<Node>| taken.object.name_any();
            let seen = match seen {
                Seen::Event(Event::Init) => "list".to_owned(),
                Seen::Event(Event::InitApply(node)) => format!("{} listed", name(node)),
                Seen::Event(Event::InitDone) => "end".to_owned(),
                Seen::Event(Event::Apply(node)) => format!("{} is", name(node)),
                Seen::Event(Event::Delete(node)) => format!("{} was", name(node)),
                Seen::Omission(left) => format!("{} left out", left.key()),
            };
            self.seen.borrow_mut().push(seen);
            self.seen.borrow().len() < self.most
        }

        async fn has_room(&self) {
            std::future::pending::<()>().await;
        }
    }

    /// What is seen of a kind until so much was.
    async fn all_of(kind: &Kind<Node>, most: usize) -> Vec<String> {
        let (sink, newest) = (Told { seen: RefCell::default(), most }, ResourceVersions::default());
        let all = follow(kind, &newest, &sink);
        tokio::time::timeout(Duration::from_secs(30), all).await.expect("all of it is seen");
        sink.seen.into_inner()
    }

    fn node(name: &str, version: u32, spec: &Value) -> Value {
        let metadata = json!({"name": name, "resourceVersion": version.to_string()});
        json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec})
    }

    fn list(version: u32, items: &[Value]) -> Value {
        json!({"apiVersion": "v1", "kind": "NodeList", "metadata": {"resourceVersion": version.to_string()}, "items": items})
    }

    #[tokio::test]
    async fn an_object_that_cannot_be_read_hides_no_other() {
        let (good, bad) = (json!({}), json!({"taints": "not a list"}));
        let first = list(4, &[node("a", 1, &good), node("odd", 2, &bad), node("b", 3, &good)]);
        let change = |kind: &str, object: Value| json!({"type": kind, "object": object});
        let watches = vec![vec![
            change("MODIFIED", node("b", 5, &bad)),
            change("ADDED", node("c", 6, &good)),
            change("DELETED", node("b", 7, &bad)),
            change("ADDED", node("d", 8, &good)),
        ]];
        let kind = served(vec![first.to_string()], watches).await;
        let seen = all_of(&kind, 9).await;
        let told = [
            "list",
            "a listed",
            "odd left out",
            "b listed",
            "end",
            "b left out",
            "c is",
            "b was",
            "d is",
        ];
        assert_eq!(seen, told);
        assert_eq!(kind.health.kinds()["/api/v1/nodes"].left_out, 2);
    }

    #[tokio::test]
    async fn an_object_of_any_depth_or_size_hides_no_other() {
        let (open, shut) = ("{\"a\":".repeat(9_000), "}".repeat(9_000));
        let deep = format!(
            "{{\"metadata\":{{\"name\":\"deep\",\"managedFields\":[{open}1{shut}]}},\"spec\":{{\"junk\":{open}1{shut}}}}}"
        );
        let label = "x".repeat(200 << 10);
        let huge = json!({"metadata": {"name": "huge", "labels": {"a": label}}});
        let last = node("last", 3, &json!({}));
        let body = format!(
            "{{\"metadata\":{{\"resourceVersion\":\"4\"}},\"items\":[{deep},{huge},{last}]}}"
        );
        let kind = served(vec![body], Vec::new()).await;
        let seen = all_of(&kind, 5).await;
        assert_eq!(seen, ["list", "deep listed", "huge left out", "last listed", "end"]);
    }

    #[tokio::test]
    async fn a_watch_that_cannot_be_read_is_counted_and_begins_with_a_list() {
        let lists = vec![list(4, &[]).to_string(), list(9, &[]).to_string()];
        let watches = (0..FAILURES).map(|_| vec![json!("no change")]).collect();
        let kind = served(lists, watches).await;
        assert_eq!(all_of(&kind, 4).await, ["list", "end", "list", "end"]);
        let health = kind.health.kinds()["/api/v1/nodes"].clone();
        assert_eq!(health.failures, u64::from(FAILURES));
        assert!(health.last_error.is_some());
    }
}
