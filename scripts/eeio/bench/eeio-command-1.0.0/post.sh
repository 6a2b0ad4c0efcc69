#!/bin/sh
# What is to follow the last run, once its bytes are on the device.
[ -f "$HOME/conclude" ] || exit 0
{ read -r directory && conclude=$(cat); } <"$HOME/conclude"
rm -f "$HOME/conclude"
cd "$directory" && sh -c "$conclude"
