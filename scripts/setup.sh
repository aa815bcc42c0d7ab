#!/usr/bin/env bash
# Sets up everything `make run` and `make test` need: uv, the locked Python environment, the Rust extension, and, where
# we may, the Debian packages of the tools Leadline reads recordings of. Safe to run again; as root or as a user.
set -euo pipefail
cd "$(dirname "$0")/.."

# Packages, and the program each is there for.
PACKAGES="sysstat:sadf procps:vmstat fio:fio ioping:ioping postgresql:postgres postgresql-contrib:pgbench \
sysbench:sysbench mariadb-server-core:mariadbd mariadb-client-core:mariadb iperf3:iperf3 sockperf:sockperf \
iputils-ping:ping iproute2:ip chromium:chromium debootstrap:debootstrap qemu-system-common:qemu-storage-daemon \
libnbd-bin:nbdinfo \
qemu-system-x86:qemu-system-x86_64 qemu-utils:qemu-img busybox-static:busybox"

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 4; }

have() { PATH="$PATH:/usr/sbin:/sbin:$(echo /usr/lib/postgresql/*/bin | tr ' ' ':')" command -v "$1" >/dev/null 2>&1; }

install_packages() {
    local missing=""
    for pair in $PACKAGES; do
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

find_uv() {
    if command -v uv >/dev/null 2>&1; then echo uv; return; fi
    if [ ! -x .tools/python/bin/uv ]; then
        say "installing uv into .tools"
        python3 -m venv .tools/python 2>/dev/null || {
            [ "$(id -u)" -eq 0 ] && apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null
            python3 -m venv --clear .tools/python || fail "no Python venv module: apt-get install python3-venv"
        }
        .tools/python/bin/pip install -q uv || fail "could not install uv; install it by hand and try again"
    fi
    echo .tools/python/bin/uv
}

command -v python3 >/dev/null 2>&1 || fail "python3 not found: apt-get install python3"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "Python 3.11 or newer is needed, found $(python3 -V)"
command -v cargo >/dev/null 2>&1 || fail "cargo not found: install Rust 1.85 or newer (rustup, or your distribution)"

# govmomi's vCenter simulator, which the tests of the vCenter collector talk to.
install_vcsim() {
    if ! command -v go >/dev/null 2>&1 || [ -x .tools/bin/vcsim ]; then return 0; fi
    say "building the vCenter simulator"
    GOBIN="$PWD/.tools/bin" go install github.com/vmware/govmomi/vcsim@v0.30.7 2>/dev/null ||
        say "could not build it; the tests of the vCenter collector will be skipped"
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

# The same simulator with a template, addresses of workers and failures on request, for the tests of `bench fleet`.
install_vcsim_fleet() {
    local built=.tools/bin/vcsim-fleet
    if ! command -v go >/dev/null 2>&1 || { [ -x $built ] && [ $built -nt tests/vcsim/main.go ]; }; then return 0; fi
    say "building the simulator of the fleet's tests"
    mkdir -p .tools/bin
    (cd tests/vcsim && go build -o "../../$built" . 2>/dev/null) ||
        say "could not build it; the tests of leadline bench fleet will be skipped"
}

install_packages
install_vcsim
unpack_sshd
unpack_kernel
install_vcsim_fleet
UV=$(find_uv)
export UV_PYTHON_DOWNLOADS=never
[ -x .venv/bin/python ] || "$UV" venv -q --python "$(command -v python3)" .venv
export VIRTUAL_ENV="$PWD/.venv"
"$UV" pip sync -q --require-hashes requirements.lock
say "building the Rust extension"
"$UV" pip install -q --no-deps --no-build-isolation --editable .
touch .venv/.ready
