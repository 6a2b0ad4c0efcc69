#!/bin/sh
# Compiles the program; tool.conf says by what.
# shellcheck disable=SC2015 # finish leaves
profile=$(cd "${0%/*}" && pwd)

finish() { # STATUS [what to do]
	echo "$1" >"$HOME/install-exit-status"
	[ -z "${2:-}" ] || echo "eeio-varmail: $2" >&2
	exit "$1"
}

cd "$HOME" || exit 1
cp "$profile/words.sh" "$profile/factors.sh" "$profile/presets.conf" "$profile/varmail.c" . &&
	cp "$profile/eeio-varmail.sh" eeio-varmail && chmod +x eeio-varmail ||
	finish 1 "$HOME: the profile's files could not be copied there"
command -v cc >/dev/null || finish 1 "a C compiler is missing: install the packages gcc and libc6-dev"
cc -std=c11 -O2 -Wall -Wextra -pthread -o varmail varmail.c -lm >build.log 2>&1 ||
	finish 1 "it does not compile here: see $HOME/build.log"
{
	echo "path=$HOME/varmail"
	echo "version=$(sed -n 's/^#define VERSION "\(.*\)"/\1/p' varmail.c), $(cc --version | head -n 1)"
	echo "sha256=$(sha256sum varmail | cut -d' ' -f1)"
	echo "source=built"
} >tool.conf
finish 0
