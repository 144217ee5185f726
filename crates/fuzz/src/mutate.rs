//! Mutations of inputs, drawn from a seed: what libFuzzer does, without coverage feedback.

use rand::RngExt;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use crate::Target;

/// The longest input: long enough for every field of a reader, short enough for thousands a second.
const LONGEST: usize = 16 << 10;

/// The input of a round. The same corpus, seed and round give the same input on every machine.
pub fn input(target: &Target, corpus: &[Vec<u8>], seed: u64, round: u32) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(u64::from(round));
    let mut data = corpus.choose(&mut rng).cloned().unwrap_or_default();
    for _ in 0..rng.random_range(1..=6) {
        change(&mut data, target.words, corpus, &mut rng);
    }
    data.truncate(LONGEST);
    data
}

fn change(data: &mut Vec<u8>, words: &[&str], corpus: &[Vec<u8>], rng: &mut ChaCha8Rng) {
    let (start, end) = range(data.len(), rng);
    match rng.random_range(0..9) {
        0 => drop(data.drain(start..end)),
        1 => {
            let again = data[start..end].repeat(rng.random_range(1..=3));
            data.splice(start..start, again);
        }
        2 | 3 => {
            let word = words.choose(rng).copied().unwrap_or_default();
            data.splice(start..start, word.bytes());
        }
        4 => {
            let word = words.choose(rng).copied().unwrap_or_default();
            data.splice(start..end, word.bytes());
        }
        5 => {
            let other = corpus.choose(rng).map_or(&[][..], Vec::as_slice);
            let (from, to) = range(other.len(), rng);
            data.splice(start..end, other[from..to].iter().copied());
        }
        6 => number(data, start, rng),
        7 => {
            if let Some(byte) = data.get_mut(start) {
                *byte ^= 1 << rng.random_range(0..8);
            }
        }
        _ => data.insert(start, rng.random()),
    }
}

/// A range, short more often than long.
fn range(len: usize, rng: &mut ChaCha8Rng) -> (usize, usize) {
    let start = rng.random_range(0..=len);
    let most = if rng.random_bool(0.8) { 12 } else { len };
    (start, (start + rng.random_range(0..=most)).min(len))
}

/// Replaces the next number by another.
fn number(data: &mut Vec<u8>, from: usize, rng: &mut ChaCha8Rng) {
    let Some(start) = data[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) else {
        return;
    };
    let len = data[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let edges = [
        0,
        1,
        u64::from(u16::MAX),
        1 << 31,
        u64::from(u32::MAX),
        1 << 53,
        i64::MAX as u64,
        1 << 63,
        u64::MAX,
    ];
    let edge = edges.choose(rng).copied().unwrap_or_default();
    let value = match rng.random_range(0..3) {
        0 => edge,
        1 => edge.wrapping_add(1),
        _ => rng.random_range(0..1_000),
    };
    data.splice(start..start + len, value.to_string().bytes());
}
