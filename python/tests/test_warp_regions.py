"""
Regions of acs.warp without a GPU: programs have the results that they have without a region, on a made-up GPU whose ops run
on the CPU (warp_fake.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import random
import sys
import threading
import unittest
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
from acs._arrays import SEGMENT  # noqa: E402
from acs.warp import _launches, _regions  # noqa: E402
from warp_case import N, Case, generic, shift, square  # noqa: E402
from warp_kernels import Pair, add, add_pair  # noqa: E402


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
        after = _regions.free.acs_after_stream_op

        def after_stream(context: Any, stream: Any, uses: Any, params: Any) -> int:
            at = ctypes.c_void_p.from_buffer(uses, type(uses).segments.offset).value
            packed = ctypes.string_at(at, uses.count * SEGMENT.size) if at else b""
            waits.append(-1 if uses.any else sum(segment[1] for segment in SEGMENT.iter_unpack(packed)))
            return int(after(context, stream, uses, params))
        patch = mock.patch.object(_regions.free, "acs_after_stream_op", after_stream)
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
            second = self.array()  # lives on: of two blocks the one with the lower address would come first
            self.assertNotEqual(second.ptr, address)
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


class Replays(Case):
    backend = "sim"  # where parts that recur are replayed

    def test_steps_that_recur_are_replayed(self) -> None:
        rows = [self.array(np.full(N, i, dtype=np.float32)) for i in range(8)]

        def steps(region: Any, times: int) -> Any:
            for i, row in enumerate(rows):
                row.assign(np.full(N, i, dtype=np.float32))
            for _ in range(times):
                with region or contextlib.nullcontext():
                    for i in range(8):
                        wp.launch(add, N, [rows[i], rows[(i + 3) % 8], 0.25], device=self.device)
                        wp.launch(add, N, [rows[i], rows[i ^ 1], 0.25], device=self.device)
            return np.stack([row.numpy() for row in rows])
        expected = steps(None, 100)
        np.testing.assert_array_equal(steps(acs.warp.out_of_order(self.device), 100), expected)
        assert acs.warp._installed is not None
        stats = acs.warp._installed.regions._contexts.get(self.device).stats()
        self.assertGreater(stats["replayed"], 800, stats)


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
