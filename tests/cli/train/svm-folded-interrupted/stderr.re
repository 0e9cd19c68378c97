espalier train: interrupted while training.*
espalier train: interrupted while training.*
espalier train: svm: 2 classes; [0-9]+ of 400 examples are support vectors; written to m
espalier train: interrupted: the model is what was learned so far
espalier cv: interrupted.*
espalier tune: interrupted.*
