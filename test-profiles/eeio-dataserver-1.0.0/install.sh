#!/bin/sh
# Compiles the emulator with the machine's MPI, and says what was made in tool.conf.
# shellcheck disable=SC2015 # finish leaves
profile=$(cd "${0%/*}" && pwd)

finish() { # STATUS [what to do]
	echo "$1" >"$HOME/install-exit-status"
	[ -z "${2:-}" ] || echo "eeio-dataserver: $2" >&2
	exit "$1"
}

cd "$HOME" || exit 1
cp "$profile/words.sh" "$profile/factors.sh" "$profile/shape.sh" "$profile/mpi.sh" "$profile/mpi-io.sh" "$profile/load.sh" \
	"$profile/presets.conf" "$profile/dataserver.c" . &&
	cp "$profile/eeio-dataserver.sh" eeio-dataserver && chmod +x eeio-dataserver ||
	finish 1 "$HOME: the profile's files could not be copied there"
command -v mpicc >/dev/null && command -v "${EEIO_MPIRUN:-mpirun}" >/dev/null ||
	finish 1 "MPI is missing: install the packages openmpi-bin and libopenmpi-dev"
sh "$profile/snapshots.sh" >hou10ni.csv || finish 1 "$HOME/hou10ni.csv: cannot be written"
mpicc -std=c11 -O2 -Wall -Wextra -o dataserver dataserver.c >build.log 2>&1 ||
	finish 1 "it does not compile here: see $HOME/build.log"
{
	echo "path=$HOME/dataserver"
	echo "version=$(sed -n 's/^#define VERSION "\(.*\)"/\1/p' dataserver.c), $(mpicc --version | head -n 1)"
	echo "sha256=$(sha256sum dataserver | cut -d' ' -f1)"
	echo "source=built"
} >tool.conf
finish 0
