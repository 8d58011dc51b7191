"""
PyTorch with ACS: regions and operators. Without a GPU on CPU threads; with one also in streams and graphs (test_torch_gpu.py).
What operators touch: test_torch_footprints.py. Skipped where PyTorch is not installed.
"""

import ctypes
import gc
import threading
import unittest
import unittest.mock
import weakref

import acs

try:
    import torch

    import acs.torch
except ImportError:
    torch = None

COUNT = 64


@acs.host_body("pointer, pointer, float32, int32")
def scale(grid, to, source, by, n):
    a, b = (ctypes.c_float * n).from_address(to), (ctypes.c_float * n).from_address(source)
    for i in range(n):
        a[i] = b[i] * by


SCALE = acs.Kernel(host=scale, signature="pointer, pointer, float32, int32", name="scale")


def launch(context, to, source, by):
    return context.launch(SCALE, 1, 1, (to, source, by, to.numel()), reads=[source], writes=[to])


@unittest.skipIf(torch is None, "PyTorch is not installed")
class OnTheCpu(unittest.TestCase):
    def setUp(self):
        self.context = acs.Context(backend="host", workers=2)

    def tearDown(self):
        self.context.close()


class Regions(OnTheCpu):
    def test_operators_and_ops_run_in_one_order(self):
        x = torch.arange(COUNT, dtype=torch.float32)
        with acs.torch.region(self.context):
            y, z = torch.empty(COUNT), torch.empty(COUNT)
            for _ in range(20):
                launch(self.context, y, x, 2.0)     # behind what PyTorch wrote to x
                w = y + 1                           # behind the op
                launch(self.context, z, w, 3.0)
                x = z / 6                           # behind that
            launch(self.context, y, x, 1.0)
        self.assertTrue(torch.equal(y, x))          # the region's end waited
        want = torch.arange(COUNT, dtype=torch.float32)
        for _ in range(20):
            want = (want * 2 + 1) * 3 / 6
        self.assertTrue(torch.equal(y, want))

    def test_reads_by_the_program_come_behind_ops(self):
        x = torch.ones(COUNT)
        with acs.torch.region(self.context):
            for i in range(50):
                y = torch.empty(COUNT)
                launch(self.context, y, x, float(i))
                self.assertEqual(y.sum().item(), i * COUNT)
                self.assertEqual(y[3].item(), i)

    def test_regions_nest(self):
        x, y, z = torch.ones(COUNT), torch.empty(COUNT), torch.empty(COUNT)
        with acs.torch.region(self.context):
            launch(self.context, y, x, 2.0)
            with acs.torch.region(self.context):
                launch(self.context, z, y, 3.0)
            launch(self.context, y, z, 5.0)
        self.assertEqual(y[0].item(), 30)

    def test_an_exception_leaves_the_context_usable(self):
        x, y = torch.ones(COUNT), torch.empty(COUNT)
        with self.assertRaises(ZeroDivisionError):
            with acs.torch.region(self.context):
                launch(self.context, y, x, 2.0)
                1 // 0
        self.assertEqual(y[0].item(), 2)
        launch(self.context, y, x, 4.0)
        self.context.sync()
        self.assertEqual(y[0].item(), 4)

    def test_a_failed_op_is_raised_at_the_end(self):
        def fail():
            raise ValueError("no")
        with self.assertRaises(acs.HostError):
            with acs.torch.region(self.context):
                self.context.call(fail)
        self.context.clear()

    def test_groups_begin_behind_operators(self):
        x, y = torch.zeros(COUNT), torch.empty(COUNT)
        with acs.torch.region(self.context):
            x.add_(1)
            with self.context.group():
                launch(self.context, y, x, 2.0)
        self.assertEqual(y[0].item(), 2)

    def test_tensors_live_until_their_ops_have_ended(self):
        y, go_on = torch.empty(COUNT), threading.Event()
        with acs.torch.region(self.context):
            x = torch.ones(COUNT)
            watch = weakref.ref(x)
            self.context.call(go_on.wait, updates=[x])
            launch(self.context, y, x, 2.0)
            del x
            gc.collect()
            self.assertIsNotNone(watch())
            go_on.set()
        self.context.sync()
        gc.collect()
        self.assertEqual(y[0].item(), 2)
        self.assertIsNone(watch())

    def test_tensors_live_if_ctrl_c_ends_the_wait(self):
        go_on = threading.Event()
        with self.assertRaises(KeyboardInterrupt):
            with acs.torch.region(self.context) as region:
                x = torch.ones(COUNT)
                watch = weakref.ref(x)
                self.context.call(go_on.wait, updates=[x])
                del x
                region.context = interrupted = unittest.mock.Mock(wraps=self.context, _on_cpu=True, _captures={})
                interrupted.sync.side_effect = KeyboardInterrupt
        gc.collect()
        self.assertIsNotNone(watch())
        go_on.set()
        self.context.sync()

    def test_a_region_is_used_again_and_not_twice_at_once(self):
        x, y, region = torch.ones(COUNT), torch.empty(COUNT), acs.torch.region(self.context)
        for by in (2.0, 5.0):
            with region:
                launch(self.context, y, x, by)
                self.assertEqual((y + 1)[0].item(), by + 1)
        with region, self.assertRaisesRegex(acs.StateError, "not left"):
            with region:
                pass
        self.assertEqual(self.context._regions, {})

    def test_fills_copies_and_calls_count_as_writes(self):
        for write in (lambda t: self.context.fill(t, 0), lambda t: self.context.copy(t, torch.ones(COUNT)),
                      lambda t: self.context.call(lambda: None, writes=[t])):
            x, to = torch.ones(COUNT, requires_grad=True), torch.ones(COUNT)
            y = (x * to).sum()
            with torch.no_grad(), acs.torch.region(self.context):
                write(to)
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                y.backward()
            with self.assertRaisesRegex(acs.ArgumentError, "requires a gradient"):
                with acs.torch.region(self.context):
                    write(x)
            self.context.clear()

    def test_operators_may_save_tensors_that_ops_have_just_written(self):
        x, w = torch.ones(COUNT, requires_grad=True), torch.zeros(COUNT)
        with acs.torch.region(self.context):
            launch(self.context, w, torch.ones(COUNT), 2.0)
            y = (x * w).sum()
        y.backward()
        self.assertEqual(x.grad[0].item(), 2)

    def test_spans_of_tensors_count_as_these(self):
        x, to = torch.ones(COUNT, requires_grad=True), torch.ones(COUNT)
        y = (x * to).sum()
        with torch.no_grad(), acs.torch.region(self.context):
            self.context.launch(SCALE, 1, 1, (to, to, 2.0, COUNT), updates=[acs.span(to)])
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.backward()

    def test_tensors_without_memory_are_refused(self):
        from torch._subclasses import FakeTensorMode
        good = torch.ones(COUNT)
        with FakeTensorMode():
            fake = torch.ones(COUNT)
        conjugated = torch.ones(COUNT, dtype=torch.complex64).conj()
        for bad, why in ((torch.ones(COUNT, device="meta"), "has no memory"), (fake, "no memory"),
                         (torch.eye(COUNT).to_sparse(), "no memory of its own"), (conjugated, "resolve_conj")):
            with self.subTest(why), self.assertRaisesRegex(TypeError, why):
                self.context.launch(SCALE, 1, 1, (good, bad, 2.0, COUNT), reads=[bad], writes=[good])

    def test_a_region_is_left_by_its_thread_and_in_order(self):
        outer, inner, failures = acs.torch.region(self.context), acs.torch.region(self.context), []
        with self.assertRaisesRegex(acs.StateError, "not in"):
            outer.__exit__(None, None, None)
        outer.__enter__()
        inner.__enter__()
        with self.assertRaisesRegex(acs.StateError, "entered inside it"):
            outer.__exit__(None, None, None)

        def leave():
            try:
                inner.__exit__(None, None, None)
            except acs.StateError as error:
                failures.append(str(error))

        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        self.assertIn("this thread is not in", failures[0])
        inner.__exit__(None, None, None)
        outer.__exit__(None, None, None)
        self.assertEqual(torch._C._len_torch_dispatch_stack(), 0)

    def test_conditions_of_pytorch_run_inside(self):
        x = torch.ones(COUNT)
        with acs.torch.region(self.context):
            y = torch.empty(COUNT)
            launch(self.context, y, x, 2.0)
            z = torch.cond(y.sum() > 0, lambda t: t + 1, lambda t: t - 1, (y,))
        self.assertEqual(z[0].item(), 3)

    def test_what_is_no_context_is_refused(self):
        for call in (lambda: acs.torch.region(5), lambda: acs.torch.custom_op("a::b", mutates_args=(), context=5)):
            with self.assertRaisesRegex(TypeError, "no acs.Context"):
                call()
        if not torch.cuda.is_available():
            with self.assertRaisesRegex(acs.UnsupportedError, "finds no GPU"):
                acs.torch.graph(None)

    def test_prepared_launches_look_at_gradients_each_time(self):
        x, y = torch.ones(COUNT), torch.empty(COUNT)
        prepared = self.context.prepare(SCALE, 1, 1, (y, x, 2.0, COUNT), reads=[x], writes=[y])
        with acs.torch.region(self.context):
            prepared()
        y.requires_grad_()
        with self.assertRaisesRegex(acs.ArgumentError, "requires a gradient"):
            with acs.torch.region(self.context):
                prepared()

    def test_writes_that_autograd_would_not_see_are_refused(self):
        x, y = torch.ones(COUNT), torch.empty(COUNT, requires_grad=True)
        with self.assertRaisesRegex(acs.ArgumentError, "requires a gradient"):
            with acs.torch.region(self.context):
                launch(self.context, y, x, 2.0)
        with torch.no_grad(), acs.torch.region(self.context):
            launch(self.context, y, x, 2.0)
        self.assertEqual(y[0].item(), 2)
        self.context.clear()

    def test_a_closed_context_is_refused(self):
        context = acs.Context(backend="host")
        context.close()
        with self.assertRaises(acs.StateError):
            with acs.torch.region(context):
                pass
        self.assertEqual(torch._C._len_torch_dispatch_stack(), 0)  # no mode of the region is left behind

    def test_saved_tensors_that_an_op_overwrites_are_found(self):
        x, to = torch.ones(COUNT, requires_grad=True), torch.ones(COUNT)
        y = (x * to).sum()
        with torch.no_grad(), acs.torch.region(self.context):
            launch(self.context, to, torch.ones(COUNT), 2.0)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.backward()


class OfAStandInGpu(torch.Tensor if torch else object):
    """A tensor that says that it is in the memory of a GPU."""

    is_cuda = True
    streams: list = []

    def get_device(self):
        return 0

    def record_stream(self, stream):
        self.streams.append(stream)


class StandInGpu(OnTheCpu):
    """What regions do where there is a GPU: ops run on the CPU, and tensors and streams only say that they are a GPU's."""

    def setUp(self):
        super().setUp()
        self.stream, self.turns = unittest.mock.Mock(cuda_stream=64), []
        context = self.context

        def after_stream(stream, **uses):
            self.turns.append("ops")

        def stream_after(stream, **uses):
            context.sync()
            self.turns.append("stream")

        for where, name, value in ((torch.cuda, "current_stream", lambda: self.stream), (torch.cuda, "current_device", lambda: 0),
                                   (context, "_on_cpu", False), (context, "after_stream", after_stream),
                                   (context, "stream_after", stream_after)):
            patch = unittest.mock.patch.object(where, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        OfAStandInGpu.streams = []

    def tensors(self, count):
        return [torch.ones(COUNT).as_subclass(OfAStandInGpu) for _ in range(count)]

    def test_turns_change_as_seldom_as_can_be(self):
        x, y = self.tensors(2)
        with acs.torch.region(self.context):
            for _ in range(3):
                launch(self.context, y, x, 2.0)
                launch(self.context, x, y, 2.0)
            x + y
            x * y
            launch(self.context, y, x, 2.0)
        self.assertEqual(self.turns, ["ops", "stream", "ops", "stream"])

    def test_tensors_of_launches_are_dropped_behind_the_stream(self):
        x, y = self.tensors(2)
        watch = weakref.ref(x)
        with acs.torch.region(self.context):
            launch(self.context, y, x, 2.0)
            del x
            gc.collect()
            self.assertIsNotNone(watch())
        gc.collect()
        self.assertIsNone(watch())
        self.assertEqual(OfAStandInGpu.streams, [self.stream] * 2)
        self.assertEqual(len(self.context._kept), 0)

    def test_what_the_stream_does_not_order_is_kept_by_the_context(self):
        x, y = self.tensors(2)
        plain = torch.ones(COUNT)
        with unittest.mock.patch.object(torch.Tensor, "is_pinned", lambda _: True):
            for use in (lambda: launch(self.context, y, plain, 2.0),
                        lambda: self.context.launch(SCALE, 1, 1, (y, acs.span(x), 2.0, COUNT), reads=[x], writes=[y]),
                        lambda: self.context.call(lambda: None, updates=[x])):
                before = len(self.context._kept)
                with unittest.mock.patch.object(self.context, "sync"), torch.no_grad():
                    with acs.torch.region(self.context):
                        use()
                self.assertEqual(len(self.context._kept), before + 1)

    def test_prepared_launches_tell_each_stream_once(self):
        x, y = self.tensors(2)
        prepared = self.context.prepare(SCALE, 1, 1, (y, x, 2.0, COUNT), reads=[x], writes=[y])
        for _ in range(3):
            with acs.torch.region(self.context):
                prepared()
                prepared()
        told = len(OfAStandInGpu.streams)
        with acs.torch.region(self.context):
            prepared()
        self.assertEqual(len(OfAStandInGpu.streams), told)
        self.assertEqual(y[0].item(), 2)

    def test_tensors_of_other_devices_are_refused(self):
        (x,) = self.tensors(1)
        with self.assertRaisesRegex(acs.ArgumentError, "a tensor on cpu"):
            with acs.torch.region(self.context):
                launch(self.context, x, torch.ones(COUNT), 2.0)

    def test_another_thread_does_not_give_turns_in_a_capture(self):
        x, y = self.tensors(2)
        failures = []

        def other():
            try:
                region.order()
            except acs.StateError as error:
                failures.append(str(error))

        with acs.torch.region(self.context) as region:
            launch(self.context, y, x, 2.0)
            self.context._captures[threading.get_ident()] = 0
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            self.context._captures.clear()
        self.assertIn("backward pass", failures[0])


class Operators(OnTheCpu):
    def make(self, name):
        context = self.context

        @acs.torch.custom_op(f"acs_test::{name}", mutates_args=(), context=context)
        def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
            y = torch.empty_like(x)
            launch(context, y, x, by)
            return y

        @scaled.register_fake
        def _(x, by):
            return torch.empty_like(x)

        def setup(ctx, inputs, output):
            ctx.by = inputs[1]

        scaled.register_autograd(lambda ctx, grad: (scaled(grad.contiguous(), ctx.by), None), setup_context=setup)
        return scaled

    def test_called_and_differentiated(self):
        scaled = self.make("plain")
        x = torch.ones(COUNT, requires_grad=True)
        y = scaled(x, 3.0)
        (y * y).sum().backward()
        self.assertTrue(torch.equal(x.grad, torch.full((COUNT,), 18.0)))

    def test_checked_by_pytorch(self):
        scaled = self.make("checked")
        torch.library.opcheck(scaled, (torch.ones(COUNT, requires_grad=True), 2.0))

    def test_compiled(self):
        scaled = self.make("compiled")

        @torch.compile(fullgraph=True, backend="aot_eager")
        def program(x):
            return scaled(x + 1, 2.0) * 3

        self.assertTrue(torch.equal(program(torch.ones(COUNT)), torch.full((COUNT,), 12.0)))

    def test_that_writes_an_argument(self):
        context = self.context

        @acs.torch.custom_op("acs_test::into", mutates_args=("to",), context=context)
        def into(to: torch.Tensor, source: torch.Tensor, by: float) -> None:
            launch(context, to, source, by)

        to, base = torch.zeros(COUNT), torch.ones(COUNT, requires_grad=True)
        saved = base * to  # saves `to` for its gradient
        into(to, torch.ones(COUNT), 2.0)
        self.assertEqual(to[0].item(), 2)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            saved.sum().backward()


if __name__ == "__main__":
    unittest.main()
