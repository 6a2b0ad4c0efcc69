#!/bin/sh
# Outside the measured window: what is to precede this run, in the command's directory.
# The last word of each kind counts; the value of prepare is a command for a shell.
prepare='' directory=.
for word; do
	value=${word#*=}
	case $word in
	prepare=*) prepare=$value ;;
	directory=*) directory=$value ;;
	esac
done
cd "$directory" || exit 2
[ -z "$prepare" ] || sh -c "$prepare"
