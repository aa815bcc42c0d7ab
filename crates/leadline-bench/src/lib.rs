//! Benchmarks of the simulation kernel are in `benches/`; there is nothing else here.
