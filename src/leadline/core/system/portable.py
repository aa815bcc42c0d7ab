"""What Linux has and Windows lacks, with what stands for it there: flags of open files, the user, the processors.

Source: Python documentation, "os": O_BINARY and availability of each; open(2); sched_getaffinity(2).
"""

from __future__ import annotations

import os

# Not inherited by programs that are started; on Windows also bytes as they are, which is the rule elsewhere.
PLAIN_BYTES: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)


def user_id() -> int:
    """The number of the user whose rights count; 0 on Windows, where every file has owner 0."""
    ask = getattr(os, "geteuid", None)
    return 0 if ask is None else int(ask())


def usable_cpus() -> int:
    """How many processors this process may use."""
    ask = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if ask is None else len(ask(0))
