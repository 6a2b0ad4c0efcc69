fio --name=p --rw=randread --ioengine=libaio --iodepth=4 --direct=1 --bs=4k --size=4M --slat_percentiles=1 --clat_percentiles=1 --lat_percentiles=1 --filename=FILE
