#!/bin/sh
# Installs the Debian packages that a job needs and that are not there yet: dependencies.sh JOB
# JOB is build, check, test, bench, experiments, mpi, wheel, deb or bare, as the jobs of the Makefile; bare is scripts/bare.
# Set ESPALIER_NO_INSTALL=1 to leave the system alone, for instance where the libraries come from elsewhere.
set -eu

build="gcc libc6-dev cmake ninja-build pkg-config zlib1g-dev libzstd-dev libxxhash-dev"
check="libcmocka-dev libsvm-dev zstd time python3 python3-venv clang-format"
mpi="libopenmpi-dev openmpi-bin"
test="$check clang python3-dev $mpi"
browser=chromium # large, and only for the reports: without it their tests in a browser are skipped

case "${1:-}" in
build) wanted=$build ;;
check) wanted="$build $check" ;;
test) wanted="$build $test" ;;
bench) wanted="$build libsvm-dev time" ;;
experiments) wanted="$build python3 time" ;;
mpi) wanted="$build $mpi" ;;
wheel) wanted="$build python3-dev python3-venv" ;;
deb) wanted="$build python3-dev debhelper dh-python" ;;
bare) wanted="debootstrap git zstd" ;;
*) echo "usage: dependencies.sh build|check|test|bench|experiments|mpi|wheel|deb|bare" >&2; exit 2 ;;
esac
[ -z "${ESPALIER_NO_INSTALL:-}" ] || exit 0

give_up()
{
    echo "espalier: $1" >&2
    echo "espalier: needed, by their Debian names: $wanted" >&2
    echo "espalier: where they are there under other names, set ESPALIER_NO_INSTALL=1" >&2
    exit 1
}
installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
not_installed() { for package; do installed "$package" || printf '%s ' "$package"; done; }

# The sanitizer and fuzzer runtimes of clang are packaged by its version: libclang-rt-14-dev in Debian 12.
clang_runtime()
{
    if installed clang; then dpkg-query -W -f '${Depends}\n' clang; else apt-cache depends clang; fi |
        sed -n 's/.*clang-\([0-9][0-9]*\).*/libclang-rt-\1-dev/p' | head -n 1
}

as_root()
{
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else give_up "installing packages takes root or sudo"
    fi
}
apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get "$@"; }

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
    give_up "this system has no apt, so packages cannot be installed here"

missing=$(not_installed $wanted)
wish=
if [ "$1" = test ] && ! installed "$browser"; then wish=$browser; fi
if [ "$1" = test ] && installed clang; then missing="$missing$(not_installed $(clang_runtime))"; fi
[ -n "$missing$wish" ] || exit 0

echo "espalier: looking for $missing$wish"
apt update -qq >/dev/null || give_up "the package lists cannot be fetched"
if [ "$1" = test ]; then missing=$(not_installed $wanted $(clang_runtime)); fi
if [ -n "$missing" ]; then
    echo "espalier: installing $missing"
    apt install -y -qq --no-install-recommends $missing >/dev/null || give_up "the packages cannot be installed"
fi
[ -z "$wish" ] || apt install -y -qq --no-install-recommends "$wish" >/dev/null ||
    echo "espalier: $wish cannot be installed; reports will not be tried in a browser"
