"""Every kind of incident declares what the recorder and the bench need."""

import random

import pytest

from incidents import record, session
from incidents.contract import KindModule, described

KINDS = record.kinds()
RECORDERS = {
    *("iostat", "vmstat", "mpstat", "pidstat", "sar", "psi", "pgbench", "sysbench"),
    *("postgresql-log", "pg-stat", "active-sessions", "ss", "qemu", "linux", "mysql-status"),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> tuple[str, KindModule]:
    return request.param, record.load_kind(request.param)


def test_there_are_thirty_kinds_and_eight_of_them_healthy() -> None:
    healthy = [name for name in KINDS if record.load_kind(name).KIND.truth is None]
    assert len(KINDS) >= 30
    assert len(healthy) >= 8


def test_a_summary_says_the_parameters_and_a_seed_draws_the_same_again(kind: tuple[str, KindModule]) -> None:
    name, module = kind
    for number in (1, 2, 3):
        parameters = session.Variant(name, number).parameters(module)
        assert parameters == session.Variant(name, number).parameters(module)
        assert "{" not in described(module.KIND, parameters)


def test_variants_differ(kind: tuple[str, KindModule]) -> None:
    name, module = kind
    if name == "healthy-plain":
        pytest.skip("it has nothing to draw")
    assert len({str(module.draw(random.Random(seed))) for seed in range(40)}) >= 2


def test_a_truth_names_recorders_and_disks_there_are(kind: tuple[str, KindModule]) -> None:
    name, module = kind
    truth = module.KIND.truth
    if truth is None:
        assert name.startswith("healthy-") or name == "time-step"
        return
    parameters = session.Variant(name, 1).parameters(module)
    roles = {role.format(**parameters) for role in (*truth.roles, *truth.innocent_roles)}
    assert roles <= {"data", "wal"}
    assert truth.layers
    assert set(truth.visible_in) <= RECORDERS
    assert not set(truth.layers) & set(truth.innocent_layers)


def test_about_half_of_the_variants_are_set_aside_and_at_least_one_of_each_kind() -> None:
    aside = {name: [n for n in (1, 2, 3) if session.Variant(name, n).is_set_aside(3)] for name in KINDS}
    assert all(1 <= len(numbers) <= 2 for numbers in aside.values())
    assert 0.35 <= sum(map(len, aside.values())) / (3 * len(KINDS)) <= 0.65
