//! Prints the output of members, with a prefix that names the member.

use std::io::Write;
use std::sync::Arc;

use console::{Color, style};
use muster_server::LogPart;

use crate::client::connection::address::{Query, gang_path};
use crate::client::connection::api::Api;
use crate::client::connection::error::RequestError;
use crate::stdout;

/// Selects logs of a gang.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogSelection {
    pub(crate) member: Option<u32>,
    pub(crate) attempt: Option<u32>,
    pub(crate) run: Option<u64>,
    pub(crate) tail: Option<u32>,
    pub(crate) follow: bool,
}

/// The parts of the prefix.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prefix {
    /// Whether to name the gang, because there are several.
    pub(crate) gang: bool,
    /// Whether to name the member, because there are several.
    pub(crate) member: bool,
}

/// The colours of the prefixes. Consecutive ranks have different colours.
const COLOURS: [Color; 6] =
    [Color::Cyan, Color::Yellow, Color::Green, Color::Magenta, Color::Blue, Color::Red];

impl Prefix {
    fn before(&self, gang: &str, part: &LogPart) -> String {
        let short = gang.split_once('/').map_or(gang, |(_, short)| short);
        let member = format!("{} {}", part.role, part.member);
        let text = match (self.gang, self.member) {
            (false, false) => return String::new(),
            (true, false) => format!("[{short}]"),
            (false, true) => format!("[{member}]"),
            (true, true) => format!("[{short} {member}]"),
        };
        let colour = COLOURS[part.member as usize % COLOURS.len()];
        let text = style(text).fg(colour);
        let text = if part.stderr { text.for_stderr() } else { text };
        format!("{text} ")
    }

    fn lines(&self, gang: &str, part: &LogPart) -> String {
        let before = self.before(gang, part);
        match before.is_empty() {
            true => part.text.clone(),
            false => part.text.lines().map(|line| format!("{before}{line}\n")).collect(),
        }
    }
}

/// Prints the output of a gang's members to the stream that they wrote it to; with `follow`, until the run is over.
pub(crate) async fn print(
    api: Arc<Api>,
    gang: String,
    which: LogSelection,
    prefix: Prefix,
) -> Result<(), RequestError> {
    let LogSelection { member, attempt, run, tail, follow } = which;
    let query = Query::default()
        .maybe("member", member)
        .maybe("attempt", attempt)
        .maybe("run", run)
        .maybe("tail", tail)
        .with("follow", follow);
    let path = query.on(&gang_path(&gang, "logs"));
    // A worker may print nothing for hours.
    let mut lines = api.stream(&path, "application/x-ndjson", None).await?;
    while let Some(line) = lines.next().await? {
        if line.is_empty() {
            continue;
        }
        let part: LogPart = api.parse(line.as_bytes())?;
        let text = prefix.lines(&gang, &part);
        match part.stderr {
            false => stdout::raw(&text),
            true => drop(std::io::stderr().write_all(text.as_bytes())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_prefix_where_there_are_several_members() {
        let part =
            LogPart { member: 3, role: "worker".into(), stderr: false, text: "a\n\nb\n".into() };
        let lines = |gang, member| {
            let text = Prefix { gang, member }.lines("research/llama", &part);
            console::strip_ansi_codes(&text).into_owned()
        };
        assert_eq!(lines(false, false), "a\n\nb\n");
        assert_eq!(lines(false, true), "[worker 3] a\n[worker 3] \n[worker 3] b\n");
        assert_eq!(lines(true, true).lines().next(), Some("[llama worker 3] a"));
    }
}
