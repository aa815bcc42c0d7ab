"""A benchmark whose figure means something: what to measure, how, and what to say beside the figure.

For:
    Whoever tests storage before it is bought, accepted or changed.

Ends:
    With a figure that somebody else can measure again. Later changes are compared with this baseline.

Sources:
    VMware, "HCIBench User Guide": prefill, warm-up, names of results, options that are off while testing.
    Judgement: a knee where IOPS gain less than 5 % is where more outstanding requests buy latency alone.
"""

from __future__ import annotations

from leadline.core.contracts.guide import GuideMeta, GuideStep

META = GuideMeta(
    about="How is this storage measured so that the figure means something?",
    steps=(
        GuideStep(
            "What is asked of it",
            "Block sizes, reads and writes, how random, how many outstanding: those of the real work where it can "
            "be recorded.",
            record=(
                "vscsiStats -s -w WORLD; vscsiStats -p all -c > histograms.csv      (on the host)",
                "leadline trace --help",
            ),
            advice=("bench-not-real-workload", "bench-throughput-io-size"),
        ),
        GuideStep(
            "What must be off",
            "Deduplication, compression and encryption make a test of zeros look quick; a limit makes it a test "
            "of the limit.",
            rules=("vsan-dedup-on-tier1", "vm-disk-iops-limit", "vm-iops-limit-hit"),
            record=("leadline collect vcenter VCENTER -u USER -o vc.parquet",),
            advice=("bench-disable-dedup", "bench-fio-rate-limit"),
        ),
        GuideStep(
            "Find the knee",
            "More outstanding requests raise IOPS until the device is full, and from there on latency alone.",
            record=("leadline bench sweep postgresql-oltp --on /srv/scratch --html sweep.html",),
            advice=("bench-thread-ramp", "method-steady-state"),
        ),
        GuideStep(
            "Keep it",
            "The name of a result says what ran: VMs, disks, working set, outstanding requests, block size, "
            "reads, how random.",
            record=("leadline bench run postgresql-oltp --on /srv/scratch",),
            advice=("bench-hcibench-result-name", "bench-baseline-before-change", "bench-physical-comparison"),
        ),
        GuideStep(
            "Change one thing",
            "One change, the same test, and the way back at hand.",
            record=("leadline diagnose after/ --baseline before/",),
            advice=("method-one-change-at-a-time", "method-auto-revert", "method-default-first"),
        ),
        GuideStep(
            "Afterwards",
            "What is quick today is watched tomorrow.",
            record=("leadline watch init",),
            advice=("method-synthetic-user-probe",),
        ),
    ),
)
