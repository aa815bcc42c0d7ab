"""Experiments run once for all tests of a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from leadline.app.simulate.reproducing import Reproduction, reproduce


@pytest.fixture(scope="session")
def reproduced() -> Callable[[str], Reproduction]:
    @cache
    def one(name: str) -> Reproduction:
        return reproduce([name])[0]

    return one
