#!/usr/bin/env python3
"""A Gaussian process worked out from the definitions, in plain Python: slow, obvious, sharing nothing with the library.

gp_reference.py gaussian|bernoulli SETTINGS TRAIN TEST prints the log likelihood (or Laplace's log evidence) of TRAIN
and then, for each example of TEST, mean, variance with noise and latent variance (or latent mean, latent variance and
probability), separated by TABs. Targets that are strings are classes, one against the rest: then it is the sum of their
log evidences, and for each example the latent means and the probabilities of all. SETTINGS is JSON: the kernel is

    weight1 * norm(sst(tree, lambda, alpha, per label if "labels" says so)) + weight2 * rbf(x, gamma)

and "noise", "mean" ("zero" or "constant") and "standardise" are those of the learner. Trees and vectors are small here.
"""

import json
import math
import sys


def parse(text):
    """A tree as (label, children); a leaf is a string."""
    tokens = text.replace("(", " ( ").replace(")", " ) ").split()
    stack: list[list] = [[]]
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append((done[0], done[1:]))
        else:
            stack[-1].append(token)
    return stack[0][0]


def nodes(tree):
    yield tree
    for child in tree[1]:
        if isinstance(child, tuple):
            yield from nodes(child)


def production(node):
    return node[0], [(c[0], True) if isinstance(c, tuple) else (c, False) for c in node[1]]


def sst(a, b, value):
    """Collins and Duffy's kernel with lambda_x for each production of x and alpha_x for each inner child left out."""

    def delta(n, m):
        if production(n) != production(m):
            return 0.0
        result = value("lambda", n[0])
        for c, d in zip(n[1], m[1]):
            if isinstance(c, tuple):
                result *= value("alpha", n[0]) + delta(c, d)
        return result

    return sum(delta(n, m) for n in nodes(a) for m in nodes(b))


class Kernel:
    def __init__(self, settings):
        self.settings = settings
        self.own = {}

    def value(self, name, label):
        return self.settings.get("labels", {}).get(f"{name}.{label}", self.settings[name])

    def trees(self, a, b):
        return sst(parse(a), parse(b), self.value)

    def self_value(self, a):
        if a not in self.own:
            self.own[a] = self.trees(a, a)
        return self.own[a]

    def __call__(self, a, b):
        s = self.settings
        tree = self.trees(a["tree"], b["tree"]) / math.sqrt(self.self_value(a["tree"]) * self.self_value(b["tree"]))
        features = set(a["x"]) | set(b["x"])
        distance = sum((a["x"].get(f, 0.0) - b["x"].get(f, 0.0)) ** 2 for f in features)
        return s["weight1"] * tree + s["weight2"] * math.exp(-s["gamma"] * distance)


def cholesky(matrix):
    n = len(matrix)
    factor = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            rest = matrix[i][j] - math.fsum(factor[i][k] * factor[j][k] for k in range(j))
            factor[i][j] = math.sqrt(rest) if i == j else rest / factor[j][j]
    return factor


def solve(factor, y):
    n, x = len(y), list(y)
    for i in range(n):
        x[i] = (x[i] - math.fsum(factor[i][k] * x[k] for k in range(i))) / factor[i][i]
    for i in reversed(range(n)):
        x[i] = (x[i] - math.fsum(factor[k][i] * x[k] for k in range(i + 1, n))) / factor[i][i]
    return x


def dot(x, y):
    return math.fsum(a * b for a, b in zip(x, y))


def regression(kernel, s, train, test):
    n = len(train)
    y = [e["y"] for e in train]
    mean = math.fsum(y) / n if s["standardise"] != "none" else 0.0
    scale = math.sqrt(math.fsum((v - mean) ** 2 for v in y) / n) if s["standardise"] == "unit" else 1.0
    y = [(v - mean) / scale for v in y]
    matrix = [[kernel(a, b) + (s["noise"] if a is b else 0.0) for b in train] for a in train]
    factor = cholesky(matrix)
    ones = solve(factor, [1.0] * n)
    constant = dot(ones, y) / math.fsum(ones) if s["mean"] == "constant" else 0.0
    y = [v - constant for v in y]
    a = solve(factor, y)
    log_determinant = 2 * math.fsum(math.log(factor[i][i]) for i in range(n))
    print(repr(-0.5 * (dot(y, a) + log_determinant + n * math.log(2 * math.pi)) - n * math.log(scale)))
    for x in test:
        k = [kernel(x, e) for e in train]
        latent = scale**2 * (kernel(x, x) - dot(k, solve(factor, k)))
        print(mean + scale * (constant + dot(k, a)), latent + scale**2 * s["noise"], latent, sep="\t")


def normal_cdf(z):
    return 0.5 * math.erfc(-z / math.sqrt(2))


def two_classes(kernel, y, train, test):
    """Laplace's log evidence for targets y of -1 and 1, and latent mean and variance of each example of TEST."""
    n = len(train)
    gram = [[kernel(a, b) for b in train] for a in train]
    f = [0.0] * n
    for _ in range(60):  # Newton: f = K (I + W K)^-1 (W f + g) = K S B^-1 ...
        ratio = [math.exp(-0.5 * v * v) / math.sqrt(2 * math.pi) / normal_cdf(t * v) for t, v in zip(y, f)]
        g = [t * r for t, r in zip(y, ratio)]
        w = [r * (r + t * v) for t, r, v in zip(y, ratio, f)]
        # (K + W^-1) c = K b, then a = b - c
        matrix = [[gram[i][j] + (1 / w[i] if i == j else 0.0) for j in range(n)] for i in range(n)]
        factor = cholesky(matrix)
        b = [w[i] * f[i] + g[i] for i in range(n)]
        c = solve(factor, [dot(gram[i], b) for i in range(n)])
        a = [p - q for p, q in zip(b, c)]
        f = [dot(gram[i], a) for i in range(n)]
    log_b = 2 * math.fsum(math.log(factor[i][i]) for i in range(n)) + math.fsum(math.log(v) for v in w)
    evidence = -0.5 * dot(a, f) + math.fsum(math.log(normal_cdf(t * v)) for t, v in zip(y, f)) - 0.5 * log_b
    moments = []
    for x in test:
        k = [kernel(x, e) for e in train]
        moments.append((dot(k, a), kernel(x, x) - dot(k, solve(factor, k))))
    return evidence, moments


def link(moments):
    mean, variance = moments
    return normal_cdf(mean / math.sqrt(1 + variance))


def several_classes(kernel, train, test):
    names = sorted({e["y"] for e in train})
    parts = [two_classes(kernel, [1.0 if e["y"] == name else -1.0 for e in train], train, test) for name in names]
    print(repr(math.fsum(evidence for evidence, _ in parts)))
    for i in range(len(test)):
        at = [moments[i] for _, moments in parts]
        # Each class tells for itself whether it is the one: what is the chance of c and no other?
        only = [math.prod(link(at[k]) if k == c else 1 - link(at[k]) for k in range(len(at))) for c in range(len(at))]
        print(*(mean for mean, _ in at), *(p / math.fsum(only) for p in only), sep="\t")


def classes(kernel, s, train, test):
    if isinstance(train[0]["y"], str):
        several_classes(kernel, train, test)
        return
    evidence, moments = two_classes(kernel, [1.0 if e["y"] > 0 else -1.0 for e in train], train, test)
    print(repr(evidence))
    for mean, variance in moments:
        print(mean, variance, link((mean, variance)), sep="\t")


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def main():
    likelihood, settings, train, test = sys.argv[1:]
    settings = json.loads(settings)
    (regression if likelihood == "gaussian" else classes)(Kernel(settings), settings, read(train), read(test))


main()
