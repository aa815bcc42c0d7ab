"""What a path lies on, as the kernel's list of mounts says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from leadline.lab import file_systems
from leadline.lab.file_systems import IN_MEMORY, file_system_of


@pytest.mark.parametrize("place", ["/", "/proc", "/dev/shm", "/sys"])
def test_the_type_is_that_of_the_mount(place: str) -> None:
    shown = subprocess.run(["findmnt", "-n", "-o", "FSTYPE", "-T", place], capture_output=True, text=True, check=False)
    if shown.returncode:
        pytest.skip("nothing is mounted there, or findmnt is not installed")
    assert file_system_of(Path(place)) == shown.stdout.split()[-1]
    assert (file_system_of(Path(place)) in IN_MEMORY) == (shown.stdout.split()[-1] == "tmpfs")


def test_a_kernel_that_does_not_tell_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_systems, "MOUNTS", tmp_path / "none")
    assert file_system_of(tmp_path) == ""
