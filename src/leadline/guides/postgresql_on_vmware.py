"""PostgreSQL on VMware: the checklist, each line checked by the recordings that are given, or by hand.

For:
    A PostgreSQL server in a VM, before it goes into production and when it is slow.

Ends:
    When each line is checked, mended, or left as it is for a reason that somebody wrote down.

Sources:
    Slides "PostgreSQL on VMware": BIOS, CPU, memory, storage, network, guest, backup.
    VMware, "Performance Best Practices for VMware vSphere"; PostgreSQL documentation, "Server Configuration".
"""

from __future__ import annotations

from leadline.core.contracts.guide import GuideMeta, GuideStep

_INVENTORY = "leadline collect vcenter VCENTER -u USER -o vc.parquet"
_FACTS = "leadline facts -o facts.json      (in the guest)"
_ESXTOP = "esxtop -b -a -d 5 -n 120 > esxtop.csv      (on the host)"

META = GuideMeta(
    about="Is this PostgreSQL server in a VM set up as it should be?",
    steps=(
        GuideStep(
            "Hardware and firmware",
            "On the compatibility list, current firmware, turbo on, maximum performance, virtualisation on.",
            rules=(
                *("host-not-on-hcl", "host-firmware-outdated", "bios-turbo-disabled", "host-power-policy"),
                *("hw-virt-disabled-in-bios", "hw-iommu-disabled", "host-memory-channels-unbalanced"),
                *("host-node-interleaving", "host-hba-driver-firmware-hcl", "host-hyperthreading-disabled"),
            ),
            record=(_INVENTORY,),
        ),
        GuideStep(
            "CPU",
            "As many vCPUs as it needs within a NUMA node; no limit, no hot add, hardly any ready time.",
            rules=(
                *("cpu-ready-high", "cpu-mlmtd-nonzero", "cpu-costop-high", "host-cpu-load-average"),
                *("cpu-limit-configured", "vm-exceeds-numa-node", "vnuma-hot-add-enabled", "numa-locality-low"),
                *("vm-vcpu-oversized", "vm-mmu-software-virtualisation", "vm-reservation-absent-tier1"),
            ),
            record=(_ESXTOP, _INVENTORY),
        ),
        GuideStep(
            "Memory",
            "All of it reserved: no balloon, no swap; large pages; what the server keeps fits in it.",
            rules=(
                *("mem-balloon-nonzero", "mem-swap-rate-nonzero", "mem-swapped-nonzero"),
                "vm-memory-limit-configured",
                *("vm-memory-reservation-missing", "mem-memctl-driver-missing", "guest-swap-activity"),
                *("guest-swappiness-high", "db-pg-huge-pages", "guest-hugepages-missing", "guest-thp-enabled"),
                *("db-pg-shared-buffers", "guest-overcommit-memory"),
            ),
            record=(_ESXTOP, _FACTS),
        ),
        GuideStep(
            "Disks",
            "Data and log on different disks, on paravirtual controllers of their own, eager zeroed, aligned, no "
            "snapshot, no parity RAID under the log.",
            rules=(
                *("db-wal-shared-disk-with-data", "vm-disk-controller-not-pvscsi", "vm-single-scsi-controller"),
                *("vm-disk-not-eager-zeroed", "guest-partition-misaligned", "vmfs-partition-misaligned"),
                *("storage-raid-parity-for-wal", "vm-snapshot-present", "datastore-sioc-disabled"),
                *("guest-pvscsi-queue-depth-default", "hba-lun-queue-depth-low", "storage-multipath-policy"),
                *("guest-io-scheduler", "guest-fs-mount-options"),
            ),
            record=(_INVENTORY, _FACTS),
            advice=("guest-lvm-stripe", "guest-partition-per-disk"),
        ),
        GuideStep(
            "Latency of the disks",
            "Below 10 ms for data and 2 to 5 ms for the log, at the device and in the guest.",
            rules=(
                *("disk-davg-wal", "disk-davg-data", "disk-kavg-high", "disk-queue-full", "disk-aborts"),
                *("guest-disk-await-high", "guest-disk-flush-slow", "db-log-write-latency", "db-data-read-latency"),
            ),
            record=(_ESXTOP, "leadline collect postgresql -o db --seconds 600"),
            advice=("bench-physical-comparison", "bench-ioping"),
        ),
        GuideStep(
            "Network",
            "VMXNET3, no drops, the same frame size along the whole path, no limit that nobody knows of.",
            rules=(
                *("vm-nic-not-vmxnet3", "net-drops-vm-port", "net-vmxnet3-rx-ring", "net-jumbo-mtu-mismatch"),
                *("net-nioc-disabled", "net-traffic-shaping-limit", "net-check-cpu-before-drops", "net-pnic-errors"),
            ),
            record=(_ESXTOP, _INVENTORY),
            advice=("vm-ring-coalescing",),
            by_hand=("The distributed firewall: which rules the server's traffic passes.",),
        ),
        GuideStep(
            "Guest",
            "Tools, the time, no devices, desktop or screen saver that nobody needs.",
            rules=(
                *("guest-tools-missing", "guest-time-not-synced", "host-ntp-not-configured"),
                *("vm-unused-virtual-devices", "vm-guest-os-type-mismatch", "vm-hardware-version-old"),
            ),
            record=(_FACTS, _INVENTORY),
            advice=("guest-screensaver", "guest-selinux-enforcing", "method-default-first"),
        ),
        GuideStep(
            "Server",
            "Checkpoints far apart and spread, costs of the storage that it has.",
            rules=(
                *("db-pg-checkpoint-config", "db-checkpoints-requested", "db-checkpoints-too-soon"),
                *("db-pg-random-page-cost-flash", "db-pg-synchronous-storage", "db-pg-commit-delay"),
                *("guest-memlock-limit", "guest-open-files", "guest-shmmax"),
            ),
            record=("leadline collect postgresql -o db --seconds 600", _FACTS),
        ),
        GuideStep(
            "Backup, snapshots and availability",
            "Backups of the server itself rather than quiesced snapshots under load; a cluster that outlives the "
            "freeze of one.",
            rules=(
                *("backup-db-native-log", "backup-quiesced-snapshot-freeze", "db-pg-fencing-during-snapshot"),
                *("vm-snapshot-old", "guest-antivirus-backup-peak", "backup-window-peak-overlap", "vm-stood-still"),
                *("drs-db-vm-anti-affinity", "cap-ha-n-plus-1"),
            ),
            record=(_INVENTORY, "vmware.log and vmkernel.log of the time of a freeze"),
            advice=("db-ag-plus-ftt",),
        ),
    ),
)
