"""
acs.jax on the CPU: ops inside JAX's programs. Skipped where JAX is not installed. Run with ACS_LIBRARY set, or with the
package installed. What needs a GPU is in test_jax_gpu.py.
"""

import contextlib
import ctypes
import functools
import operator
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import acs

FLAG = "--xla_force_host_platform_device_count"
if "jax" not in sys.modules and FLAG not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}=2"
try:
    import jax
    import jax.numpy as jnp
    import numpy
except ImportError as error:
    if __name__ != "__main__":
        raise unittest.SkipTest(f"jax: {error}") from None
    print(f"skipped: {error}")
    sys.exit(77)

import acs.jax
from acs.jax import _calls, _ffi

FAILURES = jax.errors.JaxRuntimeError, ValueError  # the latter of programs that JAX has called before
DEVICES = jax.devices("cpu")


@acs.host_body("pointer, pointer, float32, int32")
def scale(grid, to, source, by, count):
    a, b = ((ctypes.c_float * count).from_address(at) for at in (to, source))
    for i in range(count):
        a[i] = a[i] + b[i] * by


SCALE = acs.Kernel(host=scale, signature="pointer, pointer, float32, int32", name="scale")
GPU_ONLY = acs.Kernel(4096, signature="pointer", name="gpu_only")  # on the CPU its op fails


def like_first(x, *_, **__):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def add_scaled(context, to, source, by):
    """to += source * by, by elements in rows that do not depend on each other."""
    for i in range(len(to)):
        context.launch(SCALE, 1, 1, (to[i], source[i], by, to[i].nbytes // 4), reads=[source[i]], updates=[to[i]])


@acs.jax.op(outputs=like_first)
def powers(context, x, out, times=1):
    """out = x * 2**times, by ops of which each needs the one before."""
    context.copy(out, x)
    for _ in range(times):
        add_scaled(context, out, out, 1.0)


@acs.jax.op(outputs=like_first, input_output_aliases={0: 0})
def grow(context, x, out):
    assert x.ptr == out.ptr
    add_scaled(context, x, x, 1.0)


def faulty(fault, outputs=like_first, **settings):
    """An op whose function does `fault` with its context and arrays when it is called."""
    def function(context, x, out):
        context.fill(out, 0)
        fault(context, x, out)

    return acs.jax.op(outputs=outputs, **settings)(function)


class Checks(unittest.TestCase):
    def setUp(self):
        jax.config.update("jax_default_device", DEVICES[0])
        self.x = jnp.arange(12, dtype="float32").reshape(3, 4)

    def assert_equal(self, got, want):
        numpy.testing.assert_array_equal(numpy.asarray(got), numpy.asarray(want))

    def assert_fails(self, function, text, *inputs):
        """The call fails with this text, and does so again; other calls succeed after it."""
        run = jax.jit(function)
        for _ in range(3):
            with self.assertRaisesRegex(FAILURES, text):
                jax.block_until_ready(run(*inputs or (self.x,)))
            self.assert_equal(jax.jit(powers)(self.x), self.x * 2)


class Results(Checks):
    def test_inside_jit_and_outside(self):
        run = jax.jit(lambda x: powers(x * 3, times=4) + 1)
        for i in range(5):
            self.assert_equal(run(self.x + i), (self.x + i) * 48 + 1)
        self.assert_equal(powers(self.x), self.x * 2)
        self.assert_equal(powers(numpy.ones((2, 2), "f")), numpy.full((2, 2), 2))

    def test_shapes_that_change(self):
        run = jax.jit(powers)
        for shape in ((1, 1), (5, 2), (2, 3, 4), (0, 3), (3, 0)):
            self.assert_equal(run(jnp.ones(shape)), numpy.full(shape, 2))

    def test_several_outputs_and_inputs(self):
        @acs.jax.op(outputs=[jax.ShapeDtypeStruct((3, 4), "float32"), jax.ShapeDtypeStruct((4,), "int32")])
        def both(context, x, y, a, b):
            self.assertEqual((x.shape, y.shape, a.shape, b.shape), ((3, 4), (4,), (3, 4), (4,)))
            self.assertEqual((str(x.dtype), str(y.dtype), str(b.dtype)), ("float32", "int32", "int32"))
            context.copy(a, x)
            context.copy(b, y)

        a, b = jax.jit(both)(self.x, jnp.arange(4, dtype="int32"))
        self.assert_equal(a, self.x)
        self.assert_equal(b, range(4))

    def test_types_of_elements(self):
        @acs.jax.op(outputs=like_first)
        def copy(context, x, out):
            self.assertEqual((x.dtype, x.nbytes), (want.dtype, want.nbytes))
            context.copy(out, x)

        for name in ("bool", "int8", "uint16", "float16", "bfloat16", "complex64", "float8_e5m2"):
            for shape in ((3,), ()):
                with self.subTest(name=name, shape=shape):
                    want = jnp.ones(shape, name)
                    got = jax.jit(copy)(want)
                    self.assertEqual(got.dtype, want.dtype)
                    self.assert_equal(got.astype("complex64"), want.astype("complex64"))
        self.assert_fails(copy, "XLA's type 21 .*not supported", jnp.ones(4, "int4"))

    def test_numpy_takes_the_arrays(self):
        def fault(context, x, out):
            self.assertFalse(numpy.asarray(x).flags.writeable)
            numpy.asarray(out)[...] = numpy.asarray(x)[::-1]

        @acs.jax.op(outputs=like_first)
        def turned(context, x, out):
            fault(context, x, out)

        self.assert_equal(jax.jit(turned)(self.x), self.x[::-1])

    def test_static_arguments(self):
        run = jax.jit(lambda x: (powers(x, times=1), powers(x, times=2), powers(x, times=1)))
        entries = len(_calls._entries)
        one, two, again = run(self.x)
        self.assertLessEqual(len(_calls._entries), entries + 2)
        entries = len(_calls._entries)
        self.assert_equal(one, again)
        self.assert_equal(two, self.x * 4)
        jax.jit(lambda x: powers(x, times=2) + powers(x, times=1))(self.x)
        self.assertEqual(len(_calls._entries), entries)
        seen = []

        @acs.jax.op(outputs=lambda x, flag: like_first(x))
        def typed(context, x, out, flag):
            seen.append(flag)
            context.copy(out, x)

        jax.block_until_ready([typed(self.x, flag=flag) for flag in (1, True, 1.0)])
        self.assertEqual([repr(flag) for flag in seen], ["1", "True", "1.0"])
        with self.assertRaisesRegex(TypeError, "static argument of op 'powers' has no hash"):
            powers(self.x, times=[1])
        with self.assertRaisesRegex(TypeError, "static argument 'times' of op 'powers' is traced"):
            jax.jit(lambda n: powers(self.x, times=n))(2)
        with self.assertRaisesRegex(TypeError, r"the decorator is acs.jax.op\(outputs=...\)"):
            acs.jax.op(lambda context, x, out: None)(self.x)
        with self.assertRaisesRegex(ValueError, "give one output to two inputs"):
            acs.jax.op(outputs=like_first, input_output_aliases={0: 0, 1: 0})

    def test_aliases_are_in_place(self):
        run = jax.jit(lambda x: grow(grow(x)), donate_argnums=0)
        self.assert_equal(run(jnp.array(self.x)), self.x * 4)
        kept = jnp.array(self.x)  # not donated: XLA copies it first
        self.assert_equal(jax.jit(grow)(kept), self.x * 2)
        self.assert_equal(kept, self.x)

    def test_loops_and_branches(self):
        run = jax.jit(lambda x, n: jax.lax.fori_loop(0, n, lambda i, y: powers(y) - y / 2, x))
        self.assert_equal(run(self.x, 3), self.x * 1.5 ** 3)
        choose = jax.jit(lambda x, yes: jax.lax.cond(yes, lambda y: powers(y, times=2), lambda y: y, x))
        self.assert_equal(choose(self.x, True), self.x * 4)
        self.assert_equal(choose(self.x, False), self.x)

    def test_vmap(self):
        many = jnp.stack([self.x, self.x + 1])
        self.assert_equal(jax.jit(jax.vmap(powers))(many), many * 2)
        shapes = []

        @acs.jax.op(outputs=like_first, vmap_method="broadcast_all")
        def all_at_once(context, x, out):
            shapes.append(x.shape)
            context.copy(out, x)

        self.assert_equal(jax.vmap(all_at_once)(many), many)
        self.assertEqual(shapes, [(2, 3, 4)])

    def test_gradients(self):
        with self.assertRaisesRegex(ValueError, "cannot be differentiated"):
            jax.grad(lambda x: powers(x).sum())(self.x)

        doubled = jax.custom_vjp(powers)
        doubled.defvjp(lambda x: (powers(x), None), lambda _, gradient: (powers(gradient),))
        self.assert_equal(jax.grad(lambda x: doubled(x).sum())(self.x), jnp.full((3, 4), 2))

    def test_two_devices(self):
        if len(DEVICES) < 2:
            self.skipTest("one device")
        from jax.sharding import Mesh, PartitionSpec
        many = jnp.stack([self.x, self.x + 1])
        self.assert_equal(jax.pmap(powers, devices=DEVICES[:2])(many), many * 2)
        mesh = Mesh(numpy.array(DEVICES[:2]), ("rows",))
        if not hasattr(jax, "shard_map"):
            self.skipTest("a version of JAX without shard_map")
        shards = jax.shard_map(lambda x: powers(x), mesh=mesh, in_specs=PartitionSpec("rows"), out_specs=PartitionSpec("rows"),
                               check_vma=False)
        self.assert_equal(jax.jit(shards)(many.reshape(6, 4)), many.reshape(6, 4) * 2)
        self.assert_equal(jax.jit(powers)(jax.device_put(self.x, DEVICES[1])), self.x * 2)

    def test_many_threads(self):
        """Each call has its own failures, and no others."""
        run = jax.jit(lambda x: powers(x, times=3) + powers(x + 1))
        fail = jax.jit(faulty(lambda context, x, out: context.launch(GPU_ONLY, 1, 1, (out,), updates=[out])))
        wrong = []

        def work(number):
            for i in range(20):
                x = self.x + number * 100 + i
                try:
                    if number % 2:
                        jax.block_until_ready(fail(x))
                        wrong.append("did not fail")
                    elif not numpy.array_equal(run(x), x * 8 + (x + 1) * 2):
                        wrong.append((number, i))
                except FAILURES as error:
                    if not number % 2 or "gpu_only" not in str(error):
                        wrong.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Failures(Checks):
    def test_exceptions_of_the_function(self):
        def fault(context, x, out):
            raise KeyError("lost")

        self.assert_fails(faulty(fault), r"INTERNAL: acs.jax: op 'function': KeyError: 'lost' \(.*test_jax.py:\d+\)")
        self.assert_fails(faulty(lambda *_: sys.exit(3)), "SystemExit: 3")
        self.assert_fails(faulty(lambda *_: 1 / 0), "ZeroDivisionError")
        self.assert_fails(acs.jax.op(outputs=like_first)(lambda context, x, out: 7), "returned an object of type int")

    def test_launches_that_are_refused(self):
        def fault(context, x, out):
            context.launch(SCALE, 0, 1, (out, x, 1.0, 4), updates=[out])

        self.assert_fails(faulty(fault), "INVALID_ARGUMENT: acs.jax: op 'function': .*grid")

        def hide(context, x, out):
            try:
                fault(context, x, out)
            except acs.ArgumentError:
                pass

        self.assert_fails(faulty(hide), "INVALID_ARGUMENT: acs.jax: op 'function': .*grid")

    def test_ops_that_fail(self):
        def fault(context, x, out):
            context.launch(GPU_ONLY, 1, 1, (out,), updates=[out])
            context.fill(out, 0)

        self.assert_fails(faulty(fault), "gpu_only.*test_jax.py:")

    def test_inputs_are_not_written(self):
        for name, fault in {
            "launch": lambda context, x, out: context.launch(SCALE, 1, 1, (x, out, 1.0, 4), reads=[out], updates=[x]),
            "part": lambda context, x, out: context.launch(SCALE, 1, 1, (x[1], out, 1.0, 4), reads=[out], writes=[x[1:]]),
            "fill": lambda context, x, out: context.fill(x[2], 1),
            "copy": lambda context, x, out: context.copy(x, out),
            "numpy": lambda context, x, out: context.fill(numpy.asarray(x)[0], 1),
        }.items():
            with self.subTest(name):
                self.assert_fails(faulty(fault), "input 0 is written")
        self.assert_equal(self.x, numpy.arange(12).reshape(3, 4))

    def test_use_after_the_call(self):
        kept = []
        keep = faulty(lambda context, x, out: kept.extend((context, x, out, x[0])))
        jax.block_until_ready(jax.jit(keep)(self.x))
        context, *arrays = kept
        for array in arrays:
            for use in (lambda: array.ptr, lambda: array.nbytes, lambda: acs.span(array), lambda: array[0],
                        lambda: numpy.asarray(array)):
                with self.assertRaisesRegex(acs.StateError, "is used after the call"):
                    use()
        for use in (lambda: context.launch(SCALE, 1, 1, (0, 0, 1.0, 0)), lambda: context.fill(numpy.zeros(1), 0),
                    lambda: context.copy(numpy.zeros(1), numpy.zeros(1))):
            with self.assertRaisesRegex(acs.StateError, "the context is used after the call"):
                use()

    def test_use_on_another_thread(self):
        def fault(context, x, out):
            errors = []

            def use():
                try:
                    context.fill(out, 0)
                except acs.StateError as error:
                    errors.append(error)

            thread = threading.Thread(target=use)
            thread.start()
            thread.join()
            raise errors[0]

        self.assert_fails(faulty(fault), "FAILED_PRECONDITION: .*on another thread")

    def test_rows(self):
        def check(context, x, out):
            self.assertEqual(([row.ptr - x.ptr for row in x], x[-1].ptr, len(x)), ([0, 16, 32], x.ptr + 32, 3))
            self.assertEqual((x[1:].shape, x[1:].ptr, x[5:].shape, x[2][3].shape), ((2, 4), x.ptr + 16, (0, 4), ()))
            for index, kind in ((3, IndexError), (-4, IndexError), (slice(0, 3, 2), ValueError), ("a", TypeError),
                                ((0, 1), TypeError)):
                with self.assertRaisesRegex(kind, "input 0"):
                    x[index]
            with self.assertRaisesRegex(TypeError, "no dimensions"):
                x[0][0][0]

        self.assert_equal(jax.jit(faulty(check))(self.x), self.x * 0)

    def test_wrong_use(self):
        with self.assertRaisesRegex(TypeError, "op 'grow' is called with a context, 2 inputs, 1 outputs and no static"):
            grow(self.x, self.x)
        with self.assertRaisesRegex(TypeError, r"\['speed'\]: got an unexpected keyword argument 'speed'"):
            powers(self.x, speed=1)
        with self.assertRaisesRegex(TypeError, "has no shape and dtype"):
            acs.jax.op(outputs=lambda x: x.shape)(lambda context, x, out: None)(self.x)
        with self.assertRaisesRegex(ValueError, "vmap_method"):
            acs.jax.op(outputs=like_first, vmap_method="magic")(lambda context, x, out: None)(self.x)
        with self.assertRaisesRegex(ValueError, "output index 3"):
            acs.jax.op(outputs=like_first, input_output_aliases={0: 3})(lambda context, x, out: None)(self.x)
        with self.assertRaisesRegex(TypeError, "type int cannot be called"):
            acs.jax.op(outputs=like_first)(3)
        with self.assertRaisesRegex(acs.OptionError, "did you mean workers"):
            acs.jax.op(outputs=like_first, options={"worker": 3})
        with self.assertRaisesRegex(acs.OptionError, "backend is not yours"):
            acs.jax.op(outputs=like_first, options={"backend": "host"})
        narrow = acs.jax.op(outputs=like_first, options={"window": 1, "workers": 1})(powers._function)
        self.assert_equal(jax.jit(narrow)(self.x), self.x * 2)

    def test_a_program_of_another_process(self):
        call = jax.ffi.ffi_call(acs.jax._target(True), like_first(self.x))
        for attributes in ({}, {"acs_process": numpy.int64(1), "acs_entry": numpy.int64(0)}):
            self.assert_fails(lambda x: call(x, **attributes), "compiled in another process")


class Interface(Checks):
    """XLA's structures, and calls that something interrupts."""

    def test_structures_are_those_of_the_header(self):
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("no C compiler")
        f = _ffi
        structures = {"Api_Version": f.Version, "Metadata": f.Metadata, "Buffer": f.Buffer, "Args": f.Buffers,
                      "Rets": f.Buffers, "Attrs": f.Attributes, "CallFrame": f.CallFrame, "Error_Create_Args": f.ErrorCreate,
                      "Error_Destroy_Args": f.ErrorDestroy, "Stream_Get_Args": f.StreamGet,
                      "DeviceOrdinal_Get_Args": f.DeviceGet}
        places = {"Metadata, traits": f.Metadata.traits, "Metadata_Extension, metadata": f.Extension.metadata,
                  "CallFrame, stage": f.CallFrame.stage, "CallFrame, attrs": f.CallFrame.attributes,
                  "Buffer, dims": f.Buffer.dims, "Attrs, attrs": f.Attributes.items, "Scalar, value": f.Scalar.value,
                  "Api, XLA_FFI_Error_Create": f.Table.error_create, "Api, XLA_FFI_Error_Destroy": f.Table.error_destroy,
                  "Api, XLA_FFI_Stream_Get": f.Table.stream_get, "Api, XLA_FFI_DeviceOrdinal_Get": f.Table.device_get}
        if "XLA_FFI_Error_GetDetails" in self.header():  # since 0.5
            structures["Error_GetDetails_Args"] = f.ErrorText
            places["Api, XLA_FFI_Error_GetDetails"] = f.Table.error_text
        sizes = self.compiled(compiler, [f"XLA_FFI_{name}_STRUCT_SIZE" for name in structures])
        self.assertEqual(dict(zip(structures, sizes)), {name: f._size(kind) for name, kind in structures.items()})
        offsets = self.compiled(compiler, [f"offsetof(XLA_FFI_{place})" for place in places])
        self.assertEqual(dict(zip(places, offsets)), {place: field.offset for place, field in places.items()})
        major, minor = self.compiled(compiler, ["XLA_FFI_API_MAJOR", "XLA_FFI_API_MINOR"])
        self.assertEqual(major, f.MAJOR)
        self.assertGreaterEqual(minor, f.MINOR_LEAST)

    def header(self):
        return pathlib.Path(jax.ffi.include_dir(), "xla/ffi/api/c_api.h").read_text()

    def compiled(self, compiler, asked):
        """What these expressions are in C."""
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "sizes.c")
            lines = [f'printf("%d\\n", (int)({expression}));' for expression in asked]
            source.write_text("\n".join(['#include <stdio.h>', '#include "xla/ffi/api/c_api.h"', "int main(void) {", *lines, "}"]))
            subprocess.run([compiler, f"-I{jax.ffi.include_dir()}", str(source), "-o", f"{folder}/sizes"], check=True)
            return [int(line) for line in subprocess.check_output([f"{folder}/sizes"]).split()]

    def test_types_of_elements_are_those_of_the_header(self):
        codes = {int(code): name for name, code in re.findall(r"XLA_FFI_DataType_(\w+) = (\d+)", self.header())}
        letters = {"int": "S", "uint": "U", "float": "F", "bfloat": "BF", "complex": "C"}
        for code, name in _ffi.DTYPES.items():
            kind, size = re.match(r"([a-z]+)(.*)", name).groups()
            want = "PRED" if name == "bool" else letters[kind] + size.replace("_", "").upper()
            self.assertEqual(codes[code], want)

    def test_another_version_is_refused(self):
        jax.block_until_ready(powers(self.x))
        api = acs.jax._handlers.api
        table = _ffi.Table.from_buffer_copy(api.table)
        other = _ffi.Api(ctypes.addressof(table))
        other.check()
        table.version.major = 1
        with self.assertRaisesRegex(acs.UnsupportedError, "version 1.*of XLA's interface"):
            other.check()
        table.version.major, table.struct_size = 0, 100
        with self.assertRaisesRegex(acs.UnsupportedError, "has 100 bytes"):
            other.check()

    def test_questions_to_xla(self):
        """What only a GPU's calls ask, on the CPU: the answer, or XLA's text."""
        found = []

        def run(platform, frame):
            found.append((platform, frame.device()))
            frame.stream()

        jax.block_until_ready(powers(self.x))
        before, acs.jax._handlers._run = acs.jax._handlers._run, run
        try:
            with self.assertRaisesRegex(FAILURES, "XLA does not tell the stream of a call: .+"):
                jax.block_until_ready(powers(self.x))
        finally:
            acs.jax._handlers._run = before
        self.assertEqual(found, [("cpu", 0)])

    def test_the_way_of_a_gpu(self):
        """Order by a stream instead of a wait; the CPU's contexts take any stream."""
        class Where(_calls.Where):
            def __init__(self, platform, frame):
                super().__init__(platform, frame)
                self.stream = 0

        before = _calls.Where, _calls.DeviceArray, _calls._gpu_of
        _calls.Where, _calls.DeviceArray, _calls._gpu_of = Where, _calls.HostArray, lambda _: contextlib.nullcontext()
        try:
            Results.test_inside_jit_and_outside(self)
            Failures.test_launches_that_are_refused(self)
            Failures.test_ops_that_fail(self)
            Failures.test_inputs_are_not_written(self)
        finally:
            _calls.Where, _calls.DeviceArray, _calls._gpu_of = before

    def test_ctrl_c_before_the_first_line_of_a_call(self):
        """ctypes returns nothing then, and the function in C makes an error."""
        jax.block_until_ready(powers(self.x))
        api = acs.jax._handlers.api
        frame = _ffi.CallFrame(api=ctypes.addressof(api.table))
        handler = _ffi._FUNCTION(acs.jax._handlers.address("cpu", True))
        steps = [ctypes.pythonapi.PyErr_SetInterrupt, functools.partial(handler, ctypes.addressof(frame))]
        errors, sys.unraisablehook = [], lambda about: errors.append(about.exc_type)
        try:
            _, error = map(operator.methodcaller("__call__"), steps)  # in C, between which Python looks at no signals
        finally:
            sys.unraisablehook = sys.__unraisablehook__
        about = _ffi.ErrorText(_ffi._size(_ffi.ErrorText), None, error)
        api.table.error_text(ctypes.addressof(about))
        self.assertIn(b"an exception came before the op began", about.text)
        self.assertEqual(errors, [KeyboardInterrupt])

    def run_program(self, text, silent=True):
        """A program of its own, whose exit must be clean. Returns what it printed. `silent`: not to standard error."""
        done = subprocess.run([sys.executable, "-c", PROGRAM + text], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr if silent else ""), (0, ""), done.stdout + done.stderr)
        return done.stdout

    def test_ctrl_c_at_any_time(self):
        self.assertEqual(self.run_program(INTERRUPTED, silent=False), "60 interrupted, 0 wrong, the next is True\n")

    def test_ctrl_c_while_ops_run(self):
        """The call returns when its ops have ended, since they use XLA's memory."""
        self.assertEqual(self.run_program(WAITED), "CANCELLED after its op\nnext is right\n")

    def test_exit_with_calls_under_way(self):
        for _ in range(5):
            self.assertEqual(self.run_program(LEFT), "leaves\n")
        self.assertEqual(self.run_program(UNDER_WAY), "ended with the call\n")


PROGRAM = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import _thread, os, signal, threading, time
import jax, jax.numpy as jnp, numpy
import acs, acs.jax, test_jax
from test_jax import acs, like_first, powers
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it runs in the background ignore it
jax.config.update("jax_default_device", test_jax.DEVICES[0])
x = jnp.arange(12, dtype="float32").reshape(3, 4)
"""
INTERRUPTED = """
run = jax.jit(lambda x: powers(jnp.sort(jnp.sin(x)), times=4))
big = jnp.ones((2, 3000))
want, came, wrong = numpy.asarray(run(big)), 0, 0
ready, caught = threading.Event(), threading.Event()

def interrupt():
    import random
    for _ in range(60):
        ready.wait()
        ready.clear()
        time.sleep(random.random() * 0.02)  # anywhere in a call: no place is the right one
        _thread.interrupt_main()
        while not caught.wait(2):  # a destructor may have swallowed it
            _thread.interrupt_main()
        caught.clear()

thread = threading.Thread(target=interrupt)
thread.start()
while came < 60:
    try:
        ready.set()
        while True:
            wrong += not numpy.array_equal(run(big), want)
    except (KeyboardInterrupt, *test_jax.FAILURES) as error:
        if not isinstance(error, KeyboardInterrupt) and "KeyboardInterrupt" not in str(error):
            raise
    came += 1
    caught.set()
thread.join()
print(f"{came} interrupted, {wrong} wrong, the next is", numpy.array_equal(run(big), want))
"""
WAITED = """
steps, gate = [], threading.Event()

@acs.host_body("pointer")
def late(grid, to):
    gate.wait(20)  # for ever, if the call did not wait for it
    steps.append("op")

late = acs.Kernel(host=late, signature="pointer", name="late")
end = acs.jax._calls._end

def interrupted_end(context, stream):
    signal.raise_signal(signal.SIGINT)
    gate.set()
    return end(context, stream)

@acs.jax.op(outputs=like_first)
def wait(context, x, out):
    context.launch(late, 1, 1, (out,), writes=[out])

acs.jax._calls._end = interrupted_end
try:
    jax.block_until_ready(jax.jit(wait)(x))
except test_jax.FAILURES as error:
    print(str(error).split(":")[0], "after its", *steps)
acs.jax._calls._end = end
print("next is", "right" if numpy.array_equal(powers(x), x * 2) else "wrong")
"""
LEFT = """
run = jax.jit(lambda x: powers(jax.lax.fori_loop(0, 3, lambda i, y: y @ y / 700 + powers(x), x)))
y = run(jnp.ones((700, 700)))
z = run(y)
print("leaves")
"""
UNDER_WAY = """
import atexit
started, gate, done = threading.Event(), threading.Event(), []
atexit.register(lambda: print("ended with", *done))  # behind the wait for calls, which the first use registers

@acs.jax.op(outputs=like_first)
def wait(context, x, out):
    started.set()
    gate.wait(20)
    context.copy(out, x)
    for _ in range(1000000):
        pass
    done.append("the call")

y = jax.jit(lambda x: wait(x @ x))(jnp.ones((1500, 1500)))  # so large that XLA has its own thread do it
started.wait()
atexit.register(gate.set)
"""

if __name__ == "__main__":
    unittest.main()
