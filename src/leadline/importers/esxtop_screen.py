r"""esxtop's or resxtop's screen, as people copy it from a terminal into a ticket.

Reads:
    The views CPU, memory, disk adapter, disk device and disk VM of ESXi 5 to 8, with any choice of columns, one screen
    or several one after the other; also a table alone, without the lines above it.

Sample:
    .. code-block:: text

         9:42:43am up 13 days, 551 worlds, 2 VMs, 6 vCPUs; CPU load average: 0.46, 0.49, 0.40

         DEVICE    PATH/WORLD/PARTITION DQLEN WQLEN ACTV QUED %USD  LOAD   CMDS/s DAVG/cmd KAVG/cmd GAVG/cmd QAVG/cmd
         naa.60014           -             32     -   32   48  100  2.50  5194.00     5.60     9.80    15.40     9.70

Lost:
    Worlds that are not vCPUs, groups that are not VMs, rows of a device's paths, worlds and partitions, and the views
    of network, interrupts and power. A column whose name the edge of the terminal cut. VM names are as long as the
    screen shows them.

Units:
    ``MB`` are MiB. A VM's CPU percentages are sums over its worlds (NWLD, which are more than its vCPUs). They are
    divided by its vCPUs where these are known: counted where the VM is expanded, or told by the first line where it
    counts one VM. Elsewhere only the sum of ready time is kept, as ``cpu_ready_pct_sum``. A screen shows the mean since
    the one before; for a single one that is assumed to be 5 s, esxtop's default.

Sources:
    vSphere Resource Management, chapter on performance monitoring utilities: columns of the interactive panels.
    "Interpreting esxtop Statistics", VMware communities.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, time

import numpy as np

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.clock import assumed_date, rolled_over, to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder, usual_interval_s
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import RAW_PREFIX
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.importers._esxtop_screen.columns import CPU, DISK, HOST, MEMORY, VIRTUAL_DISK, fields, host_memory

META = ImporterMeta(
    tool="esxtop screen",
    marks=(" worlds, ", "path/world/partition", "%used", "memsz", "adaptr", "vdevname"),
    layers=(Layer.HYPERVISOR_CPU, Layer.HYPERVISOR_MEMORY, Layer.STORAGE_PATH, Layer.HOST),
    fields=fields(),
    record="esxtop -b -a -d 5 -n 120 > esxtop.csv",
)

# The column of names -> what its rows are, and the metrics of the other columns.
_VIEWS = {
    "NAME": (EntityKind.VM, {**CPU, **MEMORY}),
    "DEVICE": (EntityKind.DEVICE, DISK),
    "ADAPTR": (EntityKind.ADAPTER, DISK),
    "VMNAME": (EntityKind.VIRTUAL_DISK, VIRTUAL_DISK),
}
_DETAILS = ("PATH/WORLD/PARTITION", "PATH", "VDEVNAME")
_LEFT = frozenset({"ID", "GID"})
_FIRST = re.compile(r"\s{0,8}(\d{1,2}):(\d\d):(\d\d) ?(am|pm|AM|PM)? up [^;]{1,80}\bworlds?\b")
_COUNTS = re.compile(r"(\d{1,6}) VMs?, (\d{1,7}) vCPUs?")
_AVERAGES = re.compile(
    r"(CPU load average|MEM overcommit avg): {1,4}"
    r"(\d{1,9}\.\d{1,4}), {1,4}(\d{1,9}\.\d{1,4}), {1,4}(\d{1,9}\.\d{1,4})"
)
_PCPU = re.compile(r"\s{0,4}(PCPU USED|PCPU UTIL)\(%\):")
_NUMBER = re.compile(r"-?\d{1,16}(?:\.\d{1,6})?")
_SYSTEM = re.compile(
    r"(?:idle|system|helper|drivers|ft|vmotion|init|user|host|vmkapimod|iofilters|[\w-]{1,60}\.\d{3,10})"
)
_VCPU = re.compile(r"vmx-vcpu-(\d{1,4}):(.{1,80})")
_KNOWN_MIN = 3  # columns without which a line with a column of names is no heading
_COLUMNS_MAX = 120  # no terminal is as wide
_VCPUS_MAX = 4096
_REFRESH_S = 5.0


def sniff(source: Source) -> int:
    """Sure by the first line of a screen with the heading of a table; less so by a heading alone."""
    lines = source.head_text.splitlines()[:400]
    if not any(_view(line) is not None for line in lines):
        return 0
    return 94 if any(_FIRST.match(line) for line in lines) else 85


def read(source: Source, request: Request) -> Capture:
    """One sample for each screen, of the host, its VMs and disks.

    Raises:
        InputError: no row could be placed.
    """
    builder = CaptureBuilder(source.name, "esxtop-screen", META.tool)
    reader = _Reader(builder)
    for line in source.lines():
        reader.take(line)
    if not reader.row_count:
        raise InputError(
            source.name,
            found="esxtop's screen without a row that can be read",
            expected="the lines of a view with its heading, one row in each line",
            advice=f"Record with `{META.record}` on the host and give that file.",
        )
    times = _times(reader.clocks, source, request, builder)
    step = usual_interval_s(np.unique(times))
    if np.isnan(step):
        builder.warn("one-screen", "one screen, taken as the mean of 5 s (esxtop's default); a recording tells more")
        step = _REFRESH_S
    for (metric, entity), values in reader.normalised().items():
        if not request.wants(metric):
            continue
        by_time = {int(times[screen]): value for screen, value in values.items()}
        moments = np.array(sorted(by_time), dtype=np.int64)
        column = np.array([by_time[moment] for moment in moments.tolist()])
        if np.isfinite(column).any():
            builder.add_series(metric, entity, moments, column, interval_s=step)
    return builder.build(clock_known=False)


def _times(
    clocks: list[time | None], source: Source, request: Request, builder: CaptureBuilder
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """UTC nanoseconds [n] of the screens; one without its first line has the time of the screen before it."""
    known = [clock for clock in clocks if clock is not None]
    if not known:
        builder.warn("no-times", "no screen has its first line: the time of the file was taken")
        return np.full(len(clocks), source.mtime_ns, dtype=np.int64)
    day = assumed_date(source, request)
    builder.warn("no-date", f"times have no date; {day} was assumed; --date sets it")
    if request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    latest = known[0]
    moments = []
    for clock in clocks:
        latest = clock or latest
        moments.append(to_ns(datetime.combine(day, latest), request))
    return rolled_over(moments)


@dataclass(frozen=True, slots=True)
class _View:
    """A table's heading: the column of names, those before and those after it."""

    name: str
    left: tuple[str, ...]
    right: tuple[str, ...]

    @property
    def kind(self) -> EntityKind:
        return _VIEWS[self.name][0]

    @property
    def metrics(self) -> dict[str, str]:
        return _VIEWS[self.name][1]


def _view(line: str) -> _View | None:
    """The heading a line is, or None."""
    words = line[:2000].split()
    place = next((i for i, word in enumerate(words[:3]) if word in _VIEWS), None)
    if place is None or len(words) > _COLUMNS_MAX or not _LEFT.issuperset(words[:place]):
        return None
    view = _View(words[place], tuple(words[:place]), tuple(words[place + 1 :]))
    known = [word for word in view.right if word in view.metrics]
    is_sound = len(known) >= _KNOWN_MIN and len(set(known)) == len(known)
    return view if is_sound else None


def _cell(word: str) -> float:
    """A cell's value; NaN for a dash and for what is below zero; ValueError where it is none."""
    if word == "-":
        return float("nan")
    if word in {"Y", "N"}:
        return float(word == "Y")
    if _NUMBER.fullmatch(word) is None:
        raise ValueError(word)
    return float(word) if word[0] != "-" else float("nan")


@dataclass(slots=True)
class _Reader:
    """The screens read so far, line by line."""

    builder: CaptureBuilder
    clocks: list[time | None] = field(default_factory=list)
    row_count: int = 0
    host: Entity = field(default_factory=lambda: Entity(EntityKind.HOST, "esxi"))
    _heading: _View | None = None
    _values: dict[tuple[str, Entity], dict[int, float]] = field(default_factory=dict)
    _vcpus: dict[Entity, set[str]] = field(default_factory=dict)
    _told_vcpus: int = 0  # of the only VM that the first line counts

    def take(self, line: str) -> None:
        """One line."""
        if (first := _FIRST.match(line)) is not None:
            self._begin(first, line)
        elif (view := _view(line)) is not None:
            if not self.clocks or self._heading == view:
                self.clocks.append(None)  # a table alone
            self._heading = view
        elif (cpus := _PCPU.match(line)) is not None:
            self._pcpus(HOST[cpus[1]], line[cpus.end() :].split())
        elif memory := host_memory(line):
            for metric, value in memory.items():
                self._keep(metric, self.host, value)
        elif line.strip() and self._heading is not None:
            self._row(self._heading, line.split())

    def _begin(self, first: re.Match[str], line: str) -> None:
        hour = int(first[1])
        if first[4]:
            hour = hour % 12 + (12 if first[4].lower() == "pm" else 0)
        try:
            self.clocks.append(time(hour, int(first[2]), int(first[3])))
        except ValueError:
            self.clocks.append(None)
        self._heading = None
        counts = _COUNTS.search(line)
        self._told_vcpus = int(counts[2]) if counts and int(counts[1]) == 1 else 0
        if (averages := _AVERAGES.search(line)) is not None:
            for place in range(1, 4):
                metric = HOST.get(f"{averages[1]}, {place}")
                if metric is not None:
                    self._keep(metric, self.host, float(averages[place + 1]))

    def _keep(self, metric: str, entity: Entity, value: float) -> None:
        if not self.clocks:
            self.clocks.append(None)
        self._values.setdefault((metric, entity), {})[len(self.clocks) - 1] = value

    def _pcpus(self, metric: str, words: list[str]) -> None:
        """Shares of each CPU and their mean; nothing where the edge of the terminal cut the line."""
        ends = [i for i, word in enumerate(words) if word in {"AVG:", "NUMA:"}]
        if not ends or not all(_NUMBER.fullmatch(word) for word in [*words[: ends[0]], *words[ends[0] + 1 :][:1]]):
            return
        for index, word in enumerate(words[: ends[0]]):
            self._keep(metric, Entity(EntityKind.PCPU, str(index), self.host), float(word))
        if words[ends[0]] == "AVG:" and len(words) > ends[0] + 1:
            self._keep(metric, self.host, float(words[ends[0] + 1]))

    def _row(self, view: _View, words: list[str]) -> None:
        left, right = len(view.left), len(view.right)
        cells = dict(zip(view.right, words[len(words) - right :], strict=False))
        try:
            if len(words) < left + right + 1 or not all(word.isdigit() for word in words[:left]):
                raise ValueError(words)  # noqa: TRY301 - as a cell that is none
            values = {metric: _cell(cells[column]) for column, metric in view.metrics.items() if column in cells}
        except ValueError:
            self.builder.warn("lines", "lines that are no whole row of the screen were left out")
            return
        self.row_count += 1
        entity = self._entity(view, " ".join(words[left : len(words) - right]), words[:left], cells)
        if entity is None:
            self.builder.warn("parts", "rows of worlds, paths and groups that are no VMs were left out")
            return
        for metric, value in values.items():
            is_volume = entity.kind is EntityKind.DATASTORE and metric == "disk_guest_latency_ms"
            self._keep("datastore_guest_latency_ms" if is_volume else metric, entity, value)

    def _entity(self, view: _View, name: str, ids: list[str], cells: dict[str, str]) -> Entity | None:
        """What a row is of; None where it is a part of something else."""
        detail = next((cells[column] for column in _DETAILS if column in cells), "-")
        if view.kind is EntityKind.VIRTUAL_DISK:
            vm = Entity(EntityKind.VM, name, self.host)
            return vm if detail == "-" else Entity(EntityKind.VIRTUAL_DISK, detail, vm)
        if view.kind is not EntityKind.VM:
            volume = name.removeprefix("{NFS}")
            kind = view.kind if volume == name else EntityKind.DATASTORE
            return Entity(kind, volume, self.host) if detail == "-" else None
        if (vcpu := _VCPU.fullmatch(name)) is not None:
            vm = Entity(EntityKind.VM, vcpu[2], self.host)
            self._vcpus.setdefault(vm, set()).add(vcpu[1])
            return Entity(EntityKind.VCPU, vcpu[1], vm)
        is_world = len(set(ids)) > 1 or cells.get("NWLD") == "1"
        if is_world or cells.get("%VMWAIT") == "-" or _SYSTEM.fullmatch(name):
            return None
        vm = Entity(EntityKind.VM, name, self.host)
        if 0 < self._told_vcpus <= _VCPUS_MAX:
            self._vcpus.setdefault(vm, {str(index) for index in range(self._told_vcpus)})
        return vm

    def normalised(self) -> dict[tuple[str, Entity], dict[int, float]]:
        """The series, a VM's CPU percentages per vCPU; without its vCPUs ready time as a sum, and the rest raw."""
        of_cpu = set(CPU.values())
        series: dict[tuple[str, Entity], dict[int, float]] = {}
        for (metric, entity), values in self._values.items():
            count = len(self._vcpus.get(entity, ()))
            if entity.kind is not EntityKind.VM or metric not in of_cpu:
                series[metric, entity] = values
            elif count:
                series[metric, entity] = {screen: value / count for screen, value in values.items()}
            elif metric == "cpu_ready_pct":
                self.builder.warn("no-vcpu-count", "VMs whose vCPUs are not shown: ready time is kept as a sum")
                series["cpu_ready_pct_sum", entity] = values
            else:
                series[f"{RAW_PREFIX}esxtop-screen.{metric}_sum", entity] = values
        for vm, vcpus in self._vcpus.items():
            self.builder.inventory.add(vm, self.builder.info.name, vcpu_count=len(vcpus))
        return series
