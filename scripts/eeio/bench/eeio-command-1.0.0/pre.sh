#!/bin/sh
# Outside the measured window: what was to follow the run before, then what is to precede this one.
# The last word of each kind counts; their values are commands for a shell.
prepare='' conclude='' directory=.
for word; do
	value=${word#*=}
	case $word in
	prepare=*) prepare=$value ;;
	conclude=*) conclude=$value ;;
	directory=*) directory=$value ;;
	esac
done
cd "$directory" || exit 2
sh "${0%/*}/post.sh" || exit
if [ -n "$conclude" ]; then printf '%s\n%s\n' "$directory" "$conclude" >"$HOME/conclude"; fi
[ -z "$prepare" ] || sh -c "$prepare"
