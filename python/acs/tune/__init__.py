"""
Versions of kernels, found by compiling a kernel for many configurations and measuring them on shares of the GPU.

    kernel = acs.tune.Cuda(source, "scale", signature="pointer, pointer, int32", block=lambda c: c["BLOCK"],
                           grid=lambda c, args: -(-args[2] // (c["BLOCK"] * c["EACH"])))
    found = acs.tune.search(kernel, {"BLOCK": [64, 128, 256], "EACH": [1, 2, 4]},
                            [acs.tune.Problem((to, source, n), reads=[source], writes=[to])])
    print(found.table())
    found.save("scale.json")                        # later: found = acs.tune.load("scale.json", kernel)
    tuned = found.declare()
    tuned.launch(context, (to, source, n), reads=[source], writes=[to])

``python3 -m acs.tune FILE.py`` does the searches that a file describes; acs-tune --search is the same.
"""

from __future__ import annotations

from ._compile import Cuda, Problem, Triton, Unfit
from ._found import Found, load
from ._search import search

__all__ = ["Cuda", "Found", "Problem", "Triton", "Unfit", "load", "search"]
