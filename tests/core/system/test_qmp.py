"""A connection to QEMU that is broken off: one error, and nothing left open. QEMU itself is in tests/collectors."""

from __future__ import annotations

import gc
import socket
import threading
from pathlib import Path

import pytest

from leadline.core.model.errors import ToolError
from leadline.core.system.qmp import Qmp


def test_qemu_that_ends_before_it_greets_is_an_error_and_leaves_no_socket(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(tmp_path / "monitor"))
        server.listen()

        def hang_up() -> None:
            server.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(ToolError, match="Is the guest running"):
            Qmp(tmp_path / "monitor")
        thread.join()
    gc.collect()  # a socket that is left open is an error of the tests then
