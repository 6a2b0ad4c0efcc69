#!/bin/sh
# Compiles the kernel with the machine's MPI; with EEIO_NPB (a folder with the original's binaries,
# bt.A.4.mpi_io_full and so on) its wrapper runs those, and says so in the run's notes.
# shellcheck disable=SC2015 # finish leaves
profile=$(cd "${0%/*}" && pwd)

finish() { # STATUS [what to do]
	echo "$1" >"$HOME/install-exit-status"
	[ -z "${2:-}" ] || echo "eeio-btio: $2" >&2
	exit "$1"
}

cd "$HOME" || exit 1
cp "$profile/words.sh" "$profile/factors.sh" "$profile/mpi.sh" "$profile/mpi-io.sh" "$profile/presets.conf" \
	"$profile/btio.c" . &&
	cp "$profile/eeio-btio.sh" eeio-btio && chmod +x eeio-btio ||
	finish 1 "$HOME: the profile's files could not be copied there"
command -v mpicc >/dev/null && command -v "${EEIO_MPIRUN:-mpirun}" >/dev/null ||
	finish 1 "MPI is missing: install the packages openmpi-bin and libopenmpi-dev"
mpicc -std=c11 -O2 -Wall -Wextra -o btio btio.c -lm >build.log 2>&1 ||
	finish 1 "it does not compile here: see $HOME/build.log"
{
	echo "path=$HOME/btio"
	echo "version=$(sed -n 's/^#define VERSION "\(.*\)"/\1/p' btio.c), $(mpicc --version | head -n 1)"
	echo "sha256=$(sha256sum btio | cut -d' ' -f1)"
	echo "source=built"
} >tool.conf
finish 0
