# The system's fio, or upstream's release, built here.
# shellcheck shell=sh disable=SC2034,SC2154 # install.sh uses and sets them
! find_program fio || path=$found
build() {
	unpack https://brick.kernel.dk/snaps/fio-3.36.tar.gz \
		0a07354876ca4d23518f8aa88682f23866455bbd2ff2d0f055d6e4b72f156553 &&
		./configure --disable-native && timeout 900 make
}
if [ -z "$path" ]; then
	(build) >build.log 2>&1
	path=$HOME/source/fio source=built
	[ -x "$path" ] || finish 1 "fio is missing and was not built (see $HOME/build.log): install the package fio"
fi
version=$("$path" --version)
