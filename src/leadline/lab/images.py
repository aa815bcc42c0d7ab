"""Virtual disks as files: filled, thin or preallocated, with their chains of snapshots."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from leadline.core.model.errors import ToolError
from leadline.core.system.tools import require_program
from leadline.lab.hardware import layer_image
from leadline.lab.specification import LabDisk

_PIECE_BYTES = 4 * 1024**2


def make_image(disk: LabDisk, folder: Path) -> Path:
    """The file the guest works on: the disk's image, or the last overlay of its chain.

    Raises:
        ToolError: qemu-img is missing or fails, or there is no space.
    """
    base = layer_image(disk, 0, folder)
    try:
        if disk.null_latency is not None:
            base.touch()  # nothing is stored
        elif disk.provisioning == "filled" and disk.format == "raw":
            _fill(base, disk.size)
        else:
            _create(base, disk)
    except OSError as error:
        raise _no_space(folder, str(error.strerror)) from error
    for number in range(1, disk.overlays + 1):
        make_overlay(disk, number, folder)
    return layer_image(disk, disk.overlays, folder)


def make_overlay(disk: LabDisk, number: int, folder: Path) -> Path:
    """An empty snapshot file over the one of the number before.

    Raises:
        ToolError: qemu-img is missing or fails.
    """
    overlay, backing = (layer_image(disk, index, folder) for index in (number, number - 1))
    kind = "qcow2" if number > 1 else disk.format
    # Not looked into (-u), as the one below may be written to meanwhile.
    words = ("-f", "qcow2", "-u", "-b", backing.name, "-F", kind, "-o", f"size={disk.size}")
    _qemu_img("create", "-q", *words, str(overlay))
    return overlay


def _create(base: Path, disk: LabDisk) -> None:
    how = {"thin": "off", "falloc": "falloc", "full": "full", "filled": "off"}[disk.provisioning]
    _qemu_img("create", "-q", "-f", disk.format, "-o", f"preallocation={how}", str(base), str(disk.size))
    if disk.provisioning == "filled":
        source = base.with_suffix(".filling")
        _fill(source, disk.size)
        _qemu_img("convert", "-q", "-n", "-f", "raw", "-O", disk.format, str(source), str(base))
        source.unlink()


def _fill(path: Path, size: int) -> None:
    """Random data, so that no layer answers from holes or packs it."""
    with path.open("wb", buffering=0) as stream:
        for start in range(0, size, _PIECE_BYTES):
            stream.write(os.urandom(min(_PIECE_BYTES, size - start)))


def _qemu_img(*words: str) -> None:
    program = require_program("qemu-img", "what makes disk images")
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise _no_space(Path(words[-1]), done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "failed")


def _no_space(where: Path, problem: str) -> ToolError:
    return ToolError(str(where), found=problem, expected="a disk image", advice="Is there enough space?")
