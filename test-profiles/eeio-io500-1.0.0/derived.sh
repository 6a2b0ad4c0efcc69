# Variables that follow from the factors, and the user's ini file. For factors.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves; for the scripts
io500=$(sed -n 's/^path=//p' "$HOME/tool.conf")
ini=${EEIO_IO500_INI:-}
if [ -n "$ini" ]; then
	[ "${ini#/}" != "$ini" ] || refuse "EEIO_IO500_INI=$ini: give an absolute path"
	check_own EEIO_IO500_INI "$ini"
	[ -f "$ini" ] && [ -r "$ini" ] || refuse "EEIO_IO500_INI=$ini: not a file that can be read"
	[ -s "$ini" ] && [ "$(wc -c <"$ini")" -le 1048576 ] ||
		refuse "EEIO_IO500_INI=$ini: empty, or longer than 1 MiB"
fi
marker="processes=$processes stonewall_s=$stonewall_s data=$data files=$files ini=$ini"
