"""PyTorch and Triton with ACS on a GPU: regions in streams and captures, operators, graphs of PyTorch's own operators."""

import random
import unittest

import acs

try:
    import torch
    HAS_GPU = torch.cuda.is_available()
except ImportError:
    HAS_GPU = False

if HAS_GPU:
    import triton
    import triton.language as tl

    import acs.torch
    import acs.triton
    from acs.torch import _footprint

    @triton.jit
    def axpy(to, source, by, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(to + at, tl.load(to + at, at < n) * 0.5 + tl.load(source + at, at < n) * by, at < n)

COUNT, CELLS = 5000, 12


@unittest.skipUnless(HAS_GPU, "PyTorch finds no GPU")
class OnAGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.context = acs.Context(backend="cuda")
        cls.kernel = acs.triton.Kernel(axpy, BLOCK=256, num_warps=2)

    @classmethod
    def tearDownClass(cls):
        cls.context.close()

    def through_acs(self, to, source, by):
        n = to.numel()
        self.kernel.launch(self.context, (n + 255) // 256, (to, source, by, n), reads=[source], updates=[to])

    @staticmethod
    def in_stream(to, source, by):
        n = to.numel()
        axpy[((n + 255) // 256,)](to, source, by, n, BLOCK=256, num_warps=2)


def program(seed, launch, cells, steps=120):
    """A random program of kernels and of PyTorch's operators, which drops and makes tensors. Changes `cells`."""
    draw = random.Random(seed)
    for _ in range(steps):
        to, source = draw.sample(range(CELLS), 2)
        what = draw.randrange(8)
        if what < 4:
            launch(cells[to], cells[source], draw.choice((1.0, 0.25, 3.0)))
        elif what == 4:
            cells[to] = cells[source] * 0.75            # the old tensor's memory may be used again
        elif what == 5:
            cells[to].add_(cells[source], alpha=0.5)
        elif what == 6:
            cells[to] = torch.empty_like(cells[to]).copy_(cells[source])
            launch(cells[to], cells[source], 0.5)
        else:
            part = slice(draw.randrange(COUNT // 2), COUNT - draw.randrange(COUNT // 2))
            cells[to][part] = cells[source][part].flip(0)


def fresh_cells(seed):
    torch.manual_seed(seed)
    return [torch.randn(COUNT, device="cuda") for _ in range(CELLS)]


class Regions(OnAGpu):
    def check(self, seed, run):
        want, got = fresh_cells(seed), fresh_cells(seed)
        program(seed, self.in_stream, want)
        run(seed, got)
        for a, b in zip(want, got):
            self.assertTrue(torch.equal(a, b), f"seed {seed}")

    def test_random_programs(self):
        def run(seed, cells):
            with acs.torch.region(self.context):
                program(seed, self.through_acs, cells)

        for seed in range(30):
            self.check(seed, run)

    def test_random_programs_in_another_stream(self):
        def run(seed, cells):
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream), acs.torch.region(self.context):
                program(seed, self.through_acs, cells)
            torch.cuda.current_stream().wait_stream(stream)

        for seed in range(10):
            self.check(seed, run)

    def test_random_programs_of_many_regions(self):
        def run(seed, cells):
            def launch(*args):
                with acs.torch.region(self.context):
                    self.through_acs(*args)
            program(seed, launch, cells)

        for seed in range(10):
            self.check(seed, run)

    def test_captured_by_pytorch(self):
        for seed in range(10):
            want, got = fresh_cells(seed), fresh_cells(seed)
            graph = torch.cuda.CUDAGraph()
            inputs = [cell.clone() for cell in got]
            with torch.cuda.graph(graph):
                cells = [cell.clone() for cell in inputs]
                with acs.torch.region(self.context):
                    program(seed, self.through_acs, cells)
            program(seed, self.in_stream, want)
            for _ in range(3):
                for cell in cells:
                    cell.zero_()
                graph.replay()
                for a, b in zip(want, cells):
                    self.assertTrue(torch.equal(a, b), f"seed {seed}")

    def test_prepared_launches(self):
        cells, want = fresh_cells(3), fresh_cells(3)
        launches = [self.kernel.prepare(self.context, (COUNT + 255) // 256, (cells[i], cells[i - 1], 0.5, COUNT),
                                        reads=[cells[i - 1]], updates=[cells[i]]) for i in range(CELLS)]
        draw = random.Random(3)
        order = [draw.randrange(CELLS) for _ in range(300)]
        with acs.torch.region(self.context, watch=False):
            for i in order:
                launches[i]()
        for i in order:
            self.in_stream(want[i], want[i - 1], 0.5)
        for a, b in zip(want, cells):
            self.assertTrue(torch.equal(a, b))

    def test_memory_is_used_again(self):
        x = torch.ones(1 << 22, device="cuda")
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        for _ in range(50):
            with acs.torch.region(self.context):
                y = torch.zeros(1 << 22, device="cuda")
                self.through_acs(y, x, 1.0)
            y = y + 1
        torch.cuda.synchronize()
        self.assertLess(torch.cuda.max_memory_allocated() - before, 8 * (1 << 24))

    def test_tensors_of_the_cpu_are_refused(self):
        with self.assertRaisesRegex(acs.ArgumentError, "Tensor is in pageable memory of the CPU"):
            with acs.torch.region(self.context):
                self.through_acs(torch.ones(4, device="cuda"), torch.ones(4), 1.0)
        pinned, to = torch.ones(4).pin_memory(), torch.zeros(4, device="cuda")
        with acs.torch.region(self.context):
            self.context.launch(self.kernel.variant((to, to, 1.0, 4)).kernel, 1, 64, (to, pinned, 1.0, 4, 0, 0),
                                reads=[pinned], updates=[to])
        self.assertEqual(to.tolist(), [1, 1, 1, 1])
        self.context.clear()

    def test_another_current_stream_is_refused(self):
        a, b = torch.ones(4, device="cuda"), torch.ones(4, device="cuda")
        with self.assertRaisesRegex(acs.StateError, "current stream is another one"):
            with acs.torch.region(self.context):
                with torch.cuda.stream(torch.cuda.Stream()):
                    self.through_acs(a, b, 1.0)

    def test_an_overwritten_tensor_that_was_saved_is_found(self):
        x, to = torch.ones(8, device="cuda", requires_grad=True), torch.ones(8, device="cuda")
        y = (x * to).sum()
        with torch.no_grad(), acs.torch.region(self.context):
            self.through_acs(to, torch.ones(8, device="cuda"), 1.0)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.backward()


class Operators(OnAGpu):
    def make(self, name):
        kernel, context = self.kernel, self.context

        @acs.torch.custom_op(f"acs_test_gpu::{name}", mutates_args=(), context=context)
        def half_sum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            out = x.clone()
            kernel.launch(context, (out.numel() + 255) // 256, (out, y, 1.0, out.numel()), reads=[y], updates=[out])
            return out

        half_sum.register_fake(lambda x, y: torch.empty_like(x))
        return half_sum

    def test_compiled_into_graphs(self):
        half_sum = self.make("compiled")

        def run(x, y):
            z = half_sum(x + 1, y)
            return half_sum(z * 2, x) + half_sum(y, z)

        compiled = torch.compile(run, mode="reduce-overhead", fullgraph=True)
        x, y = torch.randn(COUNT, device="cuda"), torch.randn(COUNT, device="cuda")
        for _ in range(4):
            torch.testing.assert_close(compiled(x, y), run(x, y))


@unittest.skipUnless(HAS_GPU, "PyTorch finds no GPU")
class Graphs(OnAGpu):
    def compare(self, make, chains=0, rest_bytes=1 << 30, replays=3):
        """What PyTorch's graph and ours leave, from the same start. `make()` returns the program and the tensors it leaves."""
        results, figures = [], None
        for ours in (False, True):
            torch.manual_seed(7)
            run, left = make()
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                run()  # libraries make their plans before the capture
            torch.cuda.current_stream().wait_stream(side)
            torch.manual_seed(8)
            graph = torch.cuda.CUDAGraph()
            if ours:
                with acs.torch.graph(graph, chains=chains, rest_bytes=rest_bytes) as recording:
                    result = run()
                figures = recording.figures
            else:
                with torch.cuda.graph(graph):
                    result = run()
            torch.manual_seed(9)
            for _ in range(replays):
                graph.replay()
            torch.cuda.synchronize()
            results.append([t.detach().clone() for t in (*_footprint.tensors_in(result), *left())])
            del graph, result
        for a, b in zip(*results):
            self.assertTrue(torch.equal(a, b))
        self.assertGreater(figures["ops"], 0)
        return figures

    def random_program(self, seed):
        def make():
            torch.manual_seed(seed)
            cells = [torch.randn(64, 64, device="cuda") for _ in range(CELLS)]
            draw = random.Random(seed)
            steps = [(draw.randrange(12), *draw.sample(range(CELLS), 3)) for _ in range(100)]

            def run():
                t = list(cells)
                for what, to, a, b in steps:
                    if what < 3:
                        t[to] = torch.tanh(t[a] @ t[b] * 0.1)
                    elif what == 3:
                        t[to] = torch.addmm(t[to], t[a], t[b], alpha=0.01)
                    elif what == 4:
                        t[to] = t[to] * 0.5
                        t[to].add_(t[a])
                    elif what == 5:
                        t[to] = torch.cat([t[a][:32], t[b][32:]])
                    elif what == 6:
                        t[to] = torch.softmax(t[a], dim=1) + torch.nn.functional.dropout(t[b], 0.5)
                    elif what == 7:
                        t[to] = t[a].sort(dim=0)[0].cumsum(1) * 0.05
                    elif what == 8:
                        t[to] = torch.nn.functional.conv2d(t[a].view(1, 4, 32, 32), t[b].view(-1)[:144].view(4, 4, 3, 3),
                                                           padding=1).view(64, 64) * 0.1
                    elif what == 9:
                        t[to] = t[a].clone()
                        t[to][::2, 3:9] = t[b][::2, 3:9]
                    elif what == 10:
                        t[to] = (t[a].mean(dim=0, keepdim=True) + t[b].var(dim=1, keepdim=True)).contiguous()
                    else:
                        t[to] = torch.rand_like(t[a]) + t[b].t()
                return t

            return run, lambda: ()

        return make

    def test_random_programs(self):
        for seed in range(12):
            self.compare(self.random_program(seed), chains=(0, 1, 4, 0xffffffff)[seed % 4])

    def test_random_programs_whose_memory_is_used_again_at_once(self):
        for seed in range(6):
            self.compare(self.random_program(100 + seed), rest_bytes=0)

    def test_a_training_step(self):
        def make():
            model = torch.nn.Sequential(
                torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.Conv2d(16, 8, 3),
                torch.nn.Flatten(), torch.nn.Linear(8 * 14 * 14, 64), torch.nn.LayerNorm(64), torch.nn.GELU(),
                torch.nn.Linear(64, 10)).cuda()
            optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
            x, y = torch.randn(8, 3, 16, 16, device="cuda"), torch.randint(10, (8,), device="cuda")

            def run():
                optimizer.zero_grad(set_to_none=True)
                loss = torch.nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                return loss

            return run, lambda: [*model.parameters(), *model.buffers()]

        previous = torch.backends.cudnn.deterministic
        torch.backends.cudnn.deterministic = True
        try:
            self.compare(make)
        finally:
            torch.backends.cudnn.deterministic = previous

    def test_independent_parts_run_side_by_side(self):
        def make():
            models = [torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(6)]).cuda() for _ in range(8)]
            x = torch.randn(4, 128, device="cuda")

            def run():
                with torch.no_grad():
                    return [model(x) for model in models]

            return run, lambda: ()

        figures = self.compare(make)
        self.assertGreaterEqual(figures["chains"], 4)
        self.assertLess(figures["levels"], figures["ops"] // 3)

    def test_attention_and_mixed_precision(self):
        def make():
            layers = [torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0).cuda() for _ in range(3)]
            x = torch.randn(2, 16, 64, device="cuda")

            def run():
                with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
                    return [layer(x) for layer in layers]

            return run, lambda: ()

        self.compare(make)

    def test_ops_of_acs_inside(self):
        def make():
            a, b, c = (torch.randn(COUNT, device="cuda") for _ in range(3))

            def run():
                x = a * 2
                with acs.torch.region(self.context):
                    self.through_acs(x, b, 1.0)
                y = c.clone()
                self.in_stream(y, x, 0.5)  # Triton's own launch
                return x + y

            return run, lambda: ()

        self.compare(make)

    def test_another_stream_is_refused(self):
        a = torch.ones(8, device="cuda")
        with self.assertRaises(acs.StateError):
            with acs.torch.graph(torch.cuda.CUDAGraph()):
                with torch.cuda.stream(torch.cuda.Stream()):
                    a + 1
        torch.cuda.synchronize()
        self.assertEqual((a + 1).sum().item(), 16)

    def test_an_exception_ends_the_capture(self):
        a = torch.ones(8, device="cuda")
        with self.assertRaises(ZeroDivisionError):
            with acs.torch.graph(torch.cuda.CUDAGraph()):
                a + 1
                1 // 0
        torch.cuda.synchronize()
        self.compare(lambda: (lambda: a * 3, lambda: ()))

    def test_history_of_memory_that_was_on_stays_on(self):
        torch.cuda.memory._record_memory_history(context=None)
        try:
            self.compare(self.random_program(5))
            self.assertTrue(torch._C._cuda_isHistoryEnabled())
        finally:
            torch.cuda.memory._record_memory_history(enabled=None)


del OnAGpu
if __name__ == "__main__":
    unittest.main()
