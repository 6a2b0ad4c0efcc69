fio --name=s --rw=randwrite --bs=4k --size=4M --fsync=1 --filename=FILE
