//! `muster top`: lists everything once and applies events to it, so that it costs the control plane little.

use std::time::Duration;

use clap::Args as ClapArgs;
use console::Term;
use muster_server::Kind;

use crate::client::connection::address::Query;
use crate::client::connection::api::Api;
use crate::client::connection::connect::ConnectOptions;
use crate::client::connection::error::RequestError;
use crate::client::follow::events::EventStream;
use crate::client::follow::view::{View, ViewChange};
use crate::client::output::age;
use crate::client::output::table::Table;
use crate::client::top::draw;
use crate::client::top::rows::Rows;
use crate::client::top::screen::{Key, Screen};
use crate::stdout;

/// Show nodes, queues and gangs, live.
///
/// Nodes with their GPUs and gangs; what queues use, run and wait for; gangs with their phase and progress. Arrows
/// scroll, `q` quits. Where the output is not a terminal the current state is printed once.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    connect: ConnectOptions,
}

const EXAMPLES: &str = "\
Examples:
  muster top
  muster top --context lab
  muster top | head               how it stands, once";

/// How often ages are redrawn when nothing happens.
const TICK: Duration = Duration::from_secs(1);
/// Events within this time are drawn together.
const GATHER: Duration = Duration::from_millis(50);

const KINDS: [Kind; 4] = [Kind::Gang, Kind::Queue, Kind::Pool, Kind::Node];

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let api = args.connect.api()?;
    let mut view = View::default();
    let newest = list(&api, &mut view).await?;
    if !Term::stdout().is_term() {
        print(&view);
        return Ok(());
    }
    let mut screen = Screen::open()?;
    let watched = watch(&api, view, newest, &mut screen).await;
    // The terminal is restored before anything else is printed.
    drop(screen);
    watched
}

/// Lists everything, and returns the number of the event to continue after.
async fn list(api: &Api, view: &mut View) -> Result<u64, RequestError> {
    let mut newest = u64::MAX;
    for kind in KINDS {
        let list = api.list(kind, &Query::default()).await?;
        newest = newest.min(list.newest);
        view.replace(kind, list.items, list.newest);
    }
    Ok(newest)
}

async fn watch(api: &Api, mut view: View, newest: u64, screen: &mut Screen) -> anyhow::Result<()> {
    let mut events = EventStream::after(api, Query::default(), newest).quietly();
    let mut tick = tokio::time::interval(TICK);
    let mut scroll = 0usize;
    let mut due = None;
    loop {
        let gathered = async {
            match due {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let lost = events.is_lost();
        tokio::select! {
            key = screen.key() => match key {
                Key::Quit => return Ok(()),
                Key::Up(by) => scroll = scroll.saturating_sub(by),
                Key::Down(by) => scroll = scroll.saturating_add(by),
                Key::Other => {}
            },
            news = events.next() => {
                if view.take(news?) == ViewChange::Stale {
                    list(api, &mut view).await?;
                }
                let at = tokio::time::Instant::now() + GATHER;
                due = due.or(Some(at));
                continue;
            }
            _ = tick.tick() => {}
            () = gathered => {}
        }
        due = None;
        let rows = Rows::of(&view, age::now());
        scroll = scroll.min(rows.gangs.len().saturating_sub(1));
        screen.draw(|frame| draw::draw(frame, &rows, api.url(), lost, scroll))?;
    }
}

/// Prints the current state as text.
fn print(view: &View) {
    let rows = Rows::of(view, age::now());
    stdout::line(&rows.heading);
    for (kind, title) in [(Kind::Node, "nodes"), (Kind::Queue, "queues"), (Kind::Gang, "gangs")] {
        let objects: Vec<_> = view.all(kind).map(|(_, object)| object).collect();
        if objects.is_empty() {
            stdout::line(format_args!("\nno {title}"));
            continue;
        }
        stdout::write("\n");
        let lines = Table::new(kind, false, true).lines(objects, age::now());
        lines.iter().for_each(stdout::line);
    }
}
