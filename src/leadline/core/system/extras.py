"""Optional packages: the extra of Leadline that brings a module the base installation lacks, and the command for it."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from leadline.core.model.errors import ToolError

# Module -> the extra of pyproject.toml that brings it, and what it is for.
EXTRAS = {
    "asyncssh": ("ssh", "other machines over SSH"),
    "distributed": ("dask", "simulations on many machines"),
    "polars": ("frames", "data frames"),
    "psycopg": ("postgresql", "PostgreSQL"),
    "pyVmomi": ("vcenter", "vCenter"),
    "pyarrow": ("parquet", "Parquet files"),
    "pyeclib": ("protect", "erasure codes"),
}
_UV_RECEIPT = "uv-receipt.toml"  # Source: uv, crates/uv-tool: the file that marks an environment of `uv tool`


def lacking(error: ImportError) -> ToolError | None:
    """The error a user sees instead of one of an import; None when no extra brings that module."""
    module = (error.name or "").split(".")[0]
    if module not in EXTRAS:
        return None
    extra, purpose = EXTRAS[module]
    return ToolError(
        purpose,
        found=f"the Python package {module} is not installed",
        expected=f"Leadline with its extra {extra!r}",
        advice=f"Run: {install_command(extra)}",
    )


def require(module: str) -> Any:  # noqa: ANN401 - whatever the module has
    """An optional module.

    Raises:
        ToolError: it is not installed; says which command installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        missing = lacking(error)
        if missing is None:
            raise
        raise missing from error


def install_command(extra: str) -> str:
    """The command that adds an extra to this installation."""
    is_tool = (Path(sys.prefix) / _UV_RECEIPT).is_file()
    return f"{'uv tool' if is_tool else 'pip'} install 'leadline[{extra}]'"
