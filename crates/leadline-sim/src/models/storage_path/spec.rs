//! What a storage path is made of: parameters, their check, and the sources they make.

use serde::Deserialize;

use crate::models::device::Speed;
use crate::models::disk_drive::Drive;
use crate::models::scheduler::Client;
use crate::random::{Constant, Distribution, Exponential, Stream, Streams};
use crate::sources::{AnyMix, AnySource, Closed, OnOff, Paced, Recording, Renewal, RequestMix};
use crate::time::{Nanos, SECOND};
use leadline_stats::error::{LeadlineError, wrong};

/// How a source's requests come.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrivals {
    /// So many outstanding, each replaced when it is done and the client has thought.
    Closed {
        /// Requests outstanding.
        outstanding: u32,
        /// Think time, ns.
        think: Nanos,
    },
    /// So many per second at random.
    Poisson(f64),
    /// So many per second at even distances.
    Even(f64),
    /// As in the recording of this index, which is given beside the document.
    Recorded {
        /// Which of the recordings.
        index: usize,
        /// How many times as fast, above 0.
        speed: f64,
        /// Again and again, or once.
        repeats: bool,
    },
    /// As recorded; sizes, shares and bursts are those of the recording.
    #[serde(skip)]
    Replay {
        /// Times and requests.
        recording: Recording,
        /// How many times as fast, above 0.
        speed: f64,
        /// Again and again, or once.
        repeats: bool,
    },
}

/// One stream of a workload in one direction or both.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSpec {
    /// Its name: with the VM's the key of its random numbers.
    pub name: String,
    /// Index of the disk.
    pub disk: usize,
    /// How requests come.
    pub arrivals: Arrivals,
    /// Load for so many ns, then none for so many, again and again.
    pub burst: Option<(Nanos, Nanos)>,
    /// Sizes in bytes with their weights.
    pub sizes: Vec<(u32, f64)>,
    /// Share of reads, 0 to 1.
    pub read_share: f64,
    /// Share of random requests, 0 to 1.
    pub random_share: f64,
    /// What a request that is done sets off, as (VM, source in it), instead of the next of its own: a copy reads, then
    /// writes, then reads again.
    pub then: Option<(usize, usize)>,
}

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VmSpec {
    /// Its name.
    pub name: String,
    /// Index of its host.
    pub host: usize,
    /// Requests its adapter has under way at most.
    pub adapter_depth: u32,
    /// Its sources.
    pub sources: Vec<SourceSpec>,
}

/// A virtual disk.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// What it is entitled to at its host's scheduler; its name.
    pub client: Client,
    /// Index of its device.
    pub device: usize,
    /// Operations of up to 32 KB per second, and how many at once after an idle time.
    pub limit: Option<(f64, u64)>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Its name.
    pub name: String,
    /// Requests it has at a device at most.
    pub queue_depth: u32,
    /// The order in which requests leave its queue: one of [`crate::models::SCHEDULERS`].
    pub scheduler: String,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// Its name.
    pub name: String,
    /// Requests it works on at once; a curve works on all that come.
    pub parallelism: u32,
    /// What it takes for them.
    pub speed: Speed,
    /// Between it and the hosts: latency in ns, and bytes per second in each direction.
    pub network: Option<(Nanos, f64)>,
    /// The latency above which hosts with `sioc-v1` draw in, ns.
    pub threshold: Nanos,
}

/// A system and how long to watch it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Measured time, ns; windows of series, ns.
    pub measured: Nanos,
    /// Windows of the series, ns.
    pub window: Nanos,
    /// Virtual machines.
    pub vms: Vec<VmSpec>,
    /// All disks; a disk belongs to the VM whose sources use it.
    pub disks: Vec<DiskSpec>,
    /// Hosts.
    pub hosts: Vec<HostSpec>,
    /// Devices.
    pub devices: Vec<DeviceSpec>,
}

#[derive(Clone, Debug)]
pub(in crate::models) struct Feed {
    pub(in crate::models) source: AnySource,
    pub(in crate::models) mix: AnyMix,
    pub(in crate::models) vm: usize,
    pub(in crate::models) disk: usize,
    /// When it begins, ns.
    pub(in crate::models) phase: Nanos,
    /// Of a closed source: load for so many ns in each of so many.
    pub(in crate::models) gate: Option<(Nanos, Nanos)>,
    /// Where its requests go on the drive of its disk.
    pub(super) drive: Option<(Drive, Stream)>,
    /// The next place there.
    pub(super) place: u32,
    /// The feed whose next request one that is done allows.
    pub(super) next: usize,
}

impl Feed {
    /// Where the next request of so many bytes goes.
    pub(super) fn next_place(&mut self, bytes: u32, is_random: bool) -> u32 {
        let Some((drive, stream)) = &mut self.drive else {
            return 0;
        };
        if is_random {
            #[allow(clippy::cast_possible_truncation)] // below 2^32
            let place = stream.below(1 << 32) as u32;
            self.place = place;
        }
        let place = self.place;
        self.place = drive.after(place, bytes);
        place
    }
}

fn gap(rate: f64, is_random: bool) -> Distribution {
    let mean = SECOND as f64 / rate;
    if is_random {
        Distribution::Exponential(Exponential { mean })
    } else {
        Distribution::Constant(Constant(mean))
    }
}

/// What a source's requests are.
fn mix(spec: &SourceSpec, stream: Stream) -> Option<AnyMix> {
    if let Arrivals::Replay { recording, .. } = &spec.arrivals {
        return Some(AnyMix::Recorded(recording.clone(), 0));
    }
    let drawn = RequestMix::new(&spec.sizes, spec.read_share, spec.random_share, stream);
    drawn.map(AnyMix::Drawn)
}

/// The source of a VM that the parameters describe.
pub(in crate::models) fn feed(
    spec: &SourceSpec,
    vm: usize,
    vm_name: &str,
    streams: Streams,
    drive: Option<&Drive>,
) -> Result<Feed, LeadlineError> {
    let key = format!("{vm_name}/{}", spec.name);
    let place = format!("vm {vm_name}: {}", spec.name);
    let stream = streams.stream(&key, "arrivals");
    let constant = |nanos: Nanos| Distribution::Constant(Constant(nanos as f64));
    let sound = |share: f64| (0.0..=1.0).contains(&share);
    if !sound(spec.read_share) || !sound(spec.random_share) {
        return wrong(&place, "shares outside 0 to 1", "shares from 0 to 1");
    }
    let rate = match spec.arrivals {
        Arrivals::Closed { .. } => 1.0,
        Arrivals::Poisson(rate) | Arrivals::Even(rate) => rate,
        Arrivals::Replay { speed, .. } | Arrivals::Recorded { speed, .. } => speed,
    };
    if !(rate > 0.0 && rate.is_finite()) || spec.burst.is_some_and(|(on, _)| on == 0) {
        return wrong(
            &place,
            format!("{rate} per second"),
            "a rate, and bursts, above 0",
        );
    }
    // Even distances begin anywhere within the first: sources in step would meet at every request.
    let even = matches!(spec.arrivals, Arrivals::Even(_));
    let gap_nanos = crate::time::whole(SECOND as f64 / rate);
    let phase = if even {
        streams.stream(&key, "phase").below(gap_nanos)
    } else {
        0
    };
    let source = match (&spec.arrivals, spec.burst) {
        (Arrivals::Closed { outstanding, think }, _) => {
            AnySource::Closed(Closed::new(*outstanding, constant(*think), stream))
        }
        (
            Arrivals::Replay {
                recording,
                speed,
                repeats,
            },
            _,
        ) => AnySource::Replay(recording.source(*speed, *repeats)),
        (Arrivals::Recorded { index, .. }, _) => {
            let expected = "a recording of requests beside the document";
            return wrong(&place, format!("recording {index}"), expected);
        }
        (Arrivals::Even(rate), None) => AnySource::Paced(Paced::new(*rate)),
        (Arrivals::Poisson(rate), None) => {
            AnySource::Renewal(Renewal::new(gap(*rate, true), stream))
        }
        (arrivals, Some((on, off))) => {
            let gap = gap(rate, matches!(arrivals, Arrivals::Poisson(_)));
            AnySource::OnOff(OnOff::new(gap, constant(on), constant(off), stream))
        }
    };
    let is_closed = matches!(spec.arrivals, Arrivals::Closed { .. });
    let Some(mix) = mix(spec, streams.stream(&key, "mix")) else {
        return wrong(&place, "no sizes", "sizes with weights above 0");
    };
    let gate = spec
        .burst
        .filter(|_| is_closed)
        .map(|(on, off)| (on, on + off));
    Ok(Feed {
        source,
        mix,
        vm,
        disk: spec.disk,
        phase,
        gate,
        drive: drive.map(|own| (own.clone(), streams.stream(&key, "place"))),
        place: 0,
        next: 0, // set when all feeds are known
    })
}

/// Whether the parts fit each other.
pub(super) fn check(spec: &Spec) -> Result<(), LeadlineError> {
    const COUNT_MAX: usize = 60_000;
    let counts = [
        spec.vms.len(),
        spec.disks.len(),
        spec.hosts.len(),
        spec.devices.len(),
    ];
    if counts.iter().any(|count| !(1..COUNT_MAX).contains(count)) || spec.window == 0 {
        return wrong(
            "system",
            format!("{counts:?}"),
            "VMs, disks, hosts and devices, fewer than 60,000 each",
        );
    }
    for vm in &spec.vms {
        let known = |source: &SourceSpec| source.disk < spec.disks.len();
        let follows = |source: &SourceSpec| match source.then {
            Some((vm, own)) => spec.vms.get(vm).is_some_and(|vm| own < vm.sources.len()),
            None => true,
        };
        if !vm.sources.iter().all(follows) {
            return wrong(
                &vm.name,
                "a source that sets off one there is not",
                "a source of a VM",
            );
        }
        if vm.host >= spec.hosts.len() || vm.adapter_depth == 0 || !vm.sources.iter().all(known) {
            return wrong(
                &vm.name,
                format!("host {}, depth {}", vm.host, vm.adapter_depth),
                "a host, disks and a depth",
            );
        }
    }
    for disk in &spec.disks {
        let sound = disk
            .limit
            .is_none_or(|(iops, _)| iops > 0.0 && iops.is_finite());
        if disk.device >= spec.devices.len() || !sound {
            return wrong(
                &disk.client.name,
                format!("limit {:?}", disk.limit),
                "a device, and a limit above 0",
            );
        }
    }
    if let Some(host) = spec.hosts.iter().find(|host| host.queue_depth == 0) {
        return wrong(&host.name, "queue depth 0", "1 or more");
    }
    for device in &spec.devices {
        if device.parallelism == 0 {
            return wrong(&device.name, "parallelism 0", "1 or more");
        }
        if matches!(device.speed, Speed::Drive(_)) && device.parallelism > 1 {
            return wrong(
                &device.name,
                device.parallelism,
                "a drive, which works on one request",
            );
        }
        let slow = |(_, rate): (Nanos, f64)| rate.is_nan() || rate <= 0.0;
        if device.threshold == 0 || device.network.is_some_and(slow) {
            return wrong(
                &device.name,
                format!(
                    "network {:?}, threshold {}",
                    device.network, device.threshold
                ),
                "a rate and a threshold above 0",
            );
        }
        device.speed.check(&device.name)?;
    }
    Ok(())
}
