# Debian packages of the benchmark tools. Sourced by steps.sh and scripts/setup, which set `setup` to
# the folder of this file.
# shellcheck shell=sh
sources=/etc/apt/sources.list.d/eeio-non-free.sources
packages="fio bonnie++ gcc libc6-dev make curl ca-certificates openmpi-bin libopenmpi-dev strace hdparm nvme-cli ipmitool e2fsprogs xfsprogs btrfs-progs mount rsync zstd rocksdb-tools"
non_free="iozone3 lmbench"
# Their services would take power in every measurement.
servers="postgresql mariadb-server nfs-kernel-server rpcbind"
applications="$servers sysbench nfs-common"
# DLIO runs with Debian's PyTorch for the processor: the wheels of the usual one bring gigabytes for GPUs.
ai="python3-venv python3-torch python3-numpy python3-pandas python3-h5py python3-mpi4py python3-psutil python3-pil
	python3-yaml python3-omegaconf python3-antlr4"

say() { printf 'setup: %s\n' "$*"; }

# As root directly, as a user through sudo.
as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}
can_be_root() { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }

missing_of() {
	for package in "$@"; do
		status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=
		[ "$status" = installed ] || printf '%s ' "$package"
	done
}

# apt in the background of a boot may hold the lock; a dead mirror must not hold us for ever.
apt() { as_root env DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -qq -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 "$@"; }

have_candidates() {
	for package in "$@"; do
		apt-cache policy "$package" 2>/dev/null | grep -q 'Candidate: [^(]' || return 1
	done
}

install_packages() {
	# One package that cannot be had must not keep the others away.
	apt install -y --no-install-recommends "$@" >/dev/null || {
		for package in "$@"; do
			apt install -y --no-install-recommends "$package" >/dev/null || say "could not install $package"
		done
	}
}

# Of servers that this script has just installed, and of no others.
stop_services() {
	for service in "$@"; do
		case $service in
		nfs-kernel-server) service=nfs-server ;;
		rpcbind) as_root timeout 120 systemctl disable --now rpcbind.socket >/dev/null 2>&1 || true ;;
		*) service=${service%-server} ;;
		esac
		if command -v systemctl >/dev/null && as_root timeout 120 systemctl disable --now "$service" >/dev/null 2>&1; then
			say "$service: its service is stopped and does not start by itself; \`systemctl enable --now $service\` undoes that"
		else
			say "$service: see that no service of it runs while you measure"
		fi
	done
}

# The machine's own Debian source, once more, for the component non-free alone.
enable_non_free() {
	new=$(mktemp)
	sh "${setup:?}/non-free-source" >"$new" || { rm -f "$new"; return 1; }
	say "iozone3 and lmbench are in Debian's non-free component (their licences restrict use)."
	say "Adding $sources:"
	sed 's/^/setup:   /' "$new"
	as_root install -m 644 "$new" "$sources"
	rm -f "$new"
	apt update
}

# Installs those of the named packages, and of $non_free, that are missing.
install_missing() { # PACKAGE...
	if ! command -v apt-get >/dev/null; then
		say "no apt-get: install these yourself: $* iozone lmbench"
		return
	fi
	# shellcheck disable=SC2086
	missing=$(missing_of "$@" $non_free)
	[ -n "$missing" ] || return 0
	if ! can_be_root; then
		say "not root and no sudo: cannot install $missing"
		return
	fi
	say "installing $missing"
	apt update || say "some package lists could not be fetched; continuing with the existing ones"
	wanted=$(missing_of "$@")
	new_servers=
	for server in $servers; do
		case " $wanted " in *" $server "*) new_servers="$new_servers $server" ;; esac
	done
	# shellcheck disable=SC2086
	[ -z "$wanted" ] || install_packages $wanted
	# shellcheck disable=SC2086
	[ -z "$new_servers" ] || stop_services $new_servers
	# shellcheck disable=SC2086
	wanted=$(missing_of $non_free)
	if [ -n "$wanted" ]; then
		# shellcheck disable=SC2086
		have_candidates $wanted || enable_non_free || say "no Debian source found to derive non-free from"
		# shellcheck disable=SC2086
		install_packages $wanted
	fi
}
