//! `muster token`: creates, lists and revokes the tokens of a file.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use jiff::Timestamp;
use muster_api::crd::Stamp;
use muster_core::time::{Span, Time};
use muster_server::{Role, TokenEntry, TokenFile, TokensError};

use crate::exit::UsageError;
use crate::owner_credential::random_token;
use crate::stdout;
use crate::yaml;

/// Create, list and revoke the tokens of a file, which `muster up --tokens` reads again when it changes.
///
/// The file holds digests: a token is shown once, when it is created. Only the owner of the file can read it. The file
/// is rewritten each time, without its comments.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    /// The file of tokens
    #[arg(long, value_name = "FILE", env = "MUSTER_TOKENS", global = true)]
    tokens: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  muster token create grafana --role viewer --tokens tokens.yaml
  muster token create alice --role user --queue research --run-as alice --expires 90d --tokens tokens.yaml
  muster token list --tokens tokens.yaml
  muster token revoke alice --tokens tokens.yaml";

#[derive(Subcommand)]
enum What {
    /// Create a token, and print it
    Create(Create),
    /// List the tokens by name, without the tokens themselves
    List,
    /// Revoke a token; requests with it are refused from now on, and its streams end
    Revoke {
        /// The name of the token
        name: String,
    },
}

#[derive(ClapArgs)]
struct Create {
    /// The name of the token's holder
    name: String,
    /// The role of the holder
    #[arg(long, value_enum)]
    role: RoleName,
    /// A queue of a user; may be repeated
    #[arg(long, value_name = "NAME")]
    queue: Vec<String>,
    /// When the token expires, such as 12h, 90d or a date; never when absent
    #[arg(long, value_name = "TIME", value_parser = end)]
    expires: Option<Time>,
    /// The Unix user that workers of its gangs run as, where the control plane is root
    #[arg(long, value_name = "USER")]
    run_as: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleName {
    /// Read only
    Viewer,
    /// Use the given queues
    User,
    /// Everything
    Admin,
}

/// Parses an instant, or a span from now.
fn end(text: &str) -> Result<Time, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok());
    let span = days.map(|days| Ok(Span(days.saturating_mul(86_400_000))));
    match span.unwrap_or_else(|| text.parse::<Span>()) {
        Ok(span) => {
            let ahead = i64::try_from(span.0).unwrap_or(i64::MAX);
            Ok(Time(Timestamp::now().as_millisecond().saturating_add(ahead)))
        }
        Err(_) => muster_api::instant(text)
            .map_err(|_| "a time is like 12h, 90d or 2026-12-01T00:00:00Z".to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let none = || UsageError("no file of tokens: give --tokens FILE, or MUSTER_TOKENS".to_owned());
    let path = args.tokens.as_deref().ok_or_else(none)?;
    match &args.what {
        What::Create(create) => add(path, create),
        What::List => list(path),
        What::Revoke { name } => revoke(path, name),
    }
}

fn wrong(error: &TokensError) -> UsageError {
    UsageError(error.to_string())
}

/// Reads the file under a lock, so that concurrent changes are serialised.
fn open(path: &Path) -> anyhow::Result<(TokenFile, std::fs::File)> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    let lock = options.write(true).create(true).truncate(false).mode(0o600);
    let lock = lock.open(path.with_extension("lock"))?;
    lock.lock()?;
    let file = match path.exists() {
        true => TokenFile::read(path).map_err(|error| wrong(&error))?,
        false => TokenFile::default(),
    };
    Ok((file, lock))
}

fn write(path: &Path, file: &TokenFile) -> anyhow::Result<()> {
    let text = yaml::document(&serde_json::to_value(file)?);
    Ok(file.write(path, &text).map_err(|error| wrong(&error))?)
}

fn add(path: &Path, create: &Create) -> anyhow::Result<()> {
    let Create { name, role, queue, expires, run_as } = create;
    if let Some(user) = run_as {
        muster_local::check_user(user).map_err(UsageError)?;
    }
    let (mut file, _lock) = open(path)?;
    let token = random_token()?;
    file.tokens.push(TokenEntry {
        name: name.clone(),
        token: TokenEntry::digest(&token),
        role: match role {
            RoleName::Viewer => Role::Viewer,
            RoleName::User => Role::User,
            RoleName::Admin => Role::Admin,
        },
        queues: queue.iter().map(|queue| queue.as_str().into()).collect(),
        expires: expires.map(Stamp),
        run_as: run_as.as_deref().map(Into::into),
    });
    write(path, &file)?;
    eprintln!("the token of {name}, which is not shown again:");
    stdout::line(token);
    Ok(())
}

fn list(path: &Path) -> anyhow::Result<()> {
    let file = TokenFile::read(path).map_err(|error| wrong(&error))?;
    let now = Timestamp::now().as_millisecond();
    for TokenEntry { name, role, queues, expires, run_as, token: _ } in &file.tokens {
        let role = format!("{role:?}").to_lowercase();
        let mut line = format!("{name}: {role}");
        if !queues.is_empty() {
            line +=
                &format!(" of {}", queues.iter().map(|one| &**one).collect::<Vec<_>>().join(", "));
        }
        if let Some(user) = run_as {
            line += &format!(", workers run as {user}");
        }
        if let Some(at) = expires {
            let stamp = Timestamp::from_millisecond(at.0.0).unwrap_or_default();
            let word = if at.0.0 <= now { "expired" } else { "expires" };
            line += &format!(", {word} {stamp}");
        }
        stdout::line(line);
    }
    Ok(())
}

fn revoke(path: &Path, name: &str) -> anyhow::Result<()> {
    let (mut file, _lock) = open(path)?;
    let before = file.tokens.len();
    file.tokens.retain(|one| one.name != name);
    if file.tokens.len() == before {
        return Err(UsageError(format!("{} has no token of {name}", path.display())).into());
    }
    write(path, &file)?;
    stdout::line(format_args!("the token of {name} is revoked"));
    Ok(())
}
