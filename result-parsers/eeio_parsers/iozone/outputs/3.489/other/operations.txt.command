iozone -i 0 -O -s 4m -r 64k -f f
