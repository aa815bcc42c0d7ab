"""States of reduction measurements on disk: written whole or not at all, for their owner alone."""

from __future__ import annotations

import base64
import io
import json
import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from leadline.app.reduction.blocks import BLOCK_CELLS
from leadline.app.reduction.contents import COLUMNS, ContentTable
from leadline.app.reduction.model import ReductionState
from leadline.app.reduction.packing import PackedBlocks
from leadline.app.reduction.places import DataPlaces, LeftOut
from leadline.core.io.outputs import Output
from leadline.core.io.private import private_file, private_folder
from leadline.core.model.errors import InputError, ToolError, UsageError
from leadline.core.system.leftovers import user_folder

SCHEMA = "leadline.reduction-state/1"
_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
_PLAIN = ("id", "path", "seed", "is_sequential", "position", "read_bytes", "hole_bytes", "seconds", "packed_pieces")
_TOTALS = ("halvings", "total_cells", "zero_cells", "used_squares", "pair_cells", "pair_squares", "piece_count")


def kept_folder() -> Path:
    """Return the folder of kept states."""
    return user_folder() / "reduction"


def save_state(state: ReductionState) -> Path:
    """Write a state in place of the last one of it.

    Raises:
        ToolError: it cannot be written; the last one is unchanged.
    """
    path = kept_folder() / f"{state.id}.json"
    try:
        private_folder(path.parent)
        Output(path, "the state").write(_packed(state))
        private_file(path)
    except OSError as error:
        raise ToolError(
            str(path),
            found=f"cannot be written ({error.strerror or error})",
            expected="a folder that states can be kept in",
            advice="Set LEADLINE_HOME to another folder.",
        ) from error
    return path


def remove_state(state: ReductionState) -> None:
    """Remove the file of a state: all was read, and there is nothing to go on with."""
    (kept_folder() / f"{state.id}.json").unlink(missing_ok=True)


def load_state(name: str) -> ReductionState:
    """Return a kept state by its id, or the one written last.

    Raises:
        UsageError: there is no such state.
        InputError: its file is damaged.
    """
    kept_files = sorted(kept_folder().glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
    path = kept_folder() / f"{name}.json"
    if name == "last" and kept_files:
        path = kept_files[-1]
    if _ID.fullmatch(name) is None or not path.is_file():
        raise UsageError(
            f"--resume {name}",
            found="nothing kept under this name",
            expected=f"last, or one of: {', '.join(file.stem for file in kept_files[-5:]) or 'none is kept'}",
            advice="Leave out --resume and name a path to measure anew.",
        )
    try:
        return _unpacked(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, OSError, zstandard.ZstdError) as error:
        raise InputError(
            str(path),
            found=f"damaged ({error})",
            expected="a state that Leadline wrote",
            advice="Delete it and measure anew.",
        ) from error


def _packed(state: ReductionState) -> bytes:
    arrays: dict[str, NDArray[Any]] = {
        "paths": np.frombuffer(b"\0".join(map(os.fsencode, state.places.paths)), np.uint8),
        "sizes": state.places.sizes,
        "stamps": state.places.stamps,
    }
    for size, (table, blocks) in enumerate(zip(state.tables, state.packer.settle(), strict=True)):
        table.settle()
        arrays |= {f"{name}-{size}": getattr(table, name) for name in COLUMNS}
        arrays |= {f"packed-{size}": blocks.fingerprints, f"rows-{size}": blocks.rows}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    document = {
        "schema": SCHEMA,
        **{name: getattr(state, name) for name in _PLAIN},
        "left_out": asdict(state.left_out),
        "totals": [{name: getattr(table, name) for name in _TOTALS} for table in state.tables],
        "arrays": base64.b64encode(zstandard.compress(buffer.getvalue(), 1)).decode(),
    }
    return json.dumps(document).encode()


def _unpacked(document: dict[str, Any]) -> ReductionState:
    if document["schema"] != SCHEMA:
        message = f"schema {document['schema']}"
        raise ValueError(message)
    packed = zstandard.decompress(base64.b64decode(document["arrays"]))
    with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
        paths = tuple(map(os.fsdecode, arrays["paths"].tobytes().split(b"\0")))
        places = DataPlaces(paths, arrays["sizes"], arrays["stamps"])
        state = ReductionState(places=places, **{name: document[name] for name in _PLAIN})
        state.left_out = LeftOut(**document["left_out"])
        for size in range(len(BLOCK_CELLS)):
            columns = {name: arrays[f"{name}-{size}"] for name in COLUMNS}
            state.tables[size] = ContentTable(**columns, **document["totals"][size])
            state.packer.packed[size] = PackedBlocks(arrays[f"packed-{size}"], arrays[f"rows-{size}"])
    return state
