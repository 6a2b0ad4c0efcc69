# What to do where another user could replace a folder or a program. After trust.sh.
# shellcheck shell=sh
quoted() { # TEXT, as an argument of a shell
	case $1 in
	'' | *[!A-Za-z0-9_@%+=:,./-]*) printf "'%s'\n" "$(printf '%s\n' "$1" | sed "s/'/'\"'\"'/g")" ;;
	*) printf '%s\n' "$1" ;;
	esac
}

new_folder() { # PARENT, an argument of a shell
	printf '%s\n' "mkdir -m 700 $1/eeio-files, and give it as the directory"
}

explained() { # DIRECTORY (or PROGRAM) PROBLEM [REPAIR], as trust.sh prints it -> a line: the problem, and what repairs it
	directory=$1 kind=${2%% *} path=${2#* * } value=${2#* }
	value=${value%% *}
	user=$(id -nu "$value" 2>/dev/null) || user="'#$value'"
	case $kind in
	writable) problem="can be written by other users (mode $value)" ;;
	owned) problem="is owned by user $value" ;;
	link) problem="is a link of user $value" ;;
	fuse) problem="is a FUSE file system of user $value" ;;
	unchecked) problem="checks no permissions (mount option $value)" ;;
	listed) problem='has an access control list' ;;
	loop) problem='cannot be checked: Too many levels of symbolic links' ;;
	esac
	[ -d "$directory" ] || kind=program
	case $(id -u)-$kind-$path in
	*-program-*) repair="install the package of ${directory##*/}, and remove this one from PATH" ;;
	*-loop-*) repair='check the path' ;;
	*-unchecked-*) repair='mount it again with -o default_permissions' && [ "$value" = allow_other ] ||
		repair='mount it again with -o perm' ;;
	*-listed-*) repair="setfacl -bk $(quoted "$directory") $(quoted "$path")" ;;
	*-writable-*/eeio-scratch) repair="rm -r $(quoted "$path")" ;;
	*/eeio-scratch) repair=$(new_folder "$(quoted "${directory%/}")") ;; # another user may be measuring there
	0-writable-*) repair="chmod +t $(quoted "$path")" ;;
	0-owned-"$directory") repair="sudo -u $user eeio ..." ;;
	0-*) path_above=${path%/*} && repair=$(new_folder "${path_above:+$(quoted "$path_above")}") ;;
	*-writable-*) repair=$(new_folder "~") && [ ! -O "$path" ] || repair="chmod +t $(quoted "$path")" ;;
	*) repair=$(new_folder "~") ;;
	esac
	# A line break in a name would begin a line of its own, with another repair.
	printf '%s' "$path $problem. Repair: ${3:-$repair}" | tr '\001-\037\177' '?' && echo
}

untrusted() { # FILE [REPAIR] -> as root, a line if another user could replace the file, which is run or read
	[ "$(id -u)" = 0 ] || return 0
	case $1 in
	/*) ;;
	*) echo "it depends on the current folder. Repair: give its absolute path" && return ;;
	esac
	problem=$(cd / && replaceable_above "$(trusted_users "${1%/*}")" "$1")
	[ -z "$problem" ] || explained "$1" "$problem" "${2:-}"
}

check_own() { # VARIABLE FILE: leaves where another user could replace the file that it names, and eeio is root
	why=$(untrusted "$2" "name a file of root by $1")
	[ -z "$why" ] || refuse "$2 is not used as root: $why"
}

check_device() { # DEVICE: leaves where another user could lead its name to another device, and eeio is root
	[ "$(id -u)" = 0 ] || return 0
	node=$(readlink -f -- "$1")
	problem=$(cd / && replaceable_above "$(trusted_users "${node%/*}")" "$1")
	# The group of a device, such as disk, may write to it.
	case $problem in '' | *" $node") return ;; esac
	refuse "$(explained "$1" "$problem" "name the device itself, such as /dev/sdX; lsblk lists them")"
}
