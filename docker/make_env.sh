#!/bin/sh
# Writes a .env beside .env.example, readable by this user only, with a fresh secret after every bare `=`.
# Usage: docker/make_env.sh [FILE]
set -eu
folder=$(dirname "$0")
target=${1:-$folder/.env}

# 32 bytes in URL-safe base64: what a Fernet key has to be, and what a database URL takes as it is.
secret() { head -c 32 /dev/urandom | base64 | tr '+/' '-_'; }

umask 077
set -C # an existing file is kept: its secrets encrypt what is in the volumes
while IFS= read -r line; do
    case $line in
        \#*) printf '%s\n' "$line" ;;
        *=) printf '%s%s\n' "$line" "$(secret)" ;;
        *) printf '%s\n' "$line" ;;
    esac
done <"$folder/.env.example" >"$target"
