"""The commands: a file each, listed in `registry` and imported when its command is called.

Arguments, one call, output, exit code. May import all other packages of eeio.
"""
