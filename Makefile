# What people type: make run, make test. What developers type: make lint, fmt, bench, docs, new.
.DELETE_ON_ERROR:
.PHONY: run test lint fmt bench bench-import bench-faults bench-audit bench-report bench-iostat bench-measure bench-limit bench-hosts bench-sim bench-plan corpus fuzz docs new lock clean

PY := .venv/bin/python
BIN := .venv/bin
READY := .venv/.ready
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
EXAMPLE := examples/incidents/throttled-wal-disk

run: $(READY)
	@$(BIN)/leadline diagnose $(EXAMPLE)
	@printf '\nThat was an incident recorded with real tools; examples/incidents says what was done to the machine.\nNext:\n  source .venv/bin/activate\n  leadline diagnose YOUR-RECORDINGS...   esxtop, iostat, vmstat, sar, fio, pgbench, folders, archives\n  leadline --help\n'

$(READY): requirements.lock pyproject.toml scripts/setup.sh $(RUST_SOURCES)
	@scripts/setup.sh

test: $(READY)
	PROPTEST_RNG_SEED=1 cargo test --workspace --quiet
	$(BIN)/pytest -q -n auto --dist loadfile --randomly-seed=1

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PY) -m mypy.stubtest leadline._core
	$(BIN)/lint-imports
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/pytest -q -p no:randomly tests/test_house_rules.py tests/test_registry.py

fmt: $(READY)
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .
	cargo fmt --all

bench: bench-import bench-iostat bench-measure bench-limit bench-hosts bench-sim bench-plan bench-faults bench-audit bench-report

bench-import: $(READY)
	$(PY) -m benches.bench_import

bench-iostat: $(READY)
	$(PY) -m benches.bench_iostat

bench-trace: $(READY)
	$(PY) -m benches.bench_trace

bench-measure: $(READY) bench-trace
	$(PY) -m benches.bench_measure

bench-limit: $(READY)
	$(PY) -m benches.bench_limit

bench-hosts: $(READY)
	$(PY) -m benches.bench_hosts

bench-sim: $(READY)
	$(PY) -m benches.bench_sim

bench-plan: $(READY)
	$(PY) -m benches.bench_plan

bench-report: $(READY)
	$(PY) -m benches.bench_report

bench-audit: $(READY)
	$(PY) -m benches.bench_audit

bench-faults: $(READY)
	$(PY) -m benches.bench_faults

corpus: $(READY)
	$(PY) -m scripts.corpus

fuzz: $(READY)
	LEADLINE_FUZZ_EXAMPLES=2000 $(BIN)/pytest -q -n auto --hypothesis-profile explore tests
	PROPTEST_CASES=20000 cargo test --workspace --release --quiet

docs: $(READY)
	$(PY) -m scripts.reference
	$(BIN)/mkdocs build --quiet --strict --site-dir site

new: $(READY)
	$(PY) -m scripts.new_unit $(filter-out new,$(MAKECMDGOALS))

lock:
	uv lock --quiet
	uv export --quiet --all-groups --no-emit-project --no-header --no-annotate --format requirements-txt -o requirements.lock

clean:
	rm -rf .venv .tools target site docs/reference

# `make new rule cpu-foo-high`: the words after `new` are arguments, not targets.
ifeq (new,$(firstword $(MAKECMDGOALS)))
$(filter-out new,$(MAKECMDGOALS)):
	@:
endif
