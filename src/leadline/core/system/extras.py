"""Optional packages: the extra of Leadline that brings a module the base installation lacks, and the command for it."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from leadline.core.model.errors import ToolError

# Module -> the extra of pyproject.toml that brings it, and what it is for.
EXTRAS = {
    "asyncssh": ("ssh", "other machines over SSH"),
    "distributed": ("dask", "simulations on many machines"),
    "fastapi": ("web", "the page of leadline watch"),
    "keyring": ("keyring", "secrets of the user's keyring"),
    "polars": ("frames", "data frames"),
    "psycopg": ("postgresql", "PostgreSQL"),
    "pyarrow": ("parquet", "Parquet files"),
    "pyeclib": ("protect", "erasure codes"),
    "pymysql": ("mysql", "MySQL and MariaDB"),
    "pyVmomi": ("vcenter", "vCenter"),
    "uvicorn": ("web", "the page of leadline watch"),
}
BUNDLE_MARK = "bundle-of-leadline"  # a file of the root of what scripts/bundle.py packs: the extras it has
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
    """The command that adds an extra to this installation.

    `uv tool install` replaces what is there, so it gets the file and the extras that the installation was made of.
    A bundle is replaced by one that has the extra, too, built in a checkout.
    """
    with suppress(OSError):
        present = (Path(sys.prefix) / BUNDLE_MARK).read_text(encoding="utf-8").split(",")
        return f"make bundle EXTRAS={','.join(sorted({extra, *filter(None, present)}))}"
    receipt = Path(sys.prefix) / _UV_RECEIPT
    if not receipt.is_file():
        return f"pip install 'leadline[{extra}]'"
    import tomllib  # noqa: PLC0415 - every start imports this module, and seldom needs that

    extras, origin = {extra}, ""
    with suppress(OSError, ValueError, KeyError, TypeError, StopIteration):
        wanted = tomllib.loads(receipt.read_text(encoding="utf-8"))["tool"]["requirements"]
        leadline = next(requirement for requirement in wanted if requirement["name"] == "leadline")
        extras |= set(leadline.get("extras", ()))
        origin = f" @ {Path(leadline['path']).as_uri()}"
    return f"uv tool install 'leadline[{','.join(sorted(extras))}]{origin}'"
