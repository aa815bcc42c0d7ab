"""How many vCPUs a database VM gets, and on which hosts: from a recorded peak to a plan.

For:
    A large database VM that is new, moves, or grows.

Ends:
    With a count of vCPUs that fits a NUMA node or a whole number of them, on a host that has room for its failure.

Sources:
    "CPU planning for a hospital database on VMware": one vCPU for each core, 80 % at the peak, consolidation after
    monitoring.
    VMware, "Performance Best Practices for VMware vSphere": NUMA, vNUMA, co-scheduling.
"""

from __future__ import annotations

from leadline.core.contracts.guide import GuideMeta, GuideStep

META = GuideMeta(
    about="How many vCPUs does this database get, and does its host have them?",
    steps=(
        GuideStep(
            "Record the peak",
            "The busiest quarter of an hour of the busiest day, in the guest and on the host at the same time: a "
            "guest looks idle while it waits for its host.",
            rules=("guest-cpu-looks-idle-host-saturated", "guest-cpu-usage-high", "guest-run-queue-high"),
            record=("leadline collect linux -o guest --seconds 3600", "esxtop -b -a -d 10 -n 360 > esxtop.csv"),
            advice=("method-steady-state",),
        ),
        GuideStep(
            "Is it CPU at all",
            "Ready, co-stop and limits first: more vCPUs make these worse.",
            rules=(
                "cpu-ready-high",
                "cpu-costop-high",
                "cpu-mlmtd-nonzero",
                "cpu-limit-configured",
                "cpu-latency-high",
            ),
            record=("esxtop -b -a -d 10 -n 360 > esxtop.csv",),
        ),
        GuideStep(
            "Size for 80 % at the peak",
            "One vCPU for each physical core; hyper-threads add about a fifth, never as much again.",
            rules=("vm-vcpu-oversized", "vm-vcpus-exceed-physical-cores", "cap-vcpu-pcore-ratio-prod-db"),
            record=("leadline plan cpu --help",),
            advice=("method-default-first",),
        ),
        GuideStep(
            "Fit the NUMA nodes",
            "Within one node where it can be; else an even split over as few nodes as hold it, no odd count, no "
            "hot add.",
            rules=(
                *("vm-exceeds-numa-node", "vnuma-uneven-split", "vnuma-odd-vcpus", "vnuma-hot-add-enabled"),
                *(
                    "vnuma-cores-per-socket",
                    "vnuma-advanced-settings-changed",
                    "numa-locality-low",
                    "numa-amd-multi-node",
                ),
                "vm-memory-imbalanced-vs-vnuma",
            ),
            record=("leadline collect vcenter VCENTER -u USER -o vc.parquet",),
        ),
        GuideStep(
            "Room on the hosts",
            "The hypervisor and vSAN need CPU, too, and after a failure the largest VM must find one host that "
            "holds it whole.",
            rules=(
                *("host-cpu-saturated", "host-cpu-load-average", "cap-ha-n-plus-1", "ha-monster-vm-restart-fit"),
                *("ha-admission-control-off", "vm-reservation-absent-tier1", "drs-db-vm-anti-affinity"),
                "drs-disabled",
            ),
            record=("leadline collect vcenter VCENTER -u USER -o vc.parquet",),
        ),
        GuideStep(
            "Watch, then consolidate",
            "Grow in planned steps; put more on a host only after its peaks were recorded.",
            rules=("cap-forecast-headroom", "cap-host-overcommit-nonprod"),
            record=("leadline watch init",),
            advice=("bench-baseline-before-change",),
        ),
    ),
)
