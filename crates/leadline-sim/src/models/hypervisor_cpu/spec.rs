//! What a host and its guests are made of: parameters and their check.

use serde::Deserialize;

use crate::random::Distribution;
use crate::time::Nanos;
use leadline_stats::error::{LeadlineError, wrong};

/// Which two vCPUs may share a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Any two.
    Default,
    /// None: one thread of each core stays empty.
    ScaV1,
    /// Two of the same VM.
    ScaV2,
}

/// Names of the policies, as scenarios have them.
pub const CPU_SCHEDULERS: [&str; 3] = ["default", "sca-v1", "sca-v2"];

impl Policy {
    /// The policy of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Default, Self::ScaV1, Self::ScaV2];
        let index = CPU_SCHEDULERS.iter().position(|own| *own == name)?;
        Some(all[index])
    }
}

/// A host.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Its name.
    pub name: String,
    /// NUMA nodes.
    pub nodes: usize,
    /// Cores of each node.
    pub cores_per_node: usize,
    /// Hardware threads of each core: 1 or 2.
    pub threads_per_core: usize,
    /// What a core does more with two threads than with one, as a share of what it does with one.
    pub thread_gain: f64,
    /// Who may share a core.
    pub policy: Policy,
    /// How long a vCPU runs before others of its rank take turns, ns.
    pub quantum: Nanos,
    /// A vCPU ahead of its slowest sibling by more is stopped, ns.
    pub co_stop: Nanos,
    /// A stopped vCPU ahead by less is started again, ns.
    pub co_start: Nanos,
    /// What work takes longer with all memory remote, as a share.
    pub remote_penalty: f64,
    /// How often nodes are balanced, ns.
    pub balance_every: Nanos,
    /// How long memory takes to follow a VM to another node, ns.
    pub memory_move: Nanos,
}

/// How a guest's transactions come.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Users {
    /// So many users, each thinking between two transactions.
    Closed {
        /// How many.
        count: u32,
        /// Think time, ns.
        think: Distribution,
    },
    /// So many per second at random, whatever is under way.
    Poisson(f64),
}

/// What a guest does: transactions of several bursts of CPU with waits between them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// How transactions come.
    pub users: Users,
    /// Bursts of a transaction.
    pub burst_count: u32,
    /// CPU time of a burst on a core of its own, ns.
    pub burst: Distribution,
    /// Wait between two bursts, ns.
    pub wait: Distribution,
}

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VmSpec {
    /// Its name: the key of its random numbers.
    pub name: String,
    /// Virtual CPUs.
    pub vcpus: usize,
    /// Its weight among VMs that want more than there is.
    pub shares: f64,
    /// Cores that it gets whatever others want.
    pub reservation: f64,
    /// Cores that it gets at most; infinite for no limit.
    #[serde(deserialize_with = "crate::document::or_infinite")]
    pub limit: f64,
    /// Whether a VM wider than a node knows it, and keeps memory beside the vCPUs that use it.
    pub has_vnuma: bool,
    /// CPU time that the hypervisor spends on the VM's I/O, as a share of the guest's.
    pub overhead: f64,
    /// What it does.
    pub load: LoadSpec,
}

/// A host, its VMs, and how long to watch them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Measured time, ns.
    pub measured: Nanos,
    /// Windows of the series, ns.
    pub window: Nanos,
    /// The host.
    pub host: HostSpec,
    /// Its VMs.
    pub vms: Vec<VmSpec>,
}

/// Threads of a host, and vCPUs on it, at most.
const COUNT_MAX: usize = 20_000;

fn check_host(host: &HostSpec) -> Result<(), LeadlineError> {
    let threads = host
        .nodes
        .saturating_mul(host.cores_per_node)
        .saturating_mul(host.threads_per_core);
    if !(1..=COUNT_MAX).contains(&threads) || host.threads_per_core > 2 {
        let found = format!("{threads} threads, {} a core", host.threads_per_core);
        return wrong(&host.name, &found, "1 to 20,000 threads, 1 or 2 a core");
    }
    if !(0.0..=1.0).contains(&host.thread_gain) {
        return wrong(
            &host.name,
            format!("a thread gain of {}", host.thread_gain),
            "0 to 1",
        );
    }
    if host.quantum == 0 || host.balance_every == 0 || host.co_start > host.co_stop {
        return wrong(
            &host.name,
            format!(
                "quantum {} ns, balance every {} ns, co-start {} ns, co-stop {} ns",
                host.quantum, host.balance_every, host.co_start, host.co_stop
            ),
            "a quantum and a period above 0, and co-start not above co-stop",
        );
    }
    if !(host.remote_penalty >= 0.0 && host.remote_penalty.is_finite()) {
        return wrong(&host.name, host.remote_penalty, "a penalty of 0 or more");
    }
    Ok(())
}

fn check_vm(vm: &VmSpec) -> Result<(), LeadlineError> {
    let sound = |value: f64| value >= 0.0 && value.is_finite();
    if vm.vcpus == 0 || !(vm.shares > 0.0 && vm.shares.is_finite()) {
        let found = format!("{} vCPUs, {} shares", vm.vcpus, vm.shares);
        return wrong(&vm.name, &found, "vCPUs and shares above 0");
    }
    let has_room = vm.limit > 0.0 && vm.reservation <= vm.limit;
    if !sound(vm.reservation) || !sound(vm.overhead) || !has_room {
        let found = format!(
            "reservation {}, limit {}, overhead {}",
            vm.reservation, vm.limit, vm.overhead
        );
        return wrong(
            &vm.name,
            &found,
            "0 or more, and no reservation above the limit",
        );
    }
    if let Users::Poisson(rate) = vm.load.users {
        if !(rate > 0.0 && rate.is_finite()) {
            return wrong(&vm.name, format!("{rate} per second"), "a rate above 0");
        }
    }
    if vm.load.burst_count == 0 {
        return wrong(&vm.name, "no bursts", "1 or more bursts a transaction");
    }
    Ok(())
}

/// Whether the parts make a host that can run.
pub(super) fn check(spec: &Spec) -> Result<(), LeadlineError> {
    check_host(&spec.host)?;
    let count: usize = spec.vms.iter().map(|vm| vm.vcpus).sum();
    if spec.vms.is_empty() || count > COUNT_MAX || spec.window == 0 {
        let found = format!("{} VMs with {count} vCPUs", spec.vms.len());
        return wrong("system", &found, "VMs with 1 to 20,000 vCPUs in all");
    }
    for vm in &spec.vms {
        check_vm(vm)?;
    }
    let cores = spec.host.nodes as f64 * spec.host.cores_per_node as f64;
    let reserved: f64 = spec.vms.iter().map(|vm| vm.reservation).sum();
    if reserved > cores {
        return wrong(
            &spec.host.name,
            format!("reservations of {reserved} cores"),
            "no more than the host has",
        );
    }
    Ok(())
}
