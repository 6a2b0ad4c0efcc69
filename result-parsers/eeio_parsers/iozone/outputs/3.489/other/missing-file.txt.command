iozone -i 1 -+n -w -s 8m -r 4k -f nothing
