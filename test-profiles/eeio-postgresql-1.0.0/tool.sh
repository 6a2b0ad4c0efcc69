# The PostgreSQL of EEIO_POSTGRESQL_BIN, that of PATH, or Debian's newest.
# shellcheck shell=sh disable=SC2034,SC2154 # install.sh uses and sets them
need_python
# Debian's are not in PATH.
found=$(command -v postgres || printf '%s\n' /usr/lib/postgresql/*/bin/postgres | sort -t/ -k5n | tail -n 1)
path=${EEIO_POSTGRESQL_BIN:+$EEIO_POSTGRESQL_BIN/postgres}
path=${path:-$found}
programs=$(readlink -f "$path" || echo "$path") # one in PATH may be a link to it
programs=${programs%/postgres}
for needed in postgres initdb pgbench psql pg_isready; do
	find_program "$programs/$needed" ||
		finish 1 "$programs/$needed is missing: install the package postgresql, or name the folder of its programs by EEIO_POSTGRESQL_BIN"
done
version=$("$path" --version 2>/dev/null)
major=$(echo "$version" | sed -n 's/^postgres (PostgreSQL) \([0-9][0-9]*\).*/\1/p')
[ "${major:-0}" -ge 12 ] ||
	finish 1 "$path: is '$version': install PostgreSQL 12 or newer, or name its folder by EEIO_POSTGRESQL_BIN"
more="programs=$programs
python=$python
EEIO_POSTGRESQL_BIN=${EEIO_POSTGRESQL_BIN:-}"
