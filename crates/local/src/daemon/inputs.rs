//! Inputs of the control plane: users' requests, and records of keepers.

use std::sync::Arc;

use muster_server::{Applied, Caller, Change, GangName, Kind, Refused, WhatIf, Why};
use serde_json::Value;
use tokio::sync::oneshot::Sender;

use crate::daemon::effects::Effect;
use crate::daemon::retention::output::OutputSizes;
use crate::daemon::state::Daemon;
use crate::intake::manifests::Intake;
use crate::keeper::journal::Record;
use crate::store::answers::AnswerRow;

/// The channel for an answer.
pub(crate) type Reply<T> = Sender<Result<T, Refused>>;

/// An input.
pub(crate) enum Input {
    Apply {
        by: Caller,
        intake: Box<Intake>,
        dry_run: bool,
        reply: Reply<Vec<Applied>>,
    },
    Remove {
        by: Caller,
        kind: Kind,
        name: String,
        reply: Reply<()>,
    },
    Change {
        by: Caller,
        gang: GangName,
        change: Change,
        reply: Reply<Arc<Value>>,
    },
    Why {
        gang: GangName,
        reply: Reply<Why>,
    },
    WhatIf {
        by: Caller,
        intake: Box<Intake>,
        reply: Reply<Vec<WhatIf>>,
    },
    /// Store an answer under an idempotency key.
    StoreAnswer {
        caller: String,
        key: String,
        row: AnswerRow,
        reply: Reply<()>,
    },
    /// A record of a keeper; the same record may come again.
    KeeperRecord {
        run: u64,
        record: Record,
    },
    /// A keeper is gone, after all its records.
    KeeperGone {
        run: u64,
        /// When it was last known to be alive, in Unix milliseconds.
        alive_until: i64,
        /// Why it could not be started, or why it was killed.
        why: Option<String>,
        /// Whether the system was only out of a resource.
        later: bool,
    },
    /// Retry a run that was deferred for want of a resource.
    RetryStart {
        run: u64,
    },
    /// Output sizes of runs.
    OutputSizes(OutputSizes),
    /// Stop taking turns. Running gangs go on.
    Quit(Sender<()>),
}

impl Daemon {
    pub(crate) fn handle_input(&mut self, input: Input) {
        match input {
            Input::Apply { by, intake, dry_run, reply } => {
                // A disconnected client was told that nothing was done, so nothing is done.
                if reply.is_closed() {
                    return;
                }
                let answer = self.apply_once(&by, *intake, dry_run);
                self.answer(reply, answer);
            }
            Input::Remove { by, kind, name, reply } => {
                if reply.is_closed() {
                    return;
                }
                let answer = self.remove(&by, kind, &name);
                self.answer(reply, answer);
            }
            Input::Change { by, gang, change, reply } => {
                if reply.is_closed() {
                    return;
                }
                let answer = self.change_gang(&by, &gang.to_string().into(), change);
                self.answer(reply, answer);
            }
            Input::Why { gang, reply } => {
                self.ask_why(&gang.to_string(), reply);
            }
            Input::WhatIf { by, intake, reply } => {
                self.ask_what_if(&by, *intake, reply);
            }
            Input::StoreAnswer { caller, key, row, reply } => {
                let forget = row.at - muster_server::ANSWER_RETENTION_MS;
                let written = self.store.set_answer(&caller, &key, &row, forget);
                self.check_store(written);
                self.answer(reply, Ok(()));
            }
            Input::KeeperRecord { run, record } => self.keeper_record(run, record),
            Input::KeeperGone { run, alive_until, why, later } => {
                self.keeper_gone(run, alive_until, why, later);
            }
            Input::OutputSizes(printed) => self.bound_output(&printed),
            Input::RetryStart { run } => self.retry_start(run),
            Input::Quit(done) => drop(done.send(())),
        }
    }

    /// Answers after everything that led to the answer is committed.
    fn answer<T: Send + 'static>(&mut self, reply: Reply<T>, answer: Result<T, Refused>) {
        self.effects.push(Effect::Reply(Box::new(move || drop(reply.send(answer)))));
    }
}
