//! Lists one kind and then watches it, for ever and at a bounded pace.
//!
//! A watch that ends resumes at the last version; one whose version has expired begins with a new list. A request that fails
//! is retried with backoff.
//!
//! Every object is decoded by itself, straight from the answer as it arrives. One that cannot be decoded, or is larger than
//! the limit, is omitted alone: its last decoded state still counts, or it counts as absent.

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
use crate::api::watch::decode::{Decode, ObjectId, Omission};
use crate::api::watch::health::WatchHealth;
use crate::api::watch::list_page::{Items, ListMeta, NotAList};
use crate::objects::projection::Decoded;

/// Objects per page of a list.
const PAGE: u32 = 500;
/// The first pause after a failure; a few hundred milliseconds do not matter for a watch.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);
/// A watch that lasts this long counts as working, even without changes.
const WORKING_AFTER: Duration = Duration::from_secs(1);
/// How often a stale list is requested again. Servers that count the versions of each kind apart would otherwise be
/// requested for ever.
const STALE_LISTS_MAX: u32 = 6;
/// Consecutive failures after which an error is logged, and a watch that cannot be decoded begins with a list.
const FAILURES: u32 = 3;
/// The shortest interval between lists that are repeated because a namespace has memory again for omitted objects.
const RELIST_INTERVAL: Duration = Duration::from_secs(30);

/// What a list or a watch has returned.
#[derive(Debug)]
pub(crate) enum WatchItem<K> {
    Event(Event<Decoded<K>>),
    Omitted(Omission),
}

/// The receiver of the items.
pub(crate) trait Sink<K> {
    /// Sends an item. Returns whether the receiver is still there.
    async fn send(&self, item: WatchItem<K>) -> bool;
    /// Waits until everything should be listed again.
    async fn relist_wanted(&self);
}

/// Why a list or a watch failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WatchError {
    #[error(transparent)]
    Request(#[from] kube::Error),
    #[error("the server returned {0:?}")]
    Status(Box<Status>),
    #[error(transparent)]
    NotAList(#[from] NotAList),
    #[error("the answer is not a change")]
    NotAChange,
    #[error("the answer broke off")]
    CutOff(#[from] std::io::Error),
    /// The server no longer has the changes since this version.
    #[error("the resource version has expired")]
    Expired,
    #[error("a stale list")]
    StaleList,
    #[error("the receiver is closed")]
    Closed,
}

/// One kind: where it is served, and which fields of its objects are kept.
pub(crate) struct WatchTarget<K: Decode> {
    pub(crate) client: Client,
    pub(crate) url: String,
    pub(crate) fields: K::Fields,
    /// The most bytes that are kept of one object.
    pub(crate) bytes: usize,
    pub(crate) health: WatchHealth,
}

/// A change as it arrives, one per line.
#[derive(Deserialize)]
pub(crate) struct Line<'a> {
    #[serde(rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) object: &'a RawValue,
}

impl<'a> Line<'a> {
    /// Parses a line; none if it is cut off, which is where a watch ends.
    pub(crate) fn of(line: &'a str) -> Result<Option<Self>, WatchError> {
        match serde_json::from_str(line) {
            Ok(line) => Ok(Some(line)),
            Err(error) if error.is_eof() => Ok(None),
            Err(_) => Err(WatchError::NotAChange),
        }
    }
}

/// The error that the server sends in a watch.
fn watch_error(object: &RawValue) -> WatchError {
    match serde_json::from_str::<Status>(object.get()) {
        Ok(status) if status.code == 410 => WatchError::Expired,
        Ok(status) => WatchError::Status(Box::new(status)),
        Err(_) => WatchError::NotAChange,
    }
}

/// The state of the watch of one kind.
struct WatchState<'a> {
    newest: &'a ResourceVersions,
    /// The last observed version; none before the first list.
    version: Option<String>,
    /// Consecutive stale lists.
    stale_lists: u32,
    listed: Instant,
    /// Whether everything should be listed again.
    relist_wanted: bool,
}

/// Lists and watches a kind until the receiver is closed.
pub(crate) async fn list_and_watch<K>(
    kind: &WatchTarget<K>,
    newest: &ResourceVersions,
    sink: &impl Sink<K>,
) where
    K: Decode + ResourceExt + DeserializeOwned,
{
    let mut backoff = Backoff::from(BACKOFF_FIRST);
    let mut state = WatchState {
        newest,
        version: None,
        stale_lists: 0,
        listed: Instant::now(),
        relist_wanted: false,
    };
    loop {
        let began = Instant::now();
        let listen = !state.relist_wanted;
        let due = state.relist_wanted.then(|| state.listed + RELIST_INTERVAL);
        let outcome = tokio::select! {
            outcome = state.step(kind, sink) => outcome,
            () = sink.relist_wanted(), if listen => {
                state.relist_wanted = true;
                continue;
            }
            () = until(due), if due.is_some() => Err(WatchError::Expired),
        };
        let works =
            matches!(outcome, Ok(true)) || (outcome.is_ok() && began.elapsed() >= WORKING_AFTER);
        match outcome {
            Ok(_) => state.stale_lists = 0,
            Err(WatchError::Closed) => return,
            Err(WatchError::Expired) => state.version = None,
            Err(WatchError::StaleList) => state.stale_lists += 1,
            Err(error) => {
                let failures = kind.count_failure(&error);
                let is_unreadable = matches!(error, WatchError::NotAChange);
                if is_unreadable && failures.is_multiple_of(FAILURES) {
                    state.version = None;
                }
            }
        }
        if works {
            backoff = Backoff::from(BACKOFF_FIRST);
            kind.health.note(&kind.url, |health| health.failures_in_a_row = 0);
        } else {
            tokio::time::sleep(backoff.next(None)).await;
        }
    }
}

async fn until(due: Option<Instant>) {
    if let Some(due) = due {
        tokio::time::sleep_until(due.into()).await;
    }
}

impl<K: Decode> WatchTarget<K> {
    /// Counts and logs a failure. A watch that breaks is restarted. One that breaks again and again is logged as an error:
    /// its changes are not observed.
    fn count_failure(&self, error: &WatchError) -> u32 {
        let why = with_causes(error);
        let health = self.health.note(&self.url, |health| {
            health.failures = health.failures.saturating_add(1);
            health.failures_in_a_row = health.failures_in_a_row.saturating_add(1);
            health.last_error = Some(why.clone());
        });
        let failures = health.failures_in_a_row;
        let is_refused =
            matches!(error, WatchError::Request(kube::Error::Api(status)) if status.code == 403);
        let is_news = failures.is_multiple_of(FAILURES) && (failures / FAILURES).is_power_of_two();
        if is_news || (is_refused && failures == 1) {
            tracing::error!(url = self.url, failures, why, "cannot be watched");
        } else {
            tracing::debug!(url = self.url, failures, why, "a watch failed and is restarted");
        }
        failures
    }

    /// Decodes an object, or says why it is omitted.
    fn read(&self, json: &str) -> Result<Decoded<K>, Omission> {
        K::read(json, &self.fields, self.bytes).map_err(|why| {
            self.health.note(&self.url, |health| health.left_out += 1);
            ObjectId::of(json).omitted(why, json.len())
        })
    }
}

impl WatchState<'_> {
    /// Lists everything, or watches until the watch ends. Returns whether anything was received.
    async fn step<K>(
        &mut self,
        kind: &WatchTarget<K>,
        sink: &impl Sink<K>,
    ) -> Result<bool, WatchError>
    where
        K: Decode + ResourceExt + DeserializeOwned,
    {
        let must_be_new = self.stale_lists < STALE_LISTS_MAX;
        match &mut self.version {
            Some(version) => watch(kind, self.newest, version, sink).await,
            none => {
                *none = Some(list(kind, self.newest, must_be_new, sink).await?);
                (self.listed, self.relist_wanted) = (Instant::now(), false);
                kind.health.note(&kind.url, |health| health.lists += 1);
                Ok(true)
            }
        }
    }
}

/// Lists everything, and returns the version of the list.
///
/// The first page has one object: the version may come after the items, and nothing of a stale list is delivered. All
/// further pages are of the same version.
async fn list<K: Decode, S: Sink<K>>(
    kind: &WatchTarget<K>,
    newest: &ResourceVersions,
    must_be_new: bool,
    sink: &S,
) -> Result<String, WatchError> {
    let at_least = newest.current();
    let mut first = Vec::new();
    let mut params = ListParams::default().limit(1);
    let mut metadata = page(kind, &params, &mut first, None::<&S>).await?;
    let version = metadata.resource_version;
    if is_older(&version, at_least) {
        tracing::info!(version, at_least, url = kind.url, "a stale list");
        if must_be_new {
            return Err(WatchError::StaleList);
        }
    }
    send_event(sink, Event::Init).await?;
    for item in first {
        send(sink, item).await?;
    }
    while !metadata.continue_token.is_empty() {
        params = params.limit(PAGE).continue_token(&metadata.continue_token);
        metadata = page(kind, &params, &mut Vec::new(), Some(sink)).await?;
    }
    newest.observe(&version);
    send_event(sink, Event::InitDone).await?;
    Ok(version)
}

/// Reads one page of a list, object by object while it arrives. Without a sink the items are collected.
async fn page<K: Decode, S: Sink<K>>(
    kind: &WatchTarget<K>,
    params: &ListParams,
    collected: &mut Vec<WatchItem<K>>,
    sink: Option<&S>,
) -> Result<ListMeta, WatchError> {
    let request = Request::new(&kind.url).list(params).map_err(kube::Error::BuildRequest)?;
    let body = kind.client.request_stream(request).await.map_err(request_error)?;
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
            let item = match kind.read(&String::from_utf8_lossy(&item)) {
                Ok(decoded) => WatchItem::Event(Event::InitApply(decoded)),
                Err(omission) => WatchItem::Omitted(omission),
            };
            match sink {
                Some(sink) => send(sink, item).await?,
                None => collected.push(item),
            }
        }
    }
}

/// Watches from a version until the watch ends. Returns whether there were changes.
async fn watch<K>(
    kind: &WatchTarget<K>,
    newest: &ResourceVersions,
    version: &mut String,
    sink: &impl Sink<K>,
) -> Result<bool, WatchError>
where
    K: Decode + ResourceExt + DeserializeOwned,
{
    let params = WatchParams::default();
    let request = Request::new(&kind.url).watch(&params, version);
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    // Servers may compress each change by itself, which clients mistake for the end of the stream.
    request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let mut lines = kind.client.request_stream(request).await.map_err(request_error)?.lines();
    let mut any = false;
    // Servers and proxies may end a watch at any time.
    while let Some(Ok(line)) = lines.next().await {
        let (raw, is_gone) = match Line::of(&line)? {
            None => return Ok(any),
            Some(Line { kind, object }) => match &*kind {
                "ADDED" | "MODIFIED" => (object, false),
                "DELETED" => (object, true),
                "BOOKMARK" => {
                    advance(version, &ObjectId::of(object.get()), newest);
                    continue;
                }
                _ => return Err(watch_error(object)),
            },
        };
        let id = ObjectId::of(raw.get());
        let item = match is_gone {
            // Only the name of a deleted object matters.
            true => {
                let object = id.as_object().ok_or(WatchError::Expired)?;
                WatchItem::Event(Event::Delete(Decoded { object, cost: 0 }))
            }
            false => match kind.read(raw.get()) {
                Ok(decoded) => WatchItem::Event(Event::Apply(decoded)),
                Err(omission) => WatchItem::Omitted(omission),
            },
        };
        advance(version, &id, newest);
        any = true;
        send(sink, item).await?;
    }
    Ok(any)
}

/// Advances the version from which the watch resumes. An object without a version does not change it.
fn advance(version: &mut String, id: &ObjectId, newest: &ResourceVersions) {
    if !id.metadata.resource_version.is_empty() {
        version.clone_from(&id.metadata.resource_version);
        newest.observe(version);
    }
}

async fn send_event<K>(sink: &impl Sink<K>, event: Event<Decoded<K>>) -> Result<(), WatchError> {
    send(sink, WatchItem::Event(event)).await
}

async fn send<K>(sink: &impl Sink<K>, item: WatchItem<K>) -> Result<(), WatchError> {
    if sink.send(item).await { Ok(()) } else { Err(WatchError::Closed) }
}

fn request_error(error: kube::Error) -> WatchError {
    match error {
        kube::Error::Api(status) if status.code == 410 => WatchError::Expired,
        error => WatchError::Request(error),
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

    /// A server of nodes: each list and each watch is answered by the next of its answers.
    async fn serve(lists: Vec<String>, watches: Vec<Vec<Value>>) -> WatchTarget<Node> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move {
            let (mut lists, mut watches) = (lists.into_iter(), watches.into_iter());
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 8_192];
                let read = stream.read(&mut request).await.unwrap_or(0);
                let is_watch = String::from_utf8_lossy(&request[..read]).contains("watch=true");
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
        WatchTarget { client, url, fields: (), bytes: 128 << 10, health: WatchHealth::default() }
    }

    /// Records the items as text, until there are `limit` of them.
    struct Recorder {
        items: RefCell<Vec<String>>,
        limit: usize,
    }

    impl Sink<Node> for Recorder {
        async fn send(&self, item: WatchItem<Node>) -> bool {
            let name = |decoded: Decoded<Node>| decoded.object.name_any();
            let item = match item {
                WatchItem::Event(Event::Init) => "list".to_owned(),
                WatchItem::Event(Event::InitApply(node)) => format!("{} listed", name(node)),
                WatchItem::Event(Event::InitDone) => "end".to_owned(),
                WatchItem::Event(Event::Apply(node)) => format!("{} is", name(node)),
                WatchItem::Event(Event::Delete(node)) => format!("{} was", name(node)),
                WatchItem::Omitted(omission) => format!("{} omitted", omission.key()),
            };
            self.items.borrow_mut().push(item);
            self.items.borrow().len() < self.limit
        }

        async fn relist_wanted(&self) {
            std::future::pending::<()>().await;
        }
    }

    /// The first `limit` items of a kind.
    async fn items_of(kind: &WatchTarget<Node>, limit: usize) -> Vec<String> {
        let sink = Recorder { items: RefCell::default(), limit };
        let newest = ResourceVersions::default();
        let all = list_and_watch(kind, &newest, &sink);
        tokio::time::timeout(Duration::from_secs(30), all).await.expect("all items arrive");
        sink.items.into_inner()
    }

    fn node(name: &str, version: u32, spec: &Value) -> Value {
        let metadata = json!({"name": name, "resourceVersion": version.to_string()});
        json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec})
    }

    fn list(version: u32, items: &[Value]) -> Value {
        json!({"apiVersion": "v1", "kind": "NodeList", "metadata": {"resourceVersion": version.to_string()}, "items": items})
    }

    #[tokio::test]
    async fn object_that_cannot_be_decoded_hides_no_other() {
        let (good, bad) = (json!({}), json!({"taints": "not a list"}));
        let first = list(4, &[node("a", 1, &good), node("odd", 2, &bad), node("b", 3, &good)]);
        let change = |kind: &str, object: Value| json!({"type": kind, "object": object});
        let watches = vec![vec![
            change("MODIFIED", node("b", 5, &bad)),
            change("ADDED", node("c", 6, &good)),
            change("DELETED", node("b", 7, &bad)),
            change("ADDED", node("d", 8, &good)),
        ]];
        let kind = serve(vec![first.to_string()], watches).await;
        let expected = [
            "list",
            "a listed",
            "odd omitted",
            "b listed",
            "end",
            "b omitted",
            "c is",
            "b was",
            "d is",
        ];
        assert_eq!(items_of(&kind, 9).await, expected);
        assert_eq!(kind.health.kinds()["/api/v1/nodes"].left_out, 2);
    }

    #[tokio::test]
    async fn object_of_any_depth_or_size_hides_no_other() {
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
        let kind = serve(vec![body], Vec::new()).await;
        let items = items_of(&kind, 5).await;
        assert_eq!(items, ["list", "deep listed", "huge omitted", "last listed", "end"]);
    }

    #[tokio::test]
    async fn watch_that_cannot_be_decoded_is_counted_and_begins_with_a_list() {
        let lists = vec![list(4, &[]).to_string(), list(9, &[]).to_string()];
        let watches = (0..FAILURES).map(|_| vec![json!("no change")]).collect();
        let kind = serve(lists, watches).await;
        assert_eq!(items_of(&kind, 4).await, ["list", "end", "list", "end"]);
        let health = kind.health.kinds()["/api/v1/nodes"].clone();
        assert_eq!(health.failures, u64::from(FAILURES));
        assert!(health.last_error.is_some());
    }
}
