# The system's MariaDB and sysbench.
# shellcheck shell=sh disable=SC2034,SC2154 # install.sh uses and sets them
# shellcheck disable=SC2046 # two numbers
need_python
# Debian's server is in /usr/sbin, which is not in everybody's PATH.
searched=$searched:/usr/sbin
for needed in mariadbd mariadb-install-db mariadb-admin mariadb sysbench; do
	package=mariadb-server
	[ $needed != sysbench ] || package=sysbench
	find_program $needed || finish 1 "$needed is missing: install the package $package"
done
find_program mariadbd && path=$found
version=$("$path" --no-defaults --version 2>/dev/null)
set -- $(echo "$version" | sed -n 's/.* Ver \([0-9]*\)\.\([0-9]*\)[^ ]*MariaDB.*/\1 \2/p')
[ $((${1:-0} * 100 + ${2:-0})) -ge 1005 ] ||
	finish 1 "$path: is '$version': install MariaDB 10.5 or newer"
more="python=$python"
