"""Fixtures of the tests of notifiers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notifiers.receivers import PASSWORD, Certificate, make_certificate


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(f"{PASSWORD}\n")
    return path
