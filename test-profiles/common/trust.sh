# Which folders and programs no other user can replace: the rule of eeio_limits/trust.py, for profiles that
# PTS starts (docs/decisions/0058-files-of-others.md). One table of cases tests both.
# shellcheck shell=sh
trusted_users() { # FOLDER, the current one -> their numbers, each between blanks
	me=$(id -u) more=''
	[ "$me" != 0 ] || case ${SUDO_UID:-none} in *[!0-9]* | ??????????*) ;; *) more=$SUDO_UID ;; esac
	# Who has no number in this user namespace: the owner of what a rootless container mounts.
	read -r _ _ mapped </proc/self/uid_map
	[ "$mapped" = 4294967295 ] || more="$more 65534"
	if [ -e /run/.containerenv ] || [ -e /.dockerenv ]; then # who mounts a folder has started the container
		more="$more $(stat -c %u -- "$(folder=$1 awk 'BEGIN { best = "/" }
			{ gsub(/\\040/, " ", $5) }
			length($5) > length(best) && index(ENVIRON["folder"] "/", $5 "/") == 1 { best = $5 }
			END { print best }' /proc/self/mountinfo)")"
	fi
	case $me-$(stat -f -c %T .) in
	0-nfs*) # with root_squash root's files are another user's: a new file shows whose
		more="$more $(set -C && exec 9>".eeio-$$" && stat -L -c %u /dev/fd/9 && rm -f ".eeio-$$")" ;;
	esac
	echo " 0 $me $more "
}

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
