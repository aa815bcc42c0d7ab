"""Network interfaces of a machine as /sys shows them and as their drivers answer when asked by ioctl."""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.app.read.machine_files import Tree

# Source: Linux kernel headers, linux/sockios.h and linux/ethtool.h. Both questions only read; any user may ask them.
_SIOCETHTOOL = 0x8946
_GET_DRIVER = 0x03
_GET_RINGS = 0x10
_NAME_BYTES = 16  # of an interface, the closing zero included
_REQUEST = struct.Struct("16sP16x")  # struct ifreq: the name, a pointer, the rest of its union
_TEXT_BYTES = 32
_DRIVER = struct.Struct(f"I{_TEXT_BYTES}s{_TEXT_BYTES}s128x12x5I")  # command, name, version, ..., five counts
_RINGS = struct.Struct("9I")  # command; most of rx, mini, jumbo, tx; now of rx, mini, jumbo, tx
_RX_NOW = 5


@dataclass(frozen=True, slots=True)
class NicAnswers:
    """What a driver says of itself and its interface; None for what it does not say."""

    driver_version: str | None = None
    rx_ring_count: int | None = None


AskNic = Callable[[str], NicAnswers]


def ask_driver(name: str) -> NicAnswers:
    """Ask an interface's driver for its version and the entries of its receive ring."""
    driver, rings = _ask(name, _GET_DRIVER, _DRIVER), _ask(name, _GET_RINGS, _RINGS)
    version = "" if driver is None else driver[2].split(b"\0")[0].decode("utf-8", errors="replace").strip()
    # Drivers without rings that can be set answer nothing, or zero.
    entries = 0 if rings is None else int(rings[_RX_NOW])
    return NicAnswers(version or None, entries or None)


def _ask(name: str, command: int, form: struct.Struct) -> tuple[Any, ...] | None:
    """The answer to an ethtool question; None where the driver has none."""
    import fcntl  # noqa: PLC0415 - Windows has none, and /sys neither

    if len(name.encode()) >= _NAME_BYTES:
        return None
    answer = ctypes.create_string_buffer(form.size)
    struct.pack_into("I", answer, 0, command)
    request = _REQUEST.pack(name.encode(), ctypes.addressof(answer))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            fcntl.ioctl(asked.fileno(), _SIOCETHTOOL, request)
    except OSError:
        return None
    return form.unpack(answer.raw)


def nics(tree: Tree, ask: AskNic | None) -> list[dict[str, Any]]:
    """Interfaces that have a driver (bridges, tunnels and loopback have none): driver, link, packet size, ring.

    Args:
        tree: of the machine.
        ask: asks an interface's driver; None when that cannot be asked.
    """
    interfaces = []
    for name in tree.names("/sys/class/net"):
        driver = tree.target(f"/sys/class/net/{name}/device/driver")
        if driver is None:
            continue
        state = tree.text(f"/sys/class/net/{name}/operstate")
        answers = NicAnswers() if ask is None else ask(name)
        settings = {
            "name": name,
            "type": Path(driver).name.replace("_", "-"),
            "connected": None if state in {None, "unknown"} else state == "up",
            "mtu_bytes": tree.number(f"/sys/class/net/{name}/mtu"),
            "driver_version": answers.driver_version,
            "rx_ring_count": answers.rx_ring_count,
        }
        interfaces.append({setting: value for setting, value in settings.items() if value is not None})
    return interfaces
