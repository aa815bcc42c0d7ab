"""A disk with a real IOPS limit under 116 outstanding requests: what is measured, and what the rules make of it.

``python -m benches.bench_limit [--caps N ...] [--seconds N] [--duration N]`` puts a file behind a throttle group of
qemu-storage-daemon, makes a block device of it (so that the kernel counts), and lets `leadline probe` pulse it: as hard
as possible, at 70 % of the limit, and at the limit. It prints rate and latency beside what Little's law gives, and what
the rules find in the kernel's counters alone. It exits with 1 when a cap is estimated more than 3 % off or no rule says
limit, and with 0 and a reason where such a device cannot be made.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benches.throttled import missing, throttled_disk
from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.measure.rounds import SILENT
from leadline.app.probe.probing import Probed, PulseShape, plan, probe
from leadline.app.read.importing import import_paths
from leadline.core.contracts.load_target import Target
from leadline.core.model.finding import Finding
from leadline.core.model.profile import Profile
from leadline.core.system.cgroups import Groups, InstanceLimits, find

CAPS = (200, 400)
OUTSTANDING = 116
RULE = "vm-iops-limit-hit"
WITHIN_PCT = 3.0
READ_SHARE = 0.7  # of the pulses when no workload was observed


@contextmanager
def in_group(device: str, cap: int) -> Iterator[None]:
    """Our own process and what it starts in a control group that lets 70 % of ``cap`` reads through.

    Every request of the pulses is a read with probability 0.7; writes are never held, so reads set the pace.
    """
    number = Path(device).stat().st_rdev
    limits = InstanceLimits(iops=round(cap * READ_SHARE))
    where = find(limits)
    if isinstance(where, str):
        raise SystemExit(f"not measured: {where}")
    groups = Groups(where, limits, f"{os.major(number)}:{os.minor(number)}")
    group = groups.make(1)
    before = {folder: folder.parent / "cgroup.procs" for folder in group.folders}
    for folder in before:
        (folder / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        for home in before.values():
            home.write_text(str(os.getpid()))
        groups.remove()


def pulsed(cap: int, seconds: float, folder: Path, *, blkio: bool = False) -> tuple[Probed, str]:
    """What the probe finds on a disk with that cap, and the disk's name; the recording is in ``folder``/probe."""
    with ExitStack() as stack:
        device = stack.enter_context(throttled_disk(folder, 0 if blkio else cap, 64 << 20, as_device=True))
        if blkio:
            stack.enter_context(in_group(device, cap))
        made = plan(
            Target(device, destroy=device),
            folder / "probe",
            seconds=(0.0, seconds),
            limit=float(cap),
            size="4m",
            shape=PulseShape(outstanding=OUTSTANDING),
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


def shown_blkio(cap: int, found: Probed) -> bool:
    """Print one cap of the kernel's controller; whether the probe finds it."""
    hard, gentle, _ = found.pulses
    print(f"cap {cap}/s by the blkio controller, {OUTSTANDING} outstanding")
    print(
        f"  as hard as possible  {hard.per_s:7.1f}/s  {hard.mean_ms:8.3g} ms  Little: {OUTSTANDING / cap * 1000:.0f} ms"
    )
    print(f"  at 70 % of the limit {gentle.per_s:7.1f}/s  {gentle.mean_ms:8.3g} ms  the disk's own latency")
    print(f"  probe: {found.verdict.sentence if found.verdict is not None else 'no verdict'}")
    off = 100.0 * (hard.per_s / cap - 1.0)
    print(f"  found {hard.per_s:.1f}/s, {off:+.2f} % off, budget {WITHIN_PCT:g} %; iostat does not see such a wait")
    return abs(off) <= WITHIN_PCT


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--caps", type=int, nargs="*", default=list(CAPS))
    parser.add_argument("--seconds", type=float, default=66.0, help="of each pulse")
    parser.add_argument("--duration", type=float, default=60.0, help="the rule's shortest time at the ceiling")
    parser.add_argument(
        "--blkio", action="store_true", help="the limit is the kernel's blkio controller, version 1 or 2"
    )
    options = parser.parse_args(arguments)
    reason = missing(as_device=True)
    if reason is not None:
        print(f"not measured: {reason}")
        return
    print(f"pulses of {options.seconds:g} s; the rule needs {options.duration:g} s at the ceiling")
    met = True
    for cap in options.caps:
        with tempfile.TemporaryDirectory(prefix="leadline-bench-") as name:
            found, disk = pulsed(cap, options.seconds, Path(name), blkio=options.blkio)
            if options.blkio:
                met &= shown_blkio(cap, found)
            else:
                met &= shown(cap, found, from_counters(Path(name), disk, options.duration))
    if not met:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
