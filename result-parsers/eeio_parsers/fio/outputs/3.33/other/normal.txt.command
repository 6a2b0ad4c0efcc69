fio --name=job --filename=f --size=8m --rw=randread --bs=4k --ioengine=psync --direct=1
