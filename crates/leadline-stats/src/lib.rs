//! Mergeable histograms, quantiles and robust statistics.
