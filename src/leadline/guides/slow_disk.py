"""A disk of a guest is slow: from outside inwards, then the same disk with a load that is known.

For:
    A provider and a customer who do not agree whose disk it is: a Linux guest on any hypervisor or cloud.

Ends:
    With one of three answers: the machine is given too little of something else, the disk is slower than it was sold,
    or more is asked of it than that.

Sources:
    Article on diagnosing a slow disk with iostat, fio and ioping, its two rounds and its pulses.
    Little's law: latency = outstanding requests / throughput, which is what a limit makes of a deep queue.
"""

from __future__ import annotations

from leadline.core.contracts.guide import GuideMeta, GuideStep

META = GuideMeta(
    about="Is the disk of this guest slow, or is too much asked of it?",
    steps=(
        GuideStep(
            "From outside",
            "Begin with what the machine is given: its host's CPU and memory, the datastore, limits. A guest "
            "cannot see what is withheld from it.",
            rules=(
                *(
                    "guest-steal-time",
                    "cpu-ready-high",
                    "mem-balloon-nonzero",
                    "mem-swap-rate-nonzero",
                    "disk-davg-generic",
                ),
                *("disk-kavg-high", "vm-disk-iops-limit", "cloud-limit-reached", "cloud-credits-used-up"),
            ),
            record=("esxtop -b -a -d 5 -n 120 > esxtop.csv      (on the host)",),
            advice=("method-outside-in",),
        ),
        GuideStep(
            "Which disk is it",
            "Follow the path down: mount, volume, device, virtual disk, datastore.",
            rules=("db-wal-shared-disk-with-data", "guest-filesystem-full", "guest-partition-misaligned"),
            record=("lsblk -f > lsblk.txt; df -h > df.txt; leadline facts -o facts.json",),
            advice=("method-map-guest-disks", "guest-partition-per-disk"),
        ),
        GuideStep(
            "Round one: the real load",
            "Ten minutes by ten seconds while it is slow, or a day by the hour. Judge by await and the queue; "
            "utilisation near 100 % says little of a disk that serves many at once.",
            rules=(
                *("guest-disk-await-high", "guest-disk-flush-slow", "guest-disk-stalled", "guest-iowait-high"),
                *("guest-disk-taken", "guest-disk-worker", "guest-reads-small"),
            ),
            record=(
                "iostat -x -t -o JSON 10 60 > iostat.json",
                "leadline probe --observe-only --on /var/lib/postgresql",
            ),
            advice=("guest-disk-util-misread",),
        ),
        GuideStep(
            "Round two: a load that is known",
            "With the real load off, 4 KiB requests, 256 outstanding, one to two minutes, several pulses in ten "
            "minutes; then below the limit. A disk that is quick now and slow under its own load is asked for too "
            "much.",
            rules=("vm-iops-limit-hit", "guest-disk-load-test-slow"),
            record=(
                "leadline probe --on /var/lib/postgresql --article",
                "ioping -c 60 /var/lib/postgresql > ioping.txt",
            ),
            advice=("method-two-round-iostat", "bench-fio-rate-limit", "bench-ioping"),
        ),
        GuideStep(
            "What it was sold as",
            "Compare IOPS, bandwidth and latency with what was ordered; look for errors that the kernel has logged.",
            rules=("guest-disk-errors-logged", "guest-disk-requests-over-15-s", "cloud-limit-exceeded"),
            record=("dmesg -T > dmesg.txt",),
            by_hand=("The contract or the tier: IOPS, MiB/s, latency, and what counts as one I/O.",),
        ),
    ),
)
