"""A VM on vSAN is slow: guest, cluster, host, disk group, network, in this order.

For:
    A guest on vSAN whose latency is high. Each step asks whether the latency of this layer explains that of the layer
    above it.

Ends:
    At the first step that finds something: what lies below it is looked at only where that step explains nothing.

Sources:
    VMware, "Troubleshooting vSAN Performance" (StorageHub), the five steps of its workflow.
    Judgement: resynchronisation and congestion belong to the cluster; they are seen in all of its hosts at once.
"""

from __future__ import annotations

from leadline.core.contracts.guide import GuideMeta, GuideStep

META = GuideMeta(
    about="A VM on vSAN is slow: which of guest, cluster, host, disk group and network is it?",
    is_ladder=True,
    steps=(
        GuideStep(
            "Guest",
            "Is the latency real, and is it the disk? A guest that waits for CPU or memory, or a limit on its own "
            "disk, looks like slow storage.",
            rules=(
                *(
                    "vm-iops-limit-hit",
                    "vsan-iops-limit-latency-artifact",
                    "guest-disk-await-high",
                    "guest-disk-stalled",
                ),
                *("guest-disk-flush-slow", "cpu-ready-high", "cpu-costop-high", "guest-cpu-usage-high"),
                *("guest-swap-activity", "mem-balloon-nonzero", "vm-snapshot-present"),
                "vm-disk-controller-not-pvscsi",
            ),
            record=(
                "leadline collect linux -o guest --seconds 600     (on the guest)",
                "leadline collect postgresql -o db --seconds 600",
            ),
            advice=("method-vsan-triage-order", "method-outside-in"),
        ),
        GuideStep(
            "Cluster",
            "Do all VMs of the cluster see it? Congestion, resynchronisation, too many outstanding requests and "
            "full disks strike everybody at once.",
            rules=(
                *("vsan-client-latency-high", "vsan-congestion-high", "vsan-congestion-logged", "vsan-resync-impact"),
                *("vsan-oio-high", "vsan-latency-stddev-high", "vsan-slack-space-low", "vsan-health-issues"),
                *("vsan-component-limit", "vsan-memory-congestion", "vsan-stretched-latency"),
            ),
            record=("vSphere Client: cluster, Monitor, vSAN, Performance, VM and Backend: export as CSV",),
        ),
        GuideStep(
            "Host",
            "Does only one host see it? Its CPU, which vSAN needs for checksums and compression, its controller "
            "and driver.",
            rules=(
                *("vsan-kernel-cpu-ready", "host-cpu-saturated", "host-cpu-load-average", "disk-kavg-high"),
                *("disk-queue-full", "disk-aborts", "vsan-hcl-controller", "host-hba-driver-firmware-hcl"),
            ),
            record=(
                "leadline collect vcenter VCENTER -u USER -o vc.parquet      (which hosts and disk groups hold the VM)",
                "esxcli vsan debug object list > vsan-objects.txt      (the same without vCenter, on any host)",
                "esxtop -b -a -d 5 -n 120 > esxtop.csv      (on these hosts, not only on the one it runs on)",
            ),
            shows=("virtual-disk.vsan_placement",),
        ),
        GuideStep(
            "Disk group",
            "Does one disk group lag? Its write buffer, its cache's hit rate, one disk that answers late or is "
            "fuller than the others.",
            rules=(
                *("vsan-write-buffer-low-free", "vsan-write-buffer-limit", "vsan-hybrid-read-cache-hit"),
                *("vsan-disk-latency-high", "vsan-disk-imbalance", "vsan-cache-below-10pct-capacity"),
                *("vsan-single-disk-group", "vsan-disk-group-limits", "vsan-dedup-on-tier1", "vsan-object-unhealthy"),
            ),
            record=("vSphere Client: host, Monitor, vSAN, Performance, Disks and Backend: export as CSV",),
        ),
        GuideStep(
            "Network",
            "Does vSAN's own traffic lose packets? A thousandth of lost segments doubles a latency.",
            rules=(
                *(
                    "vsan-net-drops",
                    "vsan-nic-speed",
                    "net-pnic-errors",
                    "net-uplink-saturation",
                    "net-jumbo-mtu-mismatch",
                ),
                *("net-redundancy-lost", "net-nic-speed-low"),
            ),
            record=("esxtop -b -a -d 5 -n 120 > esxtop.csv      (it has the network adapters, too)",),
            by_hand=(
                "vmkping -I vmk2 -d -s 8972 ADDRESS from each host to each other: the path takes jumbo frames or not.",
            ),
        ),
    ),
)
