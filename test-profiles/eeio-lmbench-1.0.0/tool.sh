# The system's lmbench, or upstream's release, built here.
# shellcheck shell=sh disable=SC2034,SC2154 # install.sh uses and sets them
# Distributions keep it out of PATH, most in a folder per machine type.
for directory in /usr/lib/lmbench/bin /usr/lib/lmbench/bin/* "${EEIO_LMBENCH_BIN:-}"; do
	find_program "$directory/lat_fs" && find_program "$directory/bw_mem" && path=$directory
done
build() {
	unpack https://downloads.sourceforge.net/project/lmbench/development/lmbench-3.0-a9/lmbench-3.0-a9.tgz \
		cbd5777d15f44eab7666dcac418054c3c09df99826961a397d9acf43d8a2a551 || return 1
	# Only the programs that the wrapper calls. Their common header asks for RPC's, which moved.
	mkdir -p bin/here && cd src &&
		for program in bw_mem lat_mem_rd lat_syscall lat_fs; do
			timeout 300 make OS=here CC="cc -std=gnu89 -fcommon -w -I/usr/include/tirpc" \
				"../bin/here/$program" || return 1
		done
}
if [ -z "$path" ]; then
	(build) >build.log 2>&1
	path=$HOME/source/bin/here source=built
	[ -x "$path/lat_fs" ] ||
		finish 1 "lmbench is missing and was not built (see $HOME/build.log): install the package lmbench (Debian: in non-free)"
fi
version=$(dpkg-query -W -f '${Version}' lmbench 2>/dev/null)
version=${version:-3.0-a9}
# With another EEIO_LMBENCH_BIN eeio installs again.
more="directory=$path
EEIO_LMBENCH_BIN=${EEIO_LMBENCH_BIN:-}"
path=$path/bw_mem
