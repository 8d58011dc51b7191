"""
Launches that recur in regions of acs.warp, without a GPU: they are packed anew if anything about them has changed, and have
the results of Warp's own launches.
"""

from __future__ import annotations

import ctypes
import sys
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

try:
    import numpy as np
    import warp as wp
except ImportError:
    if __name__ == "__main__":
        print("skipped: warp is not installed")
        sys.exit(0)
    raise unittest.SkipTest("warp is not installed") from None

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

import acs  # noqa: E402
import acs.warp  # noqa: E402
from acs.warp import _launches  # noqa: E402
from warp_case import N, Case, Flag, generic, shift, square  # noqa: E402
from warp_kernels import Pair, add, add_pair  # noqa: E402


class Recurring(Case):
    def check(self, change: Callable[[list[Any]], None], args: list[Any], packs: int, kernel: Any = add) -> None:
        """Launch twice, change, launch. Warp packs so many arguments at the last launch."""
        with acs.warp.out_of_order(self.device):
            wp.launch(kernel, N, args, device=self.device)
            wp.launch(kernel, N, args, device=self.device)
            change(args)
            self.assertEqual(self.packs(lambda: wp.launch(kernel, N, args, device=self.device)), packs)

    def test_nothing_changed(self) -> None:
        self.check(lambda args: None, [self.array(), self.array(), 1.0], 0)
        vector = wp.vec3(1.0, 2.0, 3.0)
        self.check(lambda args: None, [self.array(), self.array(), vector, True], 0, shift)
        self.check(lambda args: None, [self.array(), None, vector, True], 0, shift)

    def test_it_is_packed_twice_for_each_set_of_arrays(self) -> None:
        rows = [self.array() for _ in range(4)]

        def step() -> None:
            for a, b in zip(rows, rows[1:]):
                wp.launch(add, dim=N, inputs=[a], outputs=[b, 0.5], device=self.device)
        with acs.warp.out_of_order(self.device):
            self.assertEqual([self.packs(step) for _ in range(4)], [9, 9, 0, 0])
        with acs.warp.out_of_order(self.device):
            self.assertEqual(self.packs(step), 0)

    def test_scalars(self) -> None:
        def program() -> Any:
            a, b = self.array(), self.array()
            for by in (1.0, 2.0, 3, True, float("nan"), -0.0):
                wp.launch(add, N, [a, b, by], device=self.device)
                if by != by:
                    a.zero_()
            for by in (np.float32(0.1), np.float64(0.1), np.int64(2), Flag.TWO):
                wp.launch(add, N, [a, b, by], device=self.device)
                wp.launch(add, N, [a, b, by], device=self.device)
            for twice in (True, False):
                wp.launch(shift, N, [a, None, wp.vec3(1.0, 2.0, float(twice)), twice], device=self.device)
            return a.numpy()
        self.both(program)

    def test_values(self) -> None:
        a = self.array()
        with acs.warp.out_of_order(self.device):
            def launch(i: float) -> None:
                wp.launch(shift, N, [a, None, wp.vec3(i, 2.0, 3.0), i > 1], device=self.device)
            self.assertEqual([self.packs(lambda: launch(i)) for i in (1.0, 2.0, 3.0, 4.0)], [4, 4, 0, 0])

    def test_arrays(self) -> None:
        def gradient(args: list[Any]) -> None:
            args[0].requires_grad = True

        def address(args: list[Any]) -> None:
            args[0].ptr = args[1].ptr  # Warp goes on with its descriptor
        self.check(gradient, [self.array(), self.array(), 1.0], 3)
        args = [self.array(), self.array(), 1.0]
        own = args[0].ptr
        self.check(address, args, 0)
        args[0].ptr = own

        def program() -> Any:
            a, b = self.array(), self.array()
            wp.launch(add, N, [a, b, 1.0], device=self.device)
            address_before = b.ptr
            b.ptr = a.ptr
            wp.launch(add, N, [a, b, 1.0], device=self.device)
            b.ctype = None
            wp.launch(add, N, [a, b, 1.0], device=self.device)
            b.ptr = address_before
            return a.numpy()
        self.both(program)

    def test_none(self) -> None:
        def none(args: list[Any]) -> None:
            args[1] = None
        self.check(none, [self.array(), self.array(), wp.vec3(), False], 4, shift)

    def test_structs(self) -> None:
        pair = Pair()
        pair.to, pair.source, pair.by = self.array(), self.array(), 1.0

        def number(args: list[Any]) -> None:
            args[0].by = 2.0

        def field(args: list[Any]) -> None:
            args[0].to, args[0].source = args[0].source, args[0].to
        self.check(lambda args: None, [pair], 0, add_pair)
        self.check(number, [pair], 1, add_pair)
        self.check(field, [pair], 1, add_pair)

        def program() -> Any:
            a, b, c = self.array(), self.array(), self.array()
            used = Pair()
            for source, to, by in ((a, b, 1.0), (b, a, 1.0), (b, a, 2.0), (c, b, 2.0)):
                used.source, used.to, used.by = source, to, by
                wp.launch(add_pair, N, [used], device=self.device)
            return np.stack([a.numpy(), b.numpy()])
        self.both(program)

    def test_what_is_kept_is_alive(self) -> None:
        vector = wp.vec3(1.0, 2.0, 3.0)
        with acs.warp.out_of_order(self.device):
            a = self.array()
            for _ in range(2):
                wp.launch(shift, N, [a, None, vector, True], device=self.device)
        assert acs.warp._installed is not None
        (found,) = acs.warp._installed.regions._memo._recurring.values()
        alive = {ctypes.addressof(each) for each in (*found.kept, found.launch.bounds)}
        for place, argument in enumerate(found.launch.args):
            if place != 3:  # the vector, which is given anew with each launch
                self.assertIn(argument.value, alive, place)
        self.assertTrue(found.renew(shift, [None, None, vector, False]))
        self.assertFalse(found.renew(add, [None, None, vector, False]))  # another kernel in its place

    def test_a_module_that_was_rebuilt(self) -> None:
        self.check(lambda args: add.module.unload(), [self.array(), self.array(), 1.0], 3)
        self.check(lambda args: add.module.mark_modified(), [self.array(), self.array(), 1.0], 3)

    def test_dimensions(self) -> None:
        a, b = self.array(), self.array()

        def launch(dim: Any, **kwargs: Any) -> Callable[[], None]:
            return lambda: wp.launch(square, dim, [a, b], device=self.device, **kwargs)
        with acs.warp.out_of_order(self.device):
            for dim, kwargs, packs in ((N, {}, 2), ((N,), {}, 2), ([N], {}, 0), (N, {}, 0), ((N // 2,), {}, 2), ((8, 8), {}, 2),
                                       (N, {"block_dim": 32}, 2), (N, {"block_dim": 32}, 2), (N, {"block_dim": 32}, 0),
                                       (N, {"max_blocks": 1}, 2), (0, {}, 0), (N, {}, 0)):
                self.assertEqual(self.packs(launch(dim, **kwargs)), packs, (dim, kwargs))
            with self.assertRaises(Exception):
                launch(float(N))()
            tiled = lambda: wp.launch_tiled(square, dim=[2], inputs=[a, b], block_dim=32, device=self.device)  # noqa: E731
            self.assertEqual([self.packs(tiled) for _ in range(3)], [2, 2, 0])
        np.testing.assert_array_equal(a.numpy(), np.arange(N, dtype=np.float32) ** 2)

    def test_generic_kernels(self) -> None:
        def program() -> Any:
            a, b = self.array(), wp.zeros(N, dtype=int, device=self.device)
            for _ in range(3):
                wp.launch(generic, N, [a, 0.5], device=self.device)
                wp.launch(generic, N, [b, 2], device=self.device)
            return np.concatenate([a.numpy(), b.numpy()])
        self.both(program)
        a = self.array()
        self.check(lambda args: None, [a, 0.5], 0, generic)

    def test_tapes(self) -> None:
        def program() -> Any:
            x, y = self.array(requires_grad=True), self.array(requires_grad=True)
            wp.launch(square, N, [y, x], device=self.device)
            with wp.Tape() as tape:
                wp.launch(square, N, inputs=[y, x], device=self.device)
                wp.launch(square, N, inputs=[y, x], device=self.device, record_tape=False)
            self.assertEqual(len(tape.launches), 1)
            self.assertEqual(tape.launches[0][-1]["caller"]["func"], "program")
            self.assertEqual(tape.launches[0][-1]["caller"]["file"], __file__)
            tape.backward(grads={y: self.array(np.ones(N, dtype=np.float32))})
            return np.stack([y.numpy(), x.grad.numpy()])
        self.assertEqual(self.both(program)[1][3], 6.0)

    def test_recorded_launches(self) -> None:
        def program() -> Any:
            a, b = self.array(), self.array()
            wp.launch(add, N, [a, b, 0.5], device=self.device)
            command = wp.launch(add, N, [a, b, 0.5], device=self.device, record_cmd=True)
            command.launch()
            command.set_param_at_index(2, 0.75)
            command.launch()
            return a.numpy()
        self.both(program)

    def test_settings_that_watch_launches(self) -> None:
        with mock.patch.object(wp.config, "print_launches", True):
            self.check(lambda args: None, [self.array(), self.array(), 1.0], 3)

    def test_as_many_are_kept_as_may_be(self) -> None:
        rows = [self.array() for _ in range(4)]
        with mock.patch.object(_launches, "MOST_RECURRING", 2), acs.warp.out_of_order(self.device):
            def launch(i: int) -> Callable[[], None]:
                return lambda: wp.launch(square, N, [rows[i], rows[3]], device=self.device)
            self.assertEqual([self.packs(launch(i)) for i in (0, 0, 1, 1, 0, 2, 2, 2, 0)],
                             [2, 2, 2, 2, 0, 2, 2, 0, 2])  # all are forgotten

    def test_errors_are_those_of_warp(self) -> None:
        a, b = self.array(), self.array()
        with acs.warp.out_of_order(self.device):
            wp.launch(add, N, [a, b, 1.0], device=self.device)
            for args in ([a, b], [a, b, "x"], [a, wp.zeros((2, 2), dtype=float, device=self.device), 1.0], [a, 1.0, b]):
                with self.assertRaises((RuntimeError, TypeError)):
                    wp.launch(add, N, args, device=self.device)
            wp.launch(add, N, [a, b, 1.0], device=self.device)


if __name__ == "__main__":
    unittest.main()
