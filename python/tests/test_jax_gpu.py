"""
acs.jax on a GPU: kernels of CuPy on XLA's buffers. Skipped where JAX finds no GPU, or without CuPy. `--speed` prints how
long 32 independent chains take in a jitted loop, through ACS and in one stream, instead of the tests.
"""

import os
import sys
import threading
import time
import unittest

if "jax" not in sys.modules:  # let XLA capture short programs, too
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_gpu_graph_min_graph_size=1"
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
try:
    import cupy
    import jax
    import jax.numpy as jnp
    import numpy
    GPUS = jax.devices("gpu")
except (ImportError, RuntimeError) as error:
    if __name__ != "__main__":
        raise unittest.SkipTest(f"jax on a GPU, with cupy: {error}") from None
    print(f"skipped: {error}")
    sys.exit(77)

import acs
import acs.jax

SOURCE = r"""
extern "C" __global__ void turn(float *x, float by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = x[i] * by + 1;
}
extern "C" __global__ void add(float *to, const float *from, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] += from[i];
}
"""
TURN = cupy.RawKernel(SOURCE, "turn")


def kernel_on(device, name, signature):
    """The kernel for one GPU, to which a function of CuPy belongs."""
    with cupy.cuda.Device(device):
        return acs.Kernel(cupy.RawKernel(SOURCE, name), signature=signature)


ADD_OP = kernel_on(0, "add", "pointer, pointer, int32")
TURN_OPS = [kernel_on(device, "turn", "pointer, float32, int32") for device in range(len(GPUS[:2]))]
ROWS, COUNT, STEPS, BY = 32, 4096, 20, 0.5


def like_first(x, *_, **__):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def launch(context, rows, steps):
    n, turn = rows[0].nbytes // 4, TURN_OPS[context.device]
    for _ in range(steps):
        for row in rows:
            context.launch(turn, -(-n // 256), 256, (row, BY, n), updates=[row])


def launch_chains(context, x, out, steps=STEPS):
    """Each row is a chain of its own."""
    rows = list(out)
    for to, row in zip(rows, x):
        context.copy(to, row)
    launch(context, rows, steps)


def launch_in_place(context, x, out, steps=STEPS):
    launch(context, list(x), steps)


def launch_in_stream(context, x, out, steps=STEPS):
    """The same kernels without ACS, in XLA's stream."""
    n = x[0].nbytes // 4
    rows = [(cupy.uint64(row.ptr), cupy.float32(BY), cupy.int32(n)) for row in x]
    with cupy.cuda.ExternalStream(context.stream):
        for _ in range(steps):
            for row in rows:
                TURN((-(-n // 256),), (256,), row)


chains = acs.jax.op(outputs=like_first)(launch_chains)


def expected(x, steps=STEPS):
    for _ in range(steps):
        x = x * BY + 1
    return x


class Checks(unittest.TestCase):
    def setUp(self):
        cupy.cuda.Device(0).use()  # JAX leaves another one current
        jax.config.update("jax_default_device", GPUS[0])
        self.x = jax.random.uniform(jax.random.key(1), (ROWS, COUNT))

    def assert_equal(self, got, want):
        numpy.testing.assert_allclose(numpy.asarray(got), numpy.asarray(want), rtol=1e-5)  # XLA may fuse multiply and add


class Results(Checks):
    def test_inside_jit_between_jax_work(self):
        run = jax.jit(lambda x: chains(x * 3) + 1)
        for i in range(10):
            self.assert_equal(run(self.x + i), expected((self.x + i) * 3) + 1)

    def test_calls_behind_each_other(self):
        """No wait of the host in between: the order is that of XLA's stream."""
        run = jax.jit(lambda x: chains(chains(x) + 1))
        x = self.x
        want = self.x
        for _ in range(20):
            x, want = run(x), expected(expected(want) + 1)
        self.assert_equal(x, want)

    def test_in_a_loop_and_in_place(self):
        advance = acs.jax.op(outputs=like_first, input_output_aliases={0: 0})(launch_in_place)
        run = jax.jit(lambda x: jax.lax.fori_loop(0, 7, lambda i, y: advance(y) * 2, x))
        want = self.x
        for _ in range(7):
            want = expected(want) * 2
        self.assert_equal(run(self.x), want)

    def test_memory_that_is_not_of_jax(self):
        """A kernel writes an array of CuPy, another one reads it; the next call writes it again."""
        kept = cupy.zeros((ROWS, COUNT), "f")
        cupy.cuda.Device().synchronize()

        @acs.jax.op(outputs=like_first)
        def through_kept(context, x, out):
            context.copy(kept, x)
            context.fill(out, 0)
            context.launch(ADD_OP, -(-kept.size // 256), 256, (out, kept, kept.size), reads=[kept], updates=[out])

        run = jax.jit(lambda x: through_kept(through_kept(x) + 1) * 2)
        for i in range(20):
            self.assert_equal(run(self.x + i), (self.x + i + 1) * 2)

    def test_functions_are_called_each_time_without_capture(self):
        calls = []

        def count(context, x, out):
            calls.append(1)
            launch_chains(context, x, out)

        each = jax.jit(lambda x: acs.jax.op(outputs=like_first, capture=False)(count)(x * 2) + 1)
        for i in range(8):
            self.assert_equal(each(self.x + i), expected((self.x + i) * 2) + 1)
        self.assertEqual(len(calls), 8)

    def test_captures(self):
        """XLA decides what it captures. Where it does, results are right and calls fewer."""
        calls = []

        def count(context, x, out):
            calls.append(context.stream)
            launch_chains(context, x, out)

        run = jax.jit(lambda x: acs.jax.op(outputs=like_first)(count)(x * 2) + 1)
        for i in range(20):
            self.assert_equal(run(self.x + i), expected((self.x + i) * 2) + 1)
        print(f"\n20 runs, {len(calls)} calls of the function in {len(set(calls))} streams", file=sys.stderr)
        if len(calls) == 20:
            self.skipTest("XLA captured nothing")

    def test_many_threads(self):
        run = jax.jit(lambda x: chains(x) + chains(x + 1))
        wrong = []

        def work(number):
            for i in range(20):
                x = self.x + number * 10 + i
                if not numpy.allclose(run(x), expected(x) + expected(x + 1), rtol=1e-5):
                    wrong.append((number, i))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_two_gpus(self):
        if len(GPUS) < 2:
            self.skipTest("one GPU")
        many = jnp.stack([self.x, self.x + 1])
        self.assert_equal(jax.pmap(chains, devices=GPUS[:2])(many), expected(many))
        self.assert_equal(jax.jit(chains)(jax.device_put(self.x, GPUS[1])), expected(self.x))


class Failures(Checks):
    def assert_fails(self, fault, text, **settings):
        op = acs.jax.op(outputs=like_first, **settings)(fault)
        run = jax.jit(op)
        for _ in range(3):
            with self.assertRaisesRegex((jax.errors.JaxRuntimeError, ValueError), text):
                jax.block_until_ready(run(self.x))
            self.assert_equal(jax.jit(chains)(self.x), expected(self.x))

    def test_exceptions_of_the_function(self):
        def fault(context, x, out):
            launch_chains(context, x, out)
            raise KeyError("lost")

        for capture in (True, False):
            self.assert_fails(fault, "op 'fault': KeyError: 'lost'", capture=capture)

    def test_launches_that_are_refused(self):
        def fault(context, x, out):
            context.launch(TURN_OPS[0], 1, 4096, (out, BY, 1), updates=[out])

        for capture in (True, False):
            self.assert_fails(fault, "op 'fault': .*block", capture=capture)

    def test_inputs_are_not_written(self):
        def fault(context, x, out):
            context.launch(TURN_OPS[0], 1, 256, (cupy.asarray(x)[1], BY, 256), updates=[cupy.asarray(x)[1]])

        self.assert_fails(fault, "input 0 is written")

    def test_use_after_the_call(self):
        kept = []

        def keep(context, x, out):
            kept.extend((x, out))
            launch_chains(context, x, out)

        jax.block_until_ready(jax.jit(acs.jax.op(outputs=like_first)(keep))(self.x))
        for array in kept:
            with self.assertRaisesRegex(acs.StateError, "is used after the call"):
                cupy.asarray(array)


def milliseconds(run, x, times=5):
    """Shortest of several runs, behind two that compile and capture."""
    for _ in range(2):
        jax.block_until_ready(run(x))
    best = float("inf")
    for _ in range(times):
        begin = time.perf_counter()
        jax.block_until_ready(run(x))
        best = min(best, (time.perf_counter() - begin) * 1e3)
    return best


def speed(rounds=50):
    """32 chains of 20 kernels, 50 times in a jitted loop, with work of JAX in between."""
    x = jax.random.uniform(jax.random.key(1), (ROWS, COUNT))
    kernels, results = rounds * ROWS * STEPS, []
    for capture in (False, True):
        for name, function in (("one stream", launch_in_stream), ("ACS", launch_in_place)):
            op = acs.jax.op(outputs=like_first, input_output_aliases={0: 0}, capture=capture)(function)
            loop = jax.jit(lambda x: jax.lax.fori_loop(0, rounds, lambda i, y: op(y) * 1.01, x))
            ms = milliseconds(loop, x)
            results.append(loop(x))
            print(f"fori_loop, {name:10} {'capture allowed' if capture else 'no capture':15} {ms:8.2f} ms, "
                  f"{ms * 1e3 / kernels:6.2f} us a kernel")
            single = jax.jit(lambda x: op(x * 1.01))
            ms = milliseconds(single, x, 50)
            print(f"one call,  {name:10} {'capture allowed' if capture else 'no capture':15} {ms:8.3f} ms, "
                  f"{ms * 1e3 / ROWS / STEPS:6.2f} us a kernel")
    equal = all(bool((result == results[0]).all()) for result in results)
    print("equal results" if equal else "different results")
    return 0 if equal else 1


if __name__ == "__main__":
    if "--speed" in sys.argv:
        sys.exit(speed())
    unittest.main()
