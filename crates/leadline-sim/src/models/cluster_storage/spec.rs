//! What a cluster is made of: parameters and their check.

use serde::{Deserialize, Deserializer};

use super::protection::Protection;
use crate::models::device::{Speed, Times};
use crate::models::storage_path::{self, Arrivals};
use crate::time::{MINUTE, Nanos};
use leadline_stats::error::{LeadlineError, wrong};

/// How long data that is absent may come back before it is rebuilt elsewhere. Source: `VMware`, "Using the vSAN policies",
/// object repair timer, 60 minutes.
pub const ABSENT_DELAY: Nanos = 60 * MINUTE;

/// One stream of a workload in one direction or both; as [`storage_path::SourceSpec`] without a disk.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSpec {
    /// Its name: with the VM's the key of its random numbers.
    pub name: String,
    /// How requests come.
    pub arrivals: Arrivals,
    /// Load for so many ns, then none for so many, again and again.
    pub burst: Option<(Nanos, Nanos)>,
    /// Sizes in bytes with their weights.
    pub sizes: Vec<(u32, f64)>,
    /// Share of reads, 0 to 1.
    pub read_share: f64,
    /// Share of requests to random places, 0 to 1; the others follow the one before.
    pub random_share: f64,
}

impl SourceSpec {
    /// The same on a storage path.
    pub(super) fn on_path(&self) -> storage_path::SourceSpec {
        storage_path::SourceSpec {
            name: self.name.clone(),
            disk: 0,
            arrivals: self.arrivals.clone(),
            burst: self.burst,
            sizes: self.sizes.clone(),
            read_share: self.read_share,
            random_share: self.random_share,
            then: None,
        }
    }
}

/// A virtual machine with one virtual disk.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VmSpec {
    /// Its name.
    pub name: String,
    /// Whose measures it belongs to: index below [`Spec::group_count`].
    pub group: usize,
    /// Index of the node it runs on.
    pub node: usize,
    /// Bytes it keeps.
    pub bytes: u64,
    /// Operations of up to 32 KB per second, and how many at once after an idle time.
    pub limit: Option<(f64, u64)>,
    /// Its sources; VMs of a group have the same number.
    pub sources: Vec<SourceSpec>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
    /// Of its network card, in each direction; infinite for no network to wait for.
    pub bytes_per_second: f64,
}

/// A disk with its chunk server.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// Its name: the key of its random numbers.
    pub name: String,
    /// Index of its node.
    pub node: usize,
    /// Requests it works on at once.
    pub parallelism: u32,
    /// What it takes for them: `sequential` where a request follows the disk's last one in the same fragment.
    pub times: Times,
    /// Bytes it holds.
    #[serde(deserialize_with = "or_largest")]
    pub capacity: u64,
}

/// What fails, when, and how.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureSpec {
    /// When, ns.
    pub at: Nanos,
    /// Indices of the disks that go.
    pub disks: Vec<usize>,
    /// Index of the node that goes, with its virtual machines; its disks are in `disks`.
    pub node: Option<usize>,
    /// Known to be lost, so that rebuilding begins at once; else absent, so that it begins after the delay.
    pub is_lost: bool,
    /// It comes back so long after it failed, ns.
    pub returns_after: Option<Nanos>,
}

/// How what failed is made good.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoverySpec {
    /// Share of a disk's and a network card's time that resynchronising gets while guests want it too, above 0 and
    /// below 1.
    pub share: f64,
    /// Fragments under way at once, for each node with disks.
    pub streams: u32,
    /// Bytes moved at once.
    pub piece_bytes: u32,
    /// Wait for what is absent, ns.
    pub absent_delay: Nanos,
}

/// A system and how long to watch it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Measured time, ns.
    pub measured: Nanos,
    /// Windows of the series, ns.
    pub window: Nanos,
    /// How data is protected.
    pub protection: Protection,
    /// Data of a chunk, bytes; with a code rounded down to whole stripes.
    pub chunk_bytes: u64,
    /// Of a stripe on one disk, bytes.
    pub unit_bytes: u64,
    /// One way through the network and the software at both ends, ns.
    pub network_latency: Nanos,
    /// Nodes.
    pub nodes: Vec<NodeSpec>,
    /// Disks.
    pub disks: Vec<DiskSpec>,
    /// Groups of virtual machines that are measured together.
    pub group_count: usize,
    /// Virtual machines.
    pub vms: Vec<VmSpec>,
    /// What fails.
    pub failures: Vec<FailureSpec>,
    /// How it is made good.
    pub recovery: RecoverySpec,
}

/// Whether the parts fit each other.
pub(super) fn check(spec: &Spec) -> Result<(), LeadlineError> {
    const COUNT_MAX: usize = 60_000;
    let counts = [
        spec.vms.len(),
        spec.nodes.len(),
        spec.disks.len(),
        spec.group_count,
    ];
    if counts.iter().any(|count| !(1..COUNT_MAX).contains(count)) || spec.window == 0 {
        return wrong(
            "system",
            format!("{counts:?}"),
            "VMs, nodes, disks and groups, fewer than 60,000 each",
        );
    }
    check_sizes(spec)?;
    for node in &spec.nodes {
        if node.bytes_per_second.is_nan() || node.bytes_per_second <= 0.0 {
            return wrong(
                &node.name,
                format!("{} bytes/s", node.bytes_per_second),
                "above 0",
            );
        }
    }
    for disk in &spec.disks {
        if disk.parallelism == 0 || disk.node >= spec.nodes.len() {
            return wrong(
                &disk.name,
                format!("parallelism {}, node {}", disk.parallelism, disk.node),
                "1 or more, on a node there is",
            );
        }
        Speed::Times(disk.times.clone()).check(&disk.name)?;
    }
    for vm in &spec.vms {
        check_vm(vm, spec)?;
    }
    let known = |failure: &FailureSpec| {
        failure.node.is_none_or(|node| node < spec.nodes.len())
            && failure.disks.iter().all(|disk| *disk < spec.disks.len())
    };
    if !spec.failures.iter().all(known) || spec.failures.len() >= COUNT_MAX {
        return wrong(
            "failures",
            "what is not there",
            "nodes and disks of the cluster",
        );
    }
    Ok(())
}

fn check_sizes(spec: &Spec) -> Result<(), LeadlineError> {
    let own = &spec.recovery;
    if !(own.share > 0.0 && own.share < 1.0) || own.streams == 0 || own.piece_bytes == 0 {
        return wrong(
            "recovery",
            format!(
                "share {}, {} streams of {} bytes",
                own.share, own.streams, own.piece_bytes
            ),
            "a share between 0 and 1, and streams and bytes of 1 or more",
        );
    }
    let sound = |bytes: u64| (1..=1 << 40).contains(&bytes);
    if !sound(spec.unit_bytes) || !sound(spec.chunk_bytes) {
        return wrong(
            "cluster",
            format!(
                "chunks of {} bytes, units of {}",
                spec.chunk_bytes, spec.unit_bytes
            ),
            "1 byte to 1 TiB",
        );
    }
    Ok(())
}

fn check_vm(vm: &VmSpec, spec: &Spec) -> Result<(), LeadlineError> {
    let largest = vm
        .sources
        .iter()
        .flat_map(|own| &own.sizes)
        .map(|size| size.0)
        .max();
    let is_sound = vm.node < spec.nodes.len()
        && vm.group < spec.group_count
        && largest.is_none_or(|bytes| u64::from(bytes) <= vm.bytes)
        && vm.bytes > 0;
    if !is_sound {
        return wrong(
            &vm.name,
            format!("node {}, group {}, {} bytes", vm.node, vm.group, vm.bytes),
            "a node and a group there are, and room for its largest request",
        );
    }
    if vm
        .limit
        .is_some_and(|(iops, _)| !(iops > 0.0 && iops.is_finite()))
    {
        return wrong(&vm.name, format!("limit {:?}", vm.limit), "a limit above 0");
    }
    Ok(())
}

/// A size that is `null` where there is no bound.
fn or_largest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(Option::<u64>::deserialize(deserializer)?.unwrap_or(u64::MAX))
}
