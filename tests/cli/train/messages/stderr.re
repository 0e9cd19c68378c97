espalier train: svm: 2 classes; [0-9]+ of 40 examples are support vectors; written to m
espalier train: d: 40 examples read in [0-9.]+ s
espalier train: kernel linear\(\)
espalier train: trained in [0-9.]+ s
espalier train: written in [0-9.]+ s
espalier train: svm: 2 classes; [0-9]+ of 40 examples are support vectors; written to m
espalier train: svm: 2 classes; [0-9]+ of 40 examples are support vectors; written to m
espalier train: stopped at the limit of 3 iterations before it converged; a larger --max-iterations may help
espalier predict: m: model read in [0-9.]+ s
espalier predict: d: 40 examples read in [0-9.]+ s
espalier predict: 40 predictions in [0-9.]+ s, [0-9]+ per second
