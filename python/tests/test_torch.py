"""
PyTorch and Triton with ACS: regions, operators, what operators touch. Without a GPU on CPU threads; with one also in streams
and graphs (test_torch_gpu.py). Skipped where PyTorch is not installed.
"""

import ctypes
import gc
import importlib.util
import threading
import unittest
import unittest.mock
import weakref

import acs

try:
    import torch

    import acs.torch
    from acs.torch import _footprint
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
                region.context = interrupted = unittest.mock.Mock(wraps=self.context, _on_cpu=True, _captures=set())
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
            self.context._captures.add(threading.get_ident())
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


def bits(tensor):
    """The bytes of its elements: of numbers NaN differs from itself."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)


class _Watch(torch.utils._python_dispatch.TorchDispatchMode if torch else object):
    """Compares what operators change with what their footprints say."""

    def __init__(self):
        super().__init__()
        self.seen, self.wrong = 0, []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [t for t in _footprint.tensors_in([list(args), kwargs]) if t.layout is torch.strided]
        before = [(t, t.detach().clone()) for t in tensors]
        result = function(*args, **kwargs)
        packed = _footprint.footprint(function, args, kwargs, result)
        if packed is None:
            return result
        self.seen += 1
        ranges = [acs._arrays.SEGMENT.unpack_from(packed, at) for at in range(0, len(packed), acs._arrays.SEGMENT.size)]

        def covered(tensor, access):
            start, size = tensor.data_ptr(), tensor.numel() * tensor.element_size()
            if not tensor.is_contiguous():
                packed = acs.span(tensor).packed(access)
                want = {acs._arrays.SEGMENT.unpack_from(packed, at)[:4] for at in range(0, len(packed), acs._arrays.SEGMENT.size)}
                return want <= {r[:4] for r in ranges if r[4] & access == access}
            return size == 0 or any(r[0] <= start and start + size <= r[0] + r[1] and r[4] & access == access for r in ranges)

        changed = [t for t, old in before if t.shape == old.shape and not torch.equal(bits(t), bits(old))]
        for tensor in changed:
            if not covered(tensor, 3):
                self.wrong.append((str(function), "writes"))
        for tensor in tensors:
            if not covered(tensor, 1):
                self.wrong.append((str(function), "reads"))
        for tensor in _footprint.tensors_in(result):
            if not covered(tensor, 3) and not function.is_view:
                self.wrong.append((str(function), "results"))
        return result


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Footprints(unittest.TestCase):
    def test_cover_what_a_training_step_does(self):
        torch.manual_seed(1)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Flatten(), torch.nn.Linear(8 * 16, 32), torch.nn.LayerNorm(32), torch.nn.GELU(), torch.nn.Dropout(0.1),
            torch.nn.Linear(32, 10))
        attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        optimizers = [torch.optim.AdamW(model.parameters(), foreach=True), torch.optim.SGD(attention.parameters(), 0.1, 0.9)]
        watch = _Watch()
        for _ in range(2):
            with watch:
                x = torch.randn(4, 3, 8, 8)
                loss = torch.nn.functional.cross_entropy(model(x), torch.randint(10, (4,)))
                seq = torch.randn(2, 5, 16)
                loss = loss + attention(seq, seq, seq)[0].square().mean()
                loss.backward()
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
        self.assertGreater(watch.seen, 200)
        self.assertEqual(watch.wrong, [])

    def test_cover_writes_in_place_and_to_given_tensors(self):
        a, b, at = torch.randn(6, 6), torch.randn(6, 6), torch.tensor([1, 3])
        watch = _Watch()
        with watch:
            torch.add(a, b, out=b)
            a[1:3].mul_(2)
            a.t().add_(1)
            a.index_add_(0, at, b[:2])
            a[at] = 0
            a.scatter_(1, at.expand(6, 2), 5.0)
            torch._foreach_add_([a, b], 1.0)
            a.copy_(b)
            torch.cat([a, b], out=torch.empty(12, 6))
            a.masked_fill_(a > 0, -1)
            torch.sort(a, out=(torch.empty(6, 6), torch.empty(6, 6, dtype=torch.long)))
            torch.split(a, 2)
            a.cumsum_(0)
        self.assertEqual(watch.wrong, [])

    def test_of_strided_tensors_name_their_rows(self):
        a = torch.zeros(8, 16)
        packed = _footprint.footprint(torch.ops.aten.add_.Scalar, (a[:, :4], 1), {}, a[:, :4])
        self.assertEqual(acs._arrays.SEGMENT.unpack_from(packed, 0)[:5], (a.data_ptr(), 16, 8, 64, 3))

    def test_of_what_is_not_known_are_anything(self):
        sparse = torch.eye(3).to_sparse()
        self.assertIsNone(_footprint.footprint(torch.ops.aten.add.Tensor, (sparse, sparse), {}, sparse))
        self.assertIsNone(_footprint.footprint(len, (), {}, None))

    def test_fresh_results_are_those_that_are_no_arguments(self):
        class OfTheGpu(torch.Tensor):
            is_cuda = True

        made = torch.ones(2).as_subclass(OfTheGpu)
        self.assertEqual(len(list(_footprint.fresh_results(torch.ops.aten.add_.Tensor, made))), 0)
        self.assertEqual(len(list(_footprint.fresh_results(torch.ops.aten.add.Tensor, made))), 1)
        self.assertEqual(len(list(_footprint.fresh_results(torch.ops.aten.sort.default, (made, made)))), 2)


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Allocations(unittest.TestCase):
    def test_a_mark_may_lie_where_an_operator_had_memory(self):
        from acs.torch import _graph
        made = _graph._Allocations.__new__(_graph._Allocations)
        made._marks = [torch.empty(1), torch.empty(1)]
        first, second = (mark.data_ptr() for mark in made._marks)
        history = [("alloc", second, 64), ("alloc", first, 1), ("alloc", 4096, 2048), ("alloc", second, 512),
                   ("free_completed", second, 512), ("alloc", second, 1), ("alloc", 4096, 700)]
        made._history = lambda: [{"action": a, "addr": at, "size": n} for a, at, n in history]
        self.assertEqual(list(made.behind_marks()), [(0, 4096, 2048), (0, second, 512), (1, 4096, 700)])
        made._blocks = {}
        self.assertEqual(made.freed_blocks(512), [])
        history.append(("free_completed", 4096, 700))
        made._blocks = {}
        self.assertEqual(made.freed_blocks(700), [700])
        history = history[2:]
        with self.assertRaisesRegex(acs.UnsupportedError, "gaps"):
            list(made.behind_marks())


@unittest.skipIf(torch is None or not importlib.util.find_spec("triton"), "Triton is not installed")
class Triton(unittest.TestCase):
    def compile(self, signature):
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
        source = ASTSource(kernel_of_triton(), signature=signature, constexprs={"BLOCK": 256})
        try:
            compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
        except Exception as error:  # it needs tools of the CUDA toolkit
            self.skipTest(f"Triton: {error}")
        compiled.function = 4096
        return compiled

    def test_arguments_of_a_compiled_kernel(self):
        import acs.triton
        compiled = self.compile({"to": "*fp32", "source": "*fp32", "by": "fp32", "n": "i32", "BLOCK": "constexpr"})
        variant = acs.triton.Variant(compiled, ["to", "source", "by", "n"])
        self.assertEqual(variant.places, [0, 1, 2, 3])
        self.assertEqual(variant.block, 128)
        types = variant.kernel._packing.types
        self.assertEqual(types[:4], ("pointer", "pointer", "float32", "int32"))
        self.assertEqual(set(types[4:]), {"pointer"})
        self.assertEqual(len(variant.unused), len(types) - 4)

    def test_classes_are_as_fine_as_tritons(self):
        from acs.triton import _class_of
        ints = [0, 1, 2, 16, 17, -16, -(1 << 31), (1 << 31) - 1, 1 << 31, -(1 << 31) - 1, (1 << 63) - 1, 1 << 63, -(1 << 63)]
        classes = {i: _class_of(i, "n") for i in ints}
        self.assertNotEqual(classes[1], classes[17])
        self.assertNotEqual(classes[16], classes[2])
        self.assertNotEqual(classes[-(1 << 31)], classes[1 << 31])
        self.assertNotEqual(classes[-(1 << 63)], classes[1 << 63])
        self.assertEqual(classes[2], _class_of(7, "n"))
        base = torch.zeros(64)
        import acs.triton
        from unittest import mock
        kernel = acs.triton.Kernel(kernel_of_triton(), BLOCK=256)
        known = mock.MagicMock()
        known.get.return_value = mock.Mock(places=range(4), unused=())
        kernel._variants = known
        keys = []
        for to in (base, base[1:], base.half(), base[4:]):
            kernel.variant((to, base, 1.0, 64))
            keys.append(known.get.call_args[0][0])
        self.assertEqual(len(set(keys)), 3)
        self.assertEqual(keys[0], keys[3])
        with self.assertRaisesRegex(TypeError, "argument 'x'"):
            _class_of("text", "x")

    def test_what_is_no_kernel_is_refused(self):
        import acs.triton
        with self.assertRaisesRegex(TypeError, "no kernel of triton.jit"):
            acs.triton.Kernel(len)
        with self.assertRaisesRegex(TypeError, "parameter 'by' of kernel 'scale' is no tl.constexpr"):
            acs.triton.Kernel(kernel_of_triton(), BLOCK=256, by=2.0)

    def test_a_wrong_number_of_arguments_names_them(self):
        import acs.triton
        kernel = acs.triton.Kernel(kernel_of_triton(), BLOCK=256)
        with acs.Context(backend="host") as context, self.assertRaisesRegex(acs.UnsupportedError, "no body for the CPU"):
            kernel.launch(context, 1, (1, 2, 3, 4))
        with self.assertRaisesRegex(TypeError, "no acs.Context"):
            kernel.prepare(None, 1, (1, 2, 3, 4))
        with self.assertRaisesRegex(TypeError, r"takes 4 arguments besides its constants \(to, source, by, n\), and got 1"):
            kernel.variant((1,))


def kernel_of_triton():
    import triton
    import triton.language as tl
    globals()["tl"] = tl

    @triton.jit
    def scale(to, source, by, n, BLOCK: "tl.constexpr"):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(to + at, tl.load(to + at, at < n) + tl.load(source + at, at < n) * by, at < n)

    return scale


if __name__ == "__main__":
    unittest.main()
