fio --name=job --filename=/dev/full --size=8m --rw=write --bs=1m --output-format=json
