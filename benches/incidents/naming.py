"""Which cause the diagnosis names of incidents that others labelled: told when it was, and finding the time itself.

A compound counts when each of its parts is among the first three causes. Nothing is learned from the labels: rules name
kinds of cause, and the list here only says which kind each label means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benches.incidents.judging import causes_of
from leadline.app.diagnose.diagnosing import diagnose
from leadline.core.model.finding import Window
from leadline.core.model.vocabulary import Severity

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture
    from leadline.core.model.finding import Diagnosis

FIRST_COUNT = 3  # causes among which both of a compound must be
OVERLAP_MIN = 0.8  # of the incident and the marked rows, by union
# Part of a label -> kinds of cause that are right. The order matters: the first part that a label holds is taken away.
LABELS = {
    "Workload Spike": {"more-work"},
    "Poorly Written Query": {"statement"},
    "Poor Physical Design": {"write-amplification"},
    "DB Backup": {"export"},
    "Table Restore": {"bulk-load"},
    "Flush Log/Table": {"flush"},
    "Lock Contention": {"lock-waits"},
    "Network": {"network-latency", "network-loss", "network-narrow"},
    "CPU": {"cpu-taken"},
    "I/O": {"disk-busy-with-others"},
    "IO": {"disk-busy-with-others"},
}


@dataclass(frozen=True, slots=True)
class Naming:
    """What was named of one incident.

    Attributes:
        told: the place of each of its causes among those named when the time was told, from 0; None where it was not.
        found: the same when the time was searched.
        overlap: of the incident that was found and the marked rows.
    """

    cause: str
    told: tuple[int | None, ...]
    found: tuple[int | None, ...]
    overlap: float

    @property
    def is_compound(self) -> bool:
        """Whether it has more than one cause."""
        return len(self.told) > 1

    def is_right(self, places: tuple[int | None, ...], count: int) -> bool:
        """Whether every cause is among the first so many; of a compound, among the first three."""
        least = max(count, FIRST_COUNT) if self.is_compound else count
        return all(place is not None and place < least for place in places)


def named(cause: str, capture: Capture, rows: tuple[int, int]) -> Naming:
    """Diagnose a table twice; ``rows`` are the first and the last marked one, from 1."""
    times_ns = max((group.times_ns for group in capture.groups), key=len)
    step_ns = int(times_ns[1] - times_ns[0])
    marked = Window(int(times_ns[rows[0] - 1]) - step_ns, int(times_ns[rows[1] - 1]))
    kinds, searched = kinds_of(cause), diagnose(capture)
    overlap = max((_overlap(incident.window, marked) for incident in searched.incidents), default=0.0)
    return Naming(cause, _places(kinds, diagnose(capture, incident=marked)), _places(kinds, searched), overlap)


def kinds_of(label: str) -> list[set[str]]:
    """The kinds of cause of a label, one set for each part of a compound.

    >>> kinds_of("CPU,IO,Network Saturation")[1]
    {'disk-busy-with-others'}
    """
    parts = label.replace(",", " + ").split(" + ")
    return [next(kinds for name, kinds in LABELS.items() if name in part) for part in parts]


def _places(kinds: list[set[str]], diagnosis: Diagnosis) -> tuple[int | None, ...]:
    causes = [f for f in diagnosis.findings if f.severity >= Severity.MEDIUM and not f.is_symptom]
    said = [causes_of(finding) for finding in causes]
    return tuple(next((place for place, one in enumerate(said) if not right.isdisjoint(one)), None) for right in kinds)


def _overlap(one: Window, other: Window) -> float:
    common = max(min(one.end_ns, other.end_ns) - max(one.start_ns, other.start_ns), 0)
    return common / (max(one.end_ns, other.end_ns) - min(one.start_ns, other.start_ns))


def naming_table(namings: list[Naming]) -> Iterator[str]:
    """The table by cause."""
    yield f"{'':<36}{'':>3}{'told when it was':>24}{'finding it itself':>36}"
    heads = f"{'first':>12}{'first two':>12}{'first':>12}{'first two':>12}{'overlap 0.8':>12}"
    yield f"{'cause named (compounds: in the first 3)':<39}{heads}"
    for cause in sorted({one.cause for one in namings}):
        yield _line(cause, (one for one in namings if one.cause == cause))
    yield _line("all single", (one for one in namings if not one.is_compound))
    yield _line("all compound", (one for one in namings if one.is_compound))


def _line(cause: str, namings: Iterable[Naming]) -> str:
    some = list(namings)
    counts = [
        sum(one.is_right(places, count) for one, places in ((one, getattr(one, which)) for one in some))
        for which in ("told", "found")
        for count in (1, 2)
    ]
    counts.append(sum(one.overlap >= OVERLAP_MIN for one in some))
    return f"{cause:<36}{len(some):>3}" + "".join(f"{count:>12}" for count in counts)
