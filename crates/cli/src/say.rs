//! Standard output, where the reader may leave at any time (`muster run ... | head`).

use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// What a shell reports for a program that ends because nobody reads it any more: 128 + SIGPIPE.
const NOBODY_READS: i32 = 141;

/// Prints one line, at once. Ends the program quietly when nobody reads any more.
pub(crate) fn line(text: impl Display) {
    write(&format!("{text}\n"));
}

/// Prints a text as it is.
pub(crate) fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(NOBODY_READS);
    }
    eprintln!("error: standard output cannot be written: {error}");
    std::process::exit(1);
}
