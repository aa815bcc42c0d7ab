//! Sequential streams: requests that begin where an earlier one of the same kind ended.

use leadline_stats::histogram::LogLinear;

const SLOTS: usize = 32;
/// Judgement: fewer requests in a row are chance, not a stream.
pub const STREAM_REQUESTS_MIN: u64 = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Run {
    requests: u64,
    bytes: u64,
    used: bool,
}

/// The last ends of up to 32 runs, and what became of runs that ended.
#[derive(Clone, Debug)]
pub struct Streams {
    ends: [u64; SLOTS],
    runs: [Run; SLOTS],
    hand: usize,
    /// Requests that went on where one ended.
    pub continued: u64,
    /// Runs of at least `STREAM_REQUESTS_MIN` requests.
    pub count: u64,
    /// Length in bytes of such runs.
    pub stream_bytes: LogLinear,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            ends: [u64::MAX; SLOTS],
            runs: [Run::default(); SLOTS],
            hand: 0,
            continued: 0,
            count: 0,
            stream_bytes: LogLinear::default(),
        }
    }
}

impl Streams {
    /// Takes a request; whether it goes on where an earlier one ended.
    #[inline]
    pub fn take(&mut self, offset: u64, bytes: u32) -> bool {
        let end = offset.saturating_add(u64::from(bytes));
        // Without a branch per slot, so that the compiler compares several at once.
        let mut found = SLOTS;
        for slot in 0..SLOTS {
            found = if self.ends[slot] == offset {
                slot
            } else {
                found
            };
        }
        if found < SLOTS {
            let run = &mut self.runs[found];
            run.requests += 1;
            run.bytes += u64::from(bytes);
            run.used = true;
            self.ends[found] = end;
            self.continued += 1;
            return true;
        }
        // Second chance: a run that went on since the hand passed it stays.
        while self.runs[self.hand].used {
            self.runs[self.hand].used = false;
            self.hand = (self.hand + 1) % SLOTS;
        }
        self.close(self.hand);
        self.ends[self.hand] = end;
        self.runs[self.hand] = Run {
            requests: 1,
            bytes: u64::from(bytes),
            used: false,
        };
        self.hand = (self.hand + 1) % SLOTS;
        false
    }

    fn close(&mut self, slot: usize) {
        let run = std::mem::take(&mut self.runs[slot]);
        if run.requests >= STREAM_REQUESTS_MIN {
            self.count += 1;
            self.stream_bytes.record(run.bytes);
        }
    }

    /// Ends all runs.
    pub fn finish(&mut self) {
        for slot in 0..SLOTS {
            self.close(slot);
            self.ends[slot] = u64::MAX;
        }
    }
}
