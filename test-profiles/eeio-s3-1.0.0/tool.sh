# A client of eeio's own in Python; an endpoint, or the program of a server to start for each run.
# shellcheck shell=sh disable=SC2015,SC2034,SC2154 # install.sh uses and sets them; finish exits
need_python
server=''
if [ "${EEIO_S3_ENDPOINT:-local}" = local ]; then
	find_program "${EEIO_S3_SERVER:-moto_server}" && server=$found ||
		finish 1 "no object store: set EEIO_S3_ENDPOINT=URL, or install a local server (pip install 'moto[server]') and name it by EEIO_S3_SERVER"
else
	error=$("$python" -I -S "$HOME/client.py" check endpoint="$EEIO_S3_ENDPOINT" 2>&1) ||
		finish 1 "${error#eeio-s3: }"
fi
path=$HOME/client.py
version="client 1.0.0, $("$python" --version)"
# With other settings eeio installs again.
more="python=$python
server=$server
EEIO_S3_ENDPOINT=${EEIO_S3_ENDPOINT:-}
EEIO_S3_SERVER=${EEIO_S3_SERVER:-}"
