//! Statistics that can be merged and that keep their memory: histograms, dispersion of counts, reuse distances.

pub mod dispersion;
pub mod distance;
pub mod histogram;
pub mod limits;
pub mod shards;
