"""The nodes of a query plan that was executed, from EXPLAIN's text or JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from leadline.formats.json_documents import number_in
from leadline.formats.printed import number_of

NAN = float("nan")
_N = r"(\d{1,15}(?:\.\d{1,6})?)"
NODE = re.compile(
    r"(?P<indent>\s{0,400})(?P<arrow>->  ?)?(?P<label>[A-Z][^\n(]{1,200}?)  "
    r"\((?:cost=[\d.]{1,30} rows=\d{1,20} width=\d{1,9}\))? ?"
    r"(?P<actual>\(?(?:actual (?:time=[\d.]{1,20} ?)?rows=[\d.]{1,20} loops=\d{1,15}\)|never executed\)))?"
)
_ACTUAL = re.compile(rf"actual (?:time={_N}\.\.{_N} )?rows={_N} loops=(\d{{1,15}})")
_REMOVED = re.compile(r"\s{0,400}Rows Removed by (?:Filter|Join Filter|Index Recheck): " + _N)
_TOTAL = re.compile(rf"\s{{0,9}}(Planning Time|Planning time|Execution Time|Execution time|Total runtime): {_N} ms")
_DISK = re.compile(r"\s{0,400}(?:Worker \d{1,4}: {1,4})?Sort Method: \D{1,60} Disk: (\d{1,15})kB")
_BATCHES = re.compile(
    r"\s{0,400}(?:Worker \d{1,4}: {1,4})?(?:Buckets: \d{1,15}[^B]{0,40})?Batches: (\d{1,9})"
    r"[^D\n]{0,80}(?:Disk Usage: (\d{1,15})kB)?"
)
_LAUNCHED = re.compile(r"\s{0,400}Workers Launched: (\d{1,6})")
_BUFFERS = re.compile(r"\s{0,400}Buffers: (.{1,300})")
_TIMINGS = re.compile(r"\s{0,400}I/O Timings: (.{1,300})")
_PART = re.compile(r"(?:(shared/local|shared|local|temp) )?(hit|read|dirtied|written|write)=([\d.]{1,20})")
OTHER = re.compile(
    r"\s{0,400}(?:[A-Za-z][^:\n]{0,80}: .{0,20000}|(?:Planning|JIT|Query Text|Triggers|Settings|Serialization):"
    r"|(?:InitPlan|SubPlan) .{1,80}|CTE \S{1,80})"
)


@dataclass(slots=True)
class PlanNode:
    """A node; counts and times include the nodes below it, as EXPLAIN prints them.

    Attributes:
        rows: that it returned in all its loops.
        removed: rows that it read and threw away, in all its loops.
        disk_kib: what a sort or a hash wrote to disk; NaN where it was not printed.
        is_spilled: whether a sort or a hash did not fit in memory.
        blocks: by kind and verb, as ``shared read``.
        times_ms: of I/O, by kind and verb.
    """

    label: str
    rows: float = NAN
    loops: float = NAN
    time_ms: float = NAN
    removed: float = 0.0
    disk_kib: float = 0.0
    is_spilled: bool = False
    workers: float = 0.0
    blocks: dict[str, float] = field(default_factory=dict)
    times_ms: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class QueryPlan:
    """A plan that was executed: its nodes, the root first, and its times."""

    nodes: list[PlanNode] = field(default_factory=list)
    planning_ms: float = NAN
    execution_ms: float = NAN

    @property
    def root(self) -> PlanNode:
        """The node that returns the rows of the statement."""
        return self.nodes[0]


class TextPlans:
    """Reads plans from lines of text; ``plans`` are those that begin in them."""

    def __init__(self) -> None:
        self.plans: list[QueryPlan] = []
        self._is_planning = False

    def take(self, line: str) -> bool:
        """Take in a line; False where it is none of a plan."""
        node = NODE.match(line)
        if node is not None and (node["actual"] or "cost=" in line):
            self._begin(node, line)
            return True
        if not self.plans:
            return False
        return self._property(line)

    def _begin(self, match: re.Match[str], line: str) -> None:
        is_root = not match["arrow"] and len(match["indent"]) < 2
        if is_root or not self.plans:
            self.plans.append(QueryPlan())
        self._is_planning = False
        node = PlanNode(match["label"].strip())
        actual = _ACTUAL.search(line)
        if actual is not None:
            node.time_ms = number_of(actual[2]) if actual[2] else NAN
            node.loops = number_of(actual[4])
            node.rows = number_of(actual[3]) * node.loops
        self.plans[-1].nodes.append(node)

    def _property(self, line: str) -> bool:
        """Take in a line below a node."""
        plan = self.plans[-1]
        node = plan.nodes[-1]
        total = _TOTAL.match(line)
        if total is not None:
            if total[1].startswith("Planning"):
                plan.planning_ms = number_of(total[2])
            else:
                plan.execution_ms = number_of(total[2])
        elif line.strip() == "Planning:":
            self._is_planning = True
        elif (removed := _REMOVED.match(line)) is not None:
            node.removed += number_of(removed[1]) * (node.loops if node.loops > 0 else 1.0)
        elif (disk := _DISK.match(line)) is not None:
            node.is_spilled, node.disk_kib = True, node.disk_kib + number_of(disk[1])
        elif (batches := _BATCHES.match(line)) is not None:
            node.is_spilled |= number_of(batches[1]) > 1
            node.disk_kib += number_of(batches[2] or "0")
        elif (launched := _LAUNCHED.match(line)) is not None:
            node.workers = number_of(launched[1])
        else:
            return self._of_blocks(node, line) or OTHER.match(line) is not None
        return True

    def _of_blocks(self, node: PlanNode, line: str) -> bool:
        """Take in the blocks of a node or the time of their I/O; those of planning are not the node's."""
        buffers, timings = _BUFFERS.match(line), _TIMINGS.match(line)
        if buffers is not None and not self._is_planning:
            node.blocks = node.blocks or dict(_parts(buffers[1]))
        if timings is not None and not self._is_planning:
            node.times_ms = node.times_ms or dict(_parts(timings[1]))
        return buffers is not None or timings is not None


def _parts(text: str) -> Iterator[tuple[str, float]]:
    """``shared hit=1 read=2, temp read=3`` as pairs; the kind is missing before version 15."""
    kind = "shared"
    for match in _PART.finditer(text):
        kind = (match[1] or kind).removesuffix("/local")
        yield f"{kind} {match[2].replace('written', 'write')}", number_of(match[3])


def plan_of_json(document: dict[str, Any]) -> QueryPlan | None:
    """The plan of a JSON document; None where it holds none."""
    root = document.get("Plan")
    if not isinstance(root, dict):
        return None
    plan = QueryPlan(
        planning_ms=number_in(document, "Planning Time"), execution_ms=number_in(document, "Execution Time")
    )
    waiting = [root]
    while waiting:
        entry = waiting.pop(0)
        plan.nodes.append(_node_of(entry))
        below = entry.get("Plans")
        waiting += [one for one in below if isinstance(one, dict)] if isinstance(below, list) else []
    return plan


def _node_of(entry: dict[str, Any]) -> PlanNode:
    target = next((entry[key] for key in ("Relation Name", "CTE Name", "Function Name") if key in entry), None)
    index = entry.get("Index Name")
    kind = f"{'Parallel ' if entry.get('Parallel Aware') is True else ''}{entry.get('Node Type', 'Plan')}"
    label = f"{kind}{f' using {index}' if index else ''}{f' on {target}' if target else ''}"
    loops = number_in(entry, "Actual Loops")
    node = PlanNode(label[:200], rows=number_in(entry, "Actual Rows") * loops, loops=loops)
    node.time_ms = number_in(entry, "Actual Total Time")
    for key in ("Rows Removed by Filter", "Rows Removed by Join Filter", "Rows Removed by Index Recheck"):
        if entry.get(key):
            node.removed += number_in(entry, key) * loops
    is_on_disk = entry.get("Sort Space Type") == "Disk"
    disk = [number_in(entry, "Sort Space Used") if is_on_disk else NAN, number_in(entry, "Disk Usage")]
    node.disk_kib = sum(one for one in disk if one > 0)
    batches = (number_in(entry, "Hash Batches"), number_in(entry, "HashAgg Batches"))
    node.is_spilled = is_on_disk or any(count > 1 for count in batches)
    node.workers = number_in(entry, "Workers Launched") if "Workers Launched" in entry else 0.0
    for kind in ("Shared", "Temp"):
        for word, verb in (("Hit", "hit"), ("Read", "read"), ("Written", "write")):
            if f"{kind} {word} Blocks" in entry:
                node.blocks[f"{kind.lower()} {verb}"] = number_in(entry, f"{kind} {word} Blocks")
    for verb in ("Read", "Write"):
        for kind, keys in (
            ("shared", (f"Shared I/O {verb} Time", f"I/O {verb} Time")),
            ("temp", (f"Temp I/O {verb} Time",)),
        ):
            value = next((number_in(entry, key) for key in keys if key in entry), 0.0)
            if value > 0:
                node.times_ms[f"{kind} {verb.lower()}"] = value
    return node
