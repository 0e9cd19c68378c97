"""What somebody does first with the installed package: kernels, a fit, a Gaussian process, data and model files."""

import sys
from importlib.metadata import version

import numpy
import sklearn

import espalier

trees = ["(S (WP who) (V left))", "(S (WP who) (V came))", "(S (WRB where) (V is))", "(S (WRB where) (V was))"]
kinds = ["person", "person", "place", "place"]
new = ["(S (WP who) (V was))", "(S (WRB where) (V left))"]

assert espalier.__version__ == version("espalier-kernels"), espalier.__version__
gram = espalier.Kernel("norm(sst(lambda=0.4))")(trees)
assert gram.shape == (4, 4) and numpy.allclose(numpy.diag(gram), 1)

model = espalier.SVC(kernel="norm(sst(lambda=0.4))", C=10).fit(trees, kinds)
assert model.predict(new).tolist() == ["person", "place"]
model.save("kinds.model")
assert espalier.load("kinds.model").predict(new).tolist() == ["person", "place"]

process = espalier.GPRegressor(kernel="1*norm(sst)").fit(trees, [1.0, 1.2, 3.0, 3.1])
mean, deviation = process.predict(new, return_std=True)
assert mean[0] < mean[1] and (deviation > 0).all(), (mean, deviation)

data = espalier.read("data.jsonl.zst")  # by a library that the wheel brings along
assert len(data) == 4 and espalier.SVC(kernel="norm(sst)").fit(data).predict(new).tolist() == ["person", "place"]

print(f"CPython {sys.version.split()[0]}, NumPy {numpy.__version__}, scikit-learn {sklearn.__version__}")
