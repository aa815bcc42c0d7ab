"""The server of the live page: a thread of its own beside the watch."""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leadline.core.model.errors import ToolError
from leadline.core.system.extras import require

if TYPE_CHECKING:
    from leadline.app.watch.settings import PageSettings
    from leadline.app.watch.watching import Watch

CONNECTIONS_MAX = 128
CLOSE_WAIT_S = 5.0
_REQUEST_BYTES_MAX = 16 * 1024  # of its head


@dataclass(eq=False)
class ServedPage:
    """A page that is being served.

    Attributes:
        address: where people open it.
    """

    address: str
    _server: Any
    _over: threading.Event
    _thread: threading.Thread

    def close(self) -> None:
        """End the server; pages that are open say that they are not connected."""
        self._over.set()
        self._server.should_exit = True
        self._thread.join(CLOSE_WAIT_S)


def serve(watch: Watch) -> ServedPage:
    """Serve the page of a watch, as its settings say, until it is closed.

    Raises:
        ToolError: FastAPI is not installed, the address cannot be listened on, or token or certificate is missing.
    """
    require("fastapi")
    uvicorn = require("uvicorn")
    from leadline.faces.web.access import PageAccess  # noqa: PLC0415 - needs what was just required
    from leadline.faces.web.application import application  # noqa: PLC0415

    settings = watch.settings.page
    access = PageAccess.of(settings)
    over = threading.Event()
    _check_files(settings)
    listener = _listener(settings)
    config = uvicorn.Config(
        application(watch, access, over),
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        limit_concurrency=CONNECTIONS_MAX,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=_REQUEST_BYTES_MAX,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
    )
    try:
        config.load()
    except (OSError, ValueError) as error:
        listener.close()
        raise _unusable(f"{settings.certificate}, {settings.key}", error) from error
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), name="leadline-page", daemon=True)
    thread.start()
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return ServedPage(f"{'https' if access.is_tls else 'http'}://{shown}:{port}/", server, over, thread)


def _listener(settings: PageSettings) -> socket.socket:
    host, port = settings.host_port()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=CONNECTIONS_MAX)
    except OSError as error:
        raise ToolError(
            f"page.listen {settings.listen}",
            found=f"cannot be listened on ({error.strerror or error})",
            expected="a free port of an address of this machine",
            advice="Name another one in watch.yaml, or start the watch with --no-page.",
        ) from error


def _check_files(settings: PageSettings) -> None:
    for path in (settings.certificate, settings.key):
        if path is not None:
            try:
                path.read_bytes()
            except OSError as error:
                raise _unusable(str(path), error) from error


def _unusable(where: str, error: Exception) -> ToolError:
    return ToolError(
        where,
        found=f"cannot be used for TLS ({error})",
        expected="a certificate and its key, both PEM",
        advice="Name the files by page.certificate and page.key in watch.yaml.",
    )
