//! A list that goes on: each change is printed as it happens.

use crate::client::connection::address::Query;
use crate::client::connection::api::Api;
use crate::client::follow::events::Events;
use crate::client::follow::view::{Step, View};
use crate::client::output::printer::Printer;
use crate::client::show::get::Filter;

/// Prints what there is, and then each change, until somebody ends it.
pub(crate) async fn watch(api: &Api, filter: &Filter, printer: &mut Printer) -> anyhow::Result<()> {
    // All of the kind is kept: what is wanted may become so, or cease to.
    let all = Query::default();
    let kind = filter.kind;
    let list = api.list(kind, &all).await?;
    let mut view = View::default();
    let newest = list.newest;
    view.replace(kind, list.items, newest);
    printer.rows(view.all(kind).map(|(_, object)| object).filter(|object| filter.wants(object)));
    let wanted = Query::default().with("kind", format!("{kind:?}"));
    let mut events = Events::after(api, wanted, newest);
    loop {
        match view.take(events.next().await?) {
            Step::Behind => {
                let list = api.list(kind, &all).await?;
                for step in view.replace(kind, list.items, list.newest) {
                    print(&view, filter, printer, &step);
                }
            }
            step => print(&view, filter, printer, &step),
        }
    }
}

fn print(view: &View, filter: &Filter, printer: &mut Printer, step: &Step) {
    match step {
        Step::Changed(kind, name) => {
            if let Some(object) = view.get(*kind, name).filter(|object| filter.wants(object)) {
                printer.rows([object]);
            }
        }
        Step::Gone(_, name) => {
            let ours = |wanted: &String| name.split_once('/').is_none_or(|(of, _)| of == wanted);
            if filter.namespace.as_ref().is_none_or(ours) {
                printer.gone(name);
            }
        }
        Step::Same | Step::Behind => {}
    }
}
