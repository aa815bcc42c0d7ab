r"""Plans of PostgreSQL's EXPLAIN that were executed: where the time of a statement went.

Reads:
    ``EXPLAIN (ANALYZE, BUFFERS)`` of PostgreSQL 9.0 to 18 as text or JSON, one plan or several, as the server gives
    it or as psql prints it, with the prompt and the statement above.

Sample:
    .. code-block:: text

         Sort  (cost=512151.78..513151.78 rows=400000 width=424) (actual time=5845.447..5916.086 rows=400000 loops=1)
           Sort Method: external merge  Disk: 169928kB
           Buffers: shared hit=1764 read=22483, temp read=129825 written=134319
           I/O Timings: shared read=263.524, temp read=366.405 write=1780.256
           ->  Seq Scan on o a  (cost=0.00..16122.00 rows=400000 width=212) (actual time=0.038..427.068 rows=40 loops=1)
                 Filter: (k = 5)
                 Rows Removed by Filter: 399960
         Execution Time: 6348.654 ms

Lost:
    Conditions, keys and settings, which hold literals. Estimates. When it ran: the time of the file is taken. Times of
    I/O where ``track_io_timing`` is off. Plans that were not executed measure nothing.

Units:
    Milliseconds; blocks of 8 KiB. Times of I/O are sums over all workers. What a read took on average is the time of
    shared reads over the blocks read; reads that the page cache answered are among them. Rows are those of all loops.

Sources:
    PostgreSQL 18 documentation, "Using EXPLAIN" and EXPLAIN; ``src/backend/commands/explain.c``; plans recorded with
    PostgreSQL 15.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.json_documents import json_documents
from leadline.importers._explain_plan.nodes import NODE, QueryPlan, TextPlans, plan_of_json

if TYPE_CHECKING:
    from leadline.core.io.source import Source

META = ImporterMeta(
    tool="EXPLAIN",
    layers=(Layer.DATABASE,),
    fields={
        "Execution Time": Field("db_plan_ms", "ms"),
        "Planning Time": Field("db_planning_ms", "ms"),
        "I/O Timings: shared read": Field("db_plan_read_ms", "ms"),
        "I/O Timings: temp": Field("db_plan_temp_ms", "ms"),
        "Buffers: shared read": Field("db_plan_blocks_read_count", "count"),
        "Buffers: shared hit": Field("db_plan_blocks_hit_count", "count"),
        "Buffers: temp written": Field("db_plan_temp_blocks_count", "count"),
        "Rows Removed by Filter": Field("db_plan_rows_removed_count", "count"),
        "rows": Field("db_plan_rows_kept_count", "count"),
        "Workers Launched": Field("db_plan_processes_count", "count"),
    },
    record="psql -XAtc 'EXPLAIN (ANALYZE, BUFFERS) SELECT ...' > plan.txt, with track_io_timing = on",
    marks=("actual time=", "actual rows=", '"actual rows"'),
)

_SERVER = Entity(EntityKind.DATABASE, "postgresql", UNNAMED_GUEST)
_PASSED = re.compile(
    r"(?:QUERY PLAN|-{3,}|\(\d{1,9} \S{1,12}\)|Time: .{1,60}|Timing is .*|SET|BEGIN|ROLLBACK|\\\S.*|;)?"
    r"|[\w.@:/-]{1,80}[=\-*!^('\"$]?[#>](?:\s.*)?"
)
_HEAD_LINES = 300
_KIB_OF_BLOCK = 8.0


def sniff(source: Source) -> int:
    """Sure by a node with what it really took."""
    lines = source.head_text.splitlines()[:_HEAD_LINES]
    if any((match := NODE.match(_bare(line))) is not None and match["actual"] for line in lines):
        return 92
    head = source.head_text
    return 92 if '"Node Type"' in head and '"Actual Rows"' in head and '"Plan"' in head else 0


def _bare(line: str) -> str:
    """A line without the frame of psql's table."""
    line = line.rstrip()
    if line[:1] in "|│" and line:
        line = line[1:].rstrip("|│").rstrip()
    if line.startswith('"') and line.endswith('"') and len(line) > 1:
        line = line[1:-1]
    return line[:-1].rstrip() if line.endswith("+") else line


def read(source: Source, request: Request) -> Capture:
    """What each plan took, as one sample.

    Raises:
        InputError: a line is none of a plan, or no plan was executed.
    """
    builder = CaptureBuilder(source.name, "explain-plan", META.tool)
    text = source.text()
    plans = _json_plans(source, text) if '"Node Type"' in text else _text_plans(source, text)
    executed = [plan for plan in plans if plan.nodes and plan.root.loops > 0]
    if not executed:
        raise _refused(source.name, "a plan that was not executed: it measures nothing")
    if len(executed) < len(plans):
        builder.warn("not-executed", "plans without what they really took were left out", len(plans) - len(executed))
    builder.warn("no-times", "a plan has no time: the time of the file was taken")
    builder.inventory.add(_SERVER, source.name, engine="postgresql")
    for number, plan in enumerate(executed, 1):
        _emit(plan, number, source, (builder, request))
    return builder.build(clock_known=False)


def _text_plans(source: Source, text: str) -> list[QueryPlan]:
    """The plans of a text.

    Raises:
        InputError: a line behind the first node is none of a plan.
    """
    reader = TextPlans()
    is_statement = False
    for number, line in enumerate(text.splitlines(), 1):
        bare = _bare(line)
        if reader.take(bare):
            is_statement = False
        elif re.match(r"\s{0,8}(?:explain|select|with|insert|update|delete)\b", bare, re.IGNORECASE):
            is_statement = not bare.endswith(";")
        elif is_statement:
            is_statement = not bare.endswith(";")
        elif _PASSED.fullmatch(bare.strip()) is None:
            if reader.plans:
                raise _refused(f"{source.name}:{number}", f"{bare.strip()[:60]!r} is no line of a plan")
            is_statement = True  # what stands above a plan is the statement
    return reader.plans


def _json_plans(source: Source, text: str) -> list[QueryPlan]:
    """The plans of JSON documents.

    Raises:
        InputError: a document is damaged.
    """
    plain = "\n".join(_bare(line) for line in text.splitlines())
    documents = json_documents(plain, source.name).documents
    plans = (plan_of_json(document.value) for document in documents if isinstance(document.value, dict))
    return [plan for plan in plans if plan is not None]


def _emit(plan: QueryPlan, number: int, source: Source, into: tuple[CaptureBuilder, Request]) -> None:
    """Add one plan as a statement with a sample."""
    builder, request = into
    root = plan.root
    scan = max(plan.nodes, key=lambda node: node.removed if node.removed > 0 else 0.0)
    spilled = [node for node in plan.nodes if node.is_spilled]
    written = root.blocks.get("temp write", 0.0)
    if not written:
        written = sum(node.disk_kib for node in plan.nodes if node.disk_kib > 0) / _KIB_OF_BLOCK
    took_ms = plan.execution_ms if plan.execution_ms >= 0 else root.time_ms
    read_ms, read = root.times_ms.get("shared read", float("nan")), root.blocks.get("shared read", float("nan"))
    values = {
        "db_plan_ms": took_ms,
        "db_planning_ms": plan.planning_ms,
        "db_plan_read_ms": read_ms,
        "db_plan_temp_ms": root.times_ms.get("temp read", 0.0) + root.times_ms.get("temp write", 0.0) or float("nan"),
        "db_plan_blocks_read_count": read,
        "db_plan_blocks_hit_count": root.blocks.get("shared hit", float("nan")),
        "db_plan_temp_blocks_count": written,
        "db_plan_rows_removed_count": scan.removed,
        "db_plan_rows_kept_count": scan.rows,
        "db_plan_processes_count": 1.0 + sum(node.workers for node in plan.nodes if node.workers > 0),
    }
    entity = builder.inventory.add(
        Entity(EntityKind.STATEMENT, f"plan {number} ({root.label})", _SERVER),
        builder.info.name,
        scans_for_nothing=scan.label if scan.removed > 0 else None,
        spills=", ".join(dict.fromkeys(node.label for node in spilled))[:200] or None,
    )
    times = np.array([source.mtime_ns], dtype=np.int64)
    seconds = max(took_ms / 1000.0, 1e-3) if took_ms >= 0 else 1.0
    for metric, value in values.items():
        if request.wants(metric) and np.isfinite(value):
            builder.add_series(metric, entity, times, np.array([value]), interval_s=seconds)


def _refused(where: str, problem: str) -> InputError:
    return InputError(
        where,
        found=problem,
        expected="plans of EXPLAIN (ANALYZE, BUFFERS), as text or JSON",
        advice=f"Record {META.record}.",
    )
