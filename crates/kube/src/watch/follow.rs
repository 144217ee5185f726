//! Listing a kind once and then following its changes, for ever and at a bounded pace.
//!
//! A watch that ends goes on from where it was; one that cannot begins anew with a list. Whatever happens, what is
//! asked is asked again only after a pause that grows until something works.
//!
//! An object that cannot be read must not hide all others of its kind. The first of them has each object read by itself from
//! then on, which costs more than reading a page of them: what cannot be read is said, and counts as it was when it last
//! could be, or as not there.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use futures::{StreamExt, pin_mut};
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::core::DeserializeGuard;
use kube::core::Status;
use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::newest::{Newest, is_older};
use crate::hands::Pauses;

/// Objects per page of a list.
const PAGE: u32 = 500;
/// The first pause after something did not work; a few hundred milliseconds late is not late for a watch.
const PAUSE: Duration = Duration::from_millis(500);
/// A watch that lasts this long works, also if there was nothing to see.
const WORKS: Duration = Duration::from_secs(1);
/// How often a list that is older than what was seen is asked for again. Servers that count kinds apart would otherwise
/// be asked for ever.
const TRIES: u32 = 6;

/// Where what is seen goes.
pub(super) trait Sink<K> {
    /// Whether anybody still wants it.
    async fn send(&self, event: Event<K>) -> bool;
}

/// Why a list or a watch did not work.
#[derive(Debug, thiserror::Error)]
enum Broke {
    #[error(transparent)]
    Server(#[from] kube::Error),
    #[error("{0:?}")]
    Said(Box<Status>),
    /// What came before is forgotten by the server.
    #[error("too old to go on from")]
    Expired,
    #[error("a list from the past")]
    Past,
    #[error("nobody listens any more")]
    Deaf,
}

/// One kind, and two ways to read it: all at once, or one by one.
pub(super) struct Kind<K> {
    pub(super) api: Api<K>,
    pub(super) guarded: Api<DeserializeGuard<K>>,
}

/// How far a kind is followed.
struct Way<'a> {
    newest: &'a Newest,
    /// What was seen last; nothing before the first list.
    version: Option<String>,
    /// Lists from the past, one after another.
    past: u32,
}

/// Follows a kind until nobody listens any more.
pub(super) async fn follow<K>(kind: &Kind<K>, newest: &Newest, sink: &impl Sink<K>)
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut pauses = Pauses::from(PAUSE);
    let mut way = Way { newest, version: None, past: 0 };
    let mut one_by_one = false;
    loop {
        let began = Instant::now();
        let outcome = match one_by_one {
            false => way.step(&kind.api, Some, sink).await,
            true => way.step(&kind.guarded, readable, sink).await,
        };
        let works = matches!(outcome, Ok(true)) || (outcome.is_ok() && began.elapsed() >= WORKS);
        match outcome {
            Ok(_) => way.past = 0,
            Err(Broke::Deaf) => return,
            Err(Broke::Expired) => way.version = None,
            Err(Broke::Past) => way.past += 1,
            Err(Broke::Server(kube::Error::SerdeError(why))) if !one_by_one => {
                tracing::error!(url = kind.api.resource_url(), %why, "what cannot be read is left out");
                one_by_one = true;
            }
            Err(broke) => report(&broke),
        }
        if works {
            pauses = Pauses::from(PAUSE);
        } else {
            tokio::time::sleep(pauses.next(None)).await;
        }
    }
}

/// An object, unless it could not be read.
fn readable<K: Resource>(object: DeserializeGuard<K>) -> Option<K> {
    match object.0 {
        Ok(object) => Some(object),
        Err(why) => {
            let (namespace, name) = (&why.metadata.namespace, &why.metadata.name);
            tracing::error!(?namespace, ?name, %why, "cannot be read");
            None
        }
    }
}

impl Way<'_> {
    /// Lists everything, or follows changes until the watch ends. Whether anything was seen.
    async fn step<R, K>(
        &mut self,
        api: &Api<R>,
        read: impl Fn(R) -> Option<K>,
        sink: &impl Sink<K>,
    ) -> Result<bool, Broke>
    where
        R: Resource + Clone + DeserializeOwned + Debug,
    {
        let must_be_new = self.past < TRIES;
        match &mut self.version {
            Some(version) => watch(api, self.newest, version, read, sink).await,
            none => {
                *none = Some(list(api, self.newest, must_be_new, read, sink).await?);
                Ok(true)
            }
        }
    }
}

/// Lists everything, and says of which version that is.
async fn list<R, K>(
    api: &Api<R>,
    newest: &Newest,
    must_be_new: bool,
    read: impl Fn(R) -> Option<K>,
    sink: &impl Sink<K>,
) -> Result<String, Broke>
where
    R: Resource + Clone + DeserializeOwned + Debug,
{
    let at_least = newest.now();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = api.list(&params).await.map_err(broke)?;
        let version = page.metadata.resource_version.unwrap_or_default();
        if params.continue_token.is_none() {
            if is_older(&version, at_least) {
                tracing::info!(version, at_least, url = api.resource_url(), "a list from the past");
                if must_be_new {
                    return Err(Broke::Past);
                }
            }
            tell(sink, Event::Init).await?;
        }
        for object in page.items.into_iter().filter_map(&read) {
            tell(sink, Event::InitApply(object)).await?;
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => {
                newest.saw(&version);
                tell(sink, Event::InitDone).await?;
                return Ok(version);
            }
        }
    }
}

/// Follows changes from a version until the watch ends, and says whether there were any.
async fn watch<R, K>(
    api: &Api<R>,
    newest: &Newest,
    version: &mut String,
    read: impl Fn(R) -> Option<K>,
    sink: &impl Sink<K>,
) -> Result<bool, Broke>
where
    R: Resource + Clone + DeserializeOwned + Debug,
{
    let changes = api.watch(&WatchParams::default(), version).await.map_err(broke)?;
    pin_mut!(changes);
    let mut any = false;
    while let Some(change) = changes.next().await {
        let mut saw = |object: &R| {
            *version = object.resource_version().unwrap_or_default();
            newest.saw(version);
        };
        let event = match change.map_err(broke)? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                saw(&object);
                read(object).map(Event::Apply)
            }
            WatchEvent::Deleted(object) => {
                saw(&object);
                // Of what cannot be read a list shows best that it is gone.
                Some(Event::Delete(read(object).ok_or(Broke::Expired)?))
            }
            WatchEvent::Bookmark(mark) => {
                version.clone_from(&mark.metadata.resource_version);
                newest.saw(version);
                continue;
            }
            WatchEvent::Error(status) if status.code == 410 => return Err(Broke::Expired),
            WatchEvent::Error(status) => return Err(Broke::Said(status)),
        };
        any = true;
        if let Some(event) = event {
            tell(sink, event).await?;
        }
    }
    Ok(any)
}

async fn tell<K>(sink: &impl Sink<K>, event: Event<K>) -> Result<(), Broke> {
    if sink.send(event).await { Ok(()) } else { Err(Broke::Deaf) }
}

fn broke(error: kube::Error) -> Broke {
    match error {
        kube::Error::Api(status) if status.code == 410 => Broke::Expired,
        error => Broke::Server(error),
    }
}

/// A watch that breaks begins again by itself; that it may not begin at all is worth a word.
fn report(broke: &Broke) {
    match broke {
        Broke::Server(kube::Error::Api(status)) if status.code == 403 => {
            tracing::error!(message = status.message, "may not be watched");
        }
        broke => tracing::debug!(%broke, "a watch broke and begins again"),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use kube::{Client, Config};
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::objects::Node;

    /// Serves lists and watches of nodes: each request of either is answered by the next of its answers.
    async fn served(lists: Vec<Value>, watches: Vec<Vec<Value>>) -> Kind<Node> {
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
                    false => lists.next().map(|list| list.to_string()),
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
        Kind { api: Api::all(client.clone()), guarded: Api::all(client) }
    }

    /// What was seen, in words, until so much was.
    struct Seen {
        seen: RefCell<Vec<String>>,
        most: usize,
    }

    impl Sink<Node> for Seen {
        async fn send(&self, event: Event<Node>) -> bool {
            let seen = match event {
                Event::Init => "list".to_owned(),
                Event::InitApply(node) => format!("{} listed", node.name_any()),
                Event::InitDone => "end".to_owned(),
                Event::Apply(node) => format!("{} is", node.name_any()),
                Event::Delete(node) => format!("{} was", node.name_any()),
            };
            self.seen.borrow_mut().push(seen);
            self.seen.borrow().len() < self.most
        }
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
            // A list shows that it is gone.
            change("DELETED", node("b", 7, &bad)),
        ]];
        let second = list(8, &[node("a", 1, &good), node("c", 6, &good)]);
        let kind = served(vec![first.clone(), first, second], watches).await;
        let sink = Seen { seen: RefCell::default(), most: 9 };
        let newest = Newest::default();
        let all = follow(&kind, &newest, &sink);
        tokio::time::timeout(Duration::from_secs(30), all).await.expect("all of it is seen");
        let seen =
            ["list", "a listed", "b listed", "end", "c is", "list", "a listed", "c listed", "end"];
        assert_eq!(*sink.seen.borrow(), seen);
    }
}
