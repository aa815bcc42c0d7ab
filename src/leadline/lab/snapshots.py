"""Snapshots of a running guest's disk and their consolidation, as the hypervisor does them while the guest works."""

from __future__ import annotations

import threading
import time
from typing import Any

from leadline.core.model.errors import ToolError
from leadline.core.system.direct_io import takes_direct_io
from leadline.lab.hardware import layer, layer_image, layer_node, limit_node
from leadline.lab.images import make_overlay
from leadline.lab.machine import Machine
from leadline.lab.specification import LabDisk

CONSOLIDATION_S_MAX = 600.0  # Judgement: a guest that writes faster than the merge copies is never done
_LOOK_S = 0.1


class Snapshots:
    """The files of one disk: its base, and one more per snapshot; what is done to them is done one after the other."""

    def __init__(self, machine: Machine, disk: LabDisk) -> None:
        self.count = disk.overlays
        self._busy = threading.RLock()
        self._disk, self._folder, self._monitor = disk, machine.files.folder, machine.monitor

    def take(self) -> None:
        """Put an empty file over the disk's, which gets every write from now on.

        Source: QEMU QMP reference, blockdev-snapshot: the overlay is opened without backing and then set over a node.

        Raises:
            ToolError: it cannot be made, or QEMU refuses it.
        """
        with self._busy:
            number = self.count + 1
            image = make_overlay(self._disk, number, self._folder)
            nodes = layer(self._disk, image, number, direct=takes_direct_io(self._folder))
            self._monitor.execute("blockdev-add", **nodes, backing=None)
            below = layer_node(self._disk, self.count)
            self._monitor.execute("blockdev-snapshot", node=below, overlay=layer_node(self._disk, number))
            self.count = number

    def consolidate(self, speed: int = 0, down_to: int = 0) -> int:
        """Merge all snapshots above the one of a number (0: the base) into it, the guest at work; the bytes copied.

        Source: QEMU documentation, live block device operations, "Live active layer commit": what the guest writes
        meanwhile is copied too, until both are alike; then the guest goes over to the lower file.

        Args:
            speed: bytes per second at most; 0 for no limit.
            down_to: number of the file that stays.

        Raises:
            ToolError: QEMU refuses it, it fails, or it is not over in time.
        """
        with self._busy:
            if self.count <= down_to:
                return 0
            top, job = layer_node(self._disk, self.count), f"consolidate-{self._disk.name}"
            nodes = {
                "device": top if self._disk.limits is None else limit_node(self._disk),
                "top_node": top,
                "base_node": layer_node(self._disk, down_to),
            }
            self._monitor.execute("block-commit", job_id=job, speed=speed, auto_dismiss=False, **nodes)
            copied = self._wait_for(job)
            for number in range(self.count, down_to, -1):
                self._let_go(number)
            self.count = down_to
            return copied

    def _let_go(self, number: int) -> None:
        """Remove a file that was merged, and its node unless it went with the one above."""
        name = layer_node(self._disk, number)
        if name in {node["node-name"] for node in self._monitor.execute("query-named-block-nodes", flat=True)}:
            self._monitor.execute("blockdev-del", node_name=name)
        layer_image(self._disk, number, self._folder).unlink(missing_ok=True)

    def restore(self) -> None:
        """As many files as the disk had when its guest started, so that the next load begins like this one did."""
        self.consolidate(down_to=self._disk.overlays)
        while self.count < self._disk.overlays:
            self.take()

    def _wait_for(self, job: str) -> int:
        deadline = time.monotonic() + CONSOLIDATION_S_MAX
        is_asked = False
        while True:
            state: dict[str, Any] = next(entry for entry in self._monitor.execute("query-jobs") if entry["id"] == job)
            if state["status"] == "ready" and not is_asked:
                self._monitor.execute("job-complete", id=job)
                is_asked = True
            if state["status"] == "concluded":
                self._monitor.execute("job-dismiss", id=job)
                if "error" in state:
                    raise self._failed(str(state["error"]))
                return int(state["current-progress"])
            if time.monotonic() > deadline:
                self._monitor.execute("job-cancel", id=job)
                raise self._failed(f"not over after {CONSOLIDATION_S_MAX:.0f} s")
            time.sleep(_LOOK_S)

    def _failed(self, problem: str) -> ToolError:
        return ToolError(
            f"consolidation of {self._disk.name}",
            found=problem,
            expected="its snapshots merged",
            advice="Let the guest write less, or give the merge more speed.",
        )
