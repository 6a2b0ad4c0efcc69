iozone -i 2 -i 5 -s 4m -r 64k -e -w -f f
