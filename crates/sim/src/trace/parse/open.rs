//! Opens a trace as a stream of text, gzipped or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::trace::error::TraceError;

/// The two bytes every gzip file starts with.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Large enough that a log of hundreds of megabytes is read in few system calls.
const BUFFER: usize = 256 * 1024;

/// Opens a trace for streaming. Gzip is recognised by its first bytes, because files get renamed.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>, TraceError> {
    let file = File::open(path).map(|file| BufReader::with_capacity(BUFFER, file));
    file.and_then(decoded).map_err(|error| TraceError::Open { file: path.to_owned(), error })
}

/// The text behind `raw`. Archives are sometimes several gzip files glued together; all of them are read.
pub(crate) fn decoded(mut raw: impl BufRead + 'static) -> io::Result<Box<dyn BufRead>> {
    if raw.fill_buf()?.starts_with(&GZIP_MAGIC) {
        Ok(Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(raw))))
    } else {
        Ok(Box::new(raw))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read, Write};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn text_of(bytes: Vec<u8>) -> String {
        let mut text = String::new();
        decoded(Cursor::new(bytes)).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn gzip_is_recognised_by_its_bytes_and_plain_text_stays_plain() {
        assert_eq!(text_of(gzip("1 2 3\n")), "1 2 3\n");
        assert_eq!(text_of(b"1 2 3\n".to_vec()), "1 2 3\n");
        assert_eq!(text_of(Vec::new()), "");
    }

    #[test]
    fn concatenated_gzip_files_are_read_to_the_end() {
        let glued = [gzip("first\n"), gzip("second\n")].concat();
        assert_eq!(text_of(glued), "first\nsecond\n");
    }
}
