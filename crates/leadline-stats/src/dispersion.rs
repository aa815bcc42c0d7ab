//! Burstiness: the index of dispersion of counts (Fano factor), variance over mean of events per window of time.
//!
//! 1 for a Poisson process, 0 for a clock, more for bursts. It is kept for several window lengths, since a process may
//! be smooth over seconds and bursty over minutes.
//! Source: Gusella, Characterizing the Variability of Arrival Processes with Indexes of Dispersion (1991).

/// Counts of events in consecutive windows of one length, in constant memory. Times must not decrease.
#[derive(Clone, Debug)]
pub struct Dispersion {
    window_ns: u64,
    start_ns: Option<u64>,
    index: u64,
    count: u64,
    sum: u64,
    squares: f64,
    peak: u64,
    idle: u64,
}

impl Dispersion {
    /// Counts over windows of `window_ns`, at least one nanosecond.
    #[must_use]
    pub fn new(window_ns: u64) -> Self {
        Self {
            window_ns: window_ns.max(1),
            start_ns: None,
            index: 0,
            count: 0,
            sum: 0,
            squares: 0.0,
            peak: 0,
            idle: 0,
        }
    }

    /// The length of a window.
    #[must_use]
    pub fn window_ns(&self) -> u64 {
        self.window_ns
    }

    /// How many whole windows have passed.
    #[must_use]
    pub fn windows(&self) -> u64 {
        self.index
    }

    /// Counts an event.
    #[inline]
    pub fn record(&mut self, time_ns: u64) {
        let start = *self.start_ns.get_or_insert(time_ns);
        let since = time_ns.saturating_sub(start);
        let left = self.index.saturating_mul(self.window_ns);
        if since >= left && since - left < self.window_ns {
            self.count += 1; // the usual case, without a division
            return;
        }
        let index = since / self.window_ns;
        if index > self.index {
            self.close();
            self.idle += index - self.index - 1;
            self.index = index;
        }
        self.count += 1;
    }

    fn close(&mut self) {
        self.sum += self.count;
        self.squares += (self.count as f64) * (self.count as f64);
        self.peak = self.peak.max(self.count);
        self.count = 0;
    }

    /// The index of dispersion over whole windows; None with fewer than two.
    #[must_use]
    pub fn index(&self) -> Option<f64> {
        let windows = self.index as f64; // the last is not over yet
        let mean = self.sum as f64 / windows;
        (self.index >= 2 && self.sum > 0)
            .then(|| (self.squares - windows * mean * mean).max(0.0) / (windows - 1.0) / mean)
    }

    /// The busiest whole window's count over the mean; None with fewer than two windows.
    #[must_use]
    pub fn peak_to_mean(&self) -> Option<f64> {
        let mean = self.sum as f64 / self.index as f64;
        (self.index >= 2 && self.sum > 0).then(|| self.peak as f64 / mean)
    }

    /// The share of whole windows without any event; None with fewer than two.
    #[must_use]
    pub fn idle_share(&self) -> Option<f64> {
        (self.index >= 2).then(|| self.idle as f64 / self.index as f64)
    }
}
