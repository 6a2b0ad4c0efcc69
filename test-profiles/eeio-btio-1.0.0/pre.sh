#!/bin/sh
# Outside the measured window: nothing but room. BT-IO makes its file anew and reads it back.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
mkdir -p "$scratch" 2>/dev/null && cd "$scratch" && [ -w . ] ||
	refuse "$scratch: cannot be written; give another directory"
rm -f eeio-btio.* btio.*.out*
case $class in
S) needed=829440 ;;
W) needed=22118400 ;;
A) needed=419430400 ;;
B) needed=1697932800 ;;
*) needed=6802444800 ;;
esac
free=$(df -Pk . | awk 'NR == 2 { printf "%.0f", $4 * 1024 }')
[ "$free" -gt "$needed" ] || refuse "$scratch: needs $needed bytes, $free are free"
# So that the caller can see what lies behind the files.
: >eeio-btio.out
