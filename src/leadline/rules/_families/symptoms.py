"""Rules whose findings are symptoms of trouble below them: the ``explains`` of every rule that finds such trouble."""

from __future__ import annotations

# What follows when storage answers late: the guests on it wait, and their databases with them.
GUEST_WAITS_FOR_DISK = (
    "guest-disk-await-high",
    "guest-disk-load-test-slow",
    "guest-iowait-high",
    "guest-blocked-processes",
    "guest-load-average-per-core",
    "db-log-write-latency",
)
DATABASE_WAITS_FOR_DISK = (
    "db-data-read-latency",
    "db-log-write-latency",
    "db-storage-latency-iris-read",
    "db-storage-latency-iris-journal",
    "db-iris-write-daemon-cycle",
)
GUEST_AND_DATABASE_WAIT_FOR_DISK = tuple(dict.fromkeys((*GUEST_WAITS_FOR_DISK, *DATABASE_WAITS_FOR_DISK)))
SLOW_DEVICE = ("disk-davg-wal", "disk-davg-data", "disk-davg-generic")
WAITS_FOR_DEVICE = ("disk-gavg-high", "disk-kavg-high", "disk-qavg-high", "disk-queue-full")
WAITS_FOR_SLOW_DEVICE = (*WAITS_FOR_DEVICE, "disk-queue-depth-cut")
VM_WAITS_FOR_CPU = (
    "guest-run-queue-high",
    "guest-load-average-per-core",
    "guest-steal-time",
    "net-drops-vm-port",
    "cpu-latency-high",
)
