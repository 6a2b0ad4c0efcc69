# Users who may own the files that eeio writes to and runs, as in eeio/files/trust.py. For trust.sh.
# shellcheck shell=sh
mount_of() { # FOLDER MOUNTINFO -> USER OPTION POINT: of a FUSE file system, its user, or -; the option by which
	# the kernel lets every user write, whatever modes it shows, or -; and where it is mounted
	# The kernel knows the mount, also where a later one hides an older one; names alone may be those of hidden ones.
	id=$([ ! -r "$1" ] || [ -p "$1" ] || sed -n 's/^mnt_id:[[:space:]]*//p' /proc/self/fdinfo/3 3<"$1") 2>/dev/null
	folder=$1 id=$id LC_ALL=C awk 'BEGIN { best = "/"; user = opening = "-" }
	function opens(option, checking) { if (index(options, "," option ",") && !index(options, "," checking ",")) opening = option }
	{ gsub(/\\040/, " ", $5); gsub(/\\011/, "\t", $5); gsub(/\\134/, "\\", $5) }
	known { next }
	$1 == ENVIRON["id"] || (length($5) >= length(best) && ($5 == "/" || index(ENVIRON["folder"] "/", $5 "/") == 1)) {
		known = $1 == ENVIRON["id"]; best = $5; user = opening = "-"; options = "," $NF ","; text = $NF
		if (/ - (cifs|smb3)/) opens("noperm", "multiuser")
		if (/ - fuse/) opens("allow_other", "default_permissions")
		if (/ - fuse/ && sub(/^([^,]*,)*user_id=/, "", text)) { sub(/,.*/, "", text); user = text }
	}
	END { print user, opening, best }' "$2"
}

is_container() { # such a file may be left on a machine that was made of an image; its processes are its own
	{ [ -e /run/.containerenv ] || [ -e /.dockerenv ]; } && [ "$(readlink /proc/self/ns/pid)" != 'pid:[4026531836]' ]
}

is_private() { # GROUP OWNER USERS PATH: the group has no other user, and no access control list names more
	case $1 in 0 | "$2") ;; *) return 1 ;; esac
	case $(ls -dl -- "$4") in ??????????+*) return 1 ;; esac
	# Images run as any user of that group, whom who starts the container chooses.
	[ "$1" != 0 ] || ! is_container || return 0
	members=$(getent group "$1" | cut -d: -f4 | tr , ' ')
	# shellcheck disable=SC2086 # words; a directory service may list no user that it is not asked for
	{ getent passwd && getent passwd $members; } | LC_ALL=C awk -F: -v group="$1" -v members=" $members " -v users="$3" '
		($4 == group || index(members, " " $1 " ")) && !index(users, " " $3 " ") { others = 1 }
		END { exit others }'
}

trusted_users() { # FOLDER, the current one -> their numbers, each between blanks
	me=$(id -u) more=''
	[ "$me" != 0 ] || case ${SUDO_UID:-none} in *[!0-9]* | ??????????*) ;; *) more=$SUDO_UID ;; esac
	# Who has no number in this user namespace: the owner of what a rootless container mounts.
	read -r _ _ mapped </proc/self/uid_map
	[ "$mapped" = 4294967295 ] || more="$more 65534"
	if is_container; then # who mounts a folder has started it
		more="$more $(mount_of "$1" /proc/self/mountinfo | while read -r _ _ point; do stat -c %u -- "$point"; done)"
	fi
	case $me-$(stat -f -c %T .) in
	0-nfs*) # with root_squash root's files are another user's: a new file shows whose
		more="$more $(set -C && exec 9>".eeio-$$" && stat -L -c %u /dev/fd/9 && rm -f ".eeio-$$")" ;;
	esac
	echo " 0 $me $more "
}

risk_of_mount() { # USERS FOLDER MOUNTINFO -> `fuse N PATH`: its user decides which owners it shows; or
	# `unchecked OPTION PATH`: every user may write there
	mount_of "$2" "$3" | while read -r user opening point; do
		case "$1-" in
		*" $user "*) ;;
		*) [ "$user" = - ] || { echo "fuse $user $point" && break; } ;;
		esac
		[ "$opening" = - ] || echo "unchecked $opening $point"
	done
}

risk_of_mounts() { # USERS PATH... -> the first of their mounts that other users can change
	users=$1 && shift
	grep -qE ' - (fuse|cifs|smb3)' /proc/self/mountinfo || return 0
	for place; do
		theirs=$(risk_of_mount "$users" "$place" /proc/self/mountinfo)
		[ -z "$theirs" ] || { printf '%s\n' "$theirs" && return; }
	done
}
