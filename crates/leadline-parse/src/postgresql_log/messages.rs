//! What the messages of a `PostgreSQL` server tell, in all its versions.

use memchr::{memchr, memmem};

use super::Kind;
use super::languages::NO_SPACE;

const SIZE_DIGITS_MAX: usize = 18;
const WAIT_DIGITS_MAX: usize = 12;

/// Gives each event that a message tells to a function, with its value.
pub(super) fn each_event(level: &[u8], text: &[u8], mut take: impl FnMut(Kind, f64)) {
    let is_bad = matches!(level, b"ERROR" | b"FATAL" | b"PANIC");
    if is_bad {
        take(Kind::Error, 1.0);
    }
    let first_line = &text[..memchr(b'\n', text).unwrap_or(text.len())];
    if (is_bad || matches!(level, b"WARNING" | b"LOG")) && says_out_of_space(first_line) {
        take(Kind::OutOfSpace, 1.0);
    }
    if level != b"LOG" {
        return;
    }
    if let Some((duration, statement)) = statement_ms(text) {
        let kind = if is_commit(statement) {
            Kind::Commit
        } else {
            Kind::Statement
        };
        take(kind, duration);
        return;
    }
    let text = first_line;
    if is_checkpoint(text, b"point complete:") {
        let kinds = [
            Kind::CheckpointWrite,
            Kind::CheckpointSync,
            Kind::CheckpointLongest,
        ];
        for (kind, value) in kinds.into_iter().zip(checkpoint_ms(text)) {
            if let Some(value) = value {
                take(kind, value);
            }
        }
    } else if is_checkpoint(text, b"point starting:") {
        let of_time = text.ends_with(b": time");
        take(
            if of_time {
                Kind::TimedCheckpoint
            } else {
                Kind::RequestedCheckpoint
            },
            1.0,
        );
    } else if let Some(apart) = apart_ms(text) {
        take(Kind::CheckpointTooSoon, apart);
    } else if text.starts_with(b"automatic vacuum ")
        || text.starts_with(b"automatic aggressive vacuum ")
        || text.starts_with(b"automatic analyze ")
    {
        take(Kind::Autovacuum, 1.0);
    } else if text.starts_with(b"connection received:") {
        take(Kind::Connection, 1.0);
    } else if let Some(size) = temporary_bytes(text) {
        take(Kind::TemporaryFile, size);
    } else if let Some(wait) = lock_message(text) {
        take(Kind::LockWait, wait.wait_ms);
    }
}

/// Whether a message is one of a checkpoint or, on a standby, of a restartpoint.
fn is_checkpoint(text: &[u8], ending: &[u8]) -> bool {
    let rest = text
        .strip_prefix(b"check")
        .or_else(|| text.strip_prefix(b"restart"));
    rest.is_some_and(|rest| rest.starts_with(ending))
}

/// The milliseconds between two checkpoints that are too near to each other.
fn apart_ms(text: &[u8]) -> Option<f64> {
    let rest = text.strip_prefix(b"checkpoints are occurring too frequently (")?;
    let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    let seconds: u32 = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    rest[end..]
        .starts_with(b" second")
        .then(|| f64::from(seconds) * 1000.0)
}

/// The milliseconds that a checkpoint took to write, to sync, and to sync its slowest file.
fn checkpoint_ms(text: &[u8]) -> [Option<f64>; 3] {
    let seconds = |name: &[u8]| {
        let at = memmem::find(text, name)? + name.len();
        let number = &text[at..];
        let whole = digit_count(number);
        let length = whole + 1 + digit_count(number.get(whole + 1..)?);
        let is_time = (1..=WAIT_DIGITS_MAX).contains(&whole) && number[length..].starts_with(b" s");
        let number = is_time.then_some(&number[..length])?;
        let seconds: f64 = std::str::from_utf8(number).ok()?.parse().ok()?;
        Some((seconds * 1e6).round() / 1e3)
    };
    [
        seconds(b" write="),
        seconds(b" sync="),
        seconds(b" longest="),
    ]
}

/// The milliseconds and the text in `duration: 9007.983 ms  statement: COMMIT` or `... execute S_1: COMMIT`; what was
/// only parsed, bound or planned is no work of its own.
pub(super) fn statement_ms(text: &[u8]) -> Option<(f64, &[u8])> {
    let rest = text.strip_prefix(b"duration: ")?;
    let whole = digit_count(rest);
    let fraction = digit_count(rest.get(whole + 1..)?);
    let end = whole + 1 + fraction;
    if !(1..=WAIT_DIGITS_MAX).contains(&whole) || rest[whole] != b'.' || fraction == 0 {
        return None;
    }
    let after = rest[end..].strip_prefix(b" ms ")?;
    let after = after.strip_prefix(b" ").unwrap_or(after); // web pages print one blank for two
    let statement = if let Some(statement) = after.strip_prefix(b"statement: ") {
        statement
    } else {
        let named = after.strip_prefix(b"execute ")?;
        &named[memmem::find(named, b": ")? + 2..]
    };
    let number = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    Some((number, statement))
}

/// Whether a statement ends a transaction and keeps what it did.
fn is_commit(statement: &[u8]) -> bool {
    let start = statement.trim_ascii_start();
    let word = start.iter().take_while(|&&byte| is_word(byte)).count();
    let (word, rest) = start.split_at(word);
    let is_plain = !rest
        .trim_ascii_start()
        .get(..8)
        .is_some_and(|next| next.eq_ignore_ascii_case(b"prepared"));
    (word.eq_ignore_ascii_case(b"commit") && is_plain) || word.eq_ignore_ascii_case(b"end")
}

fn says_out_of_space(text: &[u8]) -> bool {
    let is_statement = [b"duration: ".as_slice(), b"statement: ", b"execute "]
        .iter()
        .any(|start| text.starts_with(start));
    !is_statement && says_no_space(text)
}

fn says_no_space(text: &[u8]) -> bool {
    NO_SPACE
        .iter()
        .any(|words| memmem::find(text, words.as_bytes()).is_some())
}

/// The size in `temporary file: path "x", size 7176192`.
fn temporary_bytes(text: &[u8]) -> Option<f64> {
    let rest = text.strip_prefix(b"temporary file: path ")?;
    memmem::rfind_iter(rest, b", size ").find_map(|at| {
        let number = &rest[at + 7..];
        let digits = &number[..digit_count(number).min(SIZE_DIGITS_MAX)];
        std::str::from_utf8(digits).ok()?.parse().ok()
    })
}

/// What a message tells of a wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LockMessage<'a> {
    /// The process that waits.
    pub process: u64,
    /// Whether it has the lock now.
    pub is_acquired: bool,
    /// What is locked, as logged.
    pub target: &'a [u8],
    /// How long it has waited.
    pub wait_ms: f64,
}

/// What is told by `process 11 acquired ShareLock on transaction 7 after 3000.300 ms`.
pub(super) fn lock_message(text: &[u8]) -> Option<LockMessage<'_>> {
    let rest = text.strip_prefix(b"process ")?;
    let process_length = digit_count(rest);
    let process = std::str::from_utf8(&rest[..process_length]).ok()?;
    let rest = rest[process_length..].strip_prefix(b" ")?;
    let waits = rest.strip_prefix(b"still waiting for ");
    let rest = waits.or_else(|| rest.strip_prefix(b"acquired "))?;
    let mode_length = rest.iter().take_while(|&&byte| is_word(byte)).count();
    let rest = rest[mode_length..]
        .strip_prefix(b" on ")
        .filter(|_| mode_length > 0)?;
    memmem::rfind_iter(rest, b" after ").find_map(|at| {
        let number = &rest[at + 7..];
        let whole = digit_count(number);
        let fraction = digit_count(number.get(whole + 1..)?);
        let end = whole + 1 + fraction;
        let is_number =
            (1..=WAIT_DIGITS_MAX).contains(&whole) && number[whole] == b'.' && fraction > 0;
        let number = is_number
            .then_some(&number[..end])
            .filter(|_| number[end..].starts_with(b" ms"))?;
        Some(LockMessage {
            process: process.parse().ok()?,
            is_acquired: waits.is_none(),
            target: &rest[..at],
            wait_ms: std::str::from_utf8(number).ok()?.parse().ok()?,
        })
    })
}

/// The first process in `Process holding the lock: 77. Wait queue: 20.`
pub(super) fn holder(detail: &[u8]) -> Option<u64> {
    let rest = detail
        .strip_prefix(b"Process holding the lock: ")
        .or_else(|| detail.strip_prefix(b"Processes holding the lock: "))?;
    let digits = &rest[..digit_count(rest)];
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// How many processes wait in `Process holding the lock: 77. Wait queue: 20, 21.`; 0 where no queue is told.
pub(super) fn queue_length(detail: &[u8]) -> u32 {
    let Some(at) = memmem::find(detail, b"ait queue: ") else {
        return 0;
    };
    let queue = detail[at + 11..].trim_ascii_end();
    let queue = queue.strip_suffix(b".").unwrap_or(queue);
    let is_process = |name: &[u8]| !name.is_empty() && name.iter().all(u8::is_ascii_digit);
    let count = queue
        .split(|&byte| byte == b',')
        .filter(|name| is_process(name.trim_ascii()))
        .count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The table of an autovacuum or autoanalyze that ended, and the seconds it took.
pub(super) fn autovacuum(text: &[u8]) -> Option<(String, f64)> {
    let rest = text.strip_prefix(b"automatic ")?;
    let rest = rest.strip_prefix(b"aggressive ").unwrap_or(rest);
    let rest = rest
        .strip_prefix(b"vacuum")
        .or_else(|| rest.strip_prefix(b"analyze"))?;
    let rest = rest
        .strip_prefix(b" to prevent wraparound")
        .unwrap_or(rest)
        .strip_prefix(b" of table \"")?;
    let table = &rest[..memchr(b'"', rest).filter(|&length| length > 0)?];
    // "elapsed: 12.34 s" since PostgreSQL 10, "elapsed 12.34 sec" before.
    let at = memmem::rfind(rest, b"elapsed")? + 7;
    let number = &rest[at..];
    let number = number.strip_prefix(b":").unwrap_or(number);
    let number = number.strip_prefix(b" ")?;
    let whole = digit_count(number);
    let length = whole + 1 + digit_count(number.get(whole + 1..)?);
    let is_time = (1..=9).contains(&whole) && number[length..].starts_with(b" s");
    let number = is_time.then_some(&number[..length])?;
    let elapsed_s = std::str::from_utf8(number).ok()?.parse().ok()?;
    Some((String::from_utf8_lossy(table).into_owned(), elapsed_s))
}

pub(super) fn digit_count(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Letters of other alphabets count as words.
pub(super) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::{
        apart_ms, checkpoint_ms, is_commit, lock_message, queue_length, statement_ms,
        temporary_bytes,
    };

    #[test]
    fn a_statement_has_a_duration_and_a_text() {
        let of = |text: &'static str| statement_ms(text.as_bytes());
        let expected = Some((9007.983, b"COMMIT".as_slice()));
        assert_eq!(of("duration: 9007.983 ms  statement: COMMIT"), expected);
        assert_eq!(of("duration: 9007.983 ms  execute S_1: COMMIT"), expected);
        for text in [
            "duration: 1.5 ms",
            "duration: 1.5 ms   statement: COMMIT",
            "duration: 1.5 ms  plan: x",
            "duration: 1.5 ms  parse S_1: COMMIT",
            "duration: 1 ms  statement: COMMIT",
            "duration: 1.5 s  statement: COMMIT",
            "duration: 1234567890123.5 ms  statement: COMMIT",
            "duration: 1",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
        for (text, commits) in [
            ("commit", true),
            (" COMMIT;", true),
            ("END", true),
            ("commit prepared 'x'", false),
            ("committed", false),
            ("select 1", false),
            ("", false),
        ] {
            assert_eq!(is_commit(text.as_bytes()), commits, "{text}");
        }
    }

    #[test]
    fn processes_of_a_queue_are_counted() {
        for (detail, count) in [
            ("Process holding the lock: 77. Wait queue: 20.", 1),
            (
                "Processes holding the lock: 77, 78. Wait queue: 20, 10139, 22.\n",
                3,
            ),
            ("Process holding the lock: 77. Wait queue: .", 0),
            ("Process holding the lock: 77.", 0),
            ("Process holding the lock: 77. Wait queue: 20, x, 21", 2),
            ("", 0),
        ] {
            assert_eq!(queue_length(detail.as_bytes()), count, "{detail}");
        }
    }

    #[test]
    fn values_are_the_last_ones_of_a_message() {
        let text = b"temporary file: path \"a, size 3\", size 7176192";
        assert_eq!(temporary_bytes(text), Some(7_176_192.0));
        let text = b"process 11 acquired ShareLock on x after 1.5 ms y after 3000.300 ms";
        let message = lock_message(text).map(|message| (message.process, message.wait_ms));
        assert_eq!(message, Some((11, 3000.3)));
        assert_eq!(
            lock_message(b"process 11 acquired ShareLock on x after 3000 ms"),
            None
        );
    }

    #[test]
    fn a_checkpoint_that_came_too_soon_tells_how_soon() {
        for (text, apart) in [
            (
                "checkpoints are occurring too frequently (24 seconds apart)",
                Some(24_000.0),
            ),
            (
                "checkpoints are occurring too frequently (1 second apart)",
                Some(1000.0),
            ),
            (
                "checkpoints are occurring too frequently (x seconds apart)",
                None,
            ),
            ("checkpoints are occurring too frequently (12", None),
        ] {
            assert_eq!(apart_ms(text.as_bytes()), apart);
        }
    }

    #[test]
    fn a_checkpoint_tells_its_times_in_every_version() {
        for text in [
            "checkpoint complete: wrote 3 buffers (0.0%); 0 transaction log file(s) added, 0 removed, 0 recycled; \
             write=1.250 s, sync=17.164 s, total=89.733 s; sync files=2, longest=3.812 s, average=0.019 s",
            "restartpoint complete: wrote 3615 buffers (22.1%); 0 WAL file(s) added, 0 removed, 1 recycled; \
             write=1.250 s, sync=17.164 s, total=18.5 s; sync files=23, longest=3.812 s, average=0.001 s; \
             distance=30201 kB, estimate=30201 kB",
            "checkpoint complete: wrote 3 buffers (0.1%), wrote 1 SLRU buffers; 0 WAL file(s) added, 0 removed, \
             1 recycled; write=1.250 s, sync=17.164 s, total=18.500 s; sync files=2, longest=3.812 s, \
             average=0.001 s; distance=9 kB, estimate=9 kB; lsn=0/1, redo lsn=0/1",
        ] {
            let times = checkpoint_ms(text.as_bytes());
            assert_eq!(
                times,
                [Some(1250.0), Some(17_164.0), Some(3812.0)],
                "{text}"
            );
        }
        let old = b"checkpoint complete: wrote 3 buffers (0.0%); write=1.250 s, sync=0.5 s, total=2.000 s";
        assert_eq!(checkpoint_ms(old), [Some(1250.0), Some(500.0), None]);
        assert_eq!(
            checkpoint_ms(b"checkpoint complete: wrote 3; write=x s, sync=1"),
            [None; 3]
        );
    }
}
