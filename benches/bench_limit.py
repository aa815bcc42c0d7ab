"""A disk with a real IOPS limit under 116 outstanding requests: what is measured, and what the rules make of it.

``python -m benches.bench_limit [--caps N ...] [--seconds N] [--duration N]`` puts a file behind a throttle group of
qemu-storage-daemon, makes a block device of it (so that the kernel counts), and lets `leadline probe` pulse it: as hard
as possible, at 70 % of the limit, and at the limit. It prints rate and latency beside what Little's law gives, and what
the rules find in the kernel's counters alone. It exits with 1 when a cap is estimated more than 3 % off or no rule says
limit, and with 0 and a reason where such a device cannot be made.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benches.throttled import missing, throttled_disk
from leadline.app.benching import SILENT
from leadline.app.diagnosing import diagnose
from leadline.app.importing import import_paths
from leadline.app.probing import Probed, plan, probe
from leadline.core.benchmark import Target
from leadline.core.finding import Finding
from leadline.core.profile import Profile

CAPS = (200, 400)
OUTSTANDING = 116
RULE = "vm-iops-limit-hit"
WITHIN_PCT = 3.0


def pulsed(cap: int, seconds: float, folder: Path) -> tuple[Probed, str]:
    """What the probe finds on a disk with that cap, and the disk's name; the recording is in ``folder``/probe."""
    with throttled_disk(folder, cap, 64 << 20, as_device=True) as device:
        made = plan(
            Target(device, destroy=device),
            folder / "probe",
            seconds=(0.0, seconds),
            limit=float(cap),
            size="4m",
            outstanding=OUTSTANDING,
        )
        return probe(made, SILENT, lambda: None), Path(device).name


def from_counters(folder: Path, disk: str, duration_s: float) -> list[Finding]:
    """What the rules find of a disk in the kernel's counters of the second round, without fio's own results."""
    capture = import_paths([folder / "probe" / "round-2" / "linux.txt"]).capture
    found = diagnose(capture, Profile(limits={RULE: {"duration": duration_s}})).findings
    return [finding for finding in found if finding.entity.name == disk]


def shown(cap: int, found: Probed, findings: list[Finding]) -> bool:
    """Print one cap; whether the rule names it."""
    hard, gentle, at_limit = found.pulses
    print(f"cap {cap}/s, {OUTSTANDING} outstanding")
    print(
        f"  as hard as possible  {hard.per_s:7.1f}/s  {hard.mean_ms:8.3g} ms  Little: {OUTSTANDING / cap * 1000:.0f} ms"
    )
    print(f"  at 70 % of the limit {gentle.per_s:7.1f}/s  {gentle.mean_ms:8.3g} ms  the disk's own latency")
    print(f"  at the limit         {at_limit.per_s:7.1f}/s  {at_limit.mean_ms:8.3g} ms")
    print(f"  probe: {found.verdict.sentence if found.verdict is not None else 'no verdict'}")
    first = findings[0] if findings else None
    print(f"  rules, from kernel counters: {first.summary if first is not None else 'nothing'}")
    if first is None or first.rule != RULE or first.evidence[0].value is None:
        return False
    off = 100.0 * (first.evidence[0].value / cap - 1.0)
    print(f"  estimate {first.evidence[0].value:.1f}/s, {off:+.2f} % off, budget {WITHIN_PCT:g} %")
    return abs(off) <= WITHIN_PCT


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--caps", type=int, nargs="*", default=list(CAPS))
    parser.add_argument("--seconds", type=float, default=66.0, help="of each pulse")
    parser.add_argument("--duration", type=float, default=60.0, help="the rule's shortest time at the ceiling")
    options = parser.parse_args(arguments)
    reason = missing(as_device=True)
    if reason is not None:
        print(f"not measured: {reason}")
        return
    print(f"pulses of {options.seconds:g} s; the rule needs {options.duration:g} s at the ceiling")
    met = True
    for cap in options.caps:
        with tempfile.TemporaryDirectory(prefix="leadline-bench-") as name:
            found, disk = pulsed(cap, options.seconds, Path(name))
            met &= shown(cap, found, from_counters(Path(name), disk, options.duration))
    if not met:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
