# The system's Bonnie++, or upstream's release, built here.
# shellcheck shell=sh disable=SC2034,SC2154 # install.sh uses and sets them
# Distributions put it where only root's PATH leads.
searched=$searched:/usr/sbin:/usr/local/sbin
! find_program bonnie++ || path=$found
build() {
	unpack https://www.coker.com.au/bonnie++/bonnie++-2.00a.tgz \
		a8d33bbd81bc7eb559ce5bf6e584b9b53faea39ccfb4ae92e58f27257e468f0e &&
		./configure && timeout 600 make bonnie++
}
if [ -z "$path" ]; then
	(build) >build.log 2>&1
	path=$HOME/source/bonnie++ source=built
	[ -x "$path" ] || finish 1 "Bonnie++ is missing and was not built (see $HOME/build.log): install the package bonnie++"
fi
version=$("$path" -h 2>&1 | sed -n 's/^Version: *//p')
