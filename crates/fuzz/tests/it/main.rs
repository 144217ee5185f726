//! The short run: every target with its corpus, and with a stated number of mutations of it.
//!
//! A failing run prints the seed and leaves the input behind. `MUSTER_SEED` is the seed and `MUSTER_ROUNDS` multiplies the rounds;
//! `MUSTER_INPUT=FILE cargo test -p muster-fuzz --test it TARGET` gives one file to a target.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{env, fs};

use muster_fuzz::{Target, mutate, target};

/// The folder of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/fuzz lies two below")
}

fn variable(name: &str, default: u64) -> u64 {
    env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

/// The files of a target's corpus, by name, so that a seed means the same everywhere.
fn corpus(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = root().join("fuzz/corpus").join(target.name);
    let files =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

fn check(name: &str) {
    let target = target(name).expect("a target");
    if let Some(path) = env::var_os("MUSTER_INPUT") {
        (target.run)(&fs::read(path).expect("the file that MUSTER_INPUT names"));
        return;
    }
    let corpus = corpus(&target);
    assert!(!corpus.is_empty(), "fuzz/corpus/{name} is empty");
    for (path, data) in &corpus {
        guarded(&target, data, &path.display().to_string());
    }
    let inputs: Vec<Vec<u8>> = corpus.into_iter().map(|(_, data)| data).collect();
    let (seed, times) = (variable("MUSTER_SEED", 1), variable("MUSTER_ROUNDS", 1));
    let rounds = u32::try_from(times).expect("fewer rounds").saturating_mul(target.rounds);
    let begun = Instant::now();
    for round in 0..rounds {
        let data = mutate::input(&target, &inputs, seed, round);
        guarded(&target, &data, &format!("round {round} of MUSTER_SEED={seed}"));
    }
    println!("{name}: {rounds} rounds of seed {seed} in {:.1} s", begun.elapsed().as_secs_f64());
}

/// Runs a target; when it panics, stores the input and prints how to run it again.
fn guarded(target: &Target, data: &[u8], from: &str) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(data))) else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    fs::create_dir_all(&folder).expect("a folder for the input");
    let path = folder.join(format!("{}-{}", target.name, data.len()));
    fs::write(&path, data).expect("the input is kept");
    let (name, path) = (target.name, path.display());
    eprintln!(
        "{name}: {from}\nagain: MUSTER_INPUT={path} cargo test -p muster-fuzz --test it {name}"
    );
    resume_unwind(panic);
}

macro_rules! targets {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*

        #[test]
        fn every_target_has_a_short_run_and_a_long_one() {
            let mut here = vec![$(stringify!($name)),*];
            here.sort_unstable();
            let mut all: Vec<&str> = muster_fuzz::TARGETS.iter().map(|target| target.name).collect();
            all.sort_unstable();
            assert_eq!(here, all);
            for name in all {
                let long = root().join(format!("fuzz/fuzz_targets/{name}.rs"));
                assert!(long.is_file(), "{} is missing", long.display());
            }
        }
    };
}

targets!(manifests, simulations, quantities, durations, cron, foreign, watch_pages, keeper);
