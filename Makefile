# What people type: make run, make test. What developers type: make test-real, lint, fmt, bench, docs, new.
.DELETE_ON_ERROR:
.PHONY: run simulator test test-python test-rust test-real setup-all lint fmt bench bench-import bench-damage bench-faults bench-incidents bench-cuts bench-several bench-live bench-away bench-played bench-store bench-watch bench-diagnose bench-as-vmstat bench-account record-incidents bench-audit bench-report bench-kills bench-iostat bench-logs bench-measure bench-limit bench-tier bench-calibrate bench-hosts bench-loads bench-sim bench-plan bench-reduction bench-estate bench-folder corpus gallery fuzz fuzz-readers docs new lock dist bundle clean

PY := .venv/bin/python
BIN := .venv/bin
# Compiled once and kept, also where the shell says otherwise: starting and collecting tests takes half the time.
unexport PYTHONDONTWRITEBYTECODE
# Each level of the set-up has what the one before has.
READY_RUN := .venv/.ready-run
READY_SIMULATOR := .venv/.ready-simulator
READY := .venv/.ready-test
READY_ALL := .venv/.ready-all
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
EXAMPLE := examples/incidents/throttled-wal-disk

run: $(READY_RUN)
	@$(BIN)/leadline diagnose $(EXAMPLE)
	@printf '\nThat was an incident recorded with real tools; examples/incidents says what was done to the machine.\nNext:\n  source .venv/bin/activate\n  leadline diagnose YOUR-RECORDINGS...   esxtop, iostat, vmstat, sar, fio, pgbench, folders, archives\n  leadline --help\n'
	@scripts/setup.sh behind

$(READY_RUN): requirements-run.lock requirements-uv.lock pyproject.toml scripts/setup.sh $(RUST_SOURCES)
	@scripts/setup.sh run

# All of Leadline: `make run` builds the simulator in the background, this waits for it.
simulator: $(READY_SIMULATOR)

$(READY_SIMULATOR): requirements-run.lock requirements-uv.lock pyproject.toml scripts/setup.sh $(RUST_SOURCES)
	@scripts/setup.sh simulator

$(READY): requirements.lock requirements-uv.lock pyproject.toml scripts/setup.sh $(RUST_SOURCES)
	@scripts/setup.sh test

$(READY_ALL): $(READY)
	@scripts/setup.sh all

setup-all: $(READY_ALL)

# Idle workers take tests from busy ones; the order is the same each time. One short real run of each tool is among them.
PYTEST := $(BIN)/pytest -q -n auto --randomly-seed=1
test: $(READY)
	@$(MAKE) --no-print-directory -j 2 test-python test-rust

test-python:
	$(PYTEST) --dist worksteal -m "smoke or not (real or slow)"

# Beside the Python tests, in what they leave of the machine; the Python module has no test in Rust.
test-rust:
	@mkdir -p target
	@PROPTEST_RNG_SEED=1 nice -n 10 cargo test --workspace --exclude leadline-bench --exclude leadline-python --quiet \
		--locked >target/test-rust.txt 2>&1 || { cat target/test-rust.txt; exit 1; }
	@awk '/^test result: ok/ { count += $$4 } END { printf "Rust: %d passed\n", count }' target/test-rust.txt

# The other tests that drive real tools, boot guests or take long. They wait more than they compute: three workers for two
# cores. Each is told as it begins and ends.
REAL_WORKERS := $(shell echo $$(($$(nproc) * 3 / 2)))
test-real: $(READY_ALL)
	$(BIN)/pytest -v --randomly-seed=1 -n $(REAL_WORKERS) --dist loadfile --durations 15 -m "(real or slow) and not smoke"

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

bench: bench-import bench-iostat bench-logs bench-measure bench-limit bench-calibrate bench-hosts bench-loads bench-sim bench-plan bench-reduction bench-estate bench-folder bench-faults bench-audit bench-report bench-damage

bench-damage: $(READY)
	$(PY) -m benches.bench_damage

bench-import: $(READY)
	$(PY) -m benches.bench_import

bench-iostat: $(READY)
	$(PY) -m benches.bench_iostat

bench-logs: $(READY)
	$(PY) -m benches.bench_logs

bench-trace: $(READY)
	$(PY) -m benches.bench_trace

bench-measure: $(READY) bench-trace
	$(PY) -m benches.bench_measure

bench-tier: $(READY)
	$(PY) -m benches.bench_tier

bench-limit: $(READY)
	$(PY) -m benches.bench_limit

bench-calibrate: $(READY)
	$(PY) -m benches.bench_calibrate

bench-hosts: $(READY)
	$(PY) -m benches.bench_hosts

bench-loads: $(READY)
	$(PY) -m benches.bench_loads

bench-sim: $(READY)
	$(PY) -m benches.bench_sim

bench-plan: $(READY)
	$(PY) -m benches.bench_plan

bench-reduction: $(READY)
	$(PY) -m benches.bench_reduction

bench-estate: $(READY)
	$(PY) -m benches.bench_estate

bench-folder: $(READY)
	$(PY) -m benches.bench_folder

bench-report: $(READY)
	$(PY) -m benches.bench_report

bench-audit: $(READY)
	$(PY) -m benches.bench_audit

bench-faults: $(READY)
	$(PY) -m benches.bench_faults

bench-cuts: $(READY)
	$(PY) -m benches.bench_cuts

bench-account: $(READY)
	$(PY) -m benches.bench_account

bench-incidents: $(READY)
	$(PY) -m benches.bench_incidents

# As root, on a quiet machine: what is missing of incidents/recorded is recorded anew, within an hour; it goes on where an
# interrupted run ended. KINDS="slow-disk lock-waits" for some, ARGUMENTS=--again to replace what is there.
record-incidents: $(READY_ALL)
	$(PY) -m incidents.record $(KINDS) $(ARGUMENTS)

bench-live: $(READY)
	$(PY) -m benches.bench_live

bench-away: $(READY)
	$(PY) -m benches.bench_away

bench-played: $(READY)
	$(PY) -m benches.bench_played

bench-watch: $(READY)
	$(PY) -m benches.bench_watch $(ARGUMENTS)

bench-store: $(READY)
	$(PY) -m benches.bench_store $(ARGUMENTS)

bench-diagnose: $(READY)
	$(PY) -m benches.bench_diagnose

bench-several: $(READY)
	$(PY) -m benches.bench_several

bench-as-vmstat: $(READY)
	$(PY) -m benches.bench_as_vmstat

bench-kills: $(READY)
	$(PY) -m benches.bench_kills

corpus: $(READY)
	$(PY) -m scripts.corpus
	$(PY) -m scripts.real_files

# First screens of ten recorded incidents and pictures of their pages, for the documentation (needs Debian's chromium).
gallery: $(READY)
	$(PY) -m scripts.gallery --pictures

# Damaged recordings for every importer (`make fuzz COUNT=200000` takes minutes to an hour), then properties with other examples.
COUNT ?= 20000
fuzz: $(READY)
	$(PY) -m benches.fuzz_importers --count $(COUNT)
	LEADLINE_FUZZ_EXAMPLES=2000 $(BIN)/pytest -q -n auto --hypothesis-profile explore tests
	PROPTEST_CASES=20000 cargo test --workspace --exclude leadline-bench --release --quiet

# The Rust readers, guided by coverage. Hours.
fuzz-readers:
	scripts/fuzz_readers.sh 10000000

docs: $(READY)
	$(PY) -m scripts.reference
	$(BIN)/mkdocs build --quiet --strict --site-dir site

new: $(READY)
	$(PY) -m scripts.new_unit $(filter-out new,$(MAKECMDGOALS))

# What is pinned stays as it is unless it no longer fits pyproject.toml; `make lock UPGRADE=--upgrade` takes the newest.
COMPILE := uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header $(UPGRADE)
lock:
	$(COMPILE) pyproject.toml --all-extras --group dev -o requirements.lock
	$(COMPILE) pyproject.toml --extra all --group build -c requirements.lock -o requirements-run.lock
	$(COMPILE) --group dist -o requirements-dist.lock
	$(COMPILE) --group bootstrap -o requirements-uv.lock

# Wheels into dist/: for this machine's processor, or MACHINES="x86_64 aarch64"; tested in an empty environment.
dist: $(READY)
	$(PY) -m scripts.dist $(MACHINES)

# One file for hosts of this machine's processor that have neither Python nor a network; EXTRAS=ssh,vcenter adds packages.
bundle: $(READY)
	$(PY) -m scripts.bundle $(EXTRAS)

clean:
	rm -rf .venv .tools target site docs/reference

# `make new rule cpu-foo-high`: the words after `new` are arguments, not targets.
ifeq (new,$(firstword $(MAKECMDGOALS)))
$(filter-out new,$(MAKECMDGOALS)):
	@:
endif
