# The io500 that EEIO_IO500 names (a program, or a checkout that prepare.sh has built), that of PATH, or
# that of a built checkout in docker/io500/.
# shellcheck shell=sh disable=SC2015,SC2034,SC2154 # install.sh uses and sets them; finish exits
folder=$(readlink -f "$profile/tool.sh") # a link into the checkout, if there is one
given=${folder%/test-profiles/*}/docker/io500 remedy="build IO500 by its prepare.sh"
name_it="name its program or folder by EEIO_IO500, or put its checkout into docker/io500/"
if [ -n "${EEIO_IO500:-}" ]; then
	path=$EEIO_IO500
	[ ! -d "$path" ] || path=${path%/}/io500
	find_program "$path" && path=$found || finish 1 "EEIO_IO500=$EEIO_IO500: no program io500; $remedy"
else
	! find_program io500 || path=$found
	for program in "$given"/*/io500; do
		[ -n "$path" ] || ! find_program "$program" || path=$program source=built
	done
	[ -n "$path" ] || finish 1 "IO500 is missing: $remedy, and $name_it"
fi
path=$(readlink -f "$path")
timeout 60 "$path" --list </dev/null 2>&1 | grep -q '^\[ior-easy-write\]' ||
	finish 1 "$path: not IO500, or it cannot be started (it does not answer --list); $remedy"
# It prints its version only when it runs.
version=$(grep -aoE 'io500-[a-z]+[0-9][[:alnum:]_.-]*' "$path" | head -n 1)
version=${version:-unknown}
# With another EEIO_IO500 eeio installs again.
more="EEIO_IO500=${EEIO_IO500:-}"
