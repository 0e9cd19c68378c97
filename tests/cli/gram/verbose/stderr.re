espalier gram: trees: 2 examples read in [0-9.]+ s
espalier gram: kernel sst\(.*lambda=1.*\)
espalier gram: 4 values in [0-9.]+ s, [0-9]+ per second
