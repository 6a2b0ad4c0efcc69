iozone -i 0 -+n -t 16 -s 128k -r 32k -F f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 f12 f13 f14 f15
