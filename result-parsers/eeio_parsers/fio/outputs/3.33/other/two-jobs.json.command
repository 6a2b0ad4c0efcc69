fio --name=job --filename=f --size=8m --rw=read --bs=1m --numjobs=2 --output-format=json
