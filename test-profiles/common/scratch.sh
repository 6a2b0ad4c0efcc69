# The folder of the test files, for pre.sh, post.sh and what runs the tool: each changes to it, and sees that
# no other user can put a link in the place of a file. Later names are relative to it.
# shellcheck shell=sh disable=SC2015,SC2154 # refuse exits; factors.sh or post.sh sets $tool
umask 022 # other users write to no file of eeio's
scratch=${EEIO_DIRECTORY:-$HOME/scratch}/eeio-scratch
case $scratch in /*) ;; *) scratch=$(pwd -P)/$scratch ;; esac
# shellcheck source=owners.sh
. "$HOME/owners.sh"
# shellcheck source=trust.sh
. "$HOME/trust.sh"
# shellcheck source=repairs.sh
. "$HOME/repairs.sh"
# shellcheck source=contents.sh
. "$HOME/contents.sh"

refuse() { # ERROR...
	echo "$tool: $*" >&2
	exit 2
}

enter() { # FOLDER, $scratch or one below it: makes it and changes to it
	unwritable="$scratch: cannot be written; give another directory"
	make_here "${scratch%/*}" || refuse "$unwritable"
	# Others pass through it to a server's files, and see nothing.
	[ -d eeio-scratch ] || mkdir -m 711 eeio-scratch 2>/dev/null || refuse "$unwritable"
	prepared
	# All of it, which takes a while with many files: pre.sh comes before the caches are emptied.
	check_contents
	[ "$1" = "$scratch" ] || { mkdir -p ".${1#"$scratch"}" && cd -P ".${1#"$scratch"}"; } 2>/dev/null &&
		[ -w . ] || refuse "$unwritable"
}

make_here() { # FOLDER: makes it and changes to it
	existing=$1
	until [ -d "$existing/" ]; do existing=${existing%/*}; done
	check_here "$existing/" || return
	[ "$existing" = "$1" ] || { mkdir -p "$1/" 2>/dev/null && check_here "$1/"; }
}

check_here() { # FOLDER: changes to it, and leaves where another user could replace a file in it
	cd -P "$1" 2>/dev/null || return
	users=$(trusted_users "$(pwd -P)")
	if [ "$(id -u)" = 0 ]; then
		problem=$(replaceable_above "$users" "$1")
	else
		problem=$(risk_of_mounts "$users" "$(pwd -P)")
		[ -n "$problem" ] || problem=$(replaceable "$users" lax "$(pwd -P)")
	fi
	[ -z "$problem" ] || refuse "$(explained "$(pwd -P)" "$problem")"
}

prepared() { # changes to the folder that pre.sh has made; no name leads to the current one but by a way that is ours
	[ -d "$scratch" ] || refuse "$scratch: not there; run pre.sh with these factors first"
	check_here "${scratch%/*}/" || refuse "${scratch%/*}: cannot be entered; give another directory"
	check_mounts "$(pwd -P)/eeio-scratch" && problem=$(replaceable "$users" strict "$scratch")
	# What is made in it inherits a default list of its folder, whatever the umask is.
	[ "$(id -u)" != 0 ] || case $(ls -dl -- "$scratch") in ??????????+*) problem="listed - $scratch" ;; esac
	[ -z "$problem" ] || refuse "$(explained "${scratch%/*}" "$problem")"
	cd -P eeio-scratch 2>/dev/null || refuse "$scratch: cannot be entered; give another directory"
	# A folder that was put in its place after that is none of ours, and a link is no folder.
	[ "$(stat -c %d:%i . 2>/dev/null)" = "$(stat -c %d:%i -- "$scratch")" ] ||
		refuse "$scratch is not a folder (a link?), so it is not followed. Repair: rm -r $(quoted "$scratch")"
	problem=$(replaceable "$users" strict .)
	[ -z "$problem" ] || refuse "$scratch was replaced by another folder; find out which program does that"
	check_contents -maxdepth 1
}

left() { # removes the folder if nothing is in it
	cd .. && rmdir eeio-scratch 2>/dev/null
}
