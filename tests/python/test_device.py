"""A GPU behind Gaussian processes: what happens without one, and over a stand-in for CUDA's libraries.

Each case is a process with a copy of the package, beside which the plugin lies or not: a process opens a device once.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from sklearn.base import clone

import espalier
from espalier import GPClassifier, GPRegressor, _espalier

TREES = ["(S (A a))", "(S (A b))", "(S (C c))", "(S (C d))", "(S (A a) (C c))"]
NUMBERS = [1.0, 1.2, 3.9, 4.1, 2.5]

# What the processes begin with: data, and which calls were given a device.
HEAD = """
import os, pickle, random, sys, warnings
import numpy as np
from conftest import random_tree
import espalier
from espalier import GPClassifier, GPRegressor, _device, _espalier

draw = random.Random(5)
X = list(dict.fromkeys(random_tree(draw, 5) for _ in range(9000)))[:2100]
y = [tree.count("S") - 0.5 * tree.count("(A a)") + draw.gauss(0, 0.3) for tree in X]
classes = ["many" if value > np.median(y) else "few" for value in y]
FEW = 600
warnings.simplefilter("always")
given = []

def watch(name):
    function = getattr(_espalier, name)
    def watched(*arguments):
        given.append((name, arguments[-1] is not None))
        return function(*arguments)
    setattr(_espalier, name, watched)

for name in ("train", "predict", "covariance", "samples", "log_likelihood"):
    watch(name)

def regressor(device, count=FEW, **settings):
    return GPRegressor(kernel="1*norm(sst(lambda=0.3))", fix="*", device=device, **settings).fit(X[:count], y[:count])

def said(device, count=FEW, **settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = regressor(device, count, **settings)
    assert all(w.category is UserWarning and w.filename == __file__ for w in caught), caught
    return [str(w.message) for w in caught], model.model_.to_bytes()

def close(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert abs(a - b).max() <= 1e-9 * abs(b).max(), (a, b)
"""

Process = Callable[..., None]


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """Runs code with a copy of the package, in ``tmp_path``, and variables of the environment."""
    package = tmp_path / "espalier"
    own = Path(espalier.__file__).parent
    shutil.copytree(own, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(Path(_espalier.__file__), package)

    def run(code: str, **variables: str) -> None:
        script = tmp_path / "script.py"
        script.write_text(HEAD + code)
        paths = {"PYTHONPATH": f"{tmp_path}:{ROOT}/tests/python", "LD_LIBRARY_PATH": f"{tmp_path}/standin"}
        environment = os.environ | paths | variables
        done = subprocess.run(
            [sys.executable, script], env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr

    return run


@pytest.fixture(scope="session")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the plugin for CUDA over the stand-in, compiled as by tests/plugins/run."""
    places = [Path(place) / "include" for place in (os.environ.get("CUDA_PATH"), "/usr/local/cuda", "/usr") if place]
    toolkit = next((place for place in places if (place / "cusolverDn.h").exists()), None)
    if toolkit is None or shutil.which("cc") is None:
        pytest.skip("there is no toolkit of CUDA, or no compiler")
    folder = tmp_path_factory.mktemp("plugin")
    common = ["cc", "-shared", "-fPIC", "-O2", "-isystem", str(toolkit)]
    library = ["-Wl,-soname,libstandin.so", "-o", str(folder / "libstandin.so")]
    source = str(ROOT / "tests" / "plugins" / "cuda_standin.c")
    subprocess.run([*common, "-std=gnu17", *library, source, "-lm", "-lpthread"], check=True)
    options = ["-std=c17", "-D_POSIX_C_SOURCE=200809L", "-DCUDA_BLOCK=100", "-DCUDA_LANE=100000"]
    headers = [f"-I{ROOT / 'include'}", f"-I{ROOT / 'src'}"]
    plugin = ["-o", str(folder / "libespalier-cuda.so"), str(ROOT / "plugins" / "cuda" / "cuda.c")]
    subprocess.run([*common, *options, *headers, *plugin, f"-L{folder}", "-lstandin"], check=True)
    return folder


@pytest.fixture
def gpu(process: Process, standin: Path, tmp_path: Path) -> Process:
    """The same where the plugin is installed."""
    (tmp_path / "standin").mkdir()
    shutil.copy(standin / "libstandin.so", tmp_path / "standin")
    shutil.copy(standin / "libespalier-cuda.so", tmp_path / "espalier")
    return process


# ---------------------------------------------------------------- parameter


@pytest.mark.parametrize("kind", [GPRegressor, GPClassifier])
@pytest.mark.parametrize("value", ["gpu", "", "CUDA", None, 0, ["cpu"], np.array(["cpu", "cuda"])], ids=repr)
def test_wrong_values_are_refused(kind, value):
    targets = NUMBERS if kind is GPRegressor else ["a", "a", "b", "b", "a"]
    with pytest.raises(ValueError, match=r"device is .*; allowed are 'auto', 'cpu' and 'cuda'"):
        kind(device=value).fit(TREES, targets)
    model = kind(device="cpu", fix="*").fit(TREES, targets)
    model.device = value
    for call in (model.predict, model.sample_y):
        with pytest.raises(ValueError, match="device is"):
            call(TREES)


def test_it_is_a_parameter_and_no_setting_of_the_model():
    model = GPRegressor(device="cpu", fix="*").fit(TREES, NUMBERS)
    assert clone(model).device == "cpu"
    assert pickle.loads(pickle.dumps(model)).device == "cpu"
    assert "device" not in model.model_.settings
    assert model.model_.to_bytes() == GPRegressor(fix="*").fit(TREES, NUMBERS).model_.to_bytes()
    assert GPRegressor().device == GPClassifier().device == "auto"


# --------------------------------------------------------------- without one


def test_no_plugin(process):
    try:
        ctypes.CDLL("libespalier-cuda.so")
        pytest.skip("the system has the plugin")
    except OSError:
        pass
    process("""
assert _device._device.process == 0, "it is not opened by the import"
warned, cpu = said("cpu")
assert warned == []
assert said("auto")[0] == [] and _device._device.process == 0, "few examples do not need it"
assert said("auto", 2000)[0] == [] and _device._device.missing
warned, cuda = said("cuda")
assert len(warned) == 1 and warned[0].startswith("using the CPU: "), warned
assert "libespalier-cuda.so is not installed" in warned[0]
assert cuda == cpu
assert said("cuda")[0] == [], "once is enough"
assert not any(device for _, device in given)
""")


def test_a_plugin_that_cannot_be_used(process, tmp_path):
    (tmp_path / "espalier" / "libespalier-cuda.so").write_text("not a library")
    process("""
warned, auto = said("auto", 2000)
assert len(warned) == 1 and "libespalier-cuda.so: " in warned[0], warned
assert said("cuda", 2000) == ([], auto), "the same reason once"
assert said("cpu", 2000) == ([], auto)
""")


# ------------------------------------------------------------------ with one


def test_the_same_results(gpu):
    gpu("""
cpu, cuda = regressor("cpu"), regressor("cuda")
rest = X[FEW:FEW + 600]
close(cuda.log_marginal_likelihood_value_, cpu.log_marginal_likelihood_value_)
for a, b in zip(cuda.predict(X[-50:], return_std=True), cpu.predict(X[-50:], return_std=True)):
    close(a, b)
for a, b in zip(cuda.predict(X[-50:], return_cov=True), cpu.predict(X[-50:], return_cov=True)):
    close(a, b)
close(cuda.sample_y(rest, 2), cpu.sample_y(rest, 2))
theta = np.log(list(cpu.hyperparameters_.values()))
(a, slope), (b, expected) = (m.log_marginal_likelihood(theta, eval_gradient=True) for m in (cuda, cpu))
close(a, b)
close(slope, expected)

settings = {"kernel": "1*norm(sst(lambda=0.3))", "max_iterations": 1}
cpu, cuda = (GPClassifier(device=device, **settings).fit(X[:FEW], classes[:FEW]) for device in ("cpu", "cuda"))
close(cuda.predict_proba(X[-50:]), cpu.predict_proba(X[-50:]))
close(cuda.decision_function(X[-50:]), cpu.decision_function(X[-50:]))
assert (cuda.predict(X[-50:]) == cpu.predict(X[-50:])).all()
assert (cuda.sample_y(X[-50:]) == cpu.sample_y(X[-50:])).all()
for name in ("train", "predict", "covariance", "samples", "log_likelihood"):
    with_device = [device for called, device in given if called == name]
    assert with_device.count(True) == with_device.count(False) > 0, (name, with_device)
again = pickle.loads(pickle.dumps(cuda))
assert again.device == "cuda" and (again.predict(X[-9:]) == cuda.predict(X[-9:])).all()
""")


def test_from_a_thousand_examples_on(gpu):
    gpu("""
assert said("auto", 1999)[0] == [] and given == [("train", False)] and _device._device.process == 0
assert said("auto", 2000)[0] == [] and given[1:] == [("train", True)]
assert said("auto", 2000, inducing=50)[0] == [] and given[2:] == [("train", False)], "a small matrix"
""")


@pytest.mark.parametrize(("failure", "sentence"), [("no-gpu", "it lists none"), ("no-driver", "the driver is too old")])
def test_a_machine_without_a_gpu(gpu, failure, sentence):
    code = f"""
warned, auto = said("auto", 2000)
assert warned == [], "nobody asked for one"
warned, cuda = said("cuda", 2000)
assert len(warned) == 1 and warned[0].startswith("using the CPU: "), warned
assert {sentence!r} in warned[0], warned
assert auto == cuda == said("cpu", 2000)[1]
"""
    gpu(code, STANDIN=failure)


def test_too_little_memory(gpu):
    code = """
warned, cuda = said("cuda")
words = "a matrix of 600 examples takes 2.9 MB and the GPU has 1.0 MB free: using the CPU for it"
assert warned == [words], warned
assert said("cuda") == ([], cuda) == said("cpu")
assert said("cuda", solver="iterative")[0] == []
"""
    gpu(code, STANDIN="full")


def test_a_gpu_that_fails(gpu):
    code = """
try:
    regressor("cuda").log_marginal_likelihood(eval_gradient=True)
except OSError as error:
    assert "the GPU failed: cuBLAS: it failed" in str(error) and "device cpu" in str(error), error
else:
    raise AssertionError("it was not used")
"""
    gpu(code, STANDIN="trmm")


def test_two_threads_fit_at_once(gpu):
    gpu("""
import threading
opened, begin = [], threading.Barrier(2)
original = _espalier.device_open
_espalier.device_open = lambda name: (opened.append(name), original(name))[1]
models = [None, None]

def work(i):
    begin.wait()
    models[i] = regressor("cuda", FEW + i)

threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert opened == [b"cuda"]
assert given == [("train", True)] * 2
for i in range(2):
    close(models[i].predict(X[-50:]), regressor("cpu", FEW + i).predict(X[-50:]))
""")


FORK = """
def in_child(work):
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
"""


def test_a_child_leaves_the_device_of_its_parent_alone(gpu):
    code = """
parent = regressor("cuda")
_, cpu = said("cpu")
def work():
    given.clear()
    warned, cuda = said("cuda")
    assert len(warned) == 1 and "forked" in warned[0], warned
    assert cuda == cpu and said("cuda") == ([], cpu)
    parent.predict(X[-9:])
    assert not any(device for _, device in given), given
in_child(work)
given.clear()
assert said("cuda")[0] == [] and given == [("train", True)], "the parent has it still"
"""
    gpu(FORK + code)


def test_a_child_opens_what_its_parent_has_not(gpu):
    code = """
def work():
    assert said("cuda")[0] == [] and given == [("train", True)]
in_child(work)
assert _device._device.process == 0

# A thread that is about to open it when the process forks holds the lock, and never gives it back in the child.
_device._device.lock.acquire()
in_child(work)
_device._device.process = os.getpid()
def refused():
    warned, _ = said("cuda")
    assert len(warned) == 1 and "forked" in warned[0], warned
in_child(refused)
"""
    gpu(FORK + code)


def test_the_module_refuses_the_device_of_another_process(gpu):
    code = """
from espalier import Kernel
device = _espalier.device_open(b"cuda")
kernel, data = Kernel("sst"), espalier.Kernel("sst").dataset(X[:2])
out = np.zeros(2)
_espalier.diagonal(kernel._handle, data._handle, out, 1, 0, None, device)
def work():
    try:
        _espalier.diagonal(kernel._handle, data._handle, out, 1, 0, None, device)
    except ValueError as error:
        assert "another process" in str(error)
    else:
        raise AssertionError("it was taken")
in_child(work)
"""
    gpu(FORK + code)
