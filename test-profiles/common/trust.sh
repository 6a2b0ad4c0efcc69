# Which folders and programs no other user can replace: the rule of eeio/files/trust.py, for profiles that
# PTS starts (docs/decisions/0058-files-of-others.md). One table of cases tests both. After owners.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # A && B || continue; programs.sh uses $searched
# What another user could replace of these paths, the first: `owned N PATH`, `link N PATH` or
# `writable MODE PATH`. Nobody else writes in `strict` folders. Sticky ones, such as /tmp, are no others, and
# in those of a user (`lax`) a group may write.
replaceable() { # USERS strict|usual|lax PATH..., which exist
	users=$1 rule=$2 && shift 2
	stat -c '%u %g %f %a' -- "$@" 2>/dev/null | while read -r owner group mode octal; do
		mode=$((0x$mode)) kind=owned name=$1 && shift
		case $((mode & 0170000)) in
		40960) kind='link' mode=0 ;; # S_IFLNK
		16384) [ "$rule" = strict ] || [ $((mode & 01000)) = 0 ] || mode=0 ;; # S_IFDIR
		esac
		case $users in *" $owner "*) ;; *) printf '%s\n' "$kind $owner $name" && break ;; esac
		[ $((mode & 022)) != 16 ] || { [ "$rule" != lax ] && ! is_private "$group" "$owner" "$users" "$name"; } || mode=0
		[ $((mode & 022)) = 0 ] || { printf '%s\n' "writable $octal $name" && break; }
	done
}

replaceable_above() { # USERS PATH: what the kernel passes on the way to it: folders, links, and the way to their targets
	users=$1 rest=$2 here='' links=0
	set -- /
	while [ -n "$rest" ]; do
		name=${rest%%/*} rest=${rest#"${rest%%/*}"} && rest=${rest#/}
		case $name in
		'' | .) continue ;;
		..) here=${here%/*} && continue ;;
		esac
		if [ -L "$here/$name" ]; then
			set -- "$@" "$here/$name"
			links=$((links + 1))
			[ $links -le 40 ] || { printf '%s\n' "loop - $here/$name" && return; } # as the kernel follows
			rest=$(readlink -- "$here/$name")/$rest
			case $rest in /*) here='' ;; esac
		else
			here=$here/$name
			[ ! -e "$here" ] || set -- "$@" "$here"
		fi
	done
	theirs=$(risk_of_mounts "$users" "$@")
	[ -z "$theirs" ] || { printf '%s\n' "$theirs" && return; }
	replaceable "$users" usual "$@"
}

trusted_path() { # PATH, as root without the folders in which another user could put a program
	kept='' folders=$PATH: PATH=/usr/sbin:/usr/bin:/sbin:/bin
	cd / && [ "$(id -u)" = 0 ] || kept=$folders folders=''
	while [ -n "$folders" ]; do
		folder=${folders%%:*} folders=${folders#*:}
		case $folder in
		/usr/sbin | /usr/bin | /sbin | /bin) ;;
		/*) users=$(trusted_users "$folder") && [ -d "$folder" ] &&
			[ -z "$(replaceable_above "$users" "$folder" && replaceable "$users" strict "$folder/")" ] || continue ;;
		*) continue ;;
		esac
		kept=$kept$folder:
	done
	printf %s "${kept%:}"
}
searched=$PATH # programs.sh says why it runs none of the others
PATH=$(trusted_path)
