"""Learning from trees and sequences with structural kernels."""

from ._code import Code, read_code
from ._data import Dataset, read, write
from ._espalier import RangeError
from ._espalier import version as __version__
from ._estimators import SVC, SVR, DagPerceptron, OneClassSVM
from ._explain import Decision, Explanation, Feature, ModelExplanation
from ._features import NystroemFeatures, Pattern, PatternFeatures, PatternMiner
from ._folds import Folds
from ._gp_kernel import GPKernel
from ._index import Hits, Index
from ._kernel import GramTransformer, Kernel, kernels
from ._load import load
from ._model import Model
from ._processes import GPClassifier, GPRegressor
from ._transformer import TreeTransformer
from ._trees import Tree, tree

__all__ = [
    "SVC",
    "SVR",
    "Code",
    "DagPerceptron",
    "Dataset",
    "Decision",
    "Explanation",
    "Feature",
    "Folds",
    "GPClassifier",
    "GPKernel",
    "GPRegressor",
    "GramTransformer",
    "Hits",
    "Index",
    "Kernel",
    "Model",
    "ModelExplanation",
    "NystroemFeatures",
    "OneClassSVM",
    "Pattern",
    "PatternFeatures",
    "PatternMiner",
    "RangeError",
    "Tree",
    "TreeTransformer",
    "__version__",
    "kernels",
    "load",
    "read",
    "read_code",
    "tree",
    "write",
]
