# The system's IOzone, or upstream's release, built here.
# shellcheck shell=sh disable=SC2034,SC2154 # install.sh uses and sets them
# shellcheck disable=SC2016 # the $ in a sed script
! find_program iozone || path=$found
build() {
	case $(uname -m) in
	x86_64) target=linux-AMD64 ;;
	arm*) target=linux-arm ;;
	*) target=linux ;;
	esac
	# -fcommon: its sources define globals twice, which compilers refuse since GCC 10.
	unpack http://www.iozone.org/src/current/iozone3_465.tar \
		2e3d72916e7d7340a7c505fc0c3d28553fcc5ff2daf41d811368e55bd4e6a293 && cd src/current &&
		timeout 600 make "$target" CC="cc -fcommon" GCC="gcc -fcommon"
}
if [ -z "$path" ]; then
	(build) >build.log 2>&1
	path=$HOME/source/src/current/iozone source=built
	[ -x "$path" ] || finish 1 "IOzone is missing and was not built (see $HOME/build.log): install the package iozone3 (Debian: in non-free)"
fi
version=$("$path" -v | sed -n 's/.*Version $Revision: \([0-9.]*\) .*/\1/p')
