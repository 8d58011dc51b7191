"""What the tests of acs.warp's regions share: kernels, and a made-up GPU whose ops run on the CPU (warp_fake.py)."""

from __future__ import annotations

import enum
import time
import unittest
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import warp as wp
from warp._src import context as warp_context

import acs
import acs.warp
import warp_fake
from acs._library import HOST_BODY
from acs.warp import _hooks, _launches, _regions

wp.config.quiet = True
wp.init()

N = 64
SLOW_S = 0.0005  # what an op takes: without an order that is needed, the work behind it comes first


class Flag(enum.IntFlag):
    TWO = 2


@wp.kernel
def shift(to: wp.array(dtype=float), optional: wp.array(dtype=float), by: wp.vec3, twice: bool):
    i = wp.tid()
    if optional:
        to[i] = to[i] + optional[i]
    to[i] = to[i] + by[i % 3]
    if twice:
        to[i] = to[i] + by[i % 3]


@wp.kernel
def generic(to: wp.array(dtype=Any), by: Any):
    i = wp.tid()
    to[i] = to[i] + by


@wp.kernel
def square(to: wp.array(dtype=float), source: wp.array(dtype=float)):
    i = wp.tid()
    to[i] = source[i] * source[i]


def host_kernel(function: int, *, name: str) -> Any:
    """A kernel of the library whose body is one of the made-up GPU's functions."""
    known = warp_fake.core().functions[function]
    count = 1 + sum(len(part._fields_) for part in known.parts)

    def body(_: Any, args: Any) -> None:
        time.sleep(SLOW_S)
        known.run([args[i] for i in range(count)])

    callback = HOST_BODY(body)
    kernel = acs.Kernel(host=callback, name=name)
    kernel.struct.function = function  # so that a replayed kernel is told apart
    return kernel


class Case(unittest.TestCase):
    def setUp(self) -> None:
        gpu = warp_fake.gpu()
        self.device = gpu.__enter__()
        self.addCleanup(gpu.__exit__, None, None, None)
        self.core = warp_fake.core()
        for where, name, what in ((_hooks, "Context", self.host_context), (_regions, "Context", self.host_context),
                                  (_launches, "Kernel", host_kernel), (acs.warp, "_installed", None)):
            patch = mock.patch.object(where, name, what)
            patch.start()
            self.addCleanup(patch.stop)
        acs.warp.enable()
        self.addCleanup(acs.warp.disable)
        pack = warp_context.pack_arg
        self.packed = 0

        def pack_arg(*args: Any, **kwargs: Any) -> Any:
            self.packed += 1
            return pack(*args, **kwargs)
        patch = mock.patch.object(warp_context, "pack_arg", pack_arg)
        patch.start()
        self.addCleanup(patch.stop)

    backend = "host"

    def host_context(self, **options: Any) -> acs.Context:
        return acs.Context(backend=self.backend)

    def array(self, values: Any = None, **kwargs: Any) -> Any:
        data = np.arange(N, dtype=np.float32) if values is None else values
        return wp.array(data, dtype=float, device=self.device, **kwargs)

    def packs(self, program: Callable[[], Any]) -> int:
        """How many arguments Warp packs in a program."""
        before = self.packed
        program()
        return self.packed - before

    def both(self, program: Callable[[], Any]) -> Any:
        """What a program returns, which is the same in a region as without one."""
        plain = program()
        with acs.warp.out_of_order(self.device):
            result = program()
        np.testing.assert_array_equal(result, plain)
        return result
