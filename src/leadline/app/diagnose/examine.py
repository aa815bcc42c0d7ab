"""What to record to have a layer examined: said for every layer the verdict calls "not examined"."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.core.model.metrics import RAW_PREFIX
from leadline.core.model.vocabulary import Layer

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture

NAMED_MAX = 3


@dataclass(frozen=True, slots=True)
class Advised:
    """A recording that would examine a layer: the command, and the importers whose files are such a recording."""

    command: str
    importers: frozenset[str]


_ESXTOP = Advised("on the ESXi host: esxtop -b -a -d 5 -n 120 > esxtop.csv", frozenset({"esxtop"}))
EXAMINE: dict[Layer, tuple[Advised, ...]] = {
    Layer.DATABASE: (
        Advised(
            "pgbench -P 1 ... 2>&1 | tee pgbench.txt   (or the database's own latency statistics)",
            frozenset({"pgbench", "pgbench-log", "sysbench", "hammerdb"}),
        ),
    ),
    Layer.GUEST: (
        Advised("S_TIME_FORMAT=ISO iostat -x -t 1 300 > iostat.txt", frozenset({"iostat"})),
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


def advised(layer: Layer, given: Collection[str]) -> tuple[str, ...]:
    """Commands that record what shows a layer, without recordings of importers that are ``given`` already."""
    return tuple(one.command for one in EXAMINE[layer] if one.importers.isdisjoint(given))


def unused_sentence(capture: Capture, used: Collection[str]) -> str:
    """What was recorded where nothing ``used`` of it is there, nor a load tool's result; empty where something is."""
    counters = list(dict.fromkeys(group.metric for group in capture.groups if len(group.times_ns)))
    if not counters or capture.results or not set(counters).isdisjoint(used):
        return ""
    named = ", ".join(counter.removeprefix(RAW_PREFIX) for counter in counters[:NAMED_MAX])
    more = len(counters) - NAMED_MAX
    return f"Read, but no rule uses these counters: {named}{f' and {more:,} more' if more > 0 else ''}."
