//! What the other crates share: statistics that can be merged and that keep their memory (histograms, dispersion of counts,
//! reuse distances), and the error.

pub mod beyond;
pub mod dispersion;
pub mod distance;
pub mod episodes;
pub mod error;
pub mod histogram;
pub mod limits;
pub mod rows;
pub mod sample;
pub mod shards;
pub mod windows;
