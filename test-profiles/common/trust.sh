# Which folders and programs no other user can replace: the rule of eeio_limits/trust.py, for profiles that
# PTS starts (docs/decisions/0058-files-of-others.md). One table of cases tests both.
# shellcheck shell=sh
# What another user could replace of these paths, the first: `owned N PATH`, `link N PATH` or
# `writable MODE PATH`. Nobody else writes in `strict` folders. Sticky ones, such as /tmp, are no others, and
# in those of a user (`lax`) a group may write.
replaceable() { # USERS strict|usual|lax PATH...
	users=$1 rule=$2 && shift 2
	stat -c '%u %g %f %a %n' -- "$@" 2>/dev/null | while read -r owner group mode octal name; do
		mode=$((0x$mode)) kind=owned
		case $((mode & 0170000)) in
		40960) kind='link' mode=0 ;; # S_IFLNK
		16384) [ "$rule" = strict ] || [ $((mode & 01000)) = 0 ] || mode=0 ;; # S_IFDIR
		esac
		case $group in 0 | "$owner") mode=$((mode & ~020)) ;; esac
		[ "$rule" != lax ] || mode=$((mode & ~020))
		case $users in
		*" $owner "*) [ $((mode & 022)) = 0 ] || { echo "writable $octal $name" && break; } ;;
		*) echo "$kind $owner $name" && break ;;
		esac
	done
}

replaceable_above() { # USERS PATH: that path as it is named and as it resolves, and every folder above it
	users=$1 named=$2 physical=$(readlink -f -- "$2") && shift 2
	for path in "$named" "$physical"; do
		while [ -n "$path" ]; do set -- "$@" "$path" && path=${path%/*}; done
	done
	replaceable "$users" usual "$@" /
}

explained() { # DIRECTORY (or PROGRAM) KIND VALUE PATH -> the problem, and the command that repairs it
	directory=$1 kind=$2 value=$3 && shift 3
	path=$*
	user=$(id -nu "$value" 2>/dev/null) || user="'#$value'"
	case $kind in
	writable) problem="can be written by other users (mode $value)" ;;
	owned) problem="is owned by user $value" ;;
	link) problem="is a link of user $value" ;;
	fuse) problem="is a FUSE file system of user $value" ;;
	esac
	[ -d "$directory" ] || kind=program
	case $(id -u)-$kind-$path in
	*-program-*) repair="install $directory /usr/local/bin/" ;;
	*-writable-*/eeio-scratch | 0-*/eeio-scratch) repair="rm -r $path" ;;
	*-writable-*) repair="chmod +t $path" ;;
	0-owned-"$directory") repair="sudo -u $user eeio ..." ;;
	0-*) repair="mkdir -m 700 ${path%/*}/eeio-files" ;;
	*) repair="mkdir -m 700 ${directory%/}/eeio-files" ;;
	esac
	echo "$path $problem. Repair: $repair"
}
