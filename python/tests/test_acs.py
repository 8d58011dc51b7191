"""
The Python module, on CPU threads and on the simulated GPU: results as in program order, errors, lifetimes, and ends of the
process. Needs nothing but the standard library. Run with ACS_LIBRARY set, or with the package installed.
"""

import ctypes
import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import unittest
import weakref

import acs
from acs import _arrays, _layout, _library

CELLS = 12


@acs.host_body("pointer, pointer, uint32")
def mix(grid, to, source, number):
    a, b = ctypes.c_uint64.from_address(to), ctypes.c_uint64.from_address(source)
    a.value = (a.value * 31 + b.value * 17 + number) % 2**64


MIX = acs.Kernel(host=mix, signature="pointer, pointer, uint32", name="mix")


class Buffer(ctypes.Array):
    """An array that a weak reference may watch."""

    _type_, _length_ = ctypes.c_uint64, CELLS


def cell(buffer, at):
    return acs.bytes_at(ctypes.addressof(buffer) + 8 * at, 8, buffer)


def run_program(context, seed, ops, buffer):
    """A random program; returns what serial execution leaves in the cells."""
    draw, truth = random.Random(seed), [0] * CELLS
    for number in range(ops):
        to, source = draw.randrange(CELLS), draw.randrange(CELLS)
        truth[to] = (truth[to] * 31 + truth[source] * 17 + number) % 2**64
        reads = [] if to == source else [cell(buffer, source)]
        context.launch(MIX, 1, 1, (cell(buffer, to), cell(buffer, source), number), reads=reads, updates=[cell(buffer, to)])
    return truth


def in_process(text):
    """Run a program of its own. Returns its exit status and what it wrote."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class Results(unittest.TestCase):
    def test_arrays_of_ops_that_have_ended_are_dropped_by_their_bytes(self):
        with acs.Context(backend="host", workers=2) as context:
            watches = []
            for _ in range(12):
                buffer = (ctypes.c_char * (64 << 20))()
                view = memoryview(buffer)
                watches.append(weakref.ref(view))
                context.wait(context.call(lambda: None, updates=[view]))
                del buffer, view
            self.assertLess(sum(watch() is not None for watch in watches), 8)

    def test_ops_that_commute_run_at_the_same_time(self):
        met, buffer = threading.Barrier(2), (ctypes.c_char * 64)()

        @acs.host_body("pointer")
        def meet(grid, address):
            met.wait(60)  # BrokenBarrierError, unless the other op runs, too

        kernel = acs.Kernel(host=meet, signature="pointer", name="meet")
        with acs.Context(backend="host", workers=2, executors=2) as context:
            for _ in range(2):
                context.launch(kernel, 1, 1, (buffer,), updates=[acs.inoutset(buffer)])
            context.sync()
            self.assertFalse(met.broken)
            with self.assertRaisesRegex(ValueError, "what commutes .acs.inoutset. is given in updates"):
                context.launch(kernel, 1, 1, (buffer,), reads=[acs.inoutset(buffer)])
            self.assertEqual(acs.inoutset(buffer).packed(3)[32], 7)

    def test_prepared_launches_are_queued_as_often_as_called(self):
        with acs.Context(backend="host", workers=2) as context:
            buffer, truth = Buffer(), [0] * CELLS
            launches = [context.prepare(MIX, 1, 1, (cell(buffer, i), cell(buffer, (i + 5) % CELLS), i),
                                        reads=[cell(buffer, (i + 5) % CELLS)], updates=[cell(buffer, i)]) for i in range(CELLS)]
            draw = random.Random(1)
            for _ in range(500):
                i = draw.randrange(CELLS)
                truth[i] = (truth[i] * 31 + truth[(i + 5) % CELLS] * 17 + i) % 2**64
                op = launches[i]()
            context.wait(op)
            context.sync()
            self.assertEqual(list(buffer), truth)
            watch = weakref.ref(buffer)
            sizes = [1]
            op = context.launch(MIX, sizes, 1, (cell(buffer, 0), cell(buffer, 1), 1), updates=[acs.ALL])
            sizes[0] = -1
            with self.assertRaisesRegex(acs.ArgumentError, "a size of a grid"):
                context.launch(MIX, sizes, 1, (cell(buffer, 0), cell(buffer, 1), 1), updates=[acs.ALL])
            context.wait(op)
            del buffer
            launches[0]()
            context.sync()
            self.assertIsNotNone(watch())
            with self.assertRaisesRegex(ValueError, "kernel 'mix' does not fit its type"):
                context.prepare(MIX, 1, 1, (cell(watch(), 0), cell(watch(), 1), -1))
            with self.assertRaisesRegex(acs.ArgumentError, "a size of a grid"):
                context.prepare(MIX, -1, 1, (cell(watch(), 0), cell(watch(), 1), 1))
        with self.assertRaises(acs.StateError):
            launches[0]()

    def test_random_programs_are_as_in_order(self):
        ways = [{"backend": backend, "workers": workers} for backend in ("host", "sim") for workers in (0, 1)]
        ways += [{"backend": "host", "serial": True}, {"backend": "host", "disable": True}, {"backend": "host", "check": "reads"}]
        for way in ways:
            for seed in range(5):
                with self.subTest(**way, seed=seed):
                    buffer = Buffer()
                    with acs.Context(**way, window=16, fifo=8) as context:
                        truth = run_program(context, seed, 30 if "check" in way else 300, buffer)
                        context.sync()
                        self.assertEqual(list(buffer), truth)

    def test_threads_of_python_launch_side_by_side(self):
        buffers, truths = [Buffer() for _ in range(4)], {}
        with acs.Context(backend="host") as context:
            def launch(i):
                truths[i] = run_program(context, i, 200, buffers[i])

            threads = [threading.Thread(target=launch, args=(i,)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            context.sync()
        for i, buffer in enumerate(buffers):
            self.assertEqual(list(buffer), truths[i])

    def test_contexts_of_several_threads_share_a_kernel(self):
        buffers, truths = [Buffer() for _ in range(2)], {}
        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        sys.setswitchinterval(1e-6)  # threads take turns as often as they can

        def launch(i):
            with acs.Context(backend="host") as context:
                truths[i] = run_program(context, i, 1000, buffers[i])

        threads = [threading.Thread(target=launch, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i, buffer in enumerate(buffers):
            self.assertEqual(list(buffer), truths[i])

    def test_threads_may_sync_while_others_queue(self):
        for backend in ("host", "sim"):
            counts = [0] * 4
            with acs.Context(backend=backend, fifo=4, window=4) as context:
                def count(i):
                    def add():
                        counts[i] += 1

                    for n in range(100):
                        context.call(add)
                        if n % 10 == 0:
                            context.sync()

                threads = [threading.Thread(target=count, args=(i,)) for i in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            self.assertEqual(counts, [100] * 4)

    def test_a_context_closes_once_other_threads_have_left(self):
        for _ in range(20):
            context, refused = acs.Context(backend="sim"), []

            def use():
                buffer = Buffer()
                try:
                    while True:
                        context.wait(context.fill(buffer, 1))
                except acs.StateError as error:
                    refused.append(str(error))

            threads = [threading.Thread(target=use) for _ in range(3)]
            for thread in threads:
                thread.start()
            context.close()
            for thread in threads:
                thread.join()
            self.assertEqual(len(refused), 3)

    def test_what_recurs_is_replayed(self):
        buffer = Buffer()
        with acs.Context(backend="sim", sim_order="time") as context:
            for number in range(6):
                with context.repeat(1):
                    truth = run_program(context, 7, 64, buffer)
                context.sync()
            self.assertGreater(context.stats()["replayed"], 64)
            self.assertEqual(context.stats()["queued"], 6 * 64)
        self.assertNotEqual(list(buffer), truth)  # six times over

    def test_copies_fills_and_functions(self):
        a, b, seen = Buffer(*range(CELLS)), Buffer(), []
        with acs.Context(backend="host") as context:
            context.copy(b, a)
            context.call(lambda: seen.append(b[3]), reads=[b])
            context.fill(b, 1)
            context.wait_for(b)
        self.assertEqual(seen, [3])
        self.assertEqual(b[0], 0x0101010101010101)

    def test_memory_and_groups(self):
        a, b = Buffer(*range(CELLS)), Buffer()
        with acs.Context(backend="host") as context:
            with context.group() as figures:
                block = context.malloc(ctypes.sizeof(a), lazy=True)
                context.copy(block, a)
                context.copy(b, block)
                block.free()
            context.sync()
            self.assertEqual(figures["ops"], 2)
            with context.group():
                context.copy(b, a)
                with self.assertRaises(acs.StateError):
                    context.sync()  # the ops are held
            context.clear()
            held = Buffer(*range(CELLS))
            watch = weakref.ref(held)
            with context.group():
                context.fill(held, 7)
                context.copy(b, held)
                del held
                gc.collect()
                self.assertIsNotNone(watch())
            context.copy(b, a)
            with self.assertRaises(ZeroDivisionError):
                with context.group():
                    context.fill(b, 0)
                    raise ZeroDivisionError
            context.sync()
        self.assertEqual(list(b), list(a))

    def test_the_default_context(self):
        status, out, err = in_process("""
            import acs, ctypes
            a, b = (ctypes.c_int * 4)(1, 2, 3, 4), (ctypes.c_int * 4)()
            acs.wait(acs.copy(b, a)); acs.fill(a, 0); acs.sync()
            print(list(a), list(b), acs.default().backend in ("host", "cuda"))
        """)
        self.assertEqual((status, out, err), (0, "[0, 0, 0, 0] [1, 2, 3, 4] True\n", ""))


class Spans(unittest.TestCase):
    def bytes_of(self, span):
        return {base + row * pitch + i for base, bytes_, rows, pitch in span.pieces for row in range(rows)
                for i in range(bytes_)}

    def test_strided_arrays_are_their_bytes(self):
        cases = [((4, 6), (24, 4), 4), ((4, 3), (24, 4), 4), ((3, 4), (4, 24), 4), ((2, 3, 4), (96, 24, 4), 4),
                 ((2, 3, 2), (200, 32, 8), 8), ((5,), (-8,), 8), ((3, 1, 4), (16, 7, 4), 4), ((4, 5), (0, 8), 8),
                 ((), (), 8), ((2, 0), (8, 8), 8), ((2, 2, 2, 2), (1000, 100, 32, 8), 8), ((3, 4), (-64, -8), 8)]
        for shape, strides, itemsize in cases:
            with self.subTest(shape=shape, strides=strides):
                want = {0}
                for size, stride in zip(shape, strides):
                    want = {at + stride * i for at in want for i in range(size)}
                want = {10000 + at + i for at in want for i in range(itemsize)}
                made = acs.strided(10000, shape, strides, itemsize)
                self.assertEqual(self.bytes_of(made), want)
                self.assertTrue(made.whole)
                self.assertEqual(made.nbytes, len(want))

    def test_what_is_too_ragged_is_more_and_never_less(self):
        for shape, strides in (((9, 9, 9, 9), (9000, 900, 90, 8)), ((4, 4), (8, 8)), ((3, 3), (12, 8))):
            made = acs.strided(0, shape, strides, 8)
            want = {0}
            for size, stride in zip(shape, strides):
                want = {at + stride * i for at in want for i in range(size)}
            self.assertLessEqual({at + i for at in want for i in range(8)}, self.bytes_of(made))
            self.assertFalse(made.whole)
            self.assertEqual(made.packed(_arrays.WRITE), made.packed(_arrays.UPDATE))

    def test_arrays_of_other_libraries(self):
        class Cuda:
            __cuda_array_interface__ = {"data": (4096, False), "shape": (2, 3), "strides": (32, 8), "typestr": "<f8"}

        class Torch:
            shape = (2, 3)

            def data_ptr(self):
                return 512

            def element_size(self):
                return 4

            def numel(self):
                return 6

            def is_conj(self):
                return False

            is_neg = is_conj

            def stride(self):
                return (4, 1)

            def is_contiguous(self):
                return False

        class Text:
            __array_interface__ = {"data": (64, False), "shape": (3,), "strides": None, "typestr": "<U5"}

        class Objects(Text):
            __array_interface__ = {"data": (64, False), "shape": (3,), "strides": None, "typestr": "|O8"}

        self.assertEqual(acs.span(Text()).nbytes, 3 * 5 * 4)
        with self.assertRaises(TypeError):
            acs.span(Objects())
        self.assertEqual(acs.span(Cuda()).pieces, ((4096, 24, 2, 32),))
        self.assertEqual(acs.span(Torch()).pieces, ((512, 12, 2, 16),))
        data = bytearray(10)
        self.assertEqual(acs.span(data).nbytes, 10)
        for bad in (b"fixed", 5, None, "text", object()):
            with self.assertRaises(TypeError):
                acs.span(bad)

    def test_structs_are_those_of_the_header(self):
        ours = {"acs_dim3": _library.Dim3, "acs_grid": _library.Grid, "acs_site": _library.Site,
                "acs_error": _library.ErrorText, "acs_kernel": _library.KernelStruct, "acs_arg": _library.Arg,
                "acs_attributes": _library.Attributes, "acs_uses": _library.Uses, "acs_op_params": _library.OpParams,
                "acs_launch_params": _library.LaunchParams, "acs_group_params": _library.GroupParams,
                "acs_group_report": _library.GroupReport, "acs_footprint_input": _library.FootprintInput,
                "acs_variant": _library.VariantStruct, "acs_launch_shape": _library.LaunchShape,
                "acs_share_info": _library.ShareInfo, "acs_measure_params": _library.MeasureParams,
                "acs_measured": _library.Measured}
        sizes = {name: ctypes.sizeof(struct) for name, struct in ours.items()}
        sizes["acs_segment"] = _arrays.SEGMENT.size
        self.assertEqual(sizes, _layout.SIZES)


class Errors(unittest.TestCase):
    def test_options(self):
        for name, value, text in (("windw", 1, "did you mean window"), ("backend", "gpu", "must be auto, cuda, host, sim"),
                                  ("window", "many", "must be a number"), ("window", 0, "ACS_WINDOW"),
                                  ("cpus", "1" * 200, "at most 127"), ("dot", "a\0b", "has a 0 byte")):
            with self.assertRaisesRegex(acs.OptionError, text):
                acs.Context(**{name: value})

    def test_launches(self):
        buffer = Buffer()
        loose = acs.Kernel(host=mix, name="loose")
        with acs.Context(backend="host") as context:
            for kernel, args, kind, text in (
                    (MIX, (buffer, buffer), TypeError, "takes 3 arguments, and got 2"),
                    (MIX, (buffer, buffer, "x"), ValueError, "does not fit its type"),
                    (MIX, (buffer, buffer, -1), ValueError, "does not fit its type"),
                    (MIX, (buffer, 1.5, 0), ValueError, "does not fit its type"),
                    (MIX, (buffer, None, 0), TypeError, "is no array"),
                    (loose, (buffer, buffer, 1), TypeError, r"argument 2 \(from 0\) is a Python int")):
                with self.assertRaisesRegex(kind, text):
                    context.launch(kernel, 1, 1, args, updates=[buffer])
            with self.assertRaises(acs.ArgumentError):
                context.launch(MIX, 0, 1, (buffer, buffer, 1), updates=[buffer])
            with self.assertRaisesRegex(ValueError, "one to three"):
                context.launch(MIX, (1, 1, 1, 1), 1, (buffer, buffer, 1), updates=[buffer])
            self.assertTrue(context.launch(loose, 1, 1, (buffer, buffer, ctypes.c_uint32(1)), updates=[buffer]))
            with self.assertRaises(acs.ArgumentError):
                context.sync()  # program order has a hole
            context.clear()
        with self.assertRaises(TypeError):
            acs.Kernel()
        with self.assertRaisesRegex(ValueError, "none of pointer"):
            acs.Kernel(host=mix, signature="float")

    def test_a_function_that_raises_fails_its_op(self):
        buffer = Buffer()
        with acs.Context(backend="host") as context:
            bad = context.call(lambda: {}["key"], updates=[buffer])
            behind = context.launch(MIX, 1, 1, (buffer, buffer, 1), updates=[buffer])
            with self.assertRaises(acs.HostError) as caught:
                context.wait(bad)
            self.assertIsInstance(caught.exception.__cause__, KeyError)
            self.assertEqual(caught.exception.site.file, __file__)
            with self.assertRaises(acs.SkippedError) as caught:
                context.wait(behind)
            self.assertEqual(caught.exception.cause, bad)
            self.assertIsInstance(caught.exception.__cause__, KeyError)
            with self.assertRaises(acs.HostError):
                context.sync()
            context.clear()
            context.sync()
        with self.assertRaises(acs.HostError) as caught:
            with acs.Context(backend="host", disable=True) as context:
                context.call(lambda: {}["key"])
        self.assertIsInstance(caught.exception.__cause__, KeyError)

    def test_a_closed_context(self):
        context, buffer = acs.Context(backend="host"), Buffer()
        context.close()
        context.close()
        for call in (lambda: context.launch(MIX, 1, 1, (buffer, buffer, 1), updates=[buffer]), context.stats,
                     lambda: context.copy(buffer, buffer), lambda: context.backend):
            with self.assertRaises(acs.StateError):
                call()

    def test_numbers_are_not_cut(self):
        buffer = Buffer()
        with acs.Context(backend="host") as context:
            launch = (MIX, 1, 1, (buffer, buffer, 1))
            for call in (lambda: context.wait(2**64 + 1), lambda: context.wait(-1), lambda: context.query(2**64 + 1),
                         lambda: context.launch(MIX, 2**32 + 1, *launch[2:]), lambda: context.launch(*launch, device=256),
                         lambda: context.launch(*launch, shared_bytes=2**64 + 1), lambda: context.malloc(2**64 + 8),
                         lambda: context.malloc(-1), lambda: acs.Context(seed=2**64 + 1), lambda: acs.bytes_at(16, -1),
                         lambda: acs.tile(16, 8, -3, 8), lambda: acs.token(2**64), lambda: acs.strided(0, (3, 4), (16,), 4)):
                with self.assertRaises(ValueError):
                    call()
            for call in (lambda: context.wait("x"), lambda: context.malloc(1.5), lambda: context.call(5),
                         lambda: context.launch(mix, 1, 1), lambda: context.malloc(8)[5]):
                with self.assertRaises(TypeError):
                    call()

    def test_sizes(self):
        with acs.Context(backend="host") as context:
            context.fill((ctypes.c_int * 0)(), 1)
            context.copy((ctypes.c_int * 0)(), (ctypes.c_int * 0)())
            with self.assertRaisesRegex(ValueError, "copy of 96 bytes to 8"):
                context.copy(cell(Buffer(), 0), Buffer())
            with self.assertRaisesRegex(ValueError, "must be 0 to 255"):
                context.fill(Buffer(), 256)
            with self.assertRaisesRegex(ValueError, "has gaps"):
                context.fill(acs.tile(4096, 8, 2, 64), 0)
            with self.assertRaisesRegex(ValueError, "must be read or write"):
                context.wait_for(Buffer(), "none")


class Lives(unittest.TestCase):
    def test_arrays_live_until_their_ops_have_ended(self):
        gate = threading.Event()
        with acs.Context(backend="host") as context:
            buffer = Buffer()
            watch = weakref.ref(buffer)
            context.call(gate.wait, updates=[buffer])
            context.launch(MIX, 1, 1, (buffer, buffer, 1), updates=[buffer])
            del buffer
            gc.collect()
            self.assertIsNotNone(watch())
            gate.set()
            context.sync()
            gc.collect()
            self.assertIsNone(watch())

    def test_a_full_fifo(self):
        gate, buffer = threading.Event(), Buffer()
        with acs.Context(backend="host", fifo=2, window=1) as context:
            context.call(gate.wait, updates=[buffer])
            with self.assertRaises(acs.FullError):
                for _ in range(100):
                    context.launch(MIX, 1, 1, (buffer, buffer, 1), updates=[buffer], wait=False)
            gate.set()
            for _ in range(100):
                context.launch(MIX, 1, 1, (buffer, buffer, 1), updates=[buffer])
            context.sync()

    def test_exit_with_work_under_way(self):
        status, out, err = in_process("""
            import acs, ctypes
            context, x = acs.Context(backend="host"), ctypes.c_int()
            for i in range(1000):
                context.call(lambda i=i: i == 999 and print("last"), updates=[x])
        """)
        self.assertEqual((status, out, err), (0, "last\n", ""))

    def test_a_forked_worker(self):
        with acs.Context(backend="host") as context:
            buffer = Buffer()
            context.fill(buffer, 1)
            context.sync()
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    for call in (lambda: context.fill(buffer, 2), context.sync, lambda: context.wait(1), context.stats,
                                 lambda: context.backend, lambda: context.query(1)):
                        try:
                            call()
                            os._exit(2)
                        except acs.StateError as error:
                            status = 0 if "forked" in str(error) else 3
                finally:
                    os._exit(status)
            self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_control_c_ends_a_wait(self):
        for workers in (0, 1):
            with self.subTest(workers=workers):
                self.interrupt(workers)

    def interrupt(self, workers):
        program = subprocess.Popen([sys.executable, "-c", f"WORKERS = {workers}\n" + textwrap.dedent("""
            import acs, ctypes, signal, threading, time
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what runs in the background ignore it

            def tell(waits):
                while sum(t.name == "acs wait" for t in threading.enumerate()) < waits:
                    time.sleep(0.001)
                print("waits", flush=True)

            gate, x = threading.Event(), ctypes.c_int()
            context = acs.Context(backend="host", workers=WORKERS)
            op = context.call(gate.wait, updates=[x])
            for number, wait in enumerate((lambda: context.wait(op), context.sync)):
                threading.Thread(target=tell, args=(number + 1,)).start()
                try:
                    wait()
                except KeyboardInterrupt:
                    print("interrupted", flush=True)
            gate.set()
            context.wait(op)
            context.close()
            print("ended")
        """)], stdout=subprocess.PIPE, text=True)
        with program.stdout as lines:
            self.addCleanup(program.kill)
            for _ in range(2):
                self.assertEqual(lines.readline(), "waits\n")
                program.send_signal(signal.SIGINT)
                self.assertEqual(lines.readline(), "interrupted\n")
            self.assertEqual(lines.readline(), "ended\n")
        self.assertEqual(program.wait(), 0)


if __name__ == "__main__":
    unittest.main()
