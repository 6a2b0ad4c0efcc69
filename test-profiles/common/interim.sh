#!/bin/sh
# PTS runs this between the trials of one test. Each trial starts from the same prepared files.
exec sh "${0%/*}/pre.sh" "$@"
