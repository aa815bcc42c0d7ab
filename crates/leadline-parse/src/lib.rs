//! Recordings of performance tools turned into columns: streaming, parallel, with projection.

pub mod iostat;
pub mod pdh;
pub mod trace;
