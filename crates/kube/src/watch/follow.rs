//! Listing a kind once and then following its changes, for ever and at a bounded pace.
//!
//! A watch that ends goes on from where it was; one that cannot begins anew with a list. Whatever happens, what is
//! asked is asked again only after a pause that grows until something works.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use futures::{StreamExt, pin_mut};
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
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

/// Follows a kind until nobody listens any more.
pub(super) async fn follow<K>(api: &Api<K>, newest: &Newest, sink: &impl Sink<K>)
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut pauses = Pauses::from(PAUSE);
    let mut version: Option<String> = None;
    let mut past = 0;
    loop {
        let began = Instant::now();
        let outcome = match &mut version {
            None => list(api, newest, past < TRIES, sink).await.map(|listed| {
                version = Some(listed);
                true
            }),
            Some(version) => watch(api, newest, version, sink).await,
        };
        let works = matches!(outcome, Ok(true)) || (outcome.is_ok() && began.elapsed() >= WORKS);
        match outcome {
            Ok(_) => past = 0,
            Err(Broke::Deaf) => return,
            Err(Broke::Expired) => version = None,
            Err(Broke::Past) => past += 1,
            Err(broke) => report(&broke),
        }
        if works {
            pauses = Pauses::from(PAUSE);
        } else {
            tokio::time::sleep(pauses.next(None)).await;
        }
    }
}

/// Lists everything, and says of which version that is.
async fn list<K>(
    api: &Api<K>,
    newest: &Newest,
    must_be_new: bool,
    sink: &impl Sink<K>,
) -> Result<String, Broke>
where
    K: Resource + Clone + DeserializeOwned + Debug,
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
        for object in page.items {
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
async fn watch<K>(
    api: &Api<K>,
    newest: &Newest,
    version: &mut String,
    sink: &impl Sink<K>,
) -> Result<bool, Broke>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let changes = api.watch(&WatchParams::default(), version).await.map_err(broke)?;
    pin_mut!(changes);
    let mut any = false;
    while let Some(change) = changes.next().await {
        let event = match change.map_err(broke)? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => Event::Apply(object),
            WatchEvent::Deleted(object) => Event::Delete(object),
            WatchEvent::Bookmark(mark) => {
                version.clone_from(&mark.metadata.resource_version);
                newest.saw(version);
                continue;
            }
            WatchEvent::Error(status) if status.code == 410 => return Err(Broke::Expired),
            WatchEvent::Error(status) => return Err(Broke::Said(status)),
        };
        if let Event::Apply(object) | Event::Delete(object) = &event {
            *version = object.resource_version().unwrap_or_default();
            newest.saw(version);
        }
        tell(sink, event).await?;
        any = true;
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
