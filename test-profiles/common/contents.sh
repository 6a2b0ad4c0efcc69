# What is in the folder of the test files must be what eeio can have made: a drive that somebody else has formatted
# may have links there, with root as their owner. The rule of eeio/files/trust.py. For scratch.sh.
# shellcheck shell=sh disable=SC2154 # scratch.sh sets $scratch and $users, and has `refuse`
check_mounts() { # FOLDER without links: leaves where something is mounted on it or below it, before any repair that
	# deletes: a mount leads to files of somebody else, and a bind mount may have the same device number
	point=$(folder=$1 LC_ALL=C awk '
		{ gsub(/\\040/, " ", $5); gsub(/\\011/, "\t", $5); gsub(/\\012/, "\n", $5); gsub(/\\134/, "\\", $5) }
		index($5 "/", ENVIRON["folder"] "/") == 1 { print $5; exit }' /proc/self/mountinfo)
	[ -z "$point" ] || refuse "$(printf '%s' "$point is a mount point, so it is not used. Repair: umount $(quoted "$point")" |
		tr '\001-\037\177' '?')"
}

planted() { # FIND-OPTION... -> `PROBLEM VALUE NAME` of the first entry below the current folder that is none of eeio's
	others=2
	[ "$(id -u)" != 0 ] || others=22
	# The data of a database are another user's. Its profile only removes them.
	find . "$@" -type d \( -path ./eeio-mariadb.data/data -o -path ./eeio-postgresql.data/data \) -prune \
		-o -printf '%y %U %n %m %p\n' | LC_ALL=C users=$users others=$others awk '
		function says(problem) { match($0, /^([^ ]* ){4}\.\//); print problem, substr($0, RLENGTH + 1); exit }
		NR == 1 { next }
		$1 !~ /^[dfs]$/ { says("kind -") }
		$1 == "f" && $3 > 1 { says("links -") }
		!index(ENVIRON["users"], " " $2 " ") { says("owner " $2) }
		int($4 % 10 / 2) % 2 || (ENVIRON["others"] == 22 && int($4 % 100 / 20) % 2) { says("mode " $4) }'
}

check_contents() { # FIND-OPTION...: leaves where an entry below the current folder is none of eeio's
	problem=$(planted "$@")
	[ -n "$problem" ] || return 0
	value=${problem#* } repair="rm -r $(quoted "$scratch")"
	path=$scratch/${value#* } value=${value%% *}
	case ${problem%% *} in
	kind) problem='is neither a plain file nor a folder' ;;
	links) problem='is a file with another name (a hard link)' ;;
	owner) problem="is owned by user $value" ;;
	mode) problem="can be written by other users (mode $value)" ;;
	esac
	# A line break in a name would begin a line of its own, with another repair.
	refuse "$(printf '%s' "$path $problem, so it is not used. Repair: $repair" | tr '\001-\037\177' '?')"
}
