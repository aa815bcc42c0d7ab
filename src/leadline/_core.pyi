"""The native part of Leadline."""

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "READ_CACHE_POLICIES",
    "SIMULATION_CPU_SCHEDULERS",
    "SIMULATION_GPU_POLICIES",
    "SIMULATION_SCHEDULERS",
    "WRITE_CACHES",
    "CoreError",
    "IostatRecording",
    "LinearRegex",
    "NmonRecording",
    "PdhFile",
    "PdhTable",
    "PgbenchLog",
    "PostgresqlLog",
    "SimulationDecisions",
    "Trace",
    "TraceProfile",
    "TraceRequests",
    "TraceUses",
    "VspherePerfAnswer",
    "__version__",
    "episode_is_critical",
    "episodes",
    "episodes_beyond",
    "fluid_allocation",
    "pdh_write_header",
    "pdh_write_rows",
    "protection_facts",
    "protection_scheme",
    "rows_extents",
    "rows_folded",
    "rows_means",
    "rows_quantiles",
    "rows_span_means",
    "rows_window_means",
    "simulate",
    "simulation_hold",
    "simulation_host",
    "simulation_mm1",
    "trace_characterise",
    "trace_format",
    "trace_requests",
    "trace_synthesise",
    "trace_uses",
    "trace_write_lanes",
]

__version__: str

class CoreError(ValueError):
    """Input that cannot be read, a scenario that makes no run, or a run that broke a law, told in four parts."""

    where: str
    found: str
    expected: str
    advice: str

SIMULATION_CPU_SCHEDULERS: list[str]
READ_CACHE_POLICIES: list[str]
SIMULATION_GPU_POLICIES: list[str]
SIMULATION_SCHEDULERS: list[str]
WRITE_CACHES: list[str]

@final
class IostatRecording:
    """A recording of iostat, read whole."""

    @staticmethod
    def open(path: str | os.PathLike[str], name: str, wanted: Sequence[str] | None = None) -> IostatRecording: ...
    @staticmethod
    def from_bytes(data: bytes, name: str, wanted: Sequence[str] | None = None) -> IostatRecording: ...
    @property
    def report_count(self) -> int: ...
    @property
    def stamps(self) -> list[str]: ...
    @property
    def runs(self) -> list[tuple[int, str, bool]]: ...
    @property
    def cpu(self) -> list[tuple[str, NDArray[np.floating[Any]]]]: ...
    @property
    def devices(self) -> list[str]: ...
    @property
    def disks(self) -> list[tuple[str, NDArray[np.floating[Any]]]]: ...
    @property
    def notes(self) -> list[tuple[str, str, int]]: ...

@final
class NmonRecording:
    """A recording of nmon, read whole; its numbers are packed until they are taken."""

    @staticmethod
    def open(path: str | os.PathLike[str], name: str) -> NmonRecording: ...
    @staticmethod
    def from_bytes(data: bytes, name: str) -> NmonRecording: ...
    @property
    def is_cut(self) -> bool: ...
    @property
    def damages(self) -> list[tuple[int, int, str, str]]: ...
    @property
    def further_damage_count(self) -> int: ...
    @property
    def facts(self) -> list[tuple[str, str]]: ...
    @property
    def has_row(self) -> NDArray[np.bool_]: ...
    @property
    def stamp_snapshots(self) -> NDArray[np.uint64]: ...
    @property
    def clocks(self) -> list[str]: ...
    @property
    def days(self) -> list[str]: ...
    @property
    def stamp_days(self) -> NDArray[np.uint64]: ...
    @property
    def sections(self) -> list[tuple[str, list[str]]]: ...
    def take_values(self, section_index: int, places: NDArray[np.int64], length: int) -> NDArray[np.float64]: ...

@final
class VspherePerfAnswer:
    """vCenter's answer to QueryPerf in the format csv, as columns."""

    @staticmethod
    def from_bytes(data: bytes, name: str) -> VspherePerfAnswer: ...
    @property
    def entities(self) -> list[tuple[str, str]]: ...
    @property
    def entity_moments(self) -> NDArray[np.uint32]: ...
    @property
    def moments(self) -> list[tuple[NDArray[np.int64], NDArray[np.int32]]]: ...
    @property
    def series_entities(self) -> NDArray[np.uint32]: ...
    @property
    def series_counters(self) -> NDArray[np.int32]: ...
    @property
    def series_instances(self) -> NDArray[np.uint32]: ...
    @property
    def instances(self) -> list[str]: ...
    @property
    def values(self) -> NDArray[np.float32]: ...

@final
class PdhTable:
    """Columns of a PDH capture that were read, packed without loss."""

    @property
    def times_ns(self) -> NDArray[np.int64]: ...
    @property
    def size_bytes(self) -> int: ...
    def rows(self, series: NDArray[np.uint32], dtype: Literal["f64", "f32"]) -> NDArray[np.floating[Any]]: ...

@final
class LinearRegex:
    """A regular expression that no text can make slow."""

    def __new__(cls, pattern: str) -> LinearRegex: ...
    @property
    def groups(self) -> list[str]:
        """Names of the groups, in order."""

    def full_match(self, text: str) -> dict[str, str | None] | None:
        """What the named groups hold where all of a text matches; None elsewhere."""

@final
class PdhFile:
    """A PDH capture (esxtop batch mode, Windows perfmon), opened."""

    @staticmethod
    def open(path: str | os.PathLike[str], encoding: str | None = None) -> PdhFile: ...
    @staticmethod
    def from_bytes(name: str, data: bytes, modified_ns: int | None = None, encoding: str | None = None) -> PdhFile: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def hosts(self) -> list[str]: ...
    @property
    def zone_name(self) -> str | None: ...
    @property
    def utc_offset_min(self) -> int | None: ...
    @property
    def dialect(self) -> str: ...
    @property
    def column_counter(self) -> NDArray[np.uint32]: ...
    @property
    def column_host(self) -> NDArray[np.uint32]: ...
    def counters(self) -> list[tuple[str, str]]: ...
    def instances(self, columns: NDArray[np.uint32]) -> list[str | None]: ...
    def times_ns(self, progress: Callable[[int, int], object] | None = None) -> NDArray[np.int64]: ...
    def warnings(self) -> list[tuple[str, str, int]]: ...
    def read(
        self,
        columns: NDArray[np.uint32],
        *,
        start_ns: int | None = None,
        end_ns: int | None = None,
        sentinels: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> PdhTable: ...

_Statistics: TypeAlias = tuple[int, float, float, float, float, NDArray[np.uint64], NDArray[np.uint64]]

@final
class PgbenchLog:
    """The sums of pgbench's log of transactions, microseconds."""

    @staticmethod
    def open(
        path: str | os.PathLike[str], name: str, width: int, bounds: tuple[float, float, float, int]
    ) -> PgbenchLog: ...
    @property
    def line_count(self) -> int: ...
    @property
    def is_cut(self) -> bool: ...
    @property
    def damaged_line(self) -> int | None: ...
    @property
    def wrong_time(self) -> tuple[int, int] | None: ...
    @property
    def seconds(self) -> NDArray[np.int64]: ...
    @property
    def by_second(self) -> list[tuple[str, NDArray[np.float64]]]: ...
    @property
    def seventh_max(self) -> int: ...
    @property
    def client_count(self) -> int: ...
    @property
    def last_number_sum(self) -> float: ...
    @property
    def begin_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...
    @property
    def whole(self) -> _Statistics: ...
    @property
    def scripts(self) -> list[tuple[int, _Statistics]]: ...

@final
class PostgresqlLog:
    """The events of a PostgreSQL server's log."""

    @staticmethod
    def open(
        path: str | os.PathLike[str], name: str, years: tuple[int, int], last_day: tuple[int, int, int]
    ) -> PostgresqlLog: ...
    @staticmethod
    def from_bytes(data: bytes, name: str, years: tuple[int, int], last_day: tuple[int, int, int]) -> PostgresqlLog: ...
    @property
    def zones(self) -> list[tuple[str, int, int]]: ...
    @property
    def events(
        self,
    ) -> list[tuple[str, NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64], NDArray[np.float64]]]: ...
    @property
    def works(
        self,
    ) -> list[tuple[str, bool, int, float, int, NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]]: ...
    @property
    def lock_waits(self) -> list[tuple[int, float, int, float, str, int, float, int]]: ...
    @property
    def settings(self) -> list[tuple[int, float, str, str | None, bool]]: ...
    @property
    def entry_count(self) -> int: ...
    @property
    def sure_count(self) -> int: ...
    @property
    def timeless_count(self) -> int: ...
    @property
    def other_count(self) -> int: ...
    @property
    def damaged_count(self) -> int: ...
    @property
    def is_yearless(self) -> bool: ...

def pdh_write_header(path: str | os.PathLike[str], zone: str, cells: list[str]) -> None: ...
def pdh_write_rows(
    path: str | os.PathLike[str], times_ns: NDArray[np.int64], values: NDArray[np.float64], decimals: int
) -> None: ...

_Files: TypeAlias = Sequence[tuple[str | os.PathLike[str], str]]
_Stream: TypeAlias = tuple[Sequence[tuple[int, float]], float, float, int, int, float, tuple[float, float] | None, int]

class _TraceFacts(TypedDict):
    """Counts, bytes, ns, and shares from 0 to 1; None is not known."""

    read_count: int
    write_count: int
    read_bytes: int
    write_bytes: int
    duration_ns: int
    end_bytes: int
    read_share: float | None
    sequential_share: float | None
    sequential_read_count: int
    read_stream_count: int
    read_stream_bytes_p50: float | None
    sequential_write_count: int
    write_stream_count: int
    write_stream_bytes_p50: float | None
    pause_count: int
    pause_ns: int
    working_set_bytes: int
    page_sampling_rate: float
    page_use_count: int

@final
class TraceProfile:
    """What one disk's requests are like."""

    @property
    def name(self) -> str: ...
    def tables(self) -> list[tuple[str, str, list[int], list[int], tuple[int, int, float] | None]]: ...
    def buckets(
        self, kind: str, way: str
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]] | None: ...
    def quantile(self, kind: str, way: str, share: float) -> float | None: ...
    def facts(self) -> _TraceFacts: ...
    def dispersion(self) -> list[tuple[int, float | None, float | None, float | None]]: ...
    def curve(self) -> list[tuple[int, float]]: ...
    def distances(self, other: TraceProfile) -> list[tuple[str, float | None]]: ...

@final
class Trace:
    """What a trace holds."""

    @property
    def format(self) -> str: ...
    @property
    def profiles(self) -> list[TraceProfile]: ...
    @property
    def notes(self) -> list[tuple[str, str, int]]: ...

@final
class TraceRequests:
    """Every request of one disk, in the order of time."""

    def columns(
        self,
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]]: ...
    @property
    def notes(self) -> list[tuple[str, str, int]]: ...

@final
class TraceUses:
    """Uses of the lines of one disk, in the order of time."""

    @property
    def notes(self) -> list[tuple[str, str, int]]: ...

def trace_uses(
    files: _Files, disk: str | None, reads_only: bool, line_bytes: int, progress: Callable[[int], object] | None = None
) -> TraceUses: ...
def trace_format(path: str | os.PathLike[str], name: str) -> str: ...
def trace_characterise(
    files: _Files,
    sample_keys: int,
    classes_of: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Trace: ...
def trace_write_lanes(
    files: _Files,
    paths: Sequence[str | os.PathLike[str]],
    disk: int,
    target: str,
    target_bytes: int,
    scaled_from: int | None,
    unit_bytes: int,
    speed_pct: int,
    duration_ns: int | None,
    sample_keys: int,
    progress: Callable[[int], object] | None = None,
) -> tuple[TraceProfile, int, int, int, list[tuple[str, str, int]]]: ...
def trace_requests(
    files: _Files, disk: str | None, requests_max: int, progress: Callable[[int], object] | None = None
) -> TraceRequests: ...
def trace_synthesise(
    streams: Sequence[_Stream], duration_s: float, requests_max: int, seed: int, like: TraceProfile, sample_keys: int
) -> TraceProfile: ...
def simulate(
    system: str,
    document: str,
    recorded: Sequence[TraceRequests | TraceUses] = ...,
    progress: Callable[[float], object] | None = None,
) -> str: ...

_Moments: TypeAlias = NDArray[np.int64]
_Values: TypeAlias = NDArray[np.floating[Any]]
_Limits: TypeAlias = tuple[float, float | None, bool, bool, int]
_Episodes: TypeAlias = tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
]

def episodes(met: NDArray[np.bool_], values: _Values, starts: _Moments, ends: _Moments, duration_s: float) -> _Episodes:
    """Episodes of a condition [k, n]: row, first and last sample, ns it held, median, lowest and highest, [m] each.

    ``values`` [k, n] are of single or double precision; the samples of a row lie side by side, as those of ``met``.
    """

def episodes_beyond(
    values: _Values,
    limits: _Limits,
    times: tuple[_Moments, _Moments, float],
    load: tuple[Sequence[_Values], float] | None,
) -> tuple[_Episodes, NDArray[np.bool_]]:
    """Episodes of values [k, n] beyond a limit as ``episodes`` has them, and whether each is beyond the second, too.

    ``limits``: the limit, the second one, whether bad is below them, whether a value at them is beyond them, and how
    many neighbours on each side a majority is asked of. ``times``: start and end of each sample's interval, and the
    duration in seconds. ``load``: values of the same shape whose sum must reach the least load.
    """

def episode_is_critical(
    met: NDArray[np.bool_],
    values: _Values,
    span: tuple[int, int],
    limits: _Limits,
    times: tuple[_Moments, _Moments, float],
) -> bool:
    """Whether the samples [n] that met a condition from one sample to another are beyond the second limit, too."""

def rows_quantiles(values: _Values, shares: list[float]) -> _Values: ...
def rows_means(values: _Values, flags: NDArray[np.bool_] | None) -> NDArray[np.float64]: ...
def rows_span_means(values: _Values, spans: list[tuple[int, int]]) -> NDArray[np.float64]: ...
def rows_window_means(
    values: _Values, bounds: tuple[_Moments, _Moments], windows: tuple[_Moments, _Moments]
) -> NDArray[np.float64]: ...
def rows_extents(values: _Values) -> tuple[_Values, _Values]: ...
def rows_folded(
    values: _Values, owners: NDArray[np.int64], owner_count: int, fold: Literal["sum", "mean", "lowest", "highest"]
) -> NDArray[np.float64]: ...
def fluid_allocation(policies: Sequence[tuple[float, float, float]], capacity: float) -> list[float]: ...
def protection_facts(name: str) -> tuple[int, int, float]: ...

@final
class SimulationDecisions:
    """mClock with so many clients that always have requests waiting."""

    def __new__(cls, clients: int, seed: int) -> SimulationDecisions: ...
    def decide(self, count: int) -> int: ...

def protection_scheme(data: int, other: int) -> tuple[float, int, int]: ...
def simulation_mm1(events: int, seed: int) -> tuple[int, int, float]: ...
def simulation_hold(pending: int, events: int, seed: int) -> tuple[int, int, float]: ...
def simulation_host(machines: int, length: int, seed: int) -> tuple[int, int, float]: ...
