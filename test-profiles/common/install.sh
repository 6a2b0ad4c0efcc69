#!/bin/sh
# Installs a profile into $HOME: copies its files, finds or builds its program, and records the
# program in tool.conf. Without a tool.sh it takes the program that the profile is named after from
# PATH. A tool.sh sets what differs: path, version, source (system or built), and more (further lines
# of tool.conf).
# shellcheck disable=SC2015,SC2034,SC2317 # finish exits, so `A && B || finish` is if-then-else; for tool.sh
profile=$(cd "${0%/*}" && pwd)
# shellcheck source=programs.sh
. "$profile/programs.sh"
wrapper=$(echo "$profile"/eeio-*.sh)
name=${wrapper##*/}
name=${name%.sh}
program=${name#eeio-}

finish() { # STATUS [ERROR]
	echo "$1" >"$HOME/install-exit-status"
	[ -z "${2:-}" ] || echo "$name: $2" >&2
	exit "$1"
}

need_python() {
	find_program "${EEIO_PYTHON:-python3}" && python=$found ||
		finish 1 "${EEIO_PYTHON:-python3} is missing: install the package python3, or name one by EEIO_PYTHON"
}

need_mpi() {
	find_program mpicc && find_program "${EEIO_MPIRUN:-mpirun}" ||
		finish 1 "MPI is missing: install the packages openmpi-bin and libopenmpi-dev"
}

# Compiles PROGRAM.c.
compile() { # COMPILER [FLAG...]
	find_program "$1" || finish 1 "a C compiler is missing: install the packages gcc and libc6-dev"
	"$@" -std=c11 -O2 -Wall -Wextra -o "$program" "$program.c" -lm >build.log 2>&1 ||
		finish 1 "$program.c does not compile: see $HOME/build.log"
	path=$HOME/$program source=built
	version="$(sed -n 's/^#define VERSION "\(.*\)"/\1/p' "$program.c"), $("$1" --version | head -n 1)"
}

# Fetches upstream's release, unless PTS has put its archive here, and unpacks it into source/.
unpack() { # URL SHA256
	archive=${1##*/}
	[ -f "$archive" ] || curl -fsSL --connect-timeout 10 --max-time 300 -o "$archive" "$1" ||
		wget -q --tries=1 --timeout=30 -O "$archive" "$1" || { rm -f "$archive" && return 1; }
	echo "$2  $archive" | sha256sum -c - ||
		finish 1 "$HOME/$archive is not upstream's release (wrong SHA-256): delete it and install again"
	mkdir -p source && tar -xf "$archive" --strip-components=1 -C source && cd source || return 1
}

cd "$HOME" || exit 1
for file in "$profile"/*; do
	case ${file##*/} in
	*.xml | install.sh | tool.sh) ;;
	"$name.sh") cp "$file" "$name" && chmod +x "$name" ;;
	*) cp "$file" . ;;
	esac || finish 1 "$HOME: ${file##*/} cannot be copied there"
done
path='' version='' source=system more=''
if [ -f "$profile/tool.sh" ]; then
	# shellcheck source=/dev/null
	. "$profile/tool.sh"
else
	find_program "$program" && path=$found || finish 1 "$program is missing: install it, or put it into PATH"
	version=$("$path" --version 2>/dev/null | head -n 1)
fi
printf '%s\n' "name=$name" "path=$path" "version=$version" "sha256=$(sha256sum "$path" | cut -d' ' -f1)" \
	"source=$source" ${more:+"$more"} >tool.conf
finish 0
