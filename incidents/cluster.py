"""A small PostgreSQL cluster, made and filled on this machine and written into the images of a guest's disks."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

from leadline.core.model.errors import ToolError

OWNER_ID = 26  # of the user postgres in a guest of the lab
SCALE = 5
_OWNER = "postgres"


def server_programs() -> Path:
    """Return the folder of the newest PostgreSQL server, which is the one the lab puts into its guests.

    Raises:
        ToolError: there is none.
    """
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    if not programs:
        raise ToolError("PostgreSQL", found="no server", expected="its programs", advice="Install postgresql.")
    return programs[-1].parent


def fill_disks(data_image: Path, wal_image: Path) -> None:
    """Write a filled cluster into two raw images: ``pg`` on the first, its log ``pg_wal`` on the second.

    Raises:
        ToolError: a program is missing or fails.
    """
    # A folder the user postgres may enter, with a path short enough for a socket.
    folder = Path(tempfile.mkdtemp(prefix="leadline-cluster-", dir="/var/tmp"))
    try:
        data, wal = folder / "data" / "pg", folder / "wal" / "pg_wal"
        for path in (data.parent, wal.parent):
            path.mkdir()
        if os.geteuid() == 0:
            owner = pwd.getpwnam(_OWNER)
            for path in (folder, data.parent, wal.parent):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        _fill(folder, data, wal)
        (data / "pg_wal").unlink()
        (data / "pg_wal").symlink_to("/mnt/wal/pg_wal")
        for path, image in ((data.parent, data_image), (wal.parent, wal_image)):
            _run("mke2fs", "-q", "-F", "-t", "ext4", "-E", "root_owner=0:0", "-d", str(path), str(image))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill(folder: Path, data: Path, wal: Path) -> None:
    programs = server_programs()
    reach = ("-h", str(folder), "-U", "postgres")
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
    make = ("-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync", "--wal-segsize=4")
    _as_owner(str(programs / "initdb"), "-D", str(data), "-X", str(wal), *make)
    control = (str(programs / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log"))
    _as_owner(*control, "-o", options, "start")
    try:
        _as_owner(str(programs / "pgbench"), *reach, "-i", "-q", "-s", str(SCALE), "postgres")
    finally:
        _as_owner(*control, "-m", "fast", "stop")


def _as_owner(*words: str) -> None:
    """Run a program as the user postgres where we are root, which PostgreSQL refuses."""
    if os.geteuid() == 0:
        owner = pwd.getpwnam(_OWNER)
        ids = (f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups")
        words = ("setpriv", *ids, "--", *words)
    _run(*words)


def _run(*words: str) -> None:
    # A server that was started keeps the streams of pg_ctl; a file instead of a pipe lets pg_ctl end.
    with tempfile.TemporaryFile() as output:
        status = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False, cwd="/")
        if status.returncode:
            output.seek(0)
            lines = output.read().decode(errors="replace").strip().splitlines()
            raise ToolError(
                words[0],
                found=lines[-1] if lines else f"exit status {status.returncode}",
                expected="exit status 0",
                advice="Try it by hand: " + " ".join(words),
            )
