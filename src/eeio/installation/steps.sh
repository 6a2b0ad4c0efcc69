#!/bin/sh
# The steps of `eeio setup`, which sets the variables with EEIO_SETUP_ in their names.
#   steps.sh plan|run [--applications] [--ai] [--no-packages]
set -eu
setup=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=packages.sh
. "$setup/packages.sh"

step=$1
shift
with_packages=yes with_ai=no
for word; do
	case $word in
	--applications) packages="$packages $applications" ;;
	--ai) packages="$packages $ai" with_ai=yes ;;
	--no-packages) with_packages=no ;;
	esac
done
python=${EEIO_SETUP_PYTHON:?} prefix=${EEIO_SETUP_PREFIX:?}
readers=${EEIO_SETUP_READERS:?} delayjc=${EEIO_SETUP_JOURNAL:?}/libdelayjc.c
# The paper's tool at the library level is in no package: built of the given folder, or fetched.
given=${EEIO_SETUP_IOR:?} build=${EEIO_SETUP_PROFILES:?}/eeio-ior-1.0.0/build.sh
# IOR's repository, unlike its release, is configured by these.
for checkout in "$given"/*/configure.ac; do
	[ ! -e "$checkout" ] || packages="$packages autoconf automake pkg-config"
done
# Files in /usr are those of the system's packages.
may_write=no
[ "$prefix" = /usr ] || ! [ -w "$prefix" ] || may_write=yes
ior=$prefix/bin/ior
wants_ior() {
	! command -v "${EEIO_IOR:-ior}" >/dev/null &&
		{ [ ! -x "$ior" ] || [ -n "$(find "$given" "$build" -newer "$ior" 2>/dev/null | head -n 1)" ]; }
}

if [ "$step" = plan ]; then
	if [ $with_packages = yes ]; then
		# shellcheck disable=SC2086
		missing=$(missing_of $packages $non_free)
		[ -z "$missing" ] || say "packages: $missing"
		# shellcheck disable=SC2086
		if [ -n "$(missing_of $non_free)" ] && ! have_candidates $non_free; then
			say "package source: $sources, for iozone3 and lmbench (their licences restrict use)"
		fi
	fi
	[ $may_write = no ] || say "programs: readers of RAPL and IPMI, libdelayjc in $prefix/libexec"
	[ $may_write = no ] || ! wants_ior || say "programs: IOR in $ior, built from source"
	[ $may_write$with_ai != yesyes ] || say "programs: DLIO in $prefix/libexec/dlio, from PyPI"
	say "test profiles: for all tools that are found"
	exit
fi

# shellcheck disable=SC2086
[ $with_packages = no ] || install_missing $packages

# The readers read RAPL at a third of the cost, IPMI at half of it. Without them Python reads, as for
# every other meter. libdelayjc batches the journal commits of a program it is preloaded into.
compile() { # SOURCE PROGRAM FLAG...
	source=$1 made=$2
	shift 2
	# Under another name first: a program that runs cannot be written over.
	cc -std=c11 -O2 -Wall -Wextra "$@" -o "$made.new" "$source" -ldl && mv "$made.new" "$made"
}
if [ $may_write = no ]; then
	say "IOR and the readers of RAPL and IPMI are not built: eeio is not in an environment of this user"
elif command -v cc >/dev/null; then
	mkdir -p "$prefix/libexec"
	for name in eeio-energy-reader eeio-ipmi-reader; do
		compile "$readers/$name.c" "$prefix/libexec/$name" ||
			say "$readers/$name.c could not be compiled: its meter is read without it"
	done
	compile "$delayjc" "$prefix/libexec/libdelayjc.so" -shared -fPIC -pthread ||
		say "$delayjc could not be compiled: journal commits cannot be batched (delayJC)"
fi

# An environment of its own, of the system's Python, which has Debian's PyTorch.
install_dlio() {
	dlio=$prefix/libexec/dlio
	/usr/bin/python3 -I -m venv --system-site-packages "$dlio" &&
		timeout 600 "$dlio/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes \
			--only-binary :all: --requirement "$setup/dlio.txt" &&
		"$dlio/bin/python" -I "$EEIO_SETUP_PROFILES/eeio-dlio-1.0.0/workload.py" probe >/dev/null &&
		ln -sf ../libexec/dlio/bin/dlio_benchmark "$prefix/bin/dlio_benchmark"
}
if [ $with_ai = yes ]; then
	if [ $may_write = no ]; then
		say "DLIO is not installed: eeio is not in an environment of this user"
	elif said=$(install_dlio 2>&1); then
		say "installed DLIO in $prefix/libexec/dlio"
	else
		rm -f "$prefix/bin/dlio_benchmark"
		say "DLIO could not be installed: $(printf '%s\n' "$said" | tail -n 1)"
	fi
fi

profiles=
if [ $may_write = yes ] && wants_ior; then
	if said=$(sh "$build" "$ior" "$given" 2>&1); then
		hdf5=without
		! "$ior" -h 2>&1 | grep -q '|HDF5' || hdf5=with
		say "built $ior, $hdf5 HDF5"
	elif [ $? = 3 ] && [ -x "$ior" ]; then
		touch "$ior" # what it was made of was taken away: it stays
	else
		say "$said"
		# Its install.sh would try the same again, and say so once more.
		profiles=$(cd "$EEIO_SETUP_PROFILES" && echo eeio-*/ | tr -d / | sed 's/eeio-ior-[^ ]*//')
	fi
fi

# shellcheck disable=SC2086
"$python" -P -m eeio profile install $profiles >/dev/null || true # only what fails is shown
"$python" -P -m eeio doctor --format json | "$python" -I -c '
import json, sys
found = json.load(sys.stdin)["findings"]
meters = [f["name"] for f in found if f["kind"] == "meter" and f["found"] and f["name"] not in ("demo", "modelled")]
print("setup: power meters:", ", ".join(meters) or "none found; --meter demo invents power to try eeio with")
tools = [f["name"] for f in found if f["kind"] == "tool" and not f["found"]]
print("setup: missing tools:", ", ".join(tools) or "none")
' || true
say "\`eeio doctor\` shows missing dependencies and their remedies"
