iozone -i 0 -+n -t 2 -s 8m -r 64k -F f g
