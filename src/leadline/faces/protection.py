"""What a protection benchmark measured, for a terminal of 80 columns."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from rich.text import Text

from leadline.core.model.units import duration, share_text
from leadline.faces.tables import plain_table
from leadline.faces.terminal import wrapped

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from leadline.app.protect.protecting import Cell, ProtectionOutcome, RateEstimate, Survival

_BAR_WIDTH = 44


def show_outcome(out: Console, outcome: ProtectionOutcome) -> None:
    """Throughput against VMs as a table and a chart, the costs of a byte, then what failures did."""
    cells = [cell for cell in outcome.cells if cell.phases]
    if not cells:
        out.print("No round was measured.")
        return
    out.print(_speed_table(cells))
    out.print()
    _show_chart(out, cells)
    _show_ratios(out, outcome, cells)
    out.print()
    out.print(_cost_table(cells))
    wrapped(out, _notes(outcome, cells), "  ", style="dim")
    for survival in outcome.survivals:
        _show_survival(out, survival)


def _speed_table(cells: list[Cell]) -> Table:
    columns = ("VMs", "data MB/s", "95 % interval", "variation", "per node MB/s", "rounds")
    table = plain_table("scheme", *columns, right=columns)
    for cell in cells:
        speed = cell.throughput
        per_node = [estimate.mean for estimate in cell.node_throughputs]
        span = f"{min(per_node) / 1e6:,.0f} to {max(per_node) / 1e6:,.0f}"
        row = (f"{speed.mean / 1e6:,.0f}", _interval(speed, 1e6, ",.0f"), _share(speed.variation), span)
        table.add_row(str(cell.scheme), str(cell.vm_count), *row, str(len(cell.phases)))
    return table


def _show_chart(out: Console, cells: list[Cell]) -> None:
    most = max(cell.throughput.mean for cell in cells)
    for cell in cells:
        mean = cell.throughput.mean
        bar = "█" * max(round(mean / most * _BAR_WIDTH), 1)
        out.print(Text(f"{_machines(cell.vm_count):>8} {cell.scheme!s:>5}  {bar} {mean / 1e6:,.0f} MB/s"))


def _show_ratios(out: Console, outcome: ProtectionOutcome, cells: list[Cell]) -> None:
    first = outcome.cells[0].scheme
    for cell in cells:
        base = [one for one in cells if one.scheme == first and one.vm_count == cell.vm_count]
        if cell.scheme != first and base:
            ratio = outcome.ratio(base[0], cell)
            text = f"{first} is {ratio.mean:.2f} times as fast as {cell.scheme} at {_machines(cell.vm_count)}"
            out.print(Text(f"  {text} ({_interval(ratio, 1, '.2f')})"))


def _cost_table(cells: list[Cell]) -> Table:
    """The costs of each scheme, measured at its largest number of VMs."""
    columns = ("written", "stored", "sent", "sent (*)", "CPU s/GB", "encoding")
    table = plain_table("per byte of data", *columns, right=columns)
    most = {cell.scheme: cell for cell in sorted(cells, key=lambda cell: cell.vm_count)}
    for scheme, cell in most.items():
        document = cell.to_dict()
        names = ("written_per_byte", "stored_per_byte", "sent_per_byte", "sent_per_byte_encoder_on_first_node")
        costs = (document["cpu_s_per_gb"]["mean"], document["encode_cpu_s_per_gb"]["mean"])
        table.add_row(
            f"{scheme}, {_machines(cell.vm_count)}",
            *(_number(document[name], ".3f") for name in names),
            *(_number(cost, ".3f") for cost in costs),
        )
    return table


def _notes(outcome: ProtectionOutcome, cells: list[Cell]) -> str:
    direct = all(phase.is_direct for cell in cells for phase in cell.phases)
    how = "direct I/O" if direct else "through the page cache (no direct I/O there)"
    library = "" if outcome.library is None else f" Encoded by ISA-L {outcome.library}."
    return (
        "Sent: the encoder sits with the VMs and sends each shard to its node. (*) The encoder sits on the node of the "
        "stripe's first shard, which keeps that shard and sends the others. CPU: of this process, making the data left "
        f"out; encoding is part of it. Written with {how}, made durable within the time measured.{library}"
    )


def _show_survival(out: Console, survival: Survival) -> None:
    out.print()
    if not survival.readings:
        return
    readings = survival.readings
    count = len(readings[0].failed)
    stripes = sum(reading.stripe_count for reading in readings)
    bad = sum(reading.lost_count + reading.wrong_count for reading in readings)
    tried = f"{count} of its nodes failed in {len(readings)} combinations"
    if survival.survived:
        restored = sum(reading.restored_count for reading in readings)
        text = f"survived: {tried}; {stripes:,} stripes read, every hash right"
        text += f", {restored:,} shards restored" if restored else ""
        wrapped(out, text, f"{survival.scheme} ", style="green")
    else:
        text = f"LOST DATA: {tried}; {bad:,} of {stripes:,} stripes are gone; it tolerates {survival.scheme.tolerated}"
        wrapped(out, text, f"{survival.scheme} ", style="bold red")
    beyond = survival.beyond
    if beyond is not None:
        lost = beyond.lost_count + beyond.wrong_count
        consequence = f"data loss, {lost:,} of {beyond.stripe_count:,} stripes" if lost else "no loss seen"
        wrapped(out, f"{len(beyond.failed)} failed nodes, one more than it tolerates: {consequence}", "    ")
    rebuild = survival.rebuild
    if rebuild is not None:
        proof = rebuild.proof
        sound = proof is not None and proof.survived and not rebuild.lost_count
        text = (
            f"rebuilding {len(rebuild.replaced)} nodes: {rebuild.written_bytes / 1e6:,.0f} MB written from "
            f"{rebuild.read_bytes / 1e6:,.0f} MB read in {_span(rebuild.seconds)}; "
        )
        others = "" if proof is None else f" with {len(proof.failed)} other nodes failed"
        wrapped(out, text + (f"every hash right{others}" if sound else "NOT sound"), "    ")


def _machines(count: int) -> str:
    return f"{count} VM" if count == 1 else f"{count} VMs"


def _span(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else duration(seconds)


def _interval(estimate: RateEstimate, divisor: float, form: str) -> str:
    if not isfinite(estimate.low):
        return "-"
    return f"{estimate.low / divisor:{form}} to {estimate.high / divisor:{form}}"


def _share(fraction: float) -> str:
    return f"{share_text(fraction, 1)}" if isfinite(fraction) else "-"


def _number(figure: float, form: str) -> str:
    return f"{figure:{form}}" if isfinite(figure) else "-"
