"""Output of ``mpstat``: how each CPU of a guest spends its time, and its interrupts.

Reads:
    Text of sysstat 8 to 12 in any locale (``-P ALL``, ``-A``, ``-I``, ``-N``), and ``-o JSON``. "Average:" lines are no
    samples and are passed over.

Sample:
    .. code-block:: text

        10:57:52 PM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle
        10:57:53 PM  all    0.00    0.00    0.00    1.03    0.00    0.51    0.00    0.00    0.00   98.46

Lost:
    Counters per NUMA node and per interrupt source have no canonical metric and are kept as raw ones, in JSON the
    latter not at all.

Units:
    Percent of one CPU, or of all for ``all``, which becomes the guest itself. ``%usr`` leaves nested guests out,
    ``%sys`` leaves interrupts out. A report without an interval, which shows its own time in the heading, is since
    boot; in JSON a single report may be either and is taken as since boot.

Sources:
    mpstat(1) of sysstat.
"""

from __future__ import annotations

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.sysstat.export import read_json
from leadline.formats.sysstat.text import (
    TableLayout,
    add_cpu_busy,
    clock_known,
    clock_of,
    column_layout,
    lone_report,
    parse_banner,
    read_text,
    record_guest,
    times_of,
)
from leadline.formats.tables import TableScheme, emit

_SHARES = {
    "guest_cpu_user_pct": ("%usr", "%user", "usr"),
    "guest_cpu_nice_pct": ("%nice", "nice"),
    "guest_cpu_system_pct": ("%sys", "%system", "sys"),
    "guest_cpu_iowait_pct": ("%iowait", "iowait"),
    "guest_cpu_irq_pct": ("%irq", "irq"),
    "guest_cpu_softirq_pct": ("%soft", "soft"),
    "guest_cpu_steal_pct": ("%steal", "steal"),
    "guest_cpu_guest_pct": ("%guest", "guest"),
    "guest_cpu_idle_pct": ("%idle", "idle"),
}

META = ImporterMeta(
    tool="mpstat",
    marks=('"cpu-load"', "%irq", "intr/s", "timer/s"),
    layers=(Layer.GUEST,),
    fields={
        **{f"CPU:{name}": Field(metric, "pct") for metric, names in _SHARES.items() for name in names if "%" in name},
        **{f"cpu-load.{names[-1]}": Field(metric, "pct") for metric, names in _SHARES.items()},
        "CPU:intr/s": Field("guest_interrupts_per_s", "per_s"),
        "sum-interrupts.intr": Field("guest_interrupts_per_s", "per_s"),
    },
    record="mpstat -P ALL 1 > mpstat.txt",
)

_GROUPS = frozenset({"CPU", "NODE"})
_CPU_GROUPS = frozenset({"CPU", "cpu-load", "sum-interrupts", "soft-interrupts", "individual-interrupts"})
# sar prints steal before irq and calls its columns otherwise; softirq names are the kernel's own.
_HEADINGS = ("%iowait %irq", "CPU intr/s", " HI/s TIMER/s")


def sniff(source: Source) -> int:
    """Sure by a heading only mpstat prints with its clock, or by its keys in JSON."""
    text = source.head_text
    if text.lstrip()[:12].startswith('{"sysstat"'):
        return 95 if '"cpu-load"' in text and '"file-date"' not in text and '"avg-cpu"' not in text else 0
    lines = text.splitlines()[:40]
    if not any(clock_of(line) and _heading(line) for line in lines):
        return 0
    return 95 if any(parse_banner(line) for line in lines) else 90


def _heading(line: str) -> bool:
    words = " ".join(line.split())
    return ("CPU" in words or "NODE" in words) and any(mark in words for mark in _HEADINGS)


def read(source: Source, request: Request) -> Capture:
    """The time shares of the guest and its CPUs.

    Raises:
        InputError: no report, or damage before the last line.
    """
    builder = CaptureBuilder(source.name, "mpstat", META.tool)
    if source.head_text.lstrip().startswith("{"):
        recording = read_json(source, request, builder)
        boot = lone_report(recording, builder)
    else:
        recording = read_text(source, _layout, builder)
        boot = False
    guest = record_guest(recording, builder)

    def entity(group: str, item: str) -> Entity | None:
        if group not in _CPU_GROUPS:
            return None
        return guest if item == "all" else Entity(EntityKind.CPU, item, guest)

    scheme = TableScheme("mpstat", META.fields, entity, derive=add_cpu_busy, guest=guest)
    for table in recording.tables.values():
        times = times_of(recording, table, request, builder)
        emit(table, times, scheme, builder, request, since_boot=boot or table.starts_at_boot)
    host = recording.banners[0].host if recording.banners else None
    return builder.build(host=host, clock_known=clock_known(recording, request, builder))


def _layout(words: list[str]) -> TableLayout | None:
    return column_layout(words, _GROUPS, META.fields)
