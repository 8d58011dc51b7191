"""
What operators of PyTorch touch, the course of acs.torch.graph, and kernels of Triton as ops, without a GPU. Skipped where
PyTorch is not installed.
"""

import importlib.util
import unittest
from unittest import mock

import acs

try:
    import torch

    import acs.torch
    from acs.torch import _footprint
except ImportError:
    torch = None

COUNT = 64


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


@unittest.skipIf(torch is None, "PyTorch is not installed")
class GraphsWithoutAGpu(unittest.TestCase):
    """The course of a capture. PyTorch's captures and allocator, and the library's graphs, are stand-ins."""

    def setUp(self):
        from acs.torch import _graph
        self.module, self.calls, self.history, self.freed = _graph, [], [], 0
        self.stream, self.cuda_graph, self.capture = mock.Mock(cuda_stream=64), mock.Mock(), mock.MagicMock()
        empty = torch.empty

        def empty_on_the_cpu(*size, device=None, **more):
            made = empty(*size, **more)
            self.history.append({"action": "alloc", "addr": made.data_ptr(), "size": made.nbytes})
            return made

        def op(handle, stream, uses, site):
            self.calls.append(("op", bool(uses.any), uses.count))
            return self.module._NO_OP if uses.any else len(self.calls)

        self.library = mock.Mock()
        self.library.acs_graph_begin.side_effect = lambda *_: 0
        self.library.acs_graph_op.side_effect = op
        self.library.acs_graph_add_uses.side_effect = lambda handle, op, uses: self.calls.append(("add", op, uses.count)) or 0
        self.library.acs_graph_end.side_effect = lambda *_: self.calls.append(("end",)) or 0
        for where, name, value in (
                (torch.cuda, "is_available", lambda: True), (torch.cuda, "get_allocator_backend", lambda: "native"),
                (torch.cuda, "current_device", lambda: 0), (torch.cuda, "current_stream", lambda: self.stream),
                (torch.cuda, "graph", mock.Mock(return_value=self.capture)), (torch, "empty", empty_on_the_cpu),
                (torch._C, "_cuda_isHistoryEnabled", lambda: False), (torch._C, "_cuda_clearCublasWorkspaces", lambda: None),
                (torch.cuda.memory, "_record_memory_history", mock.Mock()),
                (torch.cuda.memory, "_snapshot", lambda: {"device_traces": [self.history]}),
                (torch.cuda, "memory_stats_as_nested_dict", lambda _: {"allocated_bytes": {"all": {"freed": self.freed}}}),
                (_graph, "held", self.library), (_graph, "_context", mock.Mock())):
            patch = mock.patch.object(where, name, value, create=True)
            patch.start()
            self.addCleanup(patch.stop)

    def use_memory_inside(self, nbytes):
        """As an operator does that allocates and gives back."""
        self.history += [{"action": "alloc", "addr": 4096, "size": nbytes}, {"action": "free_completed", "addr": 4096, "size": nbytes}]
        self.freed += nbytes

    def test_operators_become_ops_with_their_memory(self):
        a, b = torch.ones(8), torch.ones(8)
        with acs.torch.graph(self.cuda_graph) as recording:
            a.add_(b)
            with mock.patch.object(_footprint, "pack", side_effect=lambda *_: self.use_memory_inside(2048) or b"x" * 0):
                b.mul_(2)
        ops = [call for call in self.calls if call[0] == "op" and not call[1]]
        self.assertEqual([count for _, _, count in ops], [3, 0])  # a, b, and the result; then the stand-in's
        added = [call for call in self.calls if call[0] == "add"]
        self.assertEqual(len(added), 2)  # for its argument and its result; what rests behind the operator does not count
        self.assertEqual({number for _, number, _ in added}, {self.calls.index(ops[1]) + 1})
        self.assertEqual(self.calls[-1], ("end",))
        self.assertEqual(set(recording.figures), {"ops", "nodes", "edges", "levels", "chains"})
        self.capture.__exit__.assert_called_once_with(None, None, None)
        self.cuda_graph.reset.assert_not_called()
        self.library.acs_graph_cancel.assert_not_called()

    def test_failures_end_the_capture_and_empty_the_graph(self):
        def fail_begin(*_):
            raise acs.StateError("no", 5)

        def body():
            raise ZeroDivisionError

        for name, side_effect, inside, error in (("acs_graph_begin", fail_begin, lambda: None, acs.StateError),
                                                 ("acs_graph_end", fail_begin, lambda: None, acs.StateError),
                                                 ("acs_graph_op", lambda *_: self.calls.append(("op", True, 0)) or 1, body,
                                                  ZeroDivisionError)):
            with self.subTest(name):
                before = getattr(self.library, name).side_effect
                getattr(self.library, name).side_effect = side_effect
                self.capture.reset_mock()
                self.cuda_graph.reset_mock()
                with self.assertRaises(error):
                    with acs.torch.graph(self.cuda_graph):
                        inside()
                self.capture.__exit__.assert_called_once()
                self.cuda_graph.reset.assert_called_once()
                self.assertEqual(torch._C._len_torch_dispatch_stack(), 0)
                self.assertFalse(self.module._capturing.locked())
                getattr(self.library, name).side_effect = before

    def test_one_capture_at_a_time_in_one_stream(self):
        with acs.torch.graph(self.cuda_graph):
            with self.assertRaisesRegex(acs.StateError, "another acs.torch.graph"):
                with acs.torch.graph(self.cuda_graph):
                    pass
        with self.assertRaisesRegex(acs.StateError, "gives work to another stream"):
            with acs.torch.graph(self.cuda_graph):
                self.stream = mock.Mock(cuda_stream=65)
                torch.ones(2).add_(1)

    def test_versions_that_lack_what_is_needed_are_refused(self):
        self.assertIsNone(self.module._check_pytorch())
        with mock.patch.object(torch.cuda, "memory", mock.Mock(spec=[])):
            with self.assertRaisesRegex(acs.UnsupportedError, "has no _record_memory_history"):
                acs.torch.graph(self.cuda_graph).__enter__()
        self.assertFalse(self.module._capturing.locked())


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
