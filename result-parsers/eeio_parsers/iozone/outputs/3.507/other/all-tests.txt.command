iozone -i 0 -i 1 -i 2 -i 3 -i 4 -i 5 -s 4m -r 64k -f f
