#!/bin/sh
# Takes the system's MariaDB and sysbench, and says which in tool.conf.
# shellcheck disable=SC2015,SC2046 # finish leaves; two numbers
profile=$(cd "${0%/*}" && pwd)

finish() { # STATUS [what to do]
	echo "$1" >"$HOME/install-exit-status"
	[ -z "${2:-}" ] || echo "eeio-mariadb: $2" >&2
	exit "$1"
}

cd "$HOME" || exit 1
cp "$profile/words.sh" "$profile/factors.sh" "$profile/presets.conf" "$profile/workload.py" \
	"$profile/server.py" . &&
	cp "$profile/eeio-mariadb.sh" eeio-mariadb && chmod +x eeio-mariadb ||
	finish 1 "$HOME: the profile's files could not be copied there"
python=$(command -v "${EEIO_PYTHON:-python3}") ||
	finish 1 "${EEIO_PYTHON:-python3} is missing: install the package python3, or name one by EEIO_PYTHON"
# Debian's server is in /usr/sbin, which is not in everybody's PATH.
PATH=$PATH:/usr/sbin
for name in mariadbd mariadb-install-db mariadb-admin mariadb sysbench; do
	package=mariadb-server
	[ $name != sysbench ] || package=sysbench
	command -v $name >/dev/null || finish 1 "$name is missing: install the package $package"
done
path=$(command -v mariadbd)
version=$("$path" --no-defaults --version 2>/dev/null)
set -- $(echo "$version" | sed -n 's/.* Ver \([0-9]*\)\.\([0-9]*\)[^ ]*MariaDB.*/\1 \2/p')
[ $((${1:-0} * 100 + ${2:-0})) -ge 1005 ] ||
	finish 1 "$path: is '$version': install MariaDB 10.5 or newer"
{
	echo "path=$path"
	echo "version=$version"
	echo "sha256=$(sha256sum "$path" | cut -d' ' -f1)"
	echo "source=system"
	echo "python=$python"
} >tool.conf
finish 0
