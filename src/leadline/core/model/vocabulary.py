"""The words of the field that every part shares: layers, entity kinds, severities, layer states."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Layer(StrEnum):
    """A layer of a virtualised database server, from the top down."""

    DATABASE = "database"
    GUEST = "guest"
    VM = "vm"
    HYPERVISOR_CPU = "hypervisor-cpu"
    HYPERVISOR_MEMORY = "hypervisor-memory"
    STORAGE_PATH = "storage-path"
    DATASTORE = "datastore"
    NETWORK = "network"
    HOST = "host"


class EntityKind(StrEnum):
    """What a thing with metrics or settings is."""

    CLUSTER = "cluster"
    HOST = "host"
    NUMA_NODE = "numa-node"
    PCPU = "pcpu"
    VM = "vm"
    VCPU = "vcpu"
    VIRTUAL_DISK = "virtual-disk"
    GUEST = "guest"  # an operating system as seen from inside; linked to its VM by the inventory
    CPU = "cpu"  # a processor as the guest numbers it
    BLOCK_DEVICE = "block-device"  # a disk as the guest names it
    PROCESS = "process"
    ADAPTER = "adapter"
    DEVICE = "device"  # a LUN or local disk as the hypervisor names it
    PATH = "path"
    WORLD = "world"  # a VM's own queue on a device (per-device-per-world)
    DATASTORE = "datastore"
    DISK_GROUP = "disk-group"
    NIC = "nic"
    PORT = "port"
    VIRTUAL_SWITCH = "virtual-switch"  # of a host; a distributed one has no parent
    PORT_GROUP = "port-group"
    DATABASE = "database"
    STATEMENT = "statement"  # of a database, by its verb and first table
    SESSION = "session"  # of a database: a client's, or a process at work in the background
    SETTING = "setting"  # of a database, by its name and the value it got
    JOB = "job"  # a load generator's job: fio job, pgbench run, vdbench host


class Severity(IntEnum):
    """How bad a finding is; the order is the order of ``--fail-on``."""

    INFO = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CRITICAL = 4

    @property
    def label(self) -> str:
        """Lower-case name, as written on the command line."""
        return self.name.lower()

    def lowered(self) -> Severity:
        """One step milder, never below info."""
        return Severity(max(self - 1, 0))


class Blames(StrEnum):
    """What a rule's finding blames."""

    DEVICE = "device"  # a disk, a LUN, or the storage that answers it
    LIMIT = "limit-or-queue"  # what holds requests back before the device
    WAIT = "wait"  # that something is waited for, not why
    SOME_DISK = "some-disk"  # that some disk is waited for; which one, and how long, it cannot tell
    PROGRAM = "program"
    STATEMENT = "statement"
    SETTING = "setting"
    NOTHING = "nothing"  # another resource, or no one in particular


class LayerState(StrEnum):
    """What the verdict says of a layer."""

    CONVICTED = "convicted"
    SUSPECTED = "suspected"
    CLEARED = "cleared"
    NOT_EXAMINED = "not examined"


class Better(StrEnum):
    """Which direction of a metric is good."""

    LOW = "low"
    HIGH = "high"
    NEUTRAL = "neutral"


class Role(StrEnum):
    """What a database keeps on a disk; latency limits depend on it."""

    DATA = "data"
    WAL = "wal"
    TEMP = "temp"
    BACKUP = "backup"
    SYSTEM = "system"
