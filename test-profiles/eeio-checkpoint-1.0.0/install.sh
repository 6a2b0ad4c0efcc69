#!/bin/sh
# Compiles the program with the machine's MPI.
# shellcheck disable=SC2015 # finish leaves
profile=$(cd "${0%/*}" && pwd)

finish() { # STATUS [what to do]
	echo "$1" >"$HOME/install-exit-status"
	[ -z "${2:-}" ] || echo "eeio-checkpoint: $2" >&2
	exit "$1"
}

cd "$HOME" || exit 1
cp "$profile/words.sh" "$profile/factors.sh" "$profile/mpi.sh" "$profile/presets.conf" \
	"$profile/checkpoint.c" . &&
	cp "$profile/eeio-checkpoint.sh" eeio-checkpoint && chmod +x eeio-checkpoint ||
	finish 1 "$HOME: the profile's files could not be copied there"
command -v mpicc >/dev/null && command -v "${EEIO_MPIRUN:-mpirun}" >/dev/null ||
	finish 1 "MPI is missing: install the packages openmpi-bin and libopenmpi-dev"
mpicc -std=c11 -O2 -Wall -Wextra -o checkpoint checkpoint.c >build.log 2>&1 ||
	finish 1 "it does not compile here: see $HOME/build.log"
{
	echo "path=$HOME/checkpoint"
	echo "version=$(sed -n 's/^#define VERSION "\(.*\)"/\1/p' checkpoint.c), $(mpicc --version | head -n 1)"
	echo "sha256=$(sha256sum checkpoint | cut -d' ' -f1)"
	echo "source=built"
} >tool.conf
finish 0
