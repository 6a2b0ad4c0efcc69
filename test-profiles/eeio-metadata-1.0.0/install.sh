#!/bin/sh
# Compiles the program twice, with the machine's MPI where it has one, and without; tool.conf says
# which of both mode=auto takes.
# shellcheck disable=SC2015 # finish leaves
profile=$(cd "${0%/*}" && pwd)

finish() { # STATUS [what to do]
	echo "$1" >"$HOME/install-exit-status"
	[ -z "${2:-}" ] || echo "eeio-metadata: $2" >&2
	exit "$1"
}

cd "$HOME" || exit 1
cp "$profile/words.sh" "$profile/factors.sh" "$profile/mpi.sh" "$profile/mpi-io.sh" "$profile/presets.conf" \
	"$profile/metadata.c" . &&
	cp "$profile/eeio-metadata.sh" eeio-metadata && chmod +x eeio-metadata ||
	finish 1 "$HOME: the profile's files could not be copied there"
command -v cc >/dev/null || finish 1 "a C compiler is missing: install the packages gcc and libc6-dev"
flags="-std=c11 -O2 -Wall -Wextra -pthread"
# shellcheck disable=SC2086 # words
cc $flags -o metadata-fork metadata.c >build.log 2>&1 ||
	finish 1 "it does not compile here: see $HOME/build.log"
mode=fork compiler=cc
rm -f metadata-mpi # of an MPI that may be gone
if command -v mpicc >/dev/null && command -v "${EEIO_MPIRUN:-mpirun}" >/dev/null; then
	# shellcheck disable=SC2086 # words
	mpicc -DWITH_MPI $flags -o metadata-mpi metadata.c >>build.log 2>&1 ||
		finish 1 "it does not compile with mpicc: see $HOME/build.log"
	mode=mpi compiler=mpicc
fi
{
	echo "path=$HOME/metadata-$mode"
	echo "version=$(sed -n 's/^#define VERSION "\(.*\)"/\1/p' metadata.c), $mode, $($compiler --version | head -n 1)"
	echo "sha256=$(sha256sum "metadata-$mode" | cut -d' ' -f1)"
	echo "source=built"
	echo "mode=$mode"
} >tool.conf
finish 0
