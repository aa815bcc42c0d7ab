//! What is measured of each virtual machine.

use super::spec::{Spec, VmSpec};
use crate::models::account::Account;
use crate::models::io_measures::IoMeasures;
use crate::time::Nanos;

/// What is measured of a virtual machine.
#[derive(Clone, Debug)]
pub struct VmMeasures {
    /// By part of the way, see [`STAGES`](super::STAGES).
    pub stages: [Account; 5],
    /// The whole way.
    pub whole: IoMeasures,
}

impl VmMeasures {
    pub(super) fn new(vm: &VmSpec, spec: &Spec) -> Self {
        Self {
            stages: Default::default(),
            whole: IoMeasures::new(vm.sources.len(), spec.measured, spec.window),
        }
    }

    pub(super) fn restart(&mut self, now: Nanos, measured: Nanos, window: Nanos) {
        self.whole = self.whole.restarted(now, measured, window);
        for stage in &mut self.stages {
            stage.restart_measuring(now);
        }
    }
}
