espalier train:     1000 examples  accuracy 0\.[0-9]{4}  F1 0\.[0-9]{4}  +[0-9]+ examples/s  +[0-9]+ updates  +[0-9]+ of +[0-9]+ nodes  [0-9.]+ [kMG]B
espalier train:     2000 examples  accuracy 0\.[0-9]{4}  F1 0\.[0-9]{4}  +[0-9]+ examples/s  +[0-9]+ updates  +[0-9]+ of +[0-9]+ nodes  [0-9.]+ [kMG]B
espalier train:     2100 examples  accuracy 0\.[0-9]{4}  F1 0\.[0-9]{4}  +[0-9]+ examples/s  +[0-9]+ updates  +[0-9]+ of +[0-9]+ nodes  [0-9.]+ [kMG]B
espalier train: perceptron: 6 classes; [0-9]+ updates in 2100 examples; written to m
espalier train:     1000 examples  .*
espalier train:     2000 examples  .*
espalier train:     2100 examples  .*
espalier train: learned in [0-9.]+ s
espalier train: kernel norm\(sst\(tree, lambda=0\.4, alpha=1, bow=0, algorithm=dag\)\)
espalier train: written in [0-9.]+ s
espalier train: perceptron: 6 classes; [0-9]+ updates in 2100 examples; written to again
espalier train: epoch 1      1000 examples  .*
espalier train: epoch 1      2000 examples  .*
espalier train: epoch 2      4200 examples  .*
espalier train: perceptron: 6 classes; [0-9]+ updates in 4200 examples; written to twice.again
