#!/usr/bin/env bash
# Makes the virtual environment that every make target works in, and sees that Java and PostgreSQL are there.
# Usage: scripts/setup.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1

say() { printf 'setup: %s\n' "$*" >&2; }

# apt-get needs root; without it, one line says what to install.
install_debian() {
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        say "installing $*"
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } >&2
    else
        say "install $* first (on Debian: sudo apt-get install $*)"
        exit 1
    fi
}

java_major() { "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1; }
has_java() {
    local major
    major=$(java_major || true)
    [ "${major:-0}" -ge 17 ]
}
has_postgresql() { command -v initdb >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null; }
find_python() {
    for name in python3.12 python3.11 python3; do
        if "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
}

# Debian's default: Java 17 on Debian 12, 21 on Debian 13. Beside a JAVA_HOME that is too old it would not count.
has_java || install_debian default-jre-headless || true
if ! has_java; then
    say "install Java 17 or later${JAVA_HOME:+, and point JAVA_HOME at it instead of $JAVA_HOME}, then run make again"
    exit 1
fi

python=$(find_python)
if [ -z "$python" ]; then
    install_debian python3 python3-venv
    python=$(find_python)
    [ -n "$python" ] || { say "Python 3.11 or 3.12 is needed, and $(python3 --version) was found"; exit 1; }
fi
"$python" -c 'import ensurepip, venv' 2>/dev/null || install_debian python3-venv

# A few tests alone need it, and fail without it: where it cannot be had, everything else goes on.
has_postgresql || (install_debian postgresql) || true
has_postgresql || say "the tests on a PostgreSQL will fail: there is none on this machine"

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
# One run, so that nothing is left over that the lock does not name.
"$venv/bin/uv" pip sync --quiet --require-hashes --compile-bytecode --python "$venv/bin/python" \
    --build-constraints requirements/build.txt \
    requirements/bootstrap.txt requirements/dev.txt
"$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --editable .
touch "$venv/.ready"
