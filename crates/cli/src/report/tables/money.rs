//! Cost: by pool, by tier, by queue, by what nodes did, and of rolled-back orders.

use std::sync::Arc;

use muster_core::order::ClaimFailure;
use muster_sim::meter::{Cause, State};
use muster_sim::report::{Report, Run};
use muster_sim::summary::{Paid, Supply};

use crate::figures::count;
use crate::report::charts::legend::PolicyColour;
use crate::report::markup::Markup;
use crate::report::numbers::{money, name, percent};
use crate::report::tables::supply::{buyers, meaning};

type Buyers<'a> = [(usize, &'a Run, &'a Supply)];

/// The number of queues with a row of their own.
const LISTED: usize = 24;

/// Cost by payer, and the cost of rollbacks: a column per policy.
pub(crate) fn tables(html: &mut Markup, report: &Report) {
    let buyers = buyers(report);
    html.classed("div", "pair tables").with(|html| {
        html.tag("div").with(|html| {
            html.tag("h3").text("Cost by payer");
            table(html, &buyers, "money", |html| paid(html, &buyers));
            html.classed("p", "note").text(BY_PAYER);
        });
        html.tag("div").with(|html| {
            html.tag("h3").text("Cost by use, and of rollbacks");
            table(html, &buyers, "money", |html| spent(html, &buyers));
            html.classed("p", "note").text(BY_USE);
        });
    });
}

const BY_PAYER: &str = "A queue pays for the GPUs its gangs use, and for nodes that are ready and wait for the rest of \
    its gang. Booting, stranded, warm, idle and broken nodes are shared.";

const BY_USE: &str = "Each GPU of a node costs the same part of its price. A rollback is charged with the nodes of \
    its order from launch until they are used or released; that is part of the cost above.";

fn table(html: &mut Markup, buyers: &Buyers<'_>, corner: &str, rows: impl FnOnce(&mut Markup)) {
    html.classed("div", "scroll").with(|html| {
        html.classed("table", "queues").with(|html| {
            html.tag("thead").with(|html| {
                html.tag("tr").with(|html| {
                    html.tag("th").attr("scope", "col").text(corner);
                    for (i, run, _) in buyers {
                        html.tag("th").attr("scope", "col").with(|html| {
                            html.classed("i", format_args!("dot {}", PolicyColour(*i))).text("");
                            html.text(&run.summary.policy);
                        });
                    }
                });
            });
            rows(html);
        });
    });
}

/// Rows under a heading.
fn group(html: &mut Markup, title: &str, columns: usize, rows: impl FnOnce(&mut Markup)) {
    html.tag("tbody").with(|html| {
        html.classed("tr", "under").with(|html| {
            let under = html.tag("th").attr("scope", "rowgroup").attr("colspan", columns + 1);
            under.text(title);
        });
        rows(html);
    });
}

/// A row: its title, and for each policy an amount of its whole cost.
fn row(
    html: &mut Markup,
    title: &str,
    hint: &str,
    buyers: &Buyers<'_>,
    value: impl Fn(&Supply) -> f64,
) {
    html.tag("tr").with(|html| {
        html.tag("th").attr("scope", "row").attr("title", hint).text(title);
        for (_, run, supply) in buyers {
            let value = value(supply);
            html.tag("td").with(|html| amount(html, value, run.summary.cost));
        }
    });
}

fn amount(html: &mut Markup, value: f64, of: f64) {
    html.classed("span", "value").text(money(value));
    let share = if of > 0.0 { percent(value / of) } else { String::new() };
    html.classed("span", "change").text(share);
}

fn paid(html: &mut Markup, buyers: &Buyers<'_>) {
    let Some((_, _, first)) = buyers.first() else { return };
    let columns = buyers.len();
    html.classed("tbody", "total").with(|html| {
        html.tag("tr").with(|html| {
            html.tag("th").attr("scope", "row").text("all");
            for (_, run, _) in buyers {
                html.tag("td").text(money(run.summary.cost));
            }
        });
    });
    group(html, "by pool", columns, |html| {
        for (i, pool) in first.pools.iter().enumerate() {
            row(html, &pool.name, &pool.tier, buyers, |supply| supply.pools[i].cost);
        }
    });
    group(html, "by tier", columns, |html| {
        for tier in &first.tiers {
            row(html, name(&tier.name), "", buyers, |supply| of(&supply.tiers, &tier.name));
        }
    });
    group(html, "by queue", columns, |html| {
        let (listed, others) = first.queues.split_at(first.queues.len().min(LISTED));
        for queue in listed {
            row(html, name(&queue.name), "", buyers, |supply| of(&supply.queues, &queue.name));
        }
        if !others.is_empty() {
            let title = format!("{} others", others.len());
            let rest =
                |supply: &Supply| others.iter().map(|queue| of(&supply.queues, &queue.name)).sum();
            row(html, &title, "", buyers, rest);
        }
        row(html, "shared", "paid by no queue in particular", buyers, |supply| supply.shared);
    });
}

/// The cost of one payer; zero if it is missing.
fn of(all: &[Paid], name: &Arc<str>) -> f64 {
    all.iter().find(|paid| paid.name == *name).map_or(0.0, |paid| paid.cost)
}

fn spent(html: &mut Markup, buyers: &Buyers<'_>) {
    let columns = buyers.len();
    group(html, "by what nodes did", columns, |html| {
        for state in State::ALL {
            if buyers.iter().any(|(_, _, supply)| supply.money[state] > 0.0) {
                row(html, state.name(), meaning(state), buyers, |supply| supply.money[state]);
            }
        }
    });
    let mut reasons: Vec<Cause> = Vec::new();
    for rollbacks in buyers.iter().flat_map(|(_, _, supply)| &supply.rollbacks) {
        if !reasons.contains(&rollbacks.reason) {
            reasons.push(rollbacks.reason);
        }
    }
    if reasons.is_empty() {
        return;
    }
    group(html, "rolled back because of", columns, |html| {
        for reason in reasons {
            html.tag("tr").with(|html| {
                html.tag("th").attr("scope", "row").text(words(reason));
                for (_, _, supply) in buyers {
                    html.tag("td").with(|html| rolled_back(html, supply, reason));
                }
            });
        }
    });
}

fn rolled_back(html: &mut Markup, supply: &Supply, reason: Cause) {
    let Some(one) = supply.rollbacks.iter().find(|one| one.reason == reason) else {
        html.text("\u{2013}");
        return;
    };
    html.classed("span", "value").text(money(one.cost_until + one.cost_after));
    html.classed("span", "change").text(count(one.count, "time"));
    if one.cost_after > 0.0 {
        let after = format!("{} of it afterwards", money(one.cost_after));
        html.classed("span", "change").text(after);
    }
}

/// A rollback reason in words.
fn words(reason: Cause) -> &'static str {
    match reason {
        Cause::ClaimFailed(ClaimFailure::StockOut) => "a stock-out",
        Cause::ClaimFailed(ClaimFailure::BootFailed) => "a node that did not boot",
        Cause::ClaimFailed(ClaimFailure::GpusMissing) => "a node that lacks GPUs",
        Cause::ClaimFailed(ClaimFailure::TooSmall) => "a node that was too small",
        Cause::ClaimFailed(ClaimFailure::Vanished) => "a node that vanished",
        Cause::ClaimFailed(ClaimFailure::Throttled) => "a provider that was busy",
        Cause::Overdue => "a node that was overdue",
        Cause::DeadlinePassed => "the order's deadline",
        Cause::NodeLost => "a node that was lost",
        Cause::NodeUnsuitable => "a node that was unsuitable",
        Cause::GangGone => "a gang that was cancelled",
        Cause::WayClosed => "a preemption that failed",
        Cause::NotWritten => "an order that could not be stored",
        Cause::NotNeeded => "the gang fitted on nodes that had become free",
    }
}
