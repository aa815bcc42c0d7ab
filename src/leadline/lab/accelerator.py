"""KVM when it works, software emulation (TCG) otherwise; that it works is proven by booting a guest.

In nested set-ups ``/dev/kvm`` may open, accept a machine and never run an instruction of it.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from leadline.core.system.leftovers import scratch_folder
from leadline.core.system.tools import require_program
from leadline.lab.image import cache_folder, first_file_system
from leadline.lab.kernel import Kernel

PROGRAM = "qemu-system-x86_64"
PROOF_S = 20.0  # Judgement: with KVM the kernel is up in a second; without in seven
MARK = "leadline-guest-runs"
_DEVICE = Path("/dev/kvm")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Accelerator:
    """How guests are run, and why so."""

    name: Literal["kvm", "tcg"]
    reason: str

    @property
    def options(self) -> list[str]:
        """QEMU's options for it."""
        if self.name == "kvm":
            return ["-accel", "kvm", "-cpu", "host"]
        return ["-accel", "tcg,thread=multi", "-cpu", "max"]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences that a result of such a guest must carry."""
        if self.name == "kvm":
            return ()
        return (
            "software emulation: a guest's CPU is some ten times slower than real, so CPU-bound rates mean nothing; "
            f"limits, queues and their ratios hold ({self.reason})",
        )


def find_qemu() -> str:
    """The emulator.

    Raises:
        ToolError: it is not installed.
    """
    return require_program(PROGRAM, "the emulator", "qemu-system-x86")


def accelerator(kernel: Kernel) -> Accelerator:
    """Return what guests run on, KVM or TCG; it is proven once per start of this machine and kept.

    Raises:
        ToolError: there is no emulator.
    """
    qemu = find_qemu()
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        there = "may not be opened by this user" if _DEVICE.exists() else "is not there"
        return Accelerator("tcg", f"{_DEVICE} {there}")
    kept = cache_folder() / "accelerator.json"
    boot = _BOOT.read_text().strip()
    try:
        proof = json.loads(kept.read_text())
        if proof["boot"] == boot:
            return Accelerator(proof["name"], proof["reason"])
    except (OSError, ValueError, KeyError):
        pass
    proven = _prove(qemu, kernel)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({"boot": boot, "name": proven.name, "reason": proven.reason}))
    return proven


def _prove(qemu: str, kernel: Kernel) -> Accelerator:
    kvm = Accelerator("kvm", "a guest booted with it")
    with scratch_folder("accelerator") as folder:
        initrd = folder / "initrd"
        initrd.write_bytes(first_file_system(kernel))
        words = [qemu, *kvm.options, "-m", "384", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
        words += ["-kernel", str(kernel.image), "-initrd", str(initrd), "-serial", "stdio"]
        words += ["-append", "console=ttyS0 quiet leadline.proof"]
        try:
            done = subprocess.run(words, capture_output=True, timeout=PROOF_S, check=False, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return Accelerator("tcg", f"{_DEVICE} opens, but a guest did not boot with it within {PROOF_S:.0f} s")
    if MARK.encode() in done.stdout:
        return kvm
    errors = done.stderr.decode(errors="replace").strip().splitlines()
    return Accelerator("tcg", f"{_DEVICE} opens, but QEMU failed with it: {errors[0] if errors else 'no output'}")
