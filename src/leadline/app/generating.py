"""Use case: write an esxtop capture of known content, healthy or with faults, and the truth about it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import yaml

from leadline._core import CoreError
from leadline.core.contracts.discovery import load_unit
from leadline.core.io.outputs import TRUTH, Output, generated_line, mark
from leadline.core.model.errors import UsageError
from leadline.core.model.finding import Window
from leadline.generators.esxtop import write
from leadline.generators.fault import Fault, target_count
from leadline.generators.guest import inventory_text, iostat_text
from leadline.generators.host_model import CaptureShape, HostModel

if TYPE_CHECKING:
    from leadline.core.model.entities import Entity
    from leadline.core.model.vocabulary import Layer

IOSTAT = ".iostat.txt"
INVENTORY = ".inventory.yaml"


@dataclass(frozen=True, slots=True)
class FaultRequest:
    """A fault to inject: its name; target and window are chosen from the seed when not given."""

    name: str
    target: int | None = None
    window_s: tuple[float, float] | None = None

    @classmethod
    def parse(cls, text: str) -> FaultRequest:
        """From ``NAME[:TARGET[:START-END]]``, seconds from the start of the capture.

        Raises:
            UsageError: the text has another form.

        >>> FaultRequest.parse("cpu-contention:3:60-180")
        FaultRequest(name='cpu-contention', target=3, window_s=(60.0, 180.0))
        """
        name, *rest = text.split(":")
        try:
            target = int(rest[0]) if rest and rest[0] else None
            window = None
            if len(rest) > 1:
                start, end = rest[1].split("-")
                window = (float(start), float(end))
        except ValueError as error:
            raise UsageError(
                "--fault",
                found=text,
                expected="NAME[:TARGET[:START-END]]",
                advice="For example cpu-contention:3:60-180",
            ) from error
        return cls(name, target, window)


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault that is in a generated capture, and what a diagnosis must say of it."""

    fault: str
    rules: tuple[str, ...]
    layer: Layer
    entity: Entity
    window: Window

    def to_dict(self) -> dict[str, Any]:
        """As written to the truth file."""
        return {
            "fault": self.fault,
            "rules": list(self.rules),
            "layer": self.layer.value,
            "entity": str(self.entity),
            **self.window.to_dict(),
        }


def outputs_of(output: Output | Path, *, guest: bool = False) -> list[Output]:
    """The files that `generate` writes: the capture, the truth about it, and with ``guest`` what the guest recorded."""
    first_output = Output.of(output, "OUTPUT")
    ends = ("", TRUTH, *((IOSTAT, INVENTORY) if guest else ()))
    return [replace(first_output, path=Path(f"{first_output.path}{end}")) for end in ends]


def generate(
    shape: CaptureShape,
    requests: list[FaultRequest],
    output: Output | Path,
    *,
    columns: int | None = None,
    guest: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Injected]:
    """Write a capture and, beside it, ``<name>.truth.yaml``; a cut-short run leaves neither.

    With ``guest``, the index of a VM, also what that VM's guest recorded, ``<name>.iostat.txt``, and the inventory that
    links its disks, ``<name>.inventory.yaml``.

    A path may only replace what Leadline wrote.

    Raises:
        UsageError: a fault or target does not exist, a window lies outside the capture, the width is too small, or a
            file must not or cannot be written there.
        ToolError: writing failed; what was there before still is.
    """
    capture, truth, *others = outputs_of(output, guest=guest is not None)
    for written in (capture, truth, *others):
        written.check()
    model = HostModel(shape, np.random.default_rng(shape.seed))
    injected = [_inject(model, request) for request in requests]
    texts = [] if guest is None else [text(model, guest).encode() for text in (iostat_text, inventory_text)]
    with ExitStack() as stack:  # left in this order: the others, the capture, then the truth, which lists them
        truth_path, path, *paths = (stack.enter_context(written.aside()) for written in (truth, capture, *others))
        try:
            write(model, path, columns=columns, progress=progress)
        except CoreError as error:
            raise OSError(error.found) from error
        for aside, text in zip(paths, texts, strict=True):
            aside.write_bytes(text)
        names = [written.path.name for written in (capture, *others)]
        listed = generated_line(list(zip(names, (path.stat().st_size, *map(len, texts)), strict=True)))
        known = {"seed": shape.seed, "host": shape.host, "faults": [fault.to_dict() for fault in injected]}
        truth_path.write_bytes((mark("leadline generate") + listed + yaml.safe_dump(known, sort_keys=False)).encode())
    return injected


def _inject(model: HostModel, request: FaultRequest) -> Injected:
    fault = cast("Fault", load_unit("fault", request.name))
    count = target_count(model, fault.META.target)
    target = int(model.rng.integers(count)) if request.target is None else request.target
    if not 0 <= target < count:
        raise UsageError(
            f"--fault {request.name}",
            found=f"{fault.META.target} {target}",
            expected=f"0 to {count - 1}",
            advice="Targets are counted from 0.",
        )
    shape = model.shape
    third = shape.duration_s / 3
    start_s, end_s = request.window_s or (third, 2 * third)
    first, last = round(start_s / shape.interval_s), round(end_s / shape.interval_s)
    if not 0 <= first < last <= shape.sample_count:
        raise UsageError(
            f"--fault {request.name}",
            found=f"window {start_s:g}-{end_s:g} s",
            expected=f"a span within 0-{shape.duration_s:g} s",
            advice="Give START-END in seconds.",
        )
    entity = fault.inject(model, target, slice(first, last))
    step_ns = round(shape.interval_s * 1e9)
    window = Window(shape.start_ns + first * step_ns, shape.start_ns + last * step_ns)
    return Injected(request.name, fault.META.rules, fault.META.layer, entity, window)
