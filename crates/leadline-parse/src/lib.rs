//! Recordings of performance tools turned into columns: streaming, parallel, with projection.
