"""
Warp's captures and regions through ACS, on a GPU: programs have the results of Warp alone, bit for bit, and captures are as
wide as their footprints allow. Skipped without Warp or without a GPU.
"""

from __future__ import annotations

import contextlib
import unittest
from collections.abc import Callable
from typing import Any

try:
    import numpy as np
    import warp as wp
except ImportError:
    raise unittest.SkipTest("warp is not installed") from None

import acs.warp
from warp_kernels import Pair, add, add_pair

wp.config.quiet = True
wp.init()
if not wp.is_cuda_available():
    raise unittest.SkipTest("there is no GPU")

N = 1 << 12


@wp.kernel
def gather(to: wp.array(dtype=float), rows: wp.array2d(dtype=float)):
    i = wp.tid()
    total = float(0.0)
    for row in range(rows.shape[0]):
        total += rows[row, i]
    to[i] = total


@wp.kernel
def count_down(counter: wp.array(dtype=int)):
    counter[0] = counter[0] - 1


@wp.kernel
def square(to: wp.array(dtype=float), source: wp.array(dtype=float)):
    i = wp.tid()
    to[i] = source[i] * source[i]


@wp.kernel
def total(to: wp.array(dtype=float), source: wp.array(dtype=float)):
    wp.atomic_add(to, 0, source[wp.tid()])


@wp.kernel
def advance(to: wp.array(dtype=Any), by: Any):
    i = wp.tid()
    to[i] = to[i] + by


@wp.kernel
def tile_total(to: wp.array(dtype=float), source: wp.array2d(dtype=float)):
    i = wp.tid()
    row = wp.tile_load(source, shape=(1, 64), offset=(i, 0))
    wp.tile_store(to, wp.tile_sum(row), offset=(i,))


@wp.kernel
def wide_grid(to: wp.array(dtype=float)):
    i, j, k = wp.tid()
    to[i] = to[i] + 0.0 * float(j) + 0.0 * float(k)


@wp.kernel
def nearest(mesh: wp.uint64, to: wp.array(dtype=float)):
    i = wp.tid()
    found = wp.mesh_query_point(mesh, wp.vec3(float(i), 0.0, 1.0), 1.0e6)
    to[i] = to[i] + found.u


class Arrays:
    """Arrays with the same contents each time."""

    def __init__(self, count: int = 8) -> None:
        random = np.random.default_rng(1)
        self.rows = [wp.array(random.random(N, dtype=np.float32), device="cuda:0") for _ in range(count)]
        self.counters = [wp.array([3 + i], dtype=int, device="cuda:0") for i in range(2)]
        self.kept: list[Any] = []

    def bits(self) -> list[bytes]:
        return [row.numpy().tobytes() for row in self.rows] + [c.numpy().tobytes() for c in self.counters]


def captured(program: Callable[[Arrays], None], times: int = 3) -> tuple[list[bytes], dict[str, Any]]:
    """Capture a program, and run its graph so often. Returns what the arrays then hold, and the graph's figures."""
    arrays = Arrays()
    with wp.ScopedCapture(device="cuda:0") as capture:
        program(arrays)
    figures = acs.warp.report()
    for _ in range(times):
        wp.capture_launch(capture.graph)
    wp.synchronize_device("cuda:0")
    return arrays.bits(), figures


class Captures(unittest.TestCase):
    def setUp(self) -> None:
        acs.warp.disable()

    def tearDown(self) -> None:
        acs.warp.disable()

    def compare(self, program: Callable[[Arrays], None], levels_most: int | None = None) -> dict[str, Any]:
        """The same bits as Warp's own graph, on any number of chains. Returns the figures on the default number."""
        expected, plain = captured(program)
        self.assertEqual(plain, {})
        figures = {}
        for chains in (0, 1, 3, acs.warp.CHAINS_ANY):
            acs.warp.enable(chains=chains)
            got, figures[chains] = captured(program)
            self.assertEqual(got, expected, f"on {chains} chains: {figures[chains]}")
            acs.warp.disable()
        if levels_most is not None:
            self.assertLessEqual(figures[0]["levels"], levels_most, figures[0])
        return figures[0]

    def test_chains_run_side_by_side(self) -> None:
        def program(a: Arrays) -> None:
            for step in range(10):
                for row in range(0, 8, 2):
                    wp.launch(add, N, [a.rows[row], a.rows[row + 1], 0.25 + step], device="cuda:0")
        figures = self.compare(program, levels_most=10)
        self.assertEqual(figures["ops"], 40)
        self.assertEqual(figures["edges"], 36)

    def test_structs_copies_and_fills(self) -> None:
        def program(a: Arrays) -> None:
            for row in range(0, 8, 2):
                pair = Pair()
                pair.source, pair.to, pair.by = a.rows[row + 1], a.rows[row], 0.5
                wp.launch(add_pair, N, [pair], device="cuda:0")
            wp.copy(a.rows[1], a.rows[0])
            a.rows[3].zero_()
            a.rows[5].fill_(2.5)
            wp.copy(a.rows[7], a.rows[6], count=N // 2, dest_offset=N // 2)
            wp.launch(add, N, [a.rows[2], a.rows[3], 1.0], device="cuda:0")
        self.compare(program, levels_most=3)

    def test_views_of_one_array(self) -> None:
        def program(a: Arrays) -> None:
            rows = wp.empty((4, N), dtype=float, device="cuda:0")
            a.kept.append(rows)
            for i in range(4):
                wp.copy(rows[i], a.rows[i])
                wp.launch(add, N, [rows[i], a.rows[i + 4], 1.5], device="cuda:0")
            wp.launch(gather, N, [a.rows[0], rows], device="cuda:0")
        self.compare(program, levels_most=3)

    def test_memory_of_a_capture(self) -> None:
        def program(a: Arrays) -> None:
            for row in range(8):  # each temporary array is freed before the next is made
                temporary = wp.zeros(N, dtype=float, device="cuda:0")
                wp.launch(add, N, [temporary, a.rows[row], 2.0], device="cuda:0")
                wp.launch(add, N, [a.rows[row], temporary, 3.0], device="cuda:0")
        self.compare(program, levels_most=3)

    def test_memory_is_used_again_where_too_much_rests(self) -> None:
        def program(a: Arrays) -> None:
            for step in range(20):
                temporary = wp.empty(N, dtype=float, device="cuda:0")
                wp.copy(temporary, a.rows[step % 8])
                wp.launch(add, N, [a.rows[(step + 1) % 8], temporary, 3.0], device="cuda:0")
        expected, _ = captured(program)
        acs.warp.enable(rest_bytes=5 * N)
        self.assertEqual(captured(program)[0], expected)

    def test_loops(self) -> None:
        def body(a: Arrays, which: int) -> None:
            wp.launch(add, N, [a.rows[which], a.rows[which + 1], 0.5], device="cuda:0")
            wp.launch(add, N, [a.rows[which + 2], a.rows[which + 3], 0.5], device="cuda:0")
            wp.launch(count_down, 1, [a.counters[which // 4]], device="cuda:0")

        def program(a: Arrays) -> None:
            for counter in a.counters:
                counter.fill_(3)
            for which in (0, 4):
                wp.capture_while(a.counters[which // 4], body, a=a, which=which)
            wp.launch(add, N, [a.rows[0], a.rows[4], 0.5], device="cuda:0")
        self.compare(program, levels_most=3)

    def test_loops_in_loops_and_branches(self) -> None:
        def inner(a: Arrays) -> None:
            wp.launch(add, N, [a.rows[0], a.rows[1], 0.5], device="cuda:0")
            wp.launch(count_down, 1, [a.counters[0]], device="cuda:0")

        def yes(a: Arrays) -> None:
            wp.launch(add, N, [a.rows[2], a.rows[3], 0.5], device="cuda:0")

        def no(a: Arrays) -> None:
            wp.launch(add, N, [a.rows[4], a.rows[5], 0.5], device="cuda:0")

        def outer(a: Arrays) -> None:
            a.counters[0].fill_(2)
            wp.capture_while(a.counters[0], inner, a=a)
            wp.launch(count_down, 1, [a.counters[1]], device="cuda:0")
            wp.capture_if(a.counters[1], yes, no, a=a)

        def program(a: Arrays) -> None:
            a.counters[1].fill_(3)
            wp.capture_while(a.counters[1], outer, a=a)
            wp.launch(add, N, [a.rows[6], a.rows[7], 0.5], device="cuda:0")
        figures = self.compare(program, levels_most=2)
        self.assertEqual(figures["graphs"], 5)

    def test_streams_by_hand(self) -> None:
        stream = wp.Stream("cuda:0")

        def program(a: Arrays) -> None:
            main = wp.get_stream("cuda:0")
            wp.launch(add, N, [a.rows[0], a.rows[1], 0.5], device="cuda:0")
            stream.wait_stream(main)
            with wp.ScopedStream(stream, sync_enter=False):
                wp.launch(add, N, [a.rows[2], a.rows[0], 0.5], device="cuda:0")
            wp.launch(add, N, [a.rows[3], a.rows[0], 0.5], device="cuda:0")
            main.wait_stream(stream)
            wp.launch(add, N, [a.rows[3], a.rows[2], 0.5], device="cuda:0")
        self.compare(program)

    def test_graphs_in_graphs(self) -> None:
        def program(a: Arrays) -> None:
            with wp.ScopedCapture(device="cuda:0") as capture:
                wp.launch(add, N, [a.rows[0], a.rows[1], 0.5], device="cuda:0")
                wp.launch(add, N, [a.rows[2], a.rows[3], 0.5], device="cuda:0")
            a.kept.append(capture.graph)

        def whole() -> tuple[list[bytes], dict[str, Any]]:
            arrays = Arrays()
            program(arrays)
            with wp.ScopedCapture(device="cuda:0") as capture:
                wp.launch(add, N, [arrays.rows[1], arrays.rows[5], 0.5], device="cuda:0")
                wp.capture_if(arrays.counters[0], arrays.kept[0])
                wp.launch(add, N, [arrays.rows[4], arrays.rows[5], 0.5], device="cuda:0")
                wp.launch(add, N, [arrays.rows[6], arrays.rows[0], 0.5], device="cuda:0")
            figures = acs.warp.report()
            wp.capture_launch(capture.graph)
            return arrays.bits(), figures
        expected, _ = whole()
        acs.warp.enable()
        got, figures = whole()
        self.assertEqual(got, expected)
        self.assertEqual(figures["levels"], 3)  # the launch before, the branch with the graph, the launch behind it

    def test_adjoints(self) -> None:
        def gradient() -> bytes:
            x = wp.array(np.arange(N, dtype=np.float32), requires_grad=True, device="cuda:0")
            y = wp.zeros(N, dtype=float, requires_grad=True, device="cuda:0")
            loss = wp.zeros(1, dtype=float, requires_grad=True, device="cuda:0")
            tape = wp.Tape()
            with tape:
                wp.launch(square, N, [y, x], device="cuda:0")
                wp.launch(total, N, [loss, y], device="cuda:0")
            tape.zero()
            with wp.ScopedCapture(device="cuda:0") as capture:
                tape.backward(loss)
            tape.zero()
            wp.capture_launch(capture.graph)
            return bytes(x.grad.numpy().tobytes())
        expected = gradient()
        acs.warp.enable()
        self.assertEqual(gradient(), expected)

    def test_recorded_launches(self) -> None:
        def program(a: Arrays) -> None:
            for row in range(0, 8, 2):
                command = wp.launch(add, N, [a.rows[row], a.rows[row + 1], 0.5], device="cuda:0", record_cmd=True)
                command.launch()
                command.set_param_at_index(2, 0.75)
                command.launch()
        self.compare(program, levels_most=2)

    def test_arrays_outlive_the_graph(self) -> None:
        acs.warp.enable()
        arrays = Arrays()
        with wp.ScopedCapture(device="cuda:0") as capture:
            made = wp.empty(N, dtype=float, device="cuda:0")
            wp.copy(made, arrays.rows[0])
        wp.capture_launch(capture.graph)
        del capture
        self.assertEqual(made.numpy().tobytes(), arrays.bits()[0])
        del made

    def test_an_exception_in_a_capture(self) -> None:
        acs.warp.enable()
        arrays = Arrays()
        with self.assertRaises(ZeroDivisionError):
            with wp.ScopedCapture(device="cuda:0"):
                wp.launch(add, N, [arrays.rows[0], arrays.rows[1], 0.5], device="cuda:0")
                raise ZeroDivisionError
        self.assertTrue(captured(lambda a: wp.launch(add, N, [a.rows[0], a.rows[1], 0.5], device="cuda:0"))[1])

    def test_disable_in_a_capture_is_refused(self) -> None:
        acs.warp.enable()
        with wp.ScopedCapture(device="cuda:0"):
            with self.assertRaises(acs.StateError):
                acs.warp.disable()
        acs.warp.disable()
        self.assertFalse(acs.warp.enabled())
        self.assertEqual(captured(lambda a: wp.launch(add, N, [a.rows[0], a.rows[1], 0.5], device="cuda:0"))[1], {})


def eager(program: Callable[[Arrays], Any], times: int = 3, region: Any = None) -> tuple[list[bytes], list[Any]]:
    """Run a program so often, each time in the region, if there is one. Returns what the arrays hold, and what it returned."""
    arrays, returned = Arrays(), []
    for _ in range(times):
        with region or contextlib.nullcontext():
            returned.append(program(arrays))
    return arrays.bits(), returned


class Regions(unittest.TestCase):
    def setUp(self) -> None:
        acs.warp.disable()

    def tearDown(self) -> None:
        acs.warp.disable()

    def compare(self, program: Callable[[Arrays], Any], ops: int, times: int = 40) -> None:
        """The same bits as Warp's, with so many ops each time. So many times that parts that recur are replayed."""
        expected = eager(program, times)
        acs.warp.enable()
        region = acs.warp.out_of_order("cuda:0")
        self.assertEqual(eager(program, times, region), expected)
        self.assertEqual(region.ops, ops)
        with acs.warp.out_of_order("cuda:0"):  # all in one
            self.assertEqual(eager(program, times), expected)

    def test_launches_copies_and_fills(self) -> None:
        def program(a: Arrays) -> None:
            for step in range(4):
                for row in range(0, 8, 2):
                    wp.launch(add, N, [a.rows[row], a.rows[row + 1], 0.25 + step], device="cuda:0")
            wp.copy(a.rows[1], a.rows[0])
            a.rows[3].zero_()
            for row in range(4):
                wp.launch(add, N, [a.rows[row], a.rows[(row + 3) % 8], 0.5], device="cuda:0")
        self.compare(program, 22)

    def test_structs_that_change(self) -> None:
        pair = Pair()

        def program(a: Arrays) -> None:
            for row in range(0, 8, 2):
                pair.source, pair.to, pair.by = a.rows[row + 1], a.rows[row], 0.125 * row
                wp.launch(add_pair, N, [pair], device="cuda:0")
        self.compare(program, 4)

    def test_other_work_keeps_its_place(self) -> None:
        def program(a: Arrays) -> bytes:
            wp.launch(add, N, [a.rows[0], a.rows[1], 0.5], device="cuda:0")
            a.rows[1].fill_(2.5)
            wp.launch(add, N, [a.rows[2], a.rows[1], 0.5], device="cuda:0")
            found = a.rows[2].numpy().tobytes()
            a.rows[1].assign(np.arange(N, dtype=np.float32))
            wp.launch(add, N, [a.rows[2], a.rows[1], 0.5], device="cuda:0")
            wp.utils.array_scan(a.rows[2], a.rows[4])
            wp.launch(add, N, [a.rows[4], a.rows[2], 1.0e-6], device="cuda:0")
            return bytes(found)
        self.compare(program, 4)

    def test_memory_that_is_freed(self) -> None:
        def program(a: Arrays) -> None:
            for row in range(8):
                temporary = wp.zeros(N, dtype=float, device="cuda:0")
                wp.launch(add, N, [temporary, a.rows[row], 2.0], device="cuda:0")
                wp.launch(add, N, [a.rows[row], temporary, 0.5], device="cuda:0")
        self.compare(program, 24)
        acs.warp.enable(rest_bytes=3 * 4 * N)
        expected = eager(program)
        self.assertEqual(eager(program, 3, acs.warp.out_of_order("cuda:0")), expected)

    def test_kernels_of_all_kinds(self) -> None:
        points = wp.array(np.array([[0, 0, 0], [9, 0, 0], [0, 9, 0]], dtype=np.float32), dtype=wp.vec3, device="cuda:0")
        mesh = wp.Mesh(points, wp.array([0, 1, 2], dtype=int, device="cuda:0"))

        def program(a: Arrays) -> None:
            wp.launch(advance, N, [a.rows[0], 0.5], device="cuda:0")
            wp.launch(advance, 1, [a.counters[0], 1], device="cuda:0")
            wp.launch_tiled(tile_total, dim=[N // 64], inputs=[a.rows[1], a.rows[2].reshape((N // 64, 64))], block_dim=64,
                            device="cuda:0")
            wp.launch(wide_grid, (N, 3, 5), [a.rows[3]], device="cuda:0", block_dim=128)
            wp.launch(nearest, 16, [mesh.id, a.rows[4]], device="cuda:0")
            wp.launch(add, N, [a.rows[5], a.rows[4], 0.5], device="cuda:0", max_blocks=3)
            wp.launch(add, 0, [a.rows[5], a.rows[4], 0.5], device="cuda:0")
        self.compare(program, 6)

    def test_modules_that_are_rebuilt(self) -> None:
        def program(a: Arrays) -> None:
            for row in range(0, 8, 2):
                wp.launch(add, N, [a.rows[row], a.rows[row + 1], 0.5], device="cuda:0")
            add.module.unload()
        self.compare(program, 4, times=5)

    def test_adjoints(self) -> None:
        def program(a: Arrays) -> bytes:
            x = wp.array(np.arange(N, dtype=np.float32), requires_grad=True, device="cuda:0")
            y = wp.zeros(N, dtype=float, requires_grad=True, device="cuda:0")
            loss = wp.zeros(1, dtype=float, requires_grad=True, device="cuda:0")
            with wp.Tape() as tape:
                wp.launch(square, N, [y, x], device="cuda:0")
                wp.launch(total, N, [loss, y], device="cuda:0")
            tape.backward(loss)
            return bytes(x.grad.numpy().tobytes())
        expected = eager(program, 3)
        acs.warp.enable()
        self.assertEqual(eager(program, 3, acs.warp.out_of_order("cuda:0")), expected)

    def test_recorded_launches(self) -> None:
        def program(a: Arrays) -> None:
            for row in range(0, 8, 2):
                command = wp.launch(add, N, [a.rows[row], a.rows[row + 1], 0.5], device="cuda:0", record_cmd=True)
                command.launch()
                command.set_param_at_index(2, 0.75)
                command.launch()
        self.compare(program, 8)

    def test_streams_by_hand(self) -> None:
        stream = wp.Stream("cuda:0")

        def program(a: Arrays) -> None:
            main = wp.get_stream("cuda:0")
            wp.launch(add, N, [a.rows[0], a.rows[1], 0.5], device="cuda:0")
            stream.wait_stream(main)
            with wp.ScopedStream(stream, sync_enter=False):
                wp.launch(add, N, [a.rows[2], a.rows[0], 0.5], device="cuda:0")
            wp.launch(add, N, [a.rows[3], a.rows[0], 0.5], device="cuda:0")
            main.wait_stream(stream)
            wp.launch(add, N, [a.rows[3], a.rows[2], 0.5], device="cuda:0")
        self.compare(program, 3)

    def test_captures_and_graphs_in_a_region(self) -> None:
        def program(a: Arrays) -> None:
            wp.launch(add, N, [a.rows[0], a.rows[1], 0.5], device="cuda:0")
            with wp.ScopedCapture(device="cuda:0") as capture:
                wp.launch(add, N, [a.rows[2], a.rows[0], 0.5], device="cuda:0")
                wp.launch(add, N, [a.rows[3], a.rows[1], 0.5], device="cuda:0")
            wp.launch(add, N, [a.rows[1], a.rows[0], 0.5], device="cuda:0")
            wp.capture_launch(capture.graph)
            wp.launch(add, N, [a.rows[2], a.rows[1], 0.5], device="cuda:0")
            wp.capture_launch(capture.graph)
            a.kept.append(capture.graph)
        self.compare(program, 3, times=5)

    def test_a_region_in_a_capture(self) -> None:
        def program(a: Arrays) -> None:
            with acs.warp.out_of_order("cuda:0"):
                for row in range(0, 8, 2):
                    wp.launch(add, N, [a.rows[row], a.rows[row + 1], 0.5], device="cuda:0")

        def plain(a: Arrays) -> None:
            for row in range(0, 8, 2):
                wp.launch(add, N, [a.rows[row], a.rows[row + 1], 0.5], device="cuda:0")
        expected, _ = captured(plain)
        acs.warp.enable()
        got, figures = captured(program)
        self.assertEqual(got, expected)
        self.assertEqual(figures["levels"], 1)

    def test_exceptions_and_nesting(self) -> None:
        acs.warp.enable()
        arrays, expected = Arrays(), Arrays()
        for _ in range(2):
            wp.launch(add, N, [expected.rows[0], expected.rows[1], 0.5], device="cuda:0")
        with self.assertRaises(ZeroDivisionError):
            with acs.warp.out_of_order("cuda:0") as outer:
                wp.launch(add, N, [arrays.rows[0], arrays.rows[1], 0.5], device="cuda:0")
                with acs.warp.out_of_order("cuda:0"):
                    wp.launch(add, N, [arrays.rows[0], arrays.rows[1], 0.5], device="cuda:0")
                raise ZeroDivisionError
        self.assertEqual(outer.ops, 2)
        self.assertEqual(arrays.bits(), expected.bits())

    def test_another_library_in_the_stream(self) -> None:
        acs.warp.enable()
        arrays, values = Arrays(), np.empty(N, dtype=np.float32)
        with acs.warp.out_of_order("cuda:0") as region:
            wp.launch(advance, N, [arrays.rows[0], 1.0], device="cuda:0")
            region.join()
            original = acs.warp._installed._originals  # Warp's own functions, past the region
            original["wp_memcpy_d2h"](wp.get_device("cuda:0").context, values.ctypes.data, arrays.rows[0].ptr, 4 * N,
                                      wp.get_stream("cuda:0").cuda_stream)
            original["wp_cuda_stream_synchronize"](wp.get_stream("cuda:0").cuda_stream)
        self.assertEqual(values.tobytes(), arrays.rows[0].numpy().tobytes())


if __name__ == "__main__":
    unittest.main()
