"""A LUN as the target of a load: ``iscsi://[USER@]HOST[:PORT]/IQN/LUN``, with one session or with several.

QEMU's initiator (libiscsi, in user space) logs in: nothing is attached to this machine, and nobody need be root. Each
session has its own connection to the target, and fio uses one socket for each session. Leadline distributes the jobs of
a stream over the sessions, so that one session and many get the same load. ``?sessions=4`` at the end of the address
asks for four. ``?chap_file=PATH`` names the file that holds the password of USER.

Source: qemu-storage-daemon(1), --blockdev driver=iscsi, --object secret, --export type=nbd; RFC 3720, sessions and
ISIDs (libiscsi draws one for each session); RFC 4173, names of LUNs; tgtadm(8).
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qsl

from leadline.app.measure.nbd import Export
from leadline.app.measure.workloads import require_fio
from leadline.benchmarks import fio
from leadline.core.contracts.benchmark import LoadPlan, Measured, Place, Say, Step
from leadline.core.contracts.load_target import Target, TargetKind
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.result import Watch
from leadline.core.model.workload import Workload
from leadline.core.system.leftovers import scratch_folder
from leadline.core.system.opened import printable
from leadline.core.system.processes import POLL_S, running
from leadline.core.system.safety import require_named

FORM = "iscsi://[USER@]HOST[:PORT]/IQN/LUN[?sessions=N]"
DAEMON = "qemu-storage-daemon"
PORT = 3260
SESSIONS_MAX = 64
LOGIN_S = 30.0  # Judgement: a login takes milliseconds; a target that does not answer is not waited for longer
_ADDRESS = re.compile(
    r"iscsi://(?:(?P<user>[A-Za-z0-9._-]{1,64})@)?(?P<host>\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+)(?::(?P<port>\d{1,5}))?"
    r"/(?P<target>[A-Za-z0-9.:-]{1,223})/(?P<lun>\d{1,5})(?:\?(?P<rest>[^?#]*))?"
)
_CUT = re.compile(r"[,\s]")  # in the words of QEMU's options


@dataclass(frozen=True, slots=True)
class Lun:
    """A LUN and how it is reached.

    Attributes:
        name: as the user named it.
        portal: host and port.
        target: its IQN.
        lun: number of it.
        sessions: how many there are at the same time.
        user: for CHAP; empty without.
        chap_file: the file with its password; empty without.
    """

    name: str
    portal: str
    target: str
    lun: int
    sessions: int = 1
    user: str = ""
    chap_file: str = ""

    def options(self, node: str) -> str:
        """QEMU's options for one session."""
        words = f"driver=iscsi,transport=tcp,node-name={node},portal={self.portal},target={self.target},lun={self.lun}"
        return f"{words},user={self.user},password-secret=chap" if self.user else words


def lun_of(name: str) -> Lun:
    """The LUN that an address names.

    >>> lun_of("iscsi://10.0.0.5/iqn.2026-11.example:db/1?sessions=4")
    Lun(name='iscsi://10.0.0.5/iqn.2026-11.example:db/1?sessions=4', portal='10.0.0.5:3260', \
target='iqn.2026-11.example:db', lun=1, sessions=4, user='', chap_file='')

    Raises:
        UsageError: it names none.
    """
    matched = _ADDRESS.fullmatch(name)
    if matched is None:
        raise _wrong(name, "an address that names no LUN", FORM)
    asked = dict(parse_qsl(matched["rest"] or "", keep_blank_values=True))
    unknown = sorted(asked.keys() - {"sessions", "chap_file"})
    if unknown:
        raise _wrong(name, f"{unknown[0][:40]} after the ?", "sessions or chap_file")
    sessions = asked.get("sessions", "1")
    if not sessions.isdecimal() or not 1 <= int(sessions) <= SESSIONS_MAX:
        raise _wrong(name, f"{sessions[:20] or 'no number'} of sessions", f"1 to {SESSIONS_MAX}")
    chap_file = asked.get("chap_file", "")
    if bool(chap_file) != bool(matched["user"]):
        raise _wrong(name, "a user without chap_file, or the other way round", "both for CHAP, or none")
    if chap_file and (_CUT.search(chap_file) or not Path(chap_file).is_file()):
        raise _wrong(name, f"chap_file {printable(chap_file)}", "a file that is there, without commas or blanks")
    portal = f"{matched['host']}:{matched['port'] or PORT}"
    return Lun(name, portal, matched["target"], int(matched["lun"]), int(sessions), matched["user"] or "", chap_file)


def _wrong(name: str, fault: str, expected: str) -> UsageError:
    return UsageError(
        printable(name),
        found=fault,
        expected=expected,
        advice=f"For example iscsi://10.0.0.5/iqn.2026-11.example:db/1, of the form {FORM}.",
    )


def plan(workload: Workload, target: Target) -> LoadPlan:
    """What a load of a LUN will do; nobody logs in yet.

    Raises:
        UsageError: the address names no LUN, its data may not be overwritten, the workload is not fio's, or it has too
            few jobs for so many sessions.
    """
    require_fio(workload, "For another load attach the LUN to this machine, and name its device or a folder on it.")
    read_only = all(stream.read_pct == 100.0 for stream in workload.io)
    luns: dict[str, Lun] = {}
    places: dict[str, Place] = {}
    for stream in workload.io:
        named = target.of_role(stream.role)
        if named.kind is not TargetKind.LUN:
            raise _wrong(named.name, "no LUN, beside one that is", "LUNs for all streams")
        lun = luns.setdefault(named.name, lun_of(named.name))
        if stream.jobs < lun.sessions:
            raise UsageError(
                f"stream {stream.name}: jobs",
                found=f"{stream.jobs}, for {lun.sessions} sessions",
                expected="at least a job for each session",
                advice="Fewer sessions, or more jobs in the workload file.",
            )
        if not read_only:
            require_named(named.name, target.destroy)
        size = -(-workload.working_set_bytes(stream) // fio.ALIGN) * fio.ALIGN
        places[stream.name] = Place(named.name, size, is_made=False)
    return LoadPlan(
        workload, target, places, tuple(_notes(luns.values())), "nbd", read_only, driver=LunDriver(tuple(luns.values()))
    )


def _notes(luns: Iterable[Lun]) -> Iterator[str]:
    for lun in luns:
        count = f"{lun.sessions} sessions" if lun.sessions > 1 else "one session"
        yield f"{lun.portal} LUN {lun.lun}: {count} of QEMU's initiator in user space, no multipath of this machine"


@dataclass(slots=True)
class LunDriver:
    """fio on LUNs: the driver of plans whose target is one; the sessions last from prepare to clean."""

    luns: tuple[Lun, ...]
    _running: ExitStack = field(default_factory=ExitStack)
    _exports: dict[str, tuple[str, ...]] = field(default_factory=dict)  # URIs of the sessions, by the address

    META = fio.META

    def plan(self, workload: Workload, target: Target) -> LoadPlan:
        """See `plan`."""
        return plan(workload, target)

    def prepare(self, plan: LoadPlan, folder: Path, say: Say) -> None:
        """Log in, and fill the LUN where the load writes.

        Raises:
            ToolError: the target refuses, the LUN is smaller than the working set, or fio fails.
        """
        for number, lun in enumerate(self.luns):
            say(f"logging in to {lun.target} at {lun.portal}, {lun.sessions} times")
            talk = folder / f"iscsi-{number}.txt"
            uris = self._running.enter_context(_logged_in(lun, writable=not plan.read_only, talk=talk))
            self._exports[lun.name] = uris
            _require_size(lun, uris[0], max(p.size_bytes for p in plan.places.values() if p.path == lun.name))
        fio.prepare(self._reached(plan), folder, lambda text: say(self._named(text)))

    def measure(self, plan: LoadPlan, step: Step, folder: Path, watch: Watch) -> Measured:
        """One run of fio.

        Raises:
            ToolError: fio fails, or the target is gone.
        """
        return fio.measure(self._reached(plan), step, folder, watch)

    def clean(self, plan: LoadPlan) -> None:
        """Log out."""
        fio.clean(plan)
        self._running.close()

    def _reached(self, plan: LoadPlan) -> LoadPlan:
        places = {}
        for name, place in plan.places.items():
            first, *further = self._exports[place.path]
            places[name] = replace(place, path=first, further=tuple(further))
        return replace(plan, places=places)

    def _named(self, text: str) -> str:
        for name, uris in self._exports.items():
            text = text.replace(uris[0], name)
        return text


@contextmanager
def _logged_in(lun: Lun, *, writable: bool, talk: Path) -> Iterator[tuple[str, ...]]:
    """The sessions of a LUN, each as the URI of an export; logged out on the way out.

    Raises:
        ToolError: QEMU or its initiator is not installed, or the target refuses.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder("iscsi"))
        server, access = folder / "nbd", "on" if writable else "off"
        words = [DAEMON, "--nbd-server", f"addr.type=unix,addr.path={server},max-connections=0"]
        if lun.user:
            words += ["--object", f"secret,id=chap,file={Path(lun.chap_file).absolute()}"]
        for number in range(lun.sessions):
            words += ["--blockdev", lun.options(f"d{number}")]
            words += ["--export", f"type=nbd,id=e{number},node-name=d{number},name=s{number},writable={access}"]
        # The socket is there before anybody logs in, the last export when all have.
        daemon = stack.enter_context(running(words, output=talk, folder=folder))
        last = f"nbd+unix:///s{lun.sessions - 1}?socket={server}"
        end = time.monotonic() + LOGIN_S
        while not _answers(server, last):
            if daemon.poll() is not None or time.monotonic() > end:
                raise _refused(lun, talk)
            time.sleep(POLL_S)
        yield tuple(f"nbd+unix:///s{number}?socket={server}" for number in range(lun.sessions))


def _answers(server: Path, uri: str) -> bool:
    """Whether an export is there."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(server))
        Export(uri).close()
    except OSError:
        return False
    return True


def _require_size(lun: Lun, uri: str, wanted: int) -> None:
    """Refuse a working set that the LUN does not hold.

    Raises:
        ToolError: it does not.
    """
    export = Export(uri)
    there = export.size_bytes
    export.close()
    if there < wanted:
        raise ToolError(
            lun.name,
            found=f"{there / 2**20:,.0f} MiB",
            expected=f"{wanted / 2**20:,.0f} MiB, the working set",
            advice="A smaller --set-size, or a larger LUN.",
        )


def _refused(lun: Lun, talk: Path) -> ToolError:
    lines = [line for line in talk.read_text(errors="replace").splitlines() if line.strip()]
    complaint = lines[-1].removeprefix(f"{DAEMON}: ")[-200:] if lines else f"no answer within {LOGIN_S:.0f} s"
    is_missing = "nknown driver" in complaint or "not find" in complaint
    return ToolError(
        lun.name,
        found=complaint,
        expected=f"{lun.sessions} sessions with LUN {lun.lun} of {lun.target}",
        advice="apt-get install qemu-block-extra, which has QEMU's initiator."
        if is_missing
        else "Look whether the target lets this machine in, and at its name, its LUN and CHAP.",
    )
