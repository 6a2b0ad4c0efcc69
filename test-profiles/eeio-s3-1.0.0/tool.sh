# A client of eeio's own in Python; an endpoint, or the program of a server to start for each run.
# shellcheck shell=sh disable=SC2034,SC2154 # install.sh uses and sets them
need_python
server=''
if [ -z "${EEIO_S3_ENDPOINT:-}" ]; then
	server=$(command -v "${EEIO_S3_SERVER:-moto_server}") ||
		finish 1 "no object store: set EEIO_S3_ENDPOINT=URL, or install a local server (pip install 'moto[server]') and name it by EEIO_S3_SERVER"
fi
path=$HOME/client.py
version="client 1.0.0, $("$python" --version)"
more="python=$python
server=$server"
