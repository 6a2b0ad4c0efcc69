# Variables that follow from the factors and the environment. For factors.sh.
# shellcheck shell=sh disable=SC2034 # for the scripts
python=$(sed -n 's/^python=//p' "$HOME/tool.conf")
server=$(sed -n 's/^server=//p' "$HOME/tool.conf")
endpoint=${EEIO_S3_ENDPOINT:-local} region=${EEIO_S3_REGION:-us-east-1}
case $region in *[!a-z0-9-]*) refuse "EEIO_S3_REGION=$region: give a name such as eu-west-1" ;; esac
# Not in the folder of the test files: on a drive of others it may name a bucket that is not this run's.
state=$HOME/eeio-s3.$(printf %s "$scratch" | sha256sum | cut -c 1-16).bucket

need_store() {
	[ "$endpoint" != local ] || [ -x "$server" ] ||
		refuse "no object store: set EEIO_S3_ENDPOINT=URL, or install a local server (pip install 'moto[server]'), name it by EEIO_S3_SERVER and install this profile again"
}
