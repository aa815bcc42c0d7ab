"""How much of a machine's memory may lie elsewhere: the largest share that the simulator still finds tolerable."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log2
from typing import Any

from leadline.core.contracts.planner import Bend, Figure, PlanContext, Snippet
from leadline.core.model.picture import Curve, Picture
from leadline.planners._memory.inputs import Memory

SYSTEM = "simulated: far-memory"
TIERING = "VMware, NVMe memory tiering: design and sizing (2025)"
CGROUP = "/sys/fs/cgroup/machine.slice/<VM>"
PAGES = 16_384  # each stands for that part of the memory: the share counts, not the size
PAGE_KIB = 4
VISITS = 20  # Judgement: the first touch, which reads nothing, is then a twentieth of all
TOUCHES = {"growing": VISITS, "quicksort": int(log2(PAGES)) + 3}  # of a page; in other patterns one to fill, and VISITS
REMOTE_MAX_PCT = 99  # the simulator needs more local pages than one fault brings
GRID_PCT = range(0, 100, 10)


@dataclass(frozen=True, slots=True)
class Tolerable:
    """The largest tolerable share in whole percent, and the slowdown of every share simulated on the way."""

    share_pct: int
    slowdowns: dict[int, float]

    @property
    def beyond(self) -> float | None:
        """The slowdown one percent further; None where there is no further."""
        return self.slowdowns.get(self.share_pct + 1)


def tolerable(inputs: Memory, context: PlanContext) -> Tolerable:
    """Return the largest tolerable share, by bisection: less local memory never makes a run shorter."""
    known: dict[int, float] = {}

    def slowdown(share_pct: int) -> float:
        if share_pct not in known:
            known[share_pct] = context.simulated(scenario(inputs, share_pct)).measure("program", "slowdown").value
        return known[share_pct]

    low, high = 0, REMOTE_MAX_PCT + 1
    while high - low > 1:
        middle = (low + high) // 2
        if slowdown(middle) <= inputs.tolerable_slowdown:
            low = middle
        else:
            high = middle
    for share_pct in (low, *GRID_PCT):
        slowdown(share_pct)
    return Tolerable(low, dict(sorted(known.items())))


def scenario(inputs: Memory, share_pct: int) -> dict[str, Any]:
    """Return a scenario of a program that uses memory as the database does, with ``share_pct`` of it remote."""
    run_s = PAGES * TOUCHES.get(inputs.pattern, 1 + VISITS) * inputs.touch_us / 1e6
    return {
        "name": "memory-plan",
        "system": "far-memory",
        "timing": {"measure_s": run_s, "window_s": run_s},
        "program": {
            "memory_mb": PAGES * PAGE_KIB / 1024,
            "run": run_s,
            "pattern": inputs.pattern,
            "visits": VISITS,
            "passes": VISITS,
            "page_kb": PAGE_KIB,
        },
        "local_pct": 100 - share_pct,
        "backing": inputs.far,
        **({} if inputs.far_us is None else {inputs.far: {"read": inputs.far_us / 1e6}}),
    }


def figures(inputs: Memory, tolerance: Tolerable, total: int) -> list[Figure]:
    """Return the tolerable share, its size in GiB, and the slowdown at it and one percent beyond."""
    share, limit = tolerance.share_pct, f"{inputs.tolerable_slowdown:g} times"
    if share:
        why = f"{tolerance.slowdowns[share]:.5f} times as long, tolerable are {limit}"
    else:
        why = f"1 % takes {tolerance.slowdowns[1]:.5f} times as long already, tolerable are {limit}"
    local = ceil(total * (100 - share) / 100)
    figures = [
        Figure("remote share", share, "pct", why, SYSTEM),
        Figure("remote memory", total - local, "GiB", f"{share} % of {total} GiB, rounded down"),
        Figure("local memory", local, "GiB", f"{total} GiB less what is remote"),
        Figure(
            "slowdown at that share",
            round(tolerance.slowdowns[share], 4),
            "ratio",
            _slowdown_arithmetic(inputs),
            SYSTEM,
        ),
    ]
    if tolerance.beyond is not None:
        arithmetic = f"{tolerance.beyond:.5f} with {share + 1} % remote: not tolerable"
        figures.append(Figure("slowdown one step further", round(tolerance.beyond, 4), "ratio", arithmetic, SYSTEM))
    return figures


def _slowdown_arithmetic(inputs: Memory) -> str:
    read = "the simulator's time" if inputs.far_us is None else f"{inputs.far_us:g} us"
    return f"{inputs.pattern}, {inputs.touch_us:g} us of work for each touch, {read} for a page over {inputs.far}"


def picture(inputs: Memory, tolerance: Tolerable) -> Picture:
    """Slowdown over the share that is remote."""
    shares = tuple(float(share) for share in tolerance.slowdowns)
    limit = (inputs.tolerable_slowdown,) * 2
    return Picture(
        "% of memory remote",
        "times as long as with all memory local",
        (
            Curve(f"{inputs.pattern}, {inputs.far}", shares, tuple(tolerance.slowdowns.values())),
            Curve("tolerable", (shares[0], shares[-1]), limit),
        ),
    )


def bends(inputs: Memory, tolerance: Tolerable, total: int) -> list[Bend]:
    """Return the rules that remote memory breaks, with their cost."""
    if not tolerance.share_pct:
        return []
    local = ceil(total * (100 - tolerance.share_pct) / 100)
    cost = f"{total - local} of {total} GiB are no memory of the host and cannot be reserved"
    bends = [Bend("a database's memory is reserved whole", cost)]
    if inputs.working_set_gib > local:
        cost = f"{inputs.working_set_gib:g} GiB are used again and again, {local} GiB are local"
        bends.append(Bend("what is active fits in local memory", cost, TIERING))
    return bends


def snippets(inputs: Memory, tolerance: Tolerable, total: int) -> list[Snippet]:
    """The share as settings; none when nothing is tolerable."""
    if not tolerance.share_pct:
        return []
    local = ceil(total * (100 - tolerance.share_pct) / 100)
    text = f"echo {local}G > /sys/fs/cgroup/machine.slice/<VM>/memory.high  # the rest goes to swap on the far device"
    snippets = [Snippet("The local part under KVM", "cgroup", text)]
    ratio = floor(100 * tolerance.share_pct / (100 - tolerance.share_pct))
    if inputs.far == "ssd" and 1 <= ratio <= 400:
        setting = 'Get-AdvancedSetting -Entity (Get-VMHost "HOST") -Name Mem.TierNVMePct'
        text = f"{setting} | Set-AdvancedSetting -Value {ratio}"
        snippets.append(Snippet("NVMe tier by DRAM of a host whose machines are all such, percent", "powercli", text))
    return snippets
