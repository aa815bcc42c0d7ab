"""Use case: write an esxtop capture of known content, healthy or with faults, and the truth about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import yaml

from leadline.core.discovery import load_unit
from leadline.core.errors import UsageError
from leadline.core.finding import Window
from leadline.generators.esxtop import write
from leadline.generators.fault import Fault, target_count
from leadline.generators.guest import write_inventory, write_iostat
from leadline.generators.host_model import HostModel, Shape

if TYPE_CHECKING:
    from leadline.core.entities import Entity
    from leadline.core.vocabulary import Layer


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


def generate(
    shape: Shape,
    requests: list[FaultRequest],
    path: Path,
    *,
    columns: int | None = None,
    guest: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Injected]:
    """Write a capture and, beside it, ``<name>.truth.yaml``; a cut-short run leaves neither.

    With ``guest``, the index of a VM, also what that VM's guest recorded, ``<name>.iostat.txt``, and the inventory that
    links its disks, ``<name>.inventory.yaml``.

    Raises:
        UsageError: a fault or target does not exist, a window lies outside the capture, or the width is too small.
    """
    model = HostModel(shape, np.random.default_rng(shape.seed))
    injected = [_inject(model, request) for request in requests]
    aside = path.with_name(f".{path.name}.part")
    try:
        write(model, aside, columns=columns, progress=progress)
        truth = {"seed": shape.seed, "host": shape.host, "faults": [fault.to_dict() for fault in injected]}
        path.with_name(f"{path.name}.truth.yaml").write_text(yaml.safe_dump(truth, sort_keys=False), encoding="utf-8")
        if guest is not None:
            write_iostat(model, guest, path.with_name(f"{path.name}.iostat.txt"))
            write_inventory(model, guest, path.with_name(f"{path.name}.inventory.yaml"))
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
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
