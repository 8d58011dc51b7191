"""
Regions of acs.warp without a GPU: Warp has a made-up one, and ops run on the CPU (warp_fake.py). Programs have the results that
they have without a region, and launches that recur are packed once, unless anything about them has changed.
"""

from __future__ import annotations

import ctypes
import enum
import random
import sys
import threading
import time
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

from warp._src import context as warp_context  # noqa: E402

import acs  # noqa: E402
import acs.warp  # noqa: E402
import warp_fake  # noqa: E402
from acs._arrays import SEGMENT  # noqa: E402
from acs._library import HOST_BODY  # noqa: E402
from acs.warp import _hooks, _launches, _regions  # noqa: E402

wp.config.quiet = True
wp.init()

N = 64
SLOW_S = 0.0005  # what an op takes: without an order that is needed, the work behind it comes first


class Flag(enum.IntFlag):
    TWO = 2


@wp.struct
class Pair:
    source: wp.array(dtype=float)
    to: wp.array(dtype=float)
    by: float


@wp.kernel
def add(to: wp.array(dtype=float), source: wp.array(dtype=float), by: float):
    i = wp.tid()
    to[i] = to[i] * 0.5 + source[i] * by


@wp.kernel
def add_pair(pair: Pair):
    i = wp.tid()
    pair.to[i] = pair.to[i] * 0.5 + pair.source[i] * pair.by


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

    @staticmethod
    def host_context(**options: Any) -> acs.Context:
        return acs.Context(backend="host")

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


class Order(Case):
    def test_launches_become_ops(self) -> None:
        def program() -> Any:
            a, b, c = self.array(), self.array(), self.array()
            for by in (1.0, 2.0):
                wp.launch(add, N, [a, b, by], device=self.device)
                wp.launch(add, N, [c, a, by], device=self.device)
            return np.stack([a.numpy(), c.numpy()])
        self.both(program)
        region = acs.warp.out_of_order(self.device)
        a, b = self.array(), self.array()
        self.core.calls.clear()
        with region:
            wp.launch(add, N, [a, b, 1.0], device=self.device)
            wp.copy(b, a)
            a.zero_()
        self.assertEqual(region.ops, 3)
        self.assertEqual(region.waits, 1)
        self.assertNotIn("wp_cuda_launch_kernel", self.core.calls)
        self.assertEqual(a.numpy().sum(), 0)

    def test_random_programs(self) -> None:
        for seed in range(12):
            def program() -> Any:
                choose = random.Random(seed)
                arrays = [self.array(np.full(N, i, dtype=np.float32)) for i in range(5)]
                pair, seen = Pair(), []
                for _ in range(40):
                    a, b = choose.sample(arrays, 2)
                    self.random_step(choose, a, b, pair, seen)
                return np.concatenate([np.concatenate([each.numpy() for each in arrays]), *seen])
            with self.subTest(seed=seed):
                self.both(program)

    def random_step(self, choose: random.Random, a: Any, b: Any, pair: Pair, seen: list[Any]) -> None:
        what = choose.randrange(10)
        if what < 3:
            wp.launch(add, N, [a, b, choose.random()], device=self.device)
        elif what == 3:
            pair.to, pair.source, pair.by = a, b, choose.random()
            wp.launch(add_pair, N, [pair], device=self.device)
        elif what == 4:
            optional = choose.choice((None, b))
            wp.launch(shift, N, [a, optional, wp.vec3(1.0, choose.random(), 3.0), choose.random() < 0.5], device=self.device)
        elif what == 5:
            wp.copy(a, b)
        elif what == 6:
            a.zero_()
        elif what == 7:
            a.fill_(choose.random())
        elif what == 8:
            temporary = wp.zeros(N, dtype=float, device=self.device)
            wp.launch(add, N, [temporary, a, 2.0], device=self.device)
            wp.launch(add, N, [b, temporary, 2.0], device=self.device)
        else:
            seen.append(a.numpy())

    def test_a_row_of_other_calls_costs_one_wait(self) -> None:
        a, b = self.array(), self.array()
        with acs.warp.out_of_order(self.device) as region:
            wp.launch(add, N, [a, b, 1.0], device=self.device)
            for value in (1.5, 2.5, 3.5):
                a.fill_(value)
            self.assertEqual(region.waits, 1)
            wp.launch(add, N, [b, a, 1.0], device=self.device)
            self.assertEqual(region.waits, 1)
            wp.synchronize_device(self.device)
            wp.synchronize_device(self.device)
            self.assertEqual(region.waits, 2)
        self.assertEqual(region.waits, 2)
        np.testing.assert_array_equal(b.numpy(), np.arange(N, dtype=np.float32) * 0.5 + 3.5)

    def test_ops_come_behind_the_stream(self) -> None:
        waits: list[int] = []  # of each: whether ops wait for all of the stream's work, or bytes for which they do
        after = _regions.free.acs_after_stream

        def after_stream(context: Any, stream: Any, uses: Any) -> int:
            at = ctypes.c_void_p.from_buffer(uses, type(uses).segments.offset).value
            packed = ctypes.string_at(at, uses.count * SEGMENT.size) if at else b""
            waits.append(-1 if uses.any else sum(segment[1] for segment in SEGMENT.iter_unpack(packed)))
            return int(after(context, stream, uses))
        patch = mock.patch.object(_regions.free, "acs_after_stream", after_stream)
        patch.start()
        self.addCleanup(patch.stop)
        a, b = self.array(), self.array()

        def launch() -> list[int]:
            wp.launch(add, N, [a, b, 1.0], device=self.device)
            result = waits.copy()
            waits.clear()
            return result
        with acs.warp.out_of_order(self.device) as region:
            self.assertEqual([launch(), launch()], [[-1], []])
            a.fill_(1.5)
            b.fill_(1.5)
            self.assertEqual([launch(), launch()], [[-1], []])
            kept = [wp.empty(n, dtype=float, device=self.device) for n in (3, 4)]
            self.assertEqual([launch(), launch()], [[28], []])
            kept.append(wp.empty(5, dtype=float, device=self.device))
            region.join()
            self.assertEqual([launch(), launch()], [[-1], []])
        with acs.warp.out_of_order(self.device):
            self.assertEqual([launch(), launch()], [[-1], []])

    def test_join(self) -> None:
        a, b = self.array(), self.array()
        with acs.warp.out_of_order(self.device) as region:
            wp.launch(add, N, [a, b, 1.0], device=self.device)
            region.join()
            values = np.ctypeslib.as_array((ctypes.c_float * N).from_address(a.ptr))  # as another library
            np.testing.assert_array_equal(values, np.arange(N, dtype=np.float32) * 1.5)
        with self.assertRaises(acs.StateError):
            region.join()

    def test_other_streams(self) -> None:
        other = wp.Stream(self.device)

        def program() -> Any:
            a, b, c = self.array(), self.array(), self.array()
            main = wp.get_stream(self.device)
            wp.launch(add, N, [a, b, 0.5], device=self.device)
            other.wait_stream(main)
            wp.launch(add, N, [c, a, 0.5], stream=other)
            with wp.ScopedStream(other):
                wp.launch(add, N, [c, b, 0.5], device=self.device)
            main.wait_stream(other)
            wp.launch(add, N, [a, c, 0.5], device=self.device)
            return a.numpy()
        self.both(program)

    def test_other_threads(self) -> None:
        a, b = self.array(), self.array()
        with acs.warp.out_of_order(self.device) as region:
            def launch() -> None:
                for _ in range(50):
                    wp.launch(add, N, [a, b, 1.0], device=self.device)
            threads = [threading.Thread(target=launch) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(region.ops, 150)
        np.testing.assert_allclose(a.numpy(), 2 * np.arange(N), rtol=1e-5)

    def test_a_captured_stream_takes_no_ops(self) -> None:
        a, b = self.array(), self.array()
        with acs.warp.out_of_order(self.device) as region:
            self.core.captured = self.device.stream.cuda_stream
            wp.launch(add, N, [a, b, 1.0], device=self.device)
            wp.launch(add, N, [a, b, 1.0], device=self.device)
            a.zero_()
            self.core.captured = -1
            self.assertEqual(region.ops, 0)
            wp.launch(add, N, [a, b, 1.0], device=self.device)
            self.assertEqual(region.ops, 1)
        np.testing.assert_array_equal(a.numpy(), np.arange(N, dtype=np.float32))

    def test_regions_nest(self) -> None:
        a, b = self.array(), self.array()
        with acs.warp.out_of_order(self.device) as outer:
            wp.launch(add, N, [a, b, 1.0], device=self.device)
            with acs.warp.out_of_order(self.device):
                wp.launch(add, N, [a, b, 1.0], device=self.device)
            self.assertEqual(outer.waits, 1)
            wp.launch(add, N, [a, b, 1.0], device=self.device)
        self.assertEqual(outer.ops, 3)
        self.assertIs(wp.launch, warp_context.launch)

    def test_another_stands_in_for_launch(self) -> None:
        a, b = self.array(), self.array()
        original, count = wp.launch, [0]

        def counted(*args: Any, **kwargs: Any) -> Any:
            count[0] += 1
            return original(*args, **kwargs)
        with mock.patch.object(wp, "launch", counted):
            with acs.warp.out_of_order(self.device) as region:
                wp.launch(add, N, [a, b, 1.0], device=self.device)
                wp.launch(add, N, [a, b, 1.0], device=self.device)
            self.assertIs(wp.launch, counted)
        self.assertEqual((count[0], region.ops), (2, 2))
        self.assertIs(wp.launch, warp_context.launch)

    def test_an_exception_ends_a_region(self) -> None:
        a, b = self.array(), self.array()
        launch = wp.launch
        with self.assertRaises(ZeroDivisionError):
            with acs.warp.out_of_order(self.device) as region:
                wp.launch(add, N, [a, b, 1.0], device=self.device)
                raise ZeroDivisionError
        self.assertEqual(region.waits, 1)
        self.assertIs(wp.launch, launch)
        np.testing.assert_array_equal(a.numpy(), np.arange(N, dtype=np.float32) * 1.5)

    def test_refusals(self) -> None:
        with self.assertRaises(acs.UnsupportedError):
            acs.warp.out_of_order("cpu")
        with acs.warp.out_of_order(self.device):
            with self.assertRaises(acs.StateError):
                acs.warp.disable()
        acs.warp.disable()
        with self.assertRaises(acs.StateError):
            acs.warp.out_of_order(self.device)

    def test_a_launch_that_is_refused(self) -> None:
        a, b = self.array(), self.array()
        with acs.warp.out_of_order(self.device):
            with mock.patch.object(_launches, "grid_of", lambda *_: (0, 1, 1)):
                with self.assertRaises(acs.ArgumentError):
                    wp.launch(add, N, [a, b, 1.0], device=self.device)
            wp.launch(add, N, [a, b, 1.0], device=self.device)
        np.testing.assert_array_equal(a.numpy(), np.arange(N, dtype=np.float32) * 1.5)


class Memory(Case):
    def test_freed_memory_is_used_again_by_the_next_region(self) -> None:
        a = self.array()
        addresses: list[list[int]] = []
        for step in range(3):
            addresses.append([])
            with acs.warp.out_of_order(self.device) as region:
                for _ in range(5):
                    temporary = wp.empty(N, dtype=float, device=self.device)
                    addresses[-1].append(temporary.ptr)
                    wp.copy(temporary, a)
                    wp.launch(add, N, [a, temporary, 1.0], device=self.device)
                    del temporary
                self.assertEqual(region.waits, 0)
            self.assertEqual(len(set(addresses[-1])), 5)
            # other streams may have used the memory: it is used again behind them
            self.assertEqual(self.core.calls.count("wp_cuda_stream_wait_stream"), step + 1)
        self.assertEqual(addresses[1], sorted(addresses[0]))
        self.assertEqual(addresses[2], addresses[1])
        self.assertNotIn("wp_free_device_async", self.core.calls)
        np.testing.assert_allclose(a.numpy(), np.arange(N) * 1.5 ** 15, rtol=1e-5)
        acs.warp.disable()
        self.assertEqual(self.core.calls.count("wp_free_device_async"), 5)

    def test_memory_rests_while_its_stream_is_captured(self) -> None:
        with acs.warp.out_of_order(self.device):
            first = self.array()
            address = first.ptr
            del first
            self.core.captured = self.device.stream.cuda_stream
        self.assertNotIn("wp_cuda_stream_wait_stream", self.core.calls)
        self.core.captured = -1
        with acs.warp.out_of_order(self.device):
            self.assertNotEqual(self.array().ptr, address)
        with acs.warp.out_of_order(self.device):
            self.assertEqual(self.array().ptr, address)

    def test_temporary_arrays_recur(self) -> None:
        a = self.array()

        def program() -> None:
            temporary = wp.empty(N, dtype=float, device=self.device)
            wp.launch(square, N, [temporary, a], device=self.device)
            other = wp.empty(N, dtype=int, device=self.device)
            wp.launch(generic, N, [other, 2], device=self.device)

        def step() -> None:
            with acs.warp.out_of_order(self.device):
                program()
        for _ in range(3):
            step()  # memory has its order from the second one on
        self.assertEqual([self.packs(step) for _ in range(2)], [0, 0])

    def test_memory_of_a_stream_that_ends(self) -> None:
        stream = wp.Stream(self.device)
        with wp.ScopedStream(stream), acs.warp.out_of_order(self.device):
            self.array()
        self.assertNotIn("wp_free_device_async", self.core.calls)
        del stream
        self.assertEqual(self.core.calls.count("wp_free_device_async"), 1)

    def test_too_much_rests(self) -> None:
        acs.warp.enable(rest_bytes=4 * N * 2)
        with acs.warp.out_of_order(self.device):
            for _ in range(6):
                wp.zeros(N, dtype=float, device=self.device)
            self.assertEqual(self.core.calls.count("wp_free_device_async"), 6)
        acs.warp.enable()

    def test_memory_from_before(self) -> None:
        acs.warp.disable()
        a, b = self.array(), self.array()
        acs.warp.enable()
        with acs.warp.out_of_order(self.device) as region:
            wp.launch(add, N, [b, a, 1.0], device=self.device)
            del a  # its size is not known
            self.assertEqual(region.waits, 1)
            self.assertEqual(self.core.calls.count("wp_free_device_async"), 1)
        np.testing.assert_array_equal(b.numpy(), np.arange(N, dtype=np.float32) * 1.5)

    def test_a_full_device(self) -> None:
        with acs.warp.out_of_order(self.device):
            self.array()
            self.core.full = True
            a = self.array()
            self.assertEqual(self.core.calls.count("wp_free_device_async"), 1)
        self.core.full = True
        with self.assertRaises(RuntimeError):
            self.array()
        np.testing.assert_array_equal(a.numpy(), np.arange(N, dtype=np.float32))


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
            self.assertEqual([self.packs(lambda: wp.launch(shift, N, [a, None, wp.vec3(i, 2.0, 3.0), i > 1], device=self.device))
                              for i in (1.0, 2.0, 3.0, 4.0)], [4, 4, 0, 0])

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


class Grids(unittest.TestCase):
    def test_grids(self) -> None:
        self.assertEqual(_launches.grid_of(1, 256, 0, True), (1, 1, 1))
        self.assertEqual(_launches.grid_of(257, 256, 0, True), (2, 1, 1))
        self.assertEqual(_launches.grid_of(10000, 256, 7, True), (7, 1, 1))
        self.assertEqual(_launches.grid_of(1 << 41, 256, 0, True), ((1 << 31) - 1, 1, 1))
        self.assertEqual(_launches.grid_of(257, 256, 0, False), (2, 1, 1))
        self.assertEqual(_launches.grid_of((1 << 24) + 1, 256, 0, False), (1 << 16, 2, 1))
        self.assertEqual(_launches.grid_of(1 << 41, 256, 0, False), (1 << 16, 65535, 3))


if __name__ == "__main__":
    unittest.main()
