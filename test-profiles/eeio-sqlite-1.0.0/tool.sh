# The SQLite of the interpreter that EEIO_PYTHON names, else of python3.
# shellcheck shell=sh disable=SC2034,SC2154 # install.sh uses and sets them
need_python
path=$python
version=$("$path" -I -S workload.py version 2>/dev/null) ||
	finish 1 "$path has no module sqlite3: install the package python3, or name another by EEIO_PYTHON"
# Another interpreter may have another SQLite.
more=${EEIO_PYTHON:+EEIO_PYTHON=$EEIO_PYTHON}
