//! `cargo xtask bench local`: the embedded control plane under load, over loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Args as ClapArgs;
use serde_json::{Value, json};

/// Submit many gangs at once while many clients read events.
///
/// Starts `muster up` in a directory of its own with one node of 8 GPUs; all but eight of the gangs wait in the queue.
/// One JSON object: submissions per second, latency, events per reader, and the memory of the control plane.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Print JSON; nothing else is printed on stdout anyway
    #[arg(long)]
    json: bool,
    /// Gangs that are submitted
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    gangs: u64,
    /// Clients that submit at the same time
    #[arg(long, value_name = "N", default_value_t = 200)]
    clients: u64,
    /// Readers of the event stream
    #[arg(long, value_name = "N", default_value_t = 50)]
    readers: u64,
    /// Add a user that uses every limit it has
    #[arg(long)]
    greedy: bool,
}

const NODE: &str = "kind: Node\nmetadata: {name: box}\nspec: {allocatable: {cpu: 64, memory: 256Gi}, gpu: {model: H100, memory: 80Gi, count: 8}}\n";

const ADMIN: &str = "token-of-the-admin";
const USER: &str = "token-of-the-user-1";
const TOKENS: &str = "tokens:\n- {name: admin, token: token-of-the-admin, role: admin}\n\
                      - {name: user, token: token-of-the-user-1, role: user, queues: [default]}\n";

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let _ = args.json;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--package", "muster-cli"])
        .status()
        .context("cargo build")?;
    ensure!(built.success(), "muster could not be built");
    let data = std::env::temp_dir().join(format!("muster-load-{}", std::process::id()));
    let measured = measure(args, &data);
    let _ = std::fs::remove_dir_all(&data);
    println!("{}", measured?);
    Ok(())
}

/// The control plane and what it started, ended with the measurement.
struct Up {
    child: Child,
    address: String,
    token: String,
    data: PathBuf,
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Gangs outlive a control plane that is killed; their members end with their keepers.
        for keeper in keepers(&self.data) {
            let _ = Command::new("kill").args(["-9", &keeper.to_string()]).status();
        }
    }
}

/// Process ids of the keepers of running gangs, from their files. An id may belong to another process by now.
fn keepers(data: &Path) -> Vec<u64> {
    let Ok(runs) = data.join("runs").read_dir() else { return Vec::new() };
    let pid = |run: PathBuf| -> Option<u64> {
        let journal = std::fs::read_to_string(run.join("journal.jsonl")).ok()?;
        let begun: Value = serde_json::from_str(journal.lines().next()?).ok()?;
        let pid = begun["begun"]["pid"].as_u64()?;
        let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        words.contains(&*data.to_string_lossy()).then_some(pid)
    };
    runs.filter_map(|run| pid(run.ok()?.path())).collect()
}

impl Up {
    fn start(data: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(data)?;
        // The clients that submit and read are an admin; beside them is a user of one queue.
        let tokens = data.join("tokens.yaml");
        std::fs::write(&tokens, TOKENS)?;
        std::fs::set_permissions(&tokens, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| "target".into(), std::path::PathBuf::from);
        let log = std::fs::File::create(data.join("up.log"))?;
        let child = Command::new(target.join("release/muster"))
            .args(["up", "--no-local", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .arg("--allow-root")
            .arg("--tokens")
            .arg(tokens)
            .env("RUST_LOG", "warn")
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            let note = std::fs::read_to_string(data.join("server.json")).unwrap_or_default();
            let note: Value = serde_json::from_str(&note).unwrap_or_default();
            if let Some(url) = note["url"].as_str() {
                let address = url.trim_start_matches("http://").to_owned();
                let token = ADMIN.to_owned();
                return Ok(Self { child, address, token, data: data.to_owned() });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("muster up does not answer")
    }

    /// Its resident memory in megabytes.
    fn memory(&self) -> u64 {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
        kibibytes.unwrap_or(0) >> 10
    }
}

fn measure(args: &Args, data: &Path) -> anyhow::Result<Value> {
    let up = Up::start(data)?;
    let (code, answer) = Client::new(&up.address, &up.token)?.apply(NODE)?;
    ensure!(code == 200, "the node was refused: {answer}");
    let done = Arc::new(AtomicBool::new(false));
    let heard: Vec<Arc<AtomicU64>> = (0..args.readers).map(|_| Arc::default()).collect();
    for (number, heard) in heard.iter().enumerate() {
        // One reader never reads on: the others must not be affected.
        let slow = number == 0;
        read_events((&up.address, &up.token), heard.clone(), done.clone(), slow)?;
    }
    eprintln!("{} gangs by {} clients", args.gangs, args.clients);
    let next = Arc::new(AtomicU64::new(0));
    let errors = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let clients: Vec<_> = (0..args.clients)
        .map(|_| {
            let (next, errors) = (next.clone(), errors.clone());
            let (address, token, gangs) = (up.address.clone(), up.token.clone(), args.gangs);
            std::thread::spawn(move || submit((&address, &token), gangs, &next, &errors))
        })
        .collect();
    let mut took: Vec<Duration> = Vec::new();
    for client in clients {
        took.extend(client.join().unwrap_or_default());
    }
    let seconds = began.elapsed().as_secs_f64();
    // Readers may be behind by a moment.
    let settled = Instant::now();
    let sets = |heard: &AtomicU64| heard.load(Ordering::Relaxed);
    while heard.iter().skip(1).any(|one| sets(one) < args.gangs)
        && settled.elapsed() < Duration::from_secs(60)
    {
        std::thread::sleep(Duration::from_millis(50));
    }
    let lag = settled.elapsed().as_secs_f64();
    // With so many gangs, snapshots are updated a few seconds later.
    std::thread::sleep(Duration::from_secs(if args.greedy { 20 } else { 0 }));
    let quiet = up.memory();
    let streams = if args.greedy { be_greedy(&up)? } else { Vec::new() };
    took.sort_unstable();
    let at = |part: f64| {
        let place = (took.len() as f64 * part) as usize;
        took.get(place.min(took.len().saturating_sub(1))).map_or(0.0, |one| one.as_secs_f64() * 1e3)
    };
    let least = heard.iter().skip(1).map(|one| sets(one)).min().unwrap_or(0);
    let memory = up.memory();
    drop(streams);
    done.store(true, Ordering::Relaxed);
    Ok(json!({
        "gangs": args.gangs,
        "clients": args.clients,
        "readers": args.readers,
        "submissions_per_s": (took.len() as f64 / seconds).round(),
        "p50_ms": at(0.5),
        "p99_ms": at(0.99),
        "errors": errors.load(Ordering::Relaxed),
        "gangs_heard_by_the_least_reader": least,
        "readers_behind_s": lag,
        "rss_mib": if args.greedy { quiet } else { memory },
        "rss_mib_with_a_greedy_user": args.greedy.then_some(memory),
    }))
}

fn submit(
    (address, token): (&str, &str),
    gangs: u64,
    next: &AtomicU64,
    errors: &AtomicU64,
) -> Vec<Duration> {
    let mut took = Vec::new();
    let Ok(mut client) = Client::new(address, token) else {
        errors.fetch_add(1, Ordering::Relaxed);
        return took;
    };
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= gangs {
            return took;
        }
        let gang = format!(
            "kind: Gang\nmetadata: {{name: g{number}}}\nspec: {{roles: [{{name: w, min: 1, \
             resources: {{nvidia.com/gpu: 1}}, run: {{command: [sleep, '3600']}}}}]}}\n"
        );
        let began = Instant::now();
        match client.apply(&gang) {
            Ok((200, _)) => took.push(began.elapsed()),
            Ok((_, answer)) => {
                if errors.fetch_add(1, Ordering::Relaxed) == 0 {
                    eprintln!("refused: {answer}");
                }
            }
            Err(error) => {
                if errors.fetch_add(1, Ordering::Relaxed) == 0 {
                    eprintln!("failed: {error}");
                }
                match Client::new(address, token) {
                    Ok(again) => client = again,
                    Err(_) => return took,
                }
            }
        }
    }
}

/// A user at every limit: large gangs, changes of them, the largest bodies, streams that are not read.
fn be_greedy(up: &Up) -> anyhow::Result<Vec<TcpStream>> {
    let mut streams = Vec::new();
    for _ in 0..64 {
        let mut stream = TcpStream::connect(&up.address)?;
        let head = format!(
            "GET /v1/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {USER}\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        streams.push(stream);
    }
    let step = |what: &str| eprintln!("{what}: {} MiB at most", up.memory());
    step("streams that are not read");
    let mut client = Client::new(&up.address, USER)?;
    let large = "x".repeat(260_000);
    let mut taken = 0;
    for number in 0..48 {
        let gang = format!(
            "kind: Gang\nmetadata: {{name: large{number}}}\nspec: {{roles: [{{name: w, min: 1, \
             resources: {{nvidia.com/gpu: 1}}, run: {{command: [sleep, '3600'], env: {{X: '{large}'}}}}}}]}}\n"
        );
        taken += u32::from(client.apply(&gang)?.0 == 200);
    }
    step(&format!("{taken} of 48 large gangs"));
    // A map of six bytes takes a hundred times as much once it is read.
    let mut taken = 0;
    let maps = "{a: {}},".repeat(4_900);
    for number in 0..40 {
        let gang = format!(
            "kind: Gang\nmetadata: {{name: maps{number}}}\nspec: {{roles: [{{name: w, min: 1, \
             template: {{spec: {{containers: [{{name: a, image: a}}], x: [{maps}]}}}}}}]}}\n"
        );
        let job = format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: job{number}}}\nspec: {{template: \
             {{spec: {{x: [{maps}], containers: [{{name: a, image: a, command: [sleep, '1']}}]}}}}}}\n"
        );
        for manifest in [gang, job] {
            let (code, _) = client.apply(&manifest)?;
            taken += u32::from(code == 200);
        }
    }
    step(&format!("{taken} of 80 gangs of many maps"));
    for round in 0..400 {
        let change = if round % 2 == 0 { "hold" } else { "release" };
        client.send(&format!("/v1/namespaces/default/gangs/large0/{change}"), "")?;
    }
    step("changes of a large gang");
    let hostile = format!("a: [{}]\n", "{a: b},".repeat(280_000));
    let all: Vec<_> = (0..4)
        .map(|_| {
            let (address, hostile) = (up.address.clone(), hostile.clone());
            std::thread::spawn(move || {
                Client::new(&address, USER).and_then(|mut one| one.send("/v1/what-if", &hostile))
            })
        })
        .collect();
    for one in all {
        let _ = one.join();
    }
    step("the largest bodies");
    Ok(streams)
}

/// A client with a kept-alive connection.
struct Client {
    stream: BufReader<TcpStream>,
    token: String,
}

impl Client {
    fn new(address: &str, token: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self { stream: BufReader::new(stream), token: token.to_owned() })
    }

    fn apply(&mut self, text: &str) -> anyhow::Result<(u16, String)> {
        self.send("/v1/apply", text)
    }

    fn send(&mut self, path: &str, text: &str) -> anyhow::Result<(u16, String)> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/yaml\r\n\
             authorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{text}",
            self.token,
            text.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let code = line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let code = code.with_context(|| format!("no answer: {line:?}"))?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((code, String::from_utf8_lossy(&body).into_owned()))
    }
}

/// Counts the gangs that appear for the first time in an event stream.
fn read_events(
    (address, token): (&str, &str),
    heard: Arc<AtomicU64>,
    done: Arc<AtomicBool>,
    slow: bool,
) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let head = format!(
        "GET /v1/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         accept: text/event-stream\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    std::thread::spawn(move || {
        let mut seen = std::collections::HashSet::new();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        while !done.load(Ordering::Relaxed) {
            if slow {
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
            match lines.read_line(&mut line) {
                Ok(0) => return,
                Ok(_) if line.ends_with('\n') => {
                    if let Some(name) = new_gang(&line)
                        && seen.insert(name)
                    {
                        heard.fetch_add(1, Ordering::Relaxed);
                    }
                    line.clear();
                }
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    });
    Ok(())
}

/// The gang that a line of an event stream is about. Lines are not parsed as JSON: the cost of fifty readers in this process must not
/// be measured.
fn new_gang(line: &str) -> Option<String> {
    let is_gang = line.contains("\"type\":\"set\"") && line.contains("\"kind\":\"Gang\"");
    let (_, name) = line.split_once("\"name\":\"").filter(|_| is_gang)?;
    name.split_once('"').map(|(name, _)| name.to_owned())
}
