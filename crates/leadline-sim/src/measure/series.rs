//! Time series for plots: one point per window of virtual time.

use crate::time::Nanos;

/// Values that come one by one (latencies, sizes), per window: how many, mean, largest.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowSeries {
    width: Nanos,
    /// The window of the last value: when it begins, and which it is. Times mostly stay in it, and a division is saved.
    current: (Nanos, usize),
    windows: Vec<Window>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Window {
    count: u64,
    sum: f64,
    max: f64,
}

impl WindowSeries {
    /// Windows of `width` ns, at least 1, from time 0 on.
    #[must_use]
    pub fn new(width: Nanos) -> Self {
        Self {
            width: width.max(1),
            current: (0, 0),
            windows: Vec::new(),
        }
    }

    /// A value comes at `now`, ns.
    #[inline]
    pub fn record(&mut self, now: Nanos, value: f64) {
        let (start, mut index) = self.current;
        if now.wrapping_sub(start) >= self.width {
            index = window_of(now, self.width);
            self.current = (index as u64 * self.width, index);
        }
        if index >= self.windows.len() {
            self.windows.resize(index + 1, Window::default());
        }
        let window = &mut self.windows[index];
        window.count += 1;
        window.sum += value;
        window.max = if window.count == 1 {
            value
        } else {
            window.max.max(value)
        };
    }

    /// The windows' width, ns.
    #[must_use]
    pub fn width(&self) -> Nanos {
        self.width
    }

    /// Values per window, up to the last window with a value.
    #[must_use]
    pub fn counts(&self) -> Vec<u64> {
        self.windows.iter().map(|window| window.count).collect()
    }

    /// Values per second, per window.
    #[must_use]
    pub fn rates(&self) -> Vec<f64> {
        let seconds = crate::time::seconds(self.width);
        self.windows
            .iter()
            .map(|window| window.count as f64 / seconds)
            .collect()
    }

    /// Sums per window; 0 in a window without values.
    #[must_use]
    pub fn sums(&self) -> Vec<f64> {
        self.windows.iter().map(|window| window.sum).collect()
    }

    /// Means per window; NaN, "not measured", in a window without values.
    #[must_use]
    pub fn means(&self) -> Vec<f64> {
        self.windows
            .iter()
            .map(|window| window.sum / window.count as f64)
            .collect()
    }

    /// The largest per window; NaN in a window without values.
    #[must_use]
    pub fn maxima(&self) -> Vec<f64> {
        let largest = |w: &Window| if w.count == 0 { f64::NAN } else { w.max };
        self.windows.iter().map(largest).collect()
    }
}

/// A level that changes in steps (buffer fill, queue length), per window: its average over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelSeries {
    width: Nanos,
    level: u64,
    since: Nanos,
    areas: Vec<u128>,
}

impl LevelSeries {
    /// Windows of `width` ns, at least 1; the level is 0 from time 0 on.
    #[must_use]
    pub fn new(width: Nanos) -> Self {
        Self {
            width: width.max(1),
            level: 0,
            since: 0,
            areas: Vec::new(),
        }
    }

    /// The level is `level` from now, ns, on.
    pub fn set(&mut self, now: Nanos, level: u64) {
        while self.since < now {
            let index = window_of(self.since, self.width);
            if index >= self.areas.len() {
                self.areas.resize(index + 1, 0);
            }
            let end = (index as u64 + 1).saturating_mul(self.width).min(now);
            self.areas[index] += u128::from(self.level) * u128::from(end - self.since);
            self.since = end;
        }
        self.level = level;
    }

    /// The current level.
    #[must_use]
    pub fn level(&self) -> u64 {
        self.level
    }

    /// The averages per window up to `now`, ns; the last window counts as far as it has come.
    #[must_use]
    pub fn means(&self, now: Nanos) -> Vec<f64> {
        let mut closed = self.clone();
        closed.set(now, self.level);
        let span = |index: usize| {
            let start = index as u64 * self.width;
            start.saturating_add(self.width).min(now) - start
        };
        let areas = closed.areas.iter().enumerate();
        areas
            .map(|(index, area)| *area as f64 / span(index) as f64)
            .collect()
    }
}

#[allow(clippy::cast_possible_truncation)] // as many windows as fit memory
#[inline]
fn window_of(now: Nanos, width: Nanos) -> usize {
    (now / width) as usize
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::float_cmp)] // a test may end so, and these numbers are exact
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_half_open_windows() {
        let mut series = WindowSeries::new(10);
        for (now, value) in [(0, 1.0), (9, 3.0), (10, 5.0), (35, 7.0)] {
            series.record(now, value);
        }
        assert_eq!(series.counts(), [2, 1, 0, 1]);
        assert_eq!(series.sums(), [4.0, 5.0, 0.0, 7.0]);
        assert_eq!(series.rates(), [2e8, 1e8, 0.0, 1e8]);
        let means = series.means();
        assert_eq!((means[0], means[1], means[3]), (2.0, 5.0, 7.0));
        assert!(means[2].is_nan() && series.maxima()[2].is_nan());
        assert_eq!(series.maxima()[0], 3.0);
    }

    #[test]
    fn levels_are_averaged_over_time_across_windows() {
        let mut series = LevelSeries::new(10);
        series.set(5, 4); // 0 until 5
        series.set(25, 2); // 4 from 5 to 25
        assert_eq!(series.means(30), [2.0, 4.0, 3.0]);
        assert_eq!(series.means(28), [2.0, 4.0, (5.0 * 4.0 + 3.0 * 2.0) / 8.0]);
        assert_eq!(series.level(), 2);
    }
}
