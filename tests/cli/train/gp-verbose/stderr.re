espalier train: d.jsonl: 12 examples read in [0-9.]+ s
espalier train: run 1, iteration 0: log likelihood -[0-9.]+, gradient [0-9.e+-]+; lambda 0.5, weight 1, noise 0.1
espalier train: run 1, iteration 1: log likelihood -[0-9.]+, gradient [0-9.e+-]+; lambda [0-9.e-]+, weight [0-9.e+-]+, noise [0-9.e-]+
espalier train: run 1, iteration 2: .*
espalier train: run 2, iteration 0: .*
espalier train: run 2, iteration 1: .*
espalier train: run 2, iteration 2: .*
espalier train: kernel 1\*sst\(tree, lambda=0.5, alpha=0, bow=0, algorithm=dag\)
espalier train: trained in [0-9.]+ s
espalier train: written in [0-9.]+ s
espalier train: learned kernel .*sst\(tree, lambda=.*, alpha=0, bow=0, algorithm=dag\)
espalier train: gp: 12 examples; log likelihood -[0-9.]+; written to m
espalier train: stopped at the limit of 2 iterations before it converged; a larger --max-iterations may help
