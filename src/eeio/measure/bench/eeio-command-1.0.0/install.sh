#!/bin/sh
# Copies what runs the command; there is no tool to look for.
profile=$(cd "${0%/*}" && pwd)
cd "$HOME" || exit 1
cp "$profile/loop.py" . && cp "$profile/eeio-command.sh" eeio-command && chmod +x eeio-command
status=$?
echo "$status" >"$HOME/install-exit-status"
exit "$status"
