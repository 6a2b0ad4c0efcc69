# The system's db_bench (EEIO_DB_BENCH names another), if its output can be read.
# shellcheck shell=sh disable=SC2015,SC2034,SC2154 # install.sh uses and sets them; finish exits
find_program "${EEIO_DB_BENCH:-db_bench}" && path=$found ||
	finish 1 "${EEIO_DB_BENCH:-db_bench} is missing: install the package rocksdb-tools, or name one by EEIO_DB_BENCH"
need_python
find_program stdbuf || finish 1 "stdbuf is missing: install the package coreutils"
timeout 60 "$python" -I -S workload.py probe db_bench="$path" database="$HOME/probe" >/dev/null 2>build.log
status=$?
rm -rf probe probe.err
[ $status = 0 ] || finish 1 "$path cannot be used, RocksDB 7.8 of Debian 12 can: $(tail -n 1 build.log)"
version=$("$path" --version 2>/dev/null | head -n 1)
more="python=$python${EEIO_DB_BENCH:+
EEIO_DB_BENCH=$EEIO_DB_BENCH}"
