"""The guests' kernel and its modules: Debian's package unpacked, never installed."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from leadline.core.model.errors import ToolError, UsageError

VARIABLE = "LEADLINE_LAB_KERNEL"
# Where the set-up of a checkout unpacks the package, seen from this file.
CHECKOUT = Path(__file__).resolve().parents[3] / ".tools" / "lab" / "kernel"
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


@dataclass(frozen=True)
class Kernel:
    """A kernel: its image, and the folder its modules are in."""

    image: Path
    modules: Path

    @property
    def release(self) -> str:
        """As ``uname -r`` in a guest says."""
        return self.modules.name

    @cached_property
    def _files(self) -> dict[str, Path]:
        return {path.name.split(".ko")[0].replace("-", "_"): path for path in self.modules.rglob("*.ko")}

    def with_needed(self, names: tuple[str, ...]) -> dict[str, bytes]:
        """Modules and all they need, in the order they must be loaded; what is built in is left out."""
        modules: dict[str, bytes] = {}

        def add(name: str) -> None:
            path = self._files.get(name)
            if name in modules or path is None:
                return
            data = path.read_bytes()
            match = _DEPENDS.search(data)
            for needed in match[1].decode().split(",") if match else ():
                add(needed.replace("-", "_"))
            modules[name] = data

        for name in names:
            add(name)
        return modules


def find_kernel() -> Kernel:
    """The kernel of ``LEADLINE_LAB_KERNEL`` (a folder a linux-image package was unpacked in), else of the checkout.

    Raises:
        UsageError: the folder named holds none.
        ToolError: there is none.
    """
    named = os.environ.get(VARIABLE)
    folder = Path(named) if named else CHECKOUT
    images = sorted((folder / "boot").glob("vmlinuz-*"))
    for image in reversed(images):
        for modules in (folder / "lib" / "modules", folder / "usr" / "lib" / "modules"):
            release = image.name.removeprefix("vmlinuz-")
            if (modules / release).is_dir():
                return Kernel(image, modules / release)
    if named:
        raise UsageError(
            named,
            found="no kernel",
            expected=f"{VARIABLE}: a folder that a linux-image package was unpacked in",
            advice="apt-get download linux-image-amd64's package, then dpkg-deb -x PACKAGE FOLDER.",
        )
    raise ToolError(
        "lab",
        found="no kernel for the guests",
        expected="Debian's linux-image package, unpacked",
        advice=f"Run the set-up of the project, or unpack one with dpkg-deb -x and set {VARIABLE} to the folder.",
    )
