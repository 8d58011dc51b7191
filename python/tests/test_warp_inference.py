"""What acs.warp._inference finds in kernels of each form that an array can take on its way. Needs warp, and no GPU."""

from __future__ import annotations

import ctypes
import sys
import unittest
from pathlib import Path
from typing import Any

try:
    import warp as wp
except ImportError:
    if __name__ == "__main__":
        print("skipped: warp is not installed")
        sys.exit(0)
    raise unittest.SkipTest("warp is not installed") from None

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from warp._src.codegen import Struct  # noqa: E402
from warp._src.types import array_t  # noqa: E402

from acs._arrays import READ, UPDATE  # noqa: E402
from acs.warp._inference import ArrayUse, KernelUses, kernel_uses  # noqa: E402
from acs.warp._ranges import touched  # noqa: E402

wp.set_module_options({"enable_backward": False})


@wp.struct
class Inner:
    values: wp.array(dtype=float)


@wp.struct
class Outer:
    count: int
    matrix: wp.array2d(dtype=float)
    inner: Inner


@wp.struct
class Cell:
    place: wp.vec3
    number: int


@wp.struct
class Bundle:
    source: wp.array(dtype=float)
    target: wp.array(dtype=float)


@wp.func
def write_first(to: wp.array(dtype=float), value: float):
    to[0] = value


@wp.func
def read_first(source: wp.array(dtype=float)):
    return source[0]


@wp.func
def write_second(to: wp.array(dtype=float), value: float):
    to[1] = value


@wp.func
def read_second(source: wp.array(dtype=float), value: float):
    return source[1] + value


@wp.func
def write_deep(to: wp.array(dtype=float), source: wp.array(dtype=float)):
    write_first(to, read_first(source))


@wp.func
def row_of(matrix: wp.array2d(dtype=float), i: int):
    return matrix[i]


@wp.func
def both(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    return a, b


@wp.func
def apply(to: wp.array(dtype=float), function: wp.Function, value: float):
    function(to, value)


@wp.func
def set_reference(place: wp.ref[float]):
    place = 1.0  # noqa: F841


@wp.func
def generic_write(to: Any, source: Any):
    to[0] = source[0]


@wp.func
def overloaded(a: wp.array(dtype=float)):
    return a[0]


@wp.func
def overloaded(a: wp.array(dtype=int)):  # noqa: F811
    a[0] = 1
    return 1.0


@wp.func
def bundled(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    bundle = Bundle()
    bundle.source = a
    bundle.target = b
    return bundle


@wp.func_native("to.data[0] = 1.0f;")
def native_write(to: wp.array(dtype=float)): ...


@wp.func_native("*(float*)address = 1.0f;")
def native_address(address: wp.uint64): ...


@wp.func_native("return __ffsll((long long)x) - 1;")
def native_bits(x: wp.uint64) -> int: ...


@wp.func_native("return x + 1.0f;")
def native_value(x: float) -> float: ...


@wp.kernel
def plain(source: wp.array(dtype=float), to: wp.array(dtype=float), unused: wp.array(dtype=float),
          sized: wp.array(dtype=float)):
    i = wp.tid()
    if i < sized.shape[0] and i < len(sized):
        to[i] = source[i]


@wp.kernel
def views(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float), d: wp.array2d(dtype=wp.vec3)):
    i = wp.tid()
    row = a[i]
    row[0] = b[i][1]
    part = c[0:2, i]
    part[0] = 1.0
    value = d[i, 0]
    value[1] = 2.0


@wp.kernel
def augmented(a: wp.array(dtype=float), b: wp.array(dtype=wp.vec3), c: wp.array(dtype=Cell), d: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    a[i] += 1.0
    b[i][0] += 1.0
    c[i].number += 1
    local = d[i]
    local += wp.vec3(1.0)
    local.x = 3.0


@wp.kernel
def elements(a: wp.array(dtype=wp.vec3), b: wp.array(dtype=Cell), c: wp.array(dtype=Cell), d: wp.array(dtype=wp.mat33)):
    i = wp.tid()
    a[i].x = 1.0
    b[i].place.y = d[i][0, 1]
    cell = c[i]
    cell.number = 4


@wp.kernel
def unpacked(a: wp.array(dtype=wp.vec3), b: wp.array(dtype=wp.vec3)):
    x, y = a[0], b[0]
    x[0] = y[1]


@wp.kernel
def nested(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    write_deep(a, b)


@wp.kernel
def returned(a: wp.array2d(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float), d: wp.array2d(dtype=float)):
    row = row_of(a, 1)
    row[0] = 1.0
    x, y = both(b, c)
    x[0] = y[0] + row_of(d, 0)[1]


@wp.kernel
def passed(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
    apply(a, write_first, b[0])
    set_reference(c[0])


@wp.kernel
def structs(s: Outer, t: Outer, source: wp.array(dtype=float)):
    i = wp.tid()
    s.matrix[i, 0] = t.inner.values[i] + source[i]
    inner = t.inner
    copy = s
    write_first(copy.inner.values, inner.values[0])
    copy.count += 1


@wp.kernel
def local_structs(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float), d: wp.array(dtype=float)):
    bundle = bundled(a, b)
    bundle.target[0] = bundle.source[0]
    other = Bundle(c, d)
    other.target[0] = other.source[0]


@wp.kernel
def branches(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float), n: int):
    alias = a
    if n > 1:
        alias = b
    other = c
    for i in range(n):
        other[i] = alias[i]
        other = a


@wp.kernel
def chosen(a: wp.array(dtype=float), b: wp.array(dtype=float), n: int):
    alias = wp.where(n > 0, a, b)
    alias[0] = 1.0


@wp.kernel
def tiles(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
    t = wp.tile_load(a, shape=8)
    t[0] = 2.0
    wp.tile_store(b, t)
    wp.tile_atomic_add(c, t)


@wp.kernel
def atomics(a: wp.array(dtype=float), b: wp.array(dtype=int), c: wp.array(dtype=int), d: wp.array(dtype=float)):
    wp.atomic_add(a, 0, d[0])
    old = wp.atomic_cas(b, 0, 1, 2)
    wp.atomic_max(c, old, 3)


@wp.kernel
def searches(a: wp.array(dtype=float), to: wp.array(dtype=int)):
    to[0] = wp.lower_bound(a, 0.5)


@wp.kernel
def natives(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    native_write(a)
    x = native_value(b[0]) + float(native_bits(wp.uint64(3)))  # noqa: F841


@wp.kernel
def addresses(a: wp.uint64):
    native_address(a)


@wp.kernel
def pointers(a: wp.array(dtype=float), to: wp.array(dtype=wp.uint64)):
    to[0] = wp.address_of(a[0])


@wp.kernel
def wrapped(address: wp.uint64, to: wp.array(dtype=float)):
    memory = wp.array(ptr=address, shape=(4,), dtype=float)
    to[0] = memory[1]


@wp.kernel
def wrapped_write(address: wp.uint64):
    memory = wp.array(ptr=address, shape=(4,), dtype=float)
    memory[1] = 1.0


@wp.kernel
def wrapped_rows(address: wp.uint64):
    memory = wp.array(ptr=address, shape=(2, 2), dtype=float)
    row = memory[1]
    row[0] = 1.0


@wp.kernel
def meshes(mesh: wp.uint64, to: wp.array(dtype=float)):
    found = wp.mesh_query_ray(mesh, wp.vec3(0.0), wp.vec3(1.0), 1.0)
    to[0] = found.t


@wp.kernel
def mesh_points(mesh: wp.uint64):
    points = wp.mesh_get(mesh).points
    points[0] = wp.vec3(0.0)


@wp.kernel
def volumes(volume: wp.uint64):
    wp.volume_store_f(volume, 0, 0, 0, 1.0)


@wp.kernel
def textures(texture: wp.Texture2D, to: wp.array(dtype=float)):
    to[0] = wp.texture_sample(texture, wp.vec2(0.0), dtype=float)


@wp.kernel
def held_in_memory(bundles: wp.array(dtype=Bundle), to: wp.array(dtype=float)):
    to[0] = bundles[0].source[1]


@wp.kernel
def written_in_memory(bundles: wp.array(dtype=Bundle)):
    target = bundles[0].target
    target[1] = 1.0


@wp.kernel
def generic_kernel(a: wp.array(dtype=Any), b: wp.array(dtype=Any)):
    generic_write(a, b)


@wp.kernel
def overloads(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    b[0] = overloaded(a)


@wp.kernel
def indexed(a: wp.indexedarray(dtype=float), b: wp.indexedarray(dtype=float)):
    a[0] = b[1]


@wp.kernel
def printed(a: wp.array(dtype=float)):
    print(a[0])
    wp.printf("%f", a[1])


@wp.kernel
def starred(a: wp.array(dtype=float), to: wp.array(dtype=wp.vec3)):
    to[0] = wp.vec3(*a[0:3])


def make_closure(function: Any, writes: bool):
    @wp.kernel
    def closure(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
        chosen_function = wp.static(function)
        chosen_function(a, b[0])
        if wp.static(writes):
            c[0] = 1.0
    return closure


@wp.func
def pow(bundle: Bundle, value: float):  # noqa: A001
    bundle.target[0] = value
    return value


@wp.kernel
def operators(bundle: Bundle, x: float):
    y = bundle ** x  # noqa: F841


def make_static_call(functions: Any, count: int = 2):
    @wp.kernel
    def static_call(a: wp.array(dtype=float), b: wp.array(dtype=float)):
        for i in range(wp.static(count)):
            wp.static(functions[i])(a, b[0])
    return static_call


def found(kernel: Any) -> dict[str, str]:
    """READ, or UPDATE, of each argument and field of an argument that is touched."""
    names: dict[tuple[int, int], str] = {}
    for i, argument in enumerate(kernel.adj.args):
        names[i, 0] = argument.label
        if isinstance(argument.type, Struct):
            del names[i, 0]
            for name, field in argument.type.vars.items():
                at = getattr(argument.type.ctype, name).offset
                if isinstance(field.type, Struct):
                    for inner in field.type.vars:
                        names[i, at + getattr(field.type.ctype, inner).offset] = f"{argument.label}.{name}.{inner}"
                else:
                    names[i, at] = f"{argument.label}.{name}"
    return {names[use.argument, use.offset]: "update" if use.updates else "read" for use in kernel_uses(kernel).arrays}


class Kernels(unittest.TestCase):
    def check(self, kernel: Any, everything: int = 0, **expected: str) -> None:
        with self.subTest(kernel.key):
            self.assertEqual(found(kernel), {name.replace("__", "."): use for name, use in expected.items()})
            self.assertEqual(kernel_uses(kernel).everything, everything)

    def test_elements(self) -> None:
        self.check(plain, source="read", to="update")
        self.check(augmented, a="update", b="update", c="update", d="read")
        self.check(elements, a="update", b="update", c="read", d="read")
        self.check(unpacked, a="update", b="read")
        self.check(starred, a="read", to="update")
        self.check(printed, a="read")

    def test_views(self) -> None:
        self.check(views, a="update", b="read", c="update", d="read")
        self.check(branches, a="update", b="read", c="update")
        self.check(chosen, a="update", b="update")

    def test_functions(self) -> None:
        self.check(nested, a="update", b="read")
        self.check(returned, a="update", b="update", c="read", d="read")
        self.check(passed, a="update", b="read", c="update")
        self.check(overloads, a="update", b="update")  # one of the overloads writes

    def test_structs(self) -> None:
        self.check(structs, s__matrix="update", s__inner__values="update", t__inner__values="read", source="read")
        self.check(local_structs, a="read", b="update", c="read", d="update")

    def test_builtins(self) -> None:
        self.check(tiles, a="read", b="update", c="update")
        self.check(atomics, a="update", b="update", c="update", d="read")
        self.check(searches, a="read", to="update")

    def test_native_code(self) -> None:
        self.check(natives, a="update", b="read")  # a number of 64 bits with which native code only computes is no address
        self.check(addresses, everything=UPDATE)
        self.check(pointers, everything=UPDATE, a="update", to="update")

    def test_other_memory(self) -> None:
        self.check(wrapped, everything=UPDATE, to="update")  # the dimensions of such an array are not followed
        self.check(wrapped_write, everything=UPDATE)
        self.check(wrapped_rows, everything=UPDATE)
        self.check(meshes, everything=READ, to="update")
        self.check(mesh_points, everything=UPDATE)
        self.check(volumes, everything=UPDATE)
        self.check(textures, everything=READ, to="update")
        self.check(held_in_memory, everything=READ, bundles="read", to="update")
        self.check(written_in_memory, everything=UPDATE, bundles="read")

    def test_static_code(self) -> None:
        self.check(make_closure(write_first, False), a="update", b="read")
        self.check(make_closure(write_first, True), a="update", b="read", c="update")
        self.check(make_static_call([write_first, write_second]), a="update", b="read")
        self.check(make_static_call([read_second, read_second]), a="read", b="read")
        self.check(make_static_call([write_first]), everything=UPDATE, a="update", b="update")  # there is no second one
        self.check(make_static_call([], 0))
        self.check(operators, bundle__target="update")

    def test_generic_kernels(self) -> None:
        with self.assertRaises(TypeError):
            kernel_uses(generic_kernel)
        overload = wp.overload(generic_kernel, [wp.array(dtype=float), wp.array(dtype=float)])
        self.check(overload, a="update", b="read")

    def test_backward_launches(self) -> None:
        uses = kernel_uses(plain, adjoint=True)
        self.assertEqual([use.argument for use in uses.arrays], list(range(8)))
        self.assertTrue(all(use.updates and use.gradient for use in uses.arrays))
        self.assertEqual(kernel_uses(meshes, adjoint=True).everything, UPDATE)
        self.assertIs(kernel_uses(plain, adjoint=True), uses)


class Touched(unittest.TestCase):
    def bytes_of(self, *arrays: Any, updates: bool = True, kind: str = "array",
                 gradient: bool = False) -> list[tuple[int, int, int]]:
        self.packed = [array if isinstance(array, ctypes.Structure) else array.__ctype__() for array in arrays]
        uses = tuple(ArrayUse(i, 0, kind, updates, 4, gradient) for i in range(len(arrays)))
        return touched(KernelUses(uses, 0), [ctypes.addressof(each) for each in self.packed])

    def test_plain(self) -> None:
        a = wp.zeros((3, 4), dtype=float, device="cpu")
        self.assertEqual(self.bytes_of(a), [(a.ptr, 48, UPDATE)])
        self.assertEqual(self.bytes_of(a, updates=False), [(a.ptr, 48, READ)])
        self.assertEqual(self.bytes_of(a, a), [(a.ptr, 48, UPDATE)])

    def test_strides(self) -> None:
        a = wp.zeros((3, 4), dtype=float, device="cpu")
        self.assertEqual(self.bytes_of(a[1:, :2]), [(a.ptr + 16, 24, UPDATE)])
        self.assertEqual(self.bytes_of(array_t(a.ptr + 8, 0, 1, (3,), (-4,))), [(a.ptr, 12, UPDATE)])
        self.assertEqual(self.bytes_of(array_t(a.ptr, 0, 2, (3, 5), (16, 0))), [(a.ptr, 36, UPDATE)])

    def test_nothing(self) -> None:
        self.assertEqual(self.bytes_of(array_t()), [])
        self.assertEqual(self.bytes_of(array_t(4096, 0, 2, (3, 0), (4, 4))), [])

    def test_gradients(self) -> None:
        a = wp.zeros(3, dtype=float, device="cpu", requires_grad=True)
        self.assertEqual(self.bytes_of(a, updates=False), [(a.ptr, 12, READ)])
        self.assertEqual(self.bytes_of(a, gradient=True), [(a.ptr, 12, UPDATE), (a.grad.ptr, 12, UPDATE)])

    def test_indexed(self) -> None:
        a = wp.zeros(8, dtype=float, device="cpu")
        chosen_elements = wp.array([1, 5], dtype=int, device="cpu")
        self.assertEqual(self.bytes_of(wp.indexedarray(a, [chosen_elements]), kind="indexed"),
                         [(chosen_elements.ptr, 8, READ), (a.ptr, 32, UPDATE)])

    def test_structs(self) -> None:
        s, t = Outer(), Outer()
        s.matrix, s.inner.values = wp.zeros((2, 2), dtype=float, device="cpu"), wp.zeros(3, dtype=float, device="cpu")
        t.inner.values = wp.zeros(5, dtype=float, device="cpu")
        source = wp.zeros(7, dtype=float, device="cpu")
        packed = [s.__ctype__(), t.__ctype__(), source.__ctype__()]
        expected = [(s.matrix.ptr, 16, UPDATE), (s.inner.values.ptr, 12, UPDATE), (t.inner.values.ptr, 20, READ),
                    (source.ptr, 28, READ)]
        self.assertEqual(sorted(touched(kernel_uses(structs), [ctypes.addressof(each) for each in packed])), sorted(expected))


if __name__ == "__main__":
    unittest.main()
