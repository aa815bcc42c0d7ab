//! Where fragments of chunks lie, and what is left of them.

use super::protection::Protection;
use super::spec::Spec;
use crate::random::{Stream, Streams};
use leadline_stats::error::LeadlineError;

/// What a fragment is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Whole.
    Live,
    /// Being written anew: takes writes, gives no reads.
    Rebuilding,
    /// Not there, but it may come back.
    Missing,
    /// Lost: to be written anew elsewhere.
    Gone,
}

/// A fragment: its disk and what it is worth.
#[derive(Clone, Copy, Debug)]
pub struct Fragment {
    /// Index of the disk it is on, or was.
    pub disk: u32,
    /// What it is worth.
    pub health: Health,
}

/// What a disk is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskState {
    /// It works.
    Up,
    /// It may come back with its data.
    Absent,
    /// Its data is gone.
    Lost,
}

/// A disk's share of the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Index of its node.
    pub node: u32,
    /// Bytes it holds at most.
    pub capacity: u64,
    /// Bytes of fragments on it.
    pub used: u64,
    /// What it is worth.
    pub state: DiskState,
}

/// All fragments of all chunks, chunk by chunk; and all disks.
#[derive(Clone, Debug)]
pub struct Layout {
    /// How chunks are protected.
    pub protection: Protection,
    /// Data of a chunk, bytes.
    pub chunk_bytes: u64,
    /// Bytes of a fragment.
    pub fragment_bytes: u64,
    /// Fragments, those of a chunk one after the other.
    pub fragments: Vec<Fragment>,
    /// Disks.
    pub rooms: Vec<Room>,
    by_node: Vec<Vec<u32>>,
    /// First chunk of each virtual machine.
    pub first_chunk: Vec<u32>,
}

impl Layout {
    /// Places the chunks of all virtual machines: each fragment on a node of its own, the emptiest first, ties by chance.
    ///
    /// # Errors
    /// When nodes or bytes do not suffice.
    pub fn new(spec: &Spec) -> Result<Self, LeadlineError> {
        let chunk_bytes = spec.protection.chunk(spec.chunk_bytes, spec.unit_bytes);
        let mut by_node = vec![Vec::new(); spec.nodes.len()];
        for (index, disk) in (0u32..).zip(&spec.disks) {
            by_node[disk.node].push(index);
        }
        #[allow(clippy::cast_possible_truncation)] // checked: fewer than 60,000 nodes
        let rooms = spec.disks.iter().map(|disk| Room {
            node: disk.node as u32,
            capacity: disk.capacity,
            used: 0,
            state: DiskState::Up,
        });
        let mut layout = Self {
            protection: spec.protection,
            chunk_bytes,
            fragment_bytes: spec.protection.fragment(chunk_bytes),
            fragments: Vec::new(),
            rooms: rooms.collect(),
            by_node,
            first_chunk: Vec::new(),
        };
        for vm in &spec.vms {
            let mut stream = Streams::new(spec.seed).stream(&vm.name, "placement");
            #[allow(clippy::cast_possible_truncation)] // checked below
            layout.first_chunk.push(layout.chunk_count() as u32);
            for _ in 0..vm.bytes.div_ceil(chunk_bytes) {
                layout.place(&vm.name, &mut stream)?;
            }
        }
        Ok(layout)
    }

    /// How many chunks there are.
    #[must_use]
    pub fn chunk_count(&self) -> usize {
        self.fragments.len() / self.protection.width() as usize
    }

    fn place(&mut self, vm: &str, stream: &mut Stream) -> Result<(), LeadlineError> {
        const FRAGMENTS_MAX: usize = 50_000_000;
        let width = self.protection.width() as usize;
        let places = self.emptiest(&[], width, stream);
        if places.len() < width || self.fragments.len() > FRAGMENTS_MAX {
            return Err(LeadlineError::new(
                format!("vm {vm}: placement"),
                format!(
                    "{} nodes with room for a fragment of {} bytes",
                    places.len(),
                    self.fragment_bytes
                ),
                format!("{width}, one for each fragment of a chunk"),
                "Add nodes or capacity, or choose a narrower protection scheme.",
            ));
        }
        for disk in places {
            self.rooms[disk as usize].used += self.fragment_bytes;
            self.fragments.push(Fragment {
                disk,
                health: Health::Live,
            });
        }
        Ok(())
    }

    /// Up to `count` disks with room, each on a node of its own and not on those of `avoided`, the emptiest first.
    fn emptiest(&self, avoided: &[u32], count: usize, stream: &mut Stream) -> Vec<u32> {
        let has_room = |disk: &&u32| {
            let room = &self.rooms[**disk as usize];
            room.state == DiskState::Up
                && room.capacity.saturating_sub(room.used) >= self.fragment_bytes
        };
        let mut found = Vec::new();
        for (node, disks) in (0u32..).zip(&self.by_node) {
            let usable: Vec<u32> = disks.iter().filter(has_room).copied().collect();
            if usable.is_empty() || avoided.contains(&node) {
                continue;
            }
            let used: u64 = usable
                .iter()
                .map(|disk| self.rooms[*disk as usize].used)
                .sum();
            let best = usable
                .iter()
                .min_by_key(|disk| (self.rooms[**disk as usize].used, stream.bits()));
            if let Some(disk) = best {
                found.push((used / usable.len() as u64, stream.bits(), *disk));
            }
        }
        found.sort_unstable();
        found.into_iter().take(count).map(|own| own.2).collect()
    }

    /// The disk a fragment is rebuilt on: on a node without another fragment of its chunk. None when there is none.
    pub fn target(&self, fragment: u32, stream: &mut Stream) -> Option<u32> {
        let chunk = fragment / self.protection.width();
        let others = self
            .of_chunk(chunk)
            .filter(|(index, own)| *index != fragment && own.health != Health::Gone);
        let avoided: Vec<u32> = others
            .map(|(_, own)| self.rooms[own.disk as usize].node)
            .collect();
        self.emptiest(&avoided, 1, stream).first().copied()
    }

    /// The fragments of a chunk, with their indices.
    pub fn of_chunk(&self, chunk: u32) -> impl Iterator<Item = (u32, Fragment)> + '_ {
        let width = self.protection.width();
        (chunk * width..(chunk + 1) * width).map(|index| (index, self.fragments[index as usize]))
    }

    /// Whether a chunk's data can be read.
    #[must_use]
    pub fn is_readable(&self, chunk: u32) -> bool {
        let live = self
            .of_chunk(chunk)
            .filter(|(_, own)| own.health == Health::Live);
        live.count() >= self.protection.needed() as usize
    }

    /// How many chunks cannot be read.
    #[must_use]
    pub fn unreadable_count(&self) -> usize {
        let count = u32::try_from(self.chunk_count()).unwrap_or(u32::MAX);
        (0..count).filter(|chunk| !self.is_readable(*chunk)).count()
    }

    /// Raw bytes for a byte that virtual machines keep, as laid out.
    #[must_use]
    pub fn raw_by_data(&self) -> f64 {
        let raw: u64 = self.rooms.iter().map(|room| room.used).sum();
        raw as f64 / (self.chunk_count() as u64 * self.chunk_bytes) as f64
    }
}
