iozone -a -s 4m -r 64k -f f
