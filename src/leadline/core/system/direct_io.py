"""Whether a place can be read and written past the page cache."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from leadline.core.system.leftovers import scratch_folder


def takes_direct_io(path: Path) -> bool:
    """Whether a file or device, or files in a folder, can be opened past the page cache, which tmpfs refuses.

    Raises:
        OSError: it cannot be opened at all, or the folder takes no file.
    """
    if not path.is_dir():
        return _opens(path)
    with scratch_folder("direct", path) as scratch:
        tried = scratch / "file"
        tried.touch()
        return _opens(tried)


def _opens(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise
    return True
