//! `--watch`: lists objects and prints each change as it happens.

use crate::client::connection::address::Query;
use crate::client::connection::api::Api;
use crate::client::follow::events::EventStream;
use crate::client::follow::view::{View, ViewChange};
use crate::client::output::printer::Printer;
use crate::client::show::get::Filter;

/// Prints all matching objects, and then each change, until interrupted.
pub(crate) async fn watch(api: &Api, filter: &Filter, printer: &mut Printer) -> anyhow::Result<()> {
    // All objects of the kind are in the view: an object may begin or cease to match.
    let all = Query::default();
    let kind = filter.kind;
    let list = api.list(kind, &all).await?;
    let mut view = View::default();
    let newest = list.newest;
    view.replace(kind, list.items, newest);
    printer.rows(view.all(kind).map(|(_, object)| object).filter(|object| filter.wants(object)));
    let wanted = Query::default().with("kind", format!("{kind:?}"));
    let mut events = EventStream::after(api, wanted, newest);
    loop {
        match view.take(events.next().await?) {
            ViewChange::Stale => {
                let list = api.list(kind, &all).await?;
                for step in view.replace(kind, list.items, list.newest) {
                    print(&view, filter, printer, &step);
                }
            }
            step => print(&view, filter, printer, &step),
        }
    }
}

fn print(view: &View, filter: &Filter, printer: &mut Printer, step: &ViewChange) {
    match step {
        ViewChange::Changed(kind, name) => {
            if let Some(object) = view.get(*kind, name).filter(|object| filter.wants(object)) {
                printer.rows([object]);
            }
        }
        ViewChange::Gone(_, name) => {
            let ours = |wanted: &String| name.split_once('/').is_none_or(|(of, _)| of == wanted);
            if filter.namespace.as_ref().is_none_or(ours) {
                printer.gone(name);
            }
        }
        ViewChange::Same | ViewChange::Stale => {}
    }
}
