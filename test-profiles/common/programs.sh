# Programs that an installation uses. Root runs none that another user could replace. For install.sh.
# shellcheck shell=sh disable=SC2154 # install.sh sets $profile and has `finish`
# shellcheck source=owners.sh
. "$profile/owners.sh"
# shellcheck source=trust.sh
. "$profile/trust.sh"
# shellcheck source=repairs.sh
. "$profile/repairs.sh"

find_program() { # NAME -> $found, its path; status 1 without one
	found=$(PATH=$searched && command -v "$1") || return 1
	why=$(untrusted "$found")
	[ -z "$why" ] || finish 1 "$found is not run as root: $why"
}
