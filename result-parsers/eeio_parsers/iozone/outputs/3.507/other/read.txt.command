iozone -i 1 -+n -w -s 4m -r 64k -e -f f
