"""What to record to have a layer examined: said for every layer the verdict calls "not examined"."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.core.model.metrics import RAW_PREFIX
from leadline.core.model.vocabulary import Layer

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture


@dataclass(frozen=True, slots=True)
class Advised:
    """A recording that would examine a layer: the command, and the importers whose files are such a recording.

    ``where`` it runs is empty where that goes without saying.
    """

    command: str
    importers: frozenset[str]
    where: str = ""
    metrics: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """Where, and the command."""
        return f"{self.where}: {self.command}" if self.where else self.command


_REQUEST_TIMES = frozenset(f"guest_disk_await_ms{way}" for way in ("", "_read", "_write"))
_ESXTOP = Advised("esxtop -b -a -d 5 -n 120 > esxtop.csv", frozenset({"esxtop"}), "on the ESXi host")
EXAMINE: dict[Layer, tuple[Advised, ...]] = {
    Layer.DATABASE: (
        Advised(
            "pgbench -P 1 ... 2>&1 | tee pgbench.txt   (or the database's own latency statistics)",
            frozenset({"pgbench", "pgbench-log", "sysbench", "hammerdb"}),
        ),
    ),
    Layer.GUEST: (
        Advised("S_TIME_FORMAT=ISO iostat -x -t 1 300 > iostat.txt", frozenset({"iostat"}), metrics=_REQUEST_TIMES),
        Advised("vmstat -w -t 1 300 > vmstat.txt", frozenset({"vmstat"})),
    ),
    Layer.VM: (
        Advised(
            "copy the VM's .vmx file, or write an inventory file: controllers, NICs, snapshots",
            frozenset({"vmx", "vm-config", "ovf"}),
        ),
    ),
    Layer.HYPERVISOR_CPU: (_ESXTOP,),
    Layer.HYPERVISOR_MEMORY: (_ESXTOP,),
    Layer.STORAGE_PATH: (_ESXTOP,),
    Layer.DATASTORE: (
        Advised("vSAN performance service or array statistics for the same minutes", frozenset({"vsan-performance"})),
    ),
    Layer.NETWORK: (_ESXTOP,),
    Layer.HOST: (_ESXTOP,),
}


def advised(layer: Layer, given: Collection[str], metrics: Collection[str]) -> tuple[str, ...]:
    """Commands that record what shows a layer, without those whose recordings are there already.

    Args:
        layer: the layer.
        given: importers of the recordings.
        metrics: what was recorded; a recording with other options lacks some (iostat without -x).
    """

    def is_given(one: Advised) -> bool:
        return not one.importers.isdisjoint(given) and not (one.metrics and one.metrics.isdisjoint(metrics))

    return tuple(one.text for one in EXAMINE[layer] if not is_given(one))


def parted(text: str) -> tuple[str, str]:
    """Where an advised command runs, empty where that goes without saying, and the command."""
    every = (one for some in EXAMINE.values() for one in some)
    return next(((one.where, one.command) for one in every if one.text == text), ("", text))


def unused_counters(capture: Capture, used: Collection[str]) -> tuple[str, ...]:
    """The counters of a recording where nothing ``used`` is among them, nor a load tool's result; else none."""
    counters = tuple(dict.fromkeys(group.metric for group in capture.groups if len(group.times_ns)))
    if not counters or capture.results or not set(counters).isdisjoint(used):
        return ()
    return tuple(counter.removeprefix(RAW_PREFIX) for counter in counters)
