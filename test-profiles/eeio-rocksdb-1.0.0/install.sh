#!/bin/sh
# Takes the system's db_bench (EEIO_DB_BENCH names another), and tries whether what it tells can be read.
# shellcheck disable=SC2015 # finish leaves
profile=$(cd "${0%/*}" && pwd)

finish() { # STATUS [what to do]
	echo "$1" >"$HOME/install-exit-status"
	rm -rf "$HOME/probe" "$HOME/probe.err"
	[ -z "${2:-}" ] || echo "eeio-rocksdb: $2" >&2
	exit "$1"
}

cd "$HOME" || exit 1
cp "$profile/words.sh" "$profile/factors.sh" "$profile/presets.conf" "$profile/workload.py" . &&
	cp "$profile/eeio-rocksdb.sh" eeio-rocksdb && chmod +x eeio-rocksdb ||
	finish 1 "$HOME: the profile's files could not be copied there"
path=$(command -v "${EEIO_DB_BENCH:-db_bench}") ||
	finish 1 "${EEIO_DB_BENCH:-db_bench} is missing: install the package rocksdb-tools, or name one by EEIO_DB_BENCH"
python=$(command -v "${EEIO_PYTHON:-python3}") ||
	finish 1 "${EEIO_PYTHON:-python3} is missing: install the package python3, or name one by EEIO_PYTHON"
command -v stdbuf >/dev/null || finish 1 "stdbuf is missing: install the package coreutils"
timeout 60 "$python" -I -S workload.py probe db_bench="$path" database="$HOME/probe" >/dev/null 2>build.log ||
	finish 1 "$path cannot be used, RocksDB 7.8 of Debian 12 can: $(tail -n 1 build.log)"
{
	echo "path=$path"
	echo "version=$("$path" --version 2>/dev/null | head -n 1)"
	echo "sha256=$(sha256sum "$path" | cut -d' ' -f1)"
	echo "source=system"
	echo "python=$python"
	# Another program may have another RocksDB.
	[ -z "${EEIO_DB_BENCH:-}" ] || echo "EEIO_DB_BENCH=$EEIO_DB_BENCH"
} >tool.conf
finish 0
