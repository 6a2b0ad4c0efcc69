#!/bin/sh
# Outside the measured window: nothing but room. BT-IO makes its file anew and reads it back.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
enter "$scratch"
rm -f eeio-btio.* btio.*.out*
case $class in
S) needed=829440 ;;
W) needed=22118400 ;;
A) needed=419430400 ;;
B) needed=1697932800 ;;
*) needed=6802444800 ;;
esac
need_bytes "$needed"
# So that the caller can see what lies behind the files.
: >eeio-btio.out
