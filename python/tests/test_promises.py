"""
What acs.h promises to programs in C, of the Python module: the order of ops that name nothing, memory that stays in place,
checks, refusals inside of queued functions, Ctrl-C, and waits that other threads can end. Needs nothing but the standard
library.
"""

import array
import ctypes
import mmap
import subprocess
import sys
import textwrap
import threading
import unittest
import weakref
from unittest import mock

import acs
from acs import _library

WAYS = ({}, {"workers": 0}, {"serial": True}, {"disable": True}, {"check": "writes"}, {"backend": "sim"})
LIMIT_S = 1800  # of programs that would hang


@acs.host_body("pointer")
def nothing(grid, at):
    pass


def kernel(uses=None):
    return acs.Kernel(host=nothing, signature="pointer", name="nothing", uses=uses)


def refuse():
    raise KeyError("refused")


def in_process(text, **names):
    """Run a program of its own, with these names. Returns its exit status and what it wrote."""
    head = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    done = subprocess.run([sys.executable, "-c", head + textwrap.dedent(text)], capture_output=True, text=True, timeout=LIMIT_S)
    return done.returncode, done.stdout, done.stderr


class Buffer(ctypes.Array):
    """An array that a weak reference may watch."""

    _type_, _length_ = ctypes.c_uint64, 8


class Unnamed(unittest.TestCase):
    """Ops without arrays may touch anything, as in C."""

    def setUp(self):
        self.context = acs.Context(backend="host")
        self.buffer = Buffer()

    def tearDown(self):
        self.context.close()

    def is_behind(self, queue):
        """Whether an op comes behind one that touches other memory. Failures tell that."""
        self.context.call(refuse, updates=[Buffer()])
        try:
            self.context.wait(queue())
            return False
        except acs.SkippedError:
            return True
        finally:
            self.context.clear()

    def test_ops_that_name_nothing_are_behind_all_others(self):
        c, x, k = self.context, self.buffer, kernel()
        prepared = c.prepare(k, 1, 1, (x,))
        for queue in (lambda: c.launch(k, 1, 1, (x,)), lambda: c.launch(k, 1, 1, (x,), reads=[], writes=(), updates=[]), prepared,
                      lambda: c.launch(kernel("declared"), 1, 1, (x,)), lambda: c.call(lambda: None), lambda: c.after_stream(0)):
            self.assertTrue(self.is_behind(queue))
        self.assertEqual(c.stats()["undeclared"], 4)
        with self.assertRaises(acs.SkippedError):
            c.call(refuse, updates=[x])
            c.stream_after(0)
        c.clear()

    def test_ops_that_name_something_are_not(self):
        c, x = self.context, self.buffer
        empty = (ctypes.c_char * 0)()
        for queue in (lambda: c.launch(kernel(), 1, 1, (x,), updates=[x]), lambda: c.launch(kernel(), 1, 1, (x,), reads=[empty]),
                      lambda: c.launch(kernel("none"), 1, 1, (x,)), lambda: c.launch(kernel(lambda at: {}), 1, 1, (x,)),
                      lambda: c.call(lambda: None, reads=[acs.token(1)]), lambda: c.after_stream(0, reads=[x])):
            self.assertFalse(self.is_behind(queue))
        self.assertEqual(c.stats()["undeclared"], 0)

    def test_names_without_bytes_are_no_bytes(self):
        c, x = self.context, self.buffer
        for call in (lambda: c.fill(acs.whole(x), 1), lambda: c.copy(acs.ALL, acs.ALL), lambda: c.wait_for(acs.ALL),
                     lambda: c.wait_for(acs.token(3))):
            with self.assertRaisesRegex(ValueError, "must be bytes, not a token"):
                call()
        with self.assertRaisesRegex(TypeError, "a fill is 1.5; it must be a whole number"):
            c.fill(x, 1.5)

    def test_a_wait_for_pieces_waits_for_all(self):
        raw, gate, seen = (ctypes.c_char * 4096)(), threading.Event(), []
        at = ctypes.addressof(raw)
        pieces = acs.strided(at, (2, 2, 8), (1024, 64, 1), 1, raw)
        self.assertEqual(len(pieces.pieces), 2)
        self.context.call(refuse, updates=[acs.bytes_at(at, 8)])
        self.context.call(lambda: (gate.wait(), seen.append(1)), updates=[acs.bytes_at(at + 1024, 8)])
        threading.Timer(0.05, gate.set).start()
        with self.assertRaises(acs.SkippedError):
            self.context.wait_for(pieces)
        self.assertEqual(seen, [1])
        self.context.clear()


class Kept(unittest.TestCase):
    """Memory that an op names stays in place until it has ended."""

    def test_growing_buffers_are_held(self):
        def queue(c, what, b, other):
            if what == "launch":
                c.launch(kernel(), 1, 1, (other,), reads=[b], updates=[other])
            elif what == "prepare":
                c.prepare(kernel(), 1, 1, (other,), updates=[b])()
            elif what == "declared":
                c.launch(kernel(lambda at: {"updates": [b]}), 1, 1, (other,))
            elif what == "group":
                with c.group():
                    c.call(lambda: None, updates=[b])
            else:
                make = {"inoutset": acs.inoutset, "whole": acs.whole}.get(what, lambda memory: memory)
                c.call(lambda: None, **{what if what in ("reads", "writes") else "updates": (make(b) for _ in range(1))})

        for make in (lambda: bytearray(4096), lambda: array.array("b", bytes(4096)), lambda: mmap.mmap(-1, 4096)):
            for what in ("launch", "prepare", "declared", "group", "reads", "writes", "updates", "inoutset", "whole"):
                with self.subTest(what, make=make):
                    c, gate, b = acs.Context(backend="host"), threading.Event(), make()
                    c.call(gate.wait, updates=[acs.ALL])
                    self.addCleanup(c.close)
                    self.addCleanup(gate.set)  # first
                    queue(c, what, b, bytearray(8))
                    with self.assertRaises(BufferError):
                        b.resize(8192) if isinstance(b, mmap.mmap) else b.extend(b)
                    gate.set()
                    c.sync()
                    if not isinstance(b, mmap.mmap):
                        b.extend(b)

    def test_lists_may_change_behind_the_call(self):
        c, gate, watches = acs.Context(backend="host"), threading.Event(), []
        self.addCleanup(c.close)
        self.addCleanup(gate.set)  # first
        c.call(gate.wait, updates=[acs.ALL])
        for way in ("launch", "prepare", "call"):
            args, names = [Buffer()], [Buffer()]
            watches += [weakref.ref(names[0])] + ([weakref.ref(args[0])] if way != "call" else [])
            if way == "call":
                c.call(lambda: None, reads=names)
            else:
                made = (c.launch if way == "launch" else c.prepare)(kernel(), 1, 1, args, updates=names)
                if way == "prepare":
                    made()
                    del made
            args.clear()
            names.clear()
        self.assertTrue(all(watch() is not None for watch in watches))

    def test_ctrl_c_in_a_look_for_ended_ops_drops_nothing(self):
        c, gate, x = acs.Context(backend="host"), threading.Event(), Buffer()
        self.addCleanup(c.close)
        self.addCleanup(gate.set)  # first
        watch = weakref.ref(x)
        c.call(gate.wait, updates=[x])
        del x
        c._may_run = lambda op: (_ for _ in ()).throw(KeyboardInterrupt)
        with self.assertRaises(KeyboardInterrupt):
            c._drop_ended()
        del c._may_run
        self.assertIsNotNone(watch())


    def test_a_sync_forgets_no_op_that_gets_its_number_meanwhile(self):
        class Late(list):
            looks = 0

            def __getitem__(self, at):
                Late.looks += at == 0
                return 1 if at == 0 and Late.looks > 1 else super().__getitem__(at)

        with acs.Context(backend="host") as c:
            entry = Late([0, Buffer()])
            c._kept.append(entry)
            c.sync()
            self.assertTrue(any(each is entry for each in c._kept))


class Checks(unittest.TestCase):
    """ACS_CHECK watches ops of Python."""

    def found(self, queue, own=False):
        """What a check finds in an op that is given two blocks, and names the first."""
        with acs.Context(backend="host", check="writes") as c:
            a, b = ((ctypes.c_int64 * 8)() for _ in range(2)) if own else (c.malloc(64) for _ in range(2))
            for memory in (a, b):
                c.fill(memory, 0)
                if own:
                    c.check_register(memory)
            queue(c, a, b)
            found = ""
            try:
                c.sync()
            except acs.CheckError as error:
                found = str(error)
            c.clear()
            if own:
                c.check_unregister(b)
                c.check_unregister(a)
                with self.assertRaises(acs.ArgumentError):
                    c.check_unregister(a)
                c.clear()
            return found

    def test_ops_that_write_more_than_they_name(self):
        def add(at):
            ctypes.c_int64.from_address(at).value += 1

        @acs.host_body("pointer, pointer")
        def both(grid, a, b):
            add(a)
            add(b)

        k = acs.Kernel(host=both, signature="pointer, pointer", name="both")
        ways = (lambda c, a, b: c.launch(k, 1, 1, (a, b), updates=[a]), lambda c, a, b: c.prepare(k, 1, 1, (a, b), updates=[a])(),
                lambda c, a, b: c.call(lambda: add(acs.span(b).ptr), updates=[a]))
        for number, queue in enumerate(ways):
            for own in (False, True):
                with self.subTest(number, own=own):
                    self.assertIn("outside its footprint", self.found(queue, own))
        self.assertEqual(self.found(lambda c, a, b: c.launch(k, 1, 1, (a, b), updates=[a, b])), "")


class Inside(unittest.TestCase):
    """A queued function that calls the context is refused."""

    PROGRAM = """
        import acs, ctypes, os
        x, other = (ctypes.c_char * 64)(), (ctypes.c_char * 64)()
        c = acs.Context(**WAY)
        k = acs.Kernel(host=acs.host_body("pointer")(lambda grid, at: None), signature="pointer")
        prepared, block = c.prepare(k, 1, 1, (x,), updates=[x]), c.malloc(64)

        def entered(section):
            with section:
                pass

        calls = {"sync": c.sync, "wait": lambda: c.wait(1), "clear": c.clear, "wait_for": lambda: c.wait_for(x),
                 "close": c.close, "call": lambda: c.call(print), "fill": lambda: c.fill(x, 0), "query": lambda: c.query(1),
                 "copy": lambda: c.copy(x, other), "malloc": lambda: c.malloc(10), "free": block.free, "stats": c.stats,
                 "launch": lambda: c.launch(k, 1, 1, (x,), updates=[x]), "prepared": prepared, "repeat": lambda: entered(c.repeat(1)),
                 "group": lambda: entered(c.group()), "region": lambda: entered(c.region(0)), "backend": lambda: c.backend,
                 "after_stream": lambda: c.after_stream(0), "stream_after": lambda: c.stream_after(0),
                 "measure": lambda: c.measure(prepared), "share_info": lambda: c.share_info(50),
                 "Context": lambda: acs.Context(backend="host"), "default": acs.sync, "register": lambda: c.check_register(x)}
        for name, call in calls.items():
            try:
                c.wait(c.call(call, updates=[x]))
                print(name, "is allowed")
            except acs.HostError as error:
                if type(error.__cause__) is not acs.StateError:
                    print(name, "raises", repr(error.__cause__))
            c.clear()
        c.close()
        print("closed")
    """

    def test_each_call_is_refused(self):
        for way in WAYS:
            with self.subTest(**way):
                status, out, err = in_process(self.PROGRAM, WAY={"backend": "host", **way})
                self.assertEqual((status, out), (0, "closed\n"), err)

    def test_functions_of_shapes_are_refused(self):
        status, out, err = in_process("""
            import acs, ctypes
            x = (ctypes.c_char * 64)()
            k, other = (acs.Kernel(host=acs.host_body("pointer")(lambda grid, at: None), signature="pointer", name=name) for name in "kv")
            for way in WAYS:
                c = acs.Context(**way)
                calls = (lambda: c.launch(other, 1, 1, (x,), updates=[x]), c.prepare(other, 1, 1, (x,)), c.sync, c.close,
                         lambda: c.fill(x, 1), acs.sync)
                for call in calls:
                    acs.variants(k, {"v": (other, lambda args, grid: call())})
                    try:
                        c.launch(k, 1, 1, (x,), updates=[x], variant="v")
                    except acs.ArgumentError as error:
                        print(type(error.__cause__).__name__)
                c.clear()
                c.close()
        """, WAYS=[{"backend": "host", **way} for way in WAYS])
        self.assertEqual((status, out), (0, "StateError\n" * 6 * len(WAYS)), err)

    def test_refused_ops_leave_a_hole(self):
        with acs.Context(backend="host") as c:
            x, caught = Buffer(), []

            def use():
                try:
                    c.fill(x, 1)
                except acs.StateError as error:
                    caught.append(error)

            c.wait(c.call(use))
            self.assertEqual(len(caught), 1)
            with self.assertRaises(acs.StateError):
                c.sync()
            c.clear()


class ControlC(unittest.TestCase):
    """Ctrl-C ends a call that waits in a full FIFO."""

    PROGRAM = """
        import acs, ctypes, os, signal, sys, threading
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what runs in the background ignore it
        x, y, gate = (ctypes.c_char * 64)(), (ctypes.c_char * 64)(), threading.Event()
        c = acs.Context(backend="host", fifo=4, window=2, pool="off")
        k = acs.Kernel(host=acs.host_body("pointer")(lambda grid, at: None), signature="pointer")
        prepared, blocks = c.prepare(k, 1, 1, (x,), updates=[x]), [c.malloc(64) for _ in range(100)]
        calls = {"launch": lambda: c.launch(k, 1, 1, (x,), updates=[x]), "prepared": prepared, "copy": lambda: c.copy(x, y),
                 "call": lambda: c.call(int, updates=[x]), "fill": lambda: c.fill(x, 0), "free": lambda: blocks.pop().free(),
                 "after_stream": lambda: c.after_stream(0, updates=[x])}
        main = threading.main_thread().ident

        def interrupt():
            while sys._current_frames()[main].f_code.co_name not in ("_call", "_step", "_make_room"):
                pass
            os.kill(os.getpid(), signal.SIGINT)

        c.call(gate.wait, updates=[x, *blocks])
        try:
            for _ in range(100):
                c.launch(k, 1, 1, (x,), updates=[x], wait=False)
        except acs.FullError:
            pass
        sender = threading.Thread(target=interrupt)
        try:
            sender.start()
            for _ in range(100):
                calls[CALL]()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        sender.join()
        gate.set()
        c.sync()
        c.close()
    """

    def test_each_call(self):
        for call in ("launch", "prepared", "copy", "call", "fill", "free", "after_stream"):
            with self.subTest(call):
                self.assertEqual(in_process(self.PROGRAM, CALL=call), (0, "interrupted\n", ""))


class Waits(unittest.TestCase):
    """Waits that another thread of Python ends, and sections that fail."""

    def test_a_call_that_waits_for_room_lets_other_threads_run(self):
        program = """
            import acs, ctypes, threading
            x, gate = (ctypes.c_char * 64)(), threading.Event()
            k = acs.Kernel(host=acs.host_body("pointer")(lambda grid, at: None), signature="pointer")
            with acs.Context(fifo=4, window=2, pool="off", **WAY) as c:
                calls = (lambda: c.launch(k, 1, 1, (x,), updates=[x]), lambda: c.copy(x, x), lambda: c.fill(x, 0),
                         lambda: c.call(lambda: None, updates=[x]), lambda: c.after_stream(0, updates=[x]),
                         lambda: c.malloc(64).free())
                for call in calls:
                    gate.clear()
                    threading.Timer(0.02, gate.set).start()
                    c.call(gate.wait, updates=[acs.ALL])
                    for _ in range(20):
                        call()
                    c.sync()
            print("ended")
        """
        for way in WAYS:
            with self.subTest(**way):
                status, out, err = in_process(program, WAY={"backend": "host", **way})
                self.assertEqual((status, out), (0, "ended\n"), err)

    def test_threads_that_launch_call_and_wait(self):
        program = """
            import acs, ctypes, threading
            lock, counts = threading.Lock(), [0] * 4

            @acs.host_body("pointer, int64")
            def body(grid, at, number):
                counts[number] += 1

            k = acs.Kernel(host=body, signature="pointer, int64", uses="inout, none")

            def locked():
                with lock:
                    pass

            def work(number):
                x = (ctypes.c_char * 64)()
                for turn in range(100):
                    if HOLD:
                        lock.acquire()
                    c.launch(k, 1, 1, (x, number))
                    c.call(locked if HOLD else lambda: None, updates=[x])
                    if HOLD:
                        lock.release()
                    if turn % 20 == 0:
                        c.wait_for(x)

            with acs.Context(**WAY) as c:
                threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                c.sync()
            print(counts)
        """
        ways = [(way, False) for way in WAYS] + [({"fifo": 4, "window": 4}, False), ({"fifo": 4096}, True)]
        for way, hold in ways:  # with a lock: only where no call waits
            with self.subTest(hold=hold, **way):
                status, out, err = in_process(program, WAY={"backend": "host", **way}, HOLD=hold)
                self.assertEqual((status, out), (0, "[100, 100, 100, 100]\n"), err)

    def test_a_launch_that_waits_holds_no_lock_of_other_contexts(self):
        program = """
            import acs, ctypes, threading
            x, begun, gate = (ctypes.c_char * 64)(), threading.Event(), threading.Event()
            slow = acs.Kernel(host=acs.host_body("pointer")(lambda grid, at: (begun.set(), gate.wait())), signature="pointer")
            fast = acs.Kernel(host=acs.host_body("pointer")(lambda grid, at: gate.set()), signature="pointer")
            with acs.Context(**WAY) as a, acs.Context(backend="host") as b:
                def work():
                    a.launch(slow, 1, 1, (x,), updates=[x])
                    a.sync()

                thread = threading.Thread(target=work)
                thread.start()
                begun.wait()
                b.launch(fast, 1, 1, (x,), updates=[x])
                thread.join()
            print("ended")
        """
        for way in WAYS:
            with self.subTest(**way):
                status, out, err = in_process(program, WAY={"backend": "host", **way})
                self.assertEqual((status, out), (0, "ended\n"), err)

    def test_a_capture_ends_with_the_stream_that_began_it(self):
        """The library refuses waits of a thread whose ops are captured, so it must make them itself."""
        with acs.Context(backend="host") as c:
            thread = threading.get_ident()
            with mock.patch.object(c, "_on_cpu", False), \
                    mock.patch.object(_library.free, "acs_after_stream_op", lambda *_: 1 << 63 | 1), \
                    mock.patch.object(_library.free, "acs_stream_after", lambda *_: 0):
                c.after_stream(8)
                c.after_stream(16)
                c.stream_after(16)
                self.assertIn(thread, c._captures)
                c.stream_after(8)
                self.assertNotIn(thread, c._captures)

    def test_a_full_group_refuses(self):
        status, out, err = in_process("""
            import acs, ctypes
            x = (ctypes.c_char * 64)()
            k = acs.Kernel(host=acs.host_body("pointer")(lambda grid, at: None), signature="pointer")
            with acs.Context(backend="host") as c:
                for call in (lambda: c.launch(k, 1, 1, (x,), updates=[x]), c.prepare(k, 1, 1, (x,), updates=[x]),
                             lambda: c.fill(x, 1), lambda: c.call(print, updates=[x])):
                    try:
                        with c.group(ops_most=2):
                            for _ in range(3):
                                call()
                    except acs.FullError as error:
                        print("the group holds 2 ops" in str(error))
                    try:
                        c.sync()
                    except acs.FullError:
                        print("kept")
                    c.clear()
        """)
        self.assertEqual((status, out), (0, "True\nkept\n" * 4), err)

    def test_a_group_that_finds_no_memory_is_given_up(self):
        with acs.Context(backend="host", memory_limit=1 << 20) as c:
            x = Buffer()
            with self.assertRaises(acs.OutOfMemoryError):
                with c.group():
                    blocks = [c.malloc(1 << 19, lazy=True) for _ in range(4)]
                    for block in blocks:
                        c.fill(block, 1)
                    for block in blocks[1:]:
                        c.copy(blocks[0], block)
                    for block in blocks:
                        block.free()
            c.wait(c.fill(x, 5))  # is not held
            self.assertEqual(x[0], 0x0505050505050505)
            c.clear()

    def test_a_function_of_a_group_that_raises(self):
        with acs.Context(backend="host") as c:
            with c.group():
                c.call(refuse, updates=[acs.ALL])
            with self.assertRaisesRegex(acs.HostError, "failed; it raised KeyError") as caught:
                c.sync()
            self.assertIsInstance(caught.exception.__cause__, KeyError)
            c.clear()


if __name__ == "__main__":
    unittest.main()
