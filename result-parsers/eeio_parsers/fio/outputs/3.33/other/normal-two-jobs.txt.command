fio --name=job --filename=f --size=8m --rw=randrw --bs=4k --ioengine=psync --numjobs=2
