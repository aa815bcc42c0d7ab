"""Folders for sockets: short, for this user alone, gone at the end."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from leadline.core.model.errors import ToolError
from leadline.core.system import sockets
from leadline.core.system.sockets import NAME_BYTES_MAX, PATH_BYTES_MAX, has_room, socket_folder


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Temporary files with a long path, as TMPDIR may say."""
    path = tmp_path / ("x" * 100)
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


def test_a_folder_is_where_temporary_files_are() -> None:
    with socket_folder("ll") as path:
        assert path.parent == Path(tempfile.gettempdir())
        assert path.stat().st_mode & 0o777 == 0o700
        (path / "one.sock").touch()
    assert not path.exists()


def test_a_long_path_is_avoided(far: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="ll-", dir="/tmp") as short:
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        with socket_folder() as path:
            assert path.parent == Path(short)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(far))
        with socket_folder() as path:
            assert path.parent == Path("/tmp")
            assert has_room(path, NAME_BYTES_MAX)


def test_no_short_folder_is_an_error(far: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_short_places", lambda: [far])
    with pytest.raises(ToolError, match=f"at most {PATH_BYTES_MAX} bytes"):
        socket_folder().__enter__()
