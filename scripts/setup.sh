#!/usr/bin/env bash
# Sets up what a command needs, and says what it does. Safe to run again; as root or as a user.
#   setup.sh run        the locked Python packages and the Rust extension but for the simulator (no system package)
#   setup.sh simulator  the same with the simulator: all of `leadline`; may run while Leadline does
#   setup.sh behind     starts `setup.sh simulator` and does not wait for it
#   setup.sh test       and what `make test` needs: the packages of the tests, a few tools, the vCenter simulator
#   setup.sh all        and what `make test-real` needs: every tool Leadline drives, guests, an SSH server
# A step that a user without root cannot do is left out and said.
set -euo pipefail
cd "$(dirname "$0")/.."
LEVEL=${1:-run}
export UV_PYTHON_DOWNLOADS=never
RUST_NEEDED=1.85
WHEEL=""

# Packages, and the program each is there for.
PACKAGES_TEST="sysstat:sadf procps:vmstat fio:fio postgresql:postgres postgresql-contrib:pgbench chromium:chromium \
ioping:ioping iproute2:ip ethtool:ethtool"
PACKAGES_ALL="sysbench:sysbench wrk:wrk mariadb-server-core:mariadbd mariadb-client-core:mariadb iperf3:iperf3 \
sockperf:sockperf iputils-ping:ping debootstrap:debootstrap fuse3:fusermount3 libnbd-bin:nbdinfo \
qemu-system-common:qemu-storage-daemon qemu-system-x86:qemu-system-x86_64 qemu-utils:qemu-img busybox-static:busybox \
nbdkit:nbdkit shellcheck:shellcheck perftest:ib_send_lat stress-ng:stress-ng nftables:nft faketime:faketime pgbadger:pgbadger \
buildah:buildah"

say() { printf 'setup: %3d s  %s\n' "$SECONDS" "$*" >&2; }
fail() { say "$*"; exit 4; }

have() { PATH="$PATH:/usr/sbin:/sbin:$(echo /usr/lib/postgresql/*/bin | tr ' ' ':')" command -v "$1" >/dev/null 2>&1; }

check_tools() {
    command -v python3 >/dev/null 2>&1 || fail "python3 not found: apt-get install python3"
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "Python 3.11 or newer is needed, found $(python3 -V)"
    python3 -c 'import ensurepip, venv' 2>/dev/null || command -v uv >/dev/null 2>&1 ||
        fail "no Python venv module: apt-get install python3-venv"
    check_rust
}

# Without a fitting Rust a wheel in dist/ serves for running; else say what to type on this machine.
check_rust() {
    local found="cargo not found" version get wheel
    if command -v cargo >/dev/null 2>&1; then
        version=$(cargo --version 2>/dev/null | sed -n 's/^cargo \([0-9.]*\).*/\1/p') || version=
        ! printf '%s\n' "$RUST_NEEDED" "${version:-0}" | sort -V -C || return 0
        found="cargo ${version:-of no known version} is too old"
    fi
    for wheel in dist/leadline-*"$(uname -m)".whl; do
        if [ -e "$wheel" ] && { [ -z "$WHEEL" ] || [ "$wheel" -nt "$WHEEL" ]; }; then WHEEL=$wheel; fi
    done
    case $LEVEL in
    run | simulator)
        if [ -n "$WHEEL" ]; then
            say "$found; using $WHEEL: what runs is that wheel, not the sources here"
            return 0
        fi
        ;;
    esac
    if command -v rustup >/dev/null 2>&1; then
        get="rustup update stable && rustup default stable"
    elif command -v apt-cache >/dev/null 2>&1 && [ -n "$(apt-cache show rustup 2>/dev/null)" ]; then
        get="apt-get install rustup && rustup default stable"
    else
        get="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
    fi
    fail "$found; Rust $RUST_NEEDED or newer is needed. Run:
  $get
or, without Rust, put a wheel into dist/ and run make run again. \`make dist\` on a machine with Rust builds one;
docs/guides/install.md says how to use it without this checkout."
}

# The locked packages and a wheel instead of the extension of these sources.
install_wheel() {
    find_uv
    install_python requirements-run.lock install -r
    "$UV" pip install --quiet --python .venv --no-deps --reinstall-package leadline "$WHEEL"
    touch .venv/.ready-run .venv/.ready-simulator
    say "ready"
}

# Most of the extension is compiled while the Python packages are fetched; the build of the extension goes on from there.
start_compiling() {
    say "compiling the $1 (Rust) beside the next steps"
    # shellcheck disable=SC2086
    cargo build --release --quiet --locked $2 &
    COMPILING=$!
}

find_uv() {
    if command -v uv >/dev/null 2>&1; then UV=uv; return; fi
    UV=.tools/python/bin/uv
    [ ! -x $UV ] || return 0
    say "fetching uv, which installs Python packages, into .tools"
    python3 -m venv --clear .tools/python
    .tools/python/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock ||
        fail "could not install uv; install it by hand and try again"
}

# install_python FILE HOW...: the packages of a lock file, checked by hash, into .venv; HOW is a command of `uv pip`
install_python() {
    local file=$1
    shift
    [ -x .venv/bin/python ] || "$UV" venv --quiet --python "$(command -v python3)" .venv
    say "installing $(grep -c '^[a-z].*==' "$file") Python packages of $file, checked by hash"
    "$UV" pip "$1" --quiet --python .venv --require-hashes "${@:2}" "$file"
}

build_extension() {
    wait "$COMPILING" || fail "the Rust code does not compile; see above"
    say "building the extension"
    if [ "$LEVEL" = simulator ] && [ -e .venv/.ready-run ]; then
        cargo build --release --quiet --locked -p leadline-python
        # Under its name at once and as another file: Leadline may be running with the old one.
        cp "${CARGO_TARGET_DIR:-target}/release/lib_core.so" src/leadline/new-core.so
        mv -f src/leadline/new-core.so src/leadline/_core.abi3.so
        return
    fi
    "$UV" pip install --quiet --python .venv --no-deps --no-build-isolation --editable .
}

# install_packages PAIRS: the Debian packages whose program is missing
install_packages() {
    local missing=""
    for pair in $1; do
        have "${pair#*:}" || missing="$missing ${pair%%:*}"
    done
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        say "not installed (needs root):$missing; Leadline works without, 'leadline doctor' says what is lost"
        return 0
    fi
    say "installing$missing"
    # shellcheck disable=SC2086
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } \
        >/dev/null || say "could not install$missing; going on without"
}

# The iSCSI initiator of QEMU, a module without a program of its own, and a target for the tests; the service that comes
# with the target must not answer at port 3260 of this machine.
install_iscsi() {
    if ! ls /usr/lib/*/qemu/block-iscsi.so >/dev/null 2>&1; then install_packages "qemu-block-extra:block-iscsi.so"; fi
    if have tgtd; then return 0; fi
    systemctl mask --quiet tgt 2>/dev/null || true
    install_packages "tgt:tgtd"
}

# The program of the throw-away web server; the service that comes with it must not answer at port 80 of this machine.
install_nginx() {
    if have nginx; then return 0; fi
    systemctl mask --quiet nginx 2>/dev/null || true
    install_packages "nginx-light:nginx"
    systemctl unmask --quiet nginx 2>/dev/null || true
    systemctl disable --quiet nginx 2>/dev/null || true
}

# govmomi's vCenter simulator, which the tests of the vCenter collector talk to.
install_vcsim() {
    if ! command -v go >/dev/null 2>&1 || [ -x .tools/bin/vcsim ]; then return 0; fi
    say "building the vCenter simulator"
    GOBIN="$PWD/.tools/bin" go install github.com/vmware/govmomi/vcsim@v0.30.7 2>/dev/null ||
        say "could not build it; the tests of the vCenter collector will be skipped"
}

# The server that the notifier's test closes alerts at.
install_alertmanager() {
    if ! command -v go >/dev/null 2>&1 || [ -x .tools/bin/alertmanager ]; then return 0; fi
    say "building Alertmanager"
    GOBIN="$PWD/.tools/bin" go install github.com/prometheus/alertmanager/cmd/alertmanager@v0.27.0 2>/dev/null ||
        say "could not build it; the test of the notifier against a real Alertmanager will be skipped"
}

# The server that samples of a watch may be kept in.
install_victoriametrics() {
    if ! command -v go >/dev/null 2>&1 || [ -x .tools/bin/victoria-metrics ]; then return 0; fi
    say "building VictoriaMetrics"
    GOBIN="$PWD/.tools/bin" CGO_ENABLED=0 \
        go install github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics@v1.93.0 2>/dev/null ||
        say "could not build it; the tests of the store in VictoriaMetrics will be skipped"
}

# The proxy through which a client of the incident rig reaches its server over a long way.
install_toxiproxy() {
    if ! command -v go >/dev/null 2>&1 || [ -x .tools/bin/toxiproxy-server ]; then return 0; fi
    say "building toxiproxy"
    local built
    built=$(mktemp -d)
    if GOBIN="$built" go install github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0 2>/dev/null; then
        mkdir -p .tools/bin && mv "$built/server" .tools/bin/toxiproxy-server
    else
        say "could not build it; incidents of a bad network cannot be recorded"
    fi
    rm -rf "$built"
}

# The load of TPC-C and TPC-H.
install_go_tpc() {
    if ! command -v go >/dev/null 2>&1 || [ -x .tools/bin/go-tpc ]; then return 0; fi
    say "building go-tpc"
    GOBIN="$PWD/.tools/bin" go install github.com/pingcap/go-tpc/cmd/go-tpc@v1.0.12 2>/dev/null ||
        say "could not build it; the tests of its loads will be skipped"
}

# The same simulator with a template, addresses of workers and failures on request, for the tests of `bench fleet`.
install_vcsim_fleet() {
    local built=.tools/bin/vcsim-fleet
    if ! command -v go >/dev/null 2>&1 || { [ -x $built ] && [ $built -nt tests/vcsim/main.go ]; }; then return 0; fi
    say "building the simulator of the fleet's tests"
    mkdir -p .tools/bin
    (cd tests/vcsim && go build -o "../../$built" . 2>/dev/null) ||
        say "could not build it; the tests of leadline bench fleet will be skipped"
}

# An SSH server for the tests of machines reached over SSH: unpacked beside us, never installed or started here.
unpack_sshd() {
    if [ -x .tools/sshd/usr/sbin/sshd ] || ! command -v dpkg >/dev/null 2>&1; then return 0; fi
    say "unpacking an SSH server for the tests"
    local here
    here=$(mktemp -d)
    # shellcheck disable=SC2015
    (cd "$here" && apt-get download -qq openssh-server libwrap0 >/dev/null 2>&1) &&
        for package in "$here"/*.deb; do dpkg -x "$package" .tools/sshd; done ||
        say "could not fetch it; the tests over SSH will be skipped"
    rm -rf "$here"
}

# The kernel of the lab's guests: Debian's package unpacked beside us, never installed.
unpack_kernel() {
    if compgen -G ".tools/lab/kernel/boot/vmlinuz-*" >/dev/null || ! command -v apt-cache >/dev/null 2>&1; then return 0; fi
    local package here
    package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p' | head -1)
    say "unpacking a kernel for the lab's guests"
    here=$(mktemp -d)
    # shellcheck disable=SC2015
    [ -n "$package" ] && (cd "$here" && apt-get download -qq "$package" >/dev/null 2>&1) &&
        mkdir -p .tools/lab/kernel && dpkg -x "$here"/*.deb .tools/lab/kernel ||
        say "could not fetch it; leadline lab and its tests need one"
    rm -rf "$here"
}

if [ "$LEVEL" = behind ]; then
    [ ! -e .venv/.ready-simulator ] || exit 0
    mkdir -p target
    say "compiling the simulator in the background, for \`leadline simulate\`; target/simulator.log says how it goes"
    setsid nohup nice scripts/setup.sh simulator >target/simulator.log 2>&1 </dev/null &
    exit 0
fi
check_tools
if [ -n "$WHEEL" ]; then
    install_wheel
    exit 0
fi
case $LEVEL in
run)
    export MATURIN_PEP517_ARGS="--no-default-features"
    start_compiling readers "-p leadline-parse"
    ;;
*) start_compiling "readers and the simulator" "-p leadline-parse -p leadline-sim" ;;
esac
find_uv
case $LEVEL in
run | simulator) install_python requirements-run.lock install -r ;;
test | all)
    install_python requirements.lock sync
    install_packages "$PACKAGES_TEST"
    install_vcsim
    install_alertmanager
    install_victoriametrics
    ;;
*) fail "there is no level $LEVEL: run, simulator, behind, test or all" ;;
esac
if [ "$LEVEL" = all ]; then
    install_packages "$PACKAGES_ALL"
    install_nginx
    install_iscsi
    [ -e /usr/include/nbdkit-plugin.h ] || install_packages "nbdkit-plugin-dev:nbdkit-plugin.h"
    [ -e /usr/lib/wine/wine64 ] || install_packages "wine64:wine64" # a registry to prove exports for Windows on
    unpack_sshd
    unpack_kernel
    install_vcsim_fleet
    install_toxiproxy
    install_go_tpc
fi
build_extension
# What a level has, the levels below it have too.
touch .venv/.ready-run
if [ "$LEVEL" = run ]; then rm -f .venv/.ready-simulator; else touch .venv/.ready-simulator; fi
case $LEVEL in test | all) touch .venv/.ready-test ;; esac
case $LEVEL in all) touch .venv/.ready-all ;; esac
say "ready"
