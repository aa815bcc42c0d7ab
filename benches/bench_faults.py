"""Precision and recall of the diagnosis over injected faults: ``make bench-faults``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benches.configuration_trials import FAULTS, run_configuration_trial
from benches.fault_trials import SIZES, Trial, fault_names, run_trial


def main() -> int:
    """Run every fault and healthy captures over the sizes and seeds; exit 1 when anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="captures per fault and size")
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--faults", nargs="+", default=fault_names(), choices=fault_names())
    options = parser.parse_args()
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory() as name:
        for size in options.sizes:
            for fault in [*options.faults, None]:
                for guest in (False, True):
                    seeds = range(1, options.seeds + 1)
                    found = [run_trial(size, seed, fault, Path(name), guest=guest) for seed in seeds]
                    trials.extend(found)
                    print_row(size, fault, found)
    return max(report(trials), report_configuration())


def report_configuration() -> int:
    """Audit a sound estate and each spoiled one; print what was wrong and the totals."""
    with tempfile.TemporaryDirectory() as name:
        found = [run_configuration_trial(fault, Path(name)) for fault in (None, *FAULTS)]
    right = sum(1 for trial in found if trial.is_right)
    print(f"\nconfiguration: {right} of {len(found)} estates judged right (one of them sound)")
    for trial in found:
        if not trial.is_right:
            print(f"        {trial.fault or 'sound'}: {', '.join(sorted(trial.accused)) or 'nothing found'}")
    return 0 if right == len(found) else 1


def print_row(size: str, fault: str | None, found: list[Trial]) -> None:
    """One line per size and fault, and what was wrong."""
    right = sum(1 for trial in found if not trial.misses)
    recorded = "host and guest" if found[0].guest else "host"
    print(f"{size:<8}{fault or 'healthy':<24}{recorded:<16}{right}/{len(found)}")
    for trial in found:
        for miss in trial.misses:
            print(f"        seed {trial.seed}: {miss}")


def report(trials: list[Trial]) -> int:
    """Print the totals."""
    faulty = [trial for trial in trials if trial.injected is not None]
    healthy = [trial for trial in trials if trial.injected is None]
    hit = sum(1 for trial in faulty if not trial.misses)
    accusations = sum(len(trial.accusations) for trial in trials)
    right = sum(trial.right_accusations for trial in trials)
    quiet = sum(1 for trial in healthy if not trial.misses)
    print(f"\nrecall     {hit / len(faulty):.3f}  top finding right in {hit} of {len(faulty)} captures with a fault")
    print(f"precision  {right / max(accusations, 1):.3f}  {right} of {accusations} accusations name the injected fault")
    print(f"healthy    {quiet} of {len(healthy)} captures without a finding of medium or above")
    told = sum(len(trial.plain) for trial in trials)
    plain_right = sum(trial.plain_right for trial in trials)
    seen = sum(1 for trial in faulty if trial.plain_right)
    false = sum(len(trial.plain) for trial in healthy)
    print("\nfor comparison, a plain list of the same limits, every sample counted:")
    print(
        f"recall     {seen / len(faulty):.3f}  the fault is among the accusations in {seen} of {len(faulty)} captures"
    )
    print(f"precision  {plain_right / max(told, 1):.3f}  {plain_right} of {told} accusations are of the injected fault")
    print(f"healthy    {false} accusations in {len(healthy)} captures without a fault")
    return 0 if hit == len(faulty) and quiet == len(healthy) else 1


if __name__ == "__main__":
    sys.exit(main())
