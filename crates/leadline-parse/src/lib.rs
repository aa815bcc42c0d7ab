//! Recordings of performance tools turned into columns: streaming, parallel, with projection.

pub mod iostat;
pub mod latencies;
pub mod lines;
pub mod nmon;
pub mod pdh;
pub mod pgbench_log;
pub mod postgresql_log;
pub mod trace;
pub mod vsphere_perf;
