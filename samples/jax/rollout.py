#!/usr/bin/env python3
"""Independent particle systems inside a jitted rollout of JAX: each step is two kernels per system, launched through ACS.

usage: rollout.py [--systems N] [--bodies N] [--steps N]
On a GPU it needs CuPy, on the CPU numba. Exit status: 0, 1 if results differ, 77 where something is missing.
"""
import argparse
import ctypes
import sys
import time

try:
    import jax
    import jax.numpy as jnp
    import acs
    import acs.jax
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

SUBSTEPS, STEP, SOFTENING = 4, 0.01, 0.05
SOURCE = r"""
extern "C" __global__ void pull(float *pulls, const float *places, int bodies)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= bodies)
        return;
    float x = places[3 * i], y = places[3 * i + 1], z = places[3 * i + 2], px = 0, py = 0, pz = 0;
    for (int j = 0; j < bodies; j++) {
        float dx = places[3 * j] - x, dy = places[3 * j + 1] - y, dz = places[3 * j + 2] - z;
        float near = rsqrtf(dx * dx + dy * dy + dz * dz + SOFTENING), weight = near * near * near / bodies;
        px += dx * weight; py += dy * weight; pz += dz * weight;
    }
    pulls[3 * i] = px; pulls[3 * i + 1] = py; pulls[3 * i + 2] = pz;
}
extern "C" __global__ void move(float *places, float *speeds, const float *pulls, int bodies)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 3 * bodies) {
        speeds[i] += pulls[i] * STEP;
        places[i] += speeds[i] * STEP;
    }
}
""".replace("SOFTENING", f"{SOFTENING}f").replace("STEP", f"{STEP}f")


def gpu_kernels():
    """Kernels for ACS, and a function that launches one in a stream."""
    import cupy
    functions = {name: cupy.RawKernel(SOURCE, name) for name in ("pull", "move")}

    def launch(context, name, threads, *arrays):
        with cupy.cuda.ExternalStream(context.stream):
            values = (*(cupy.uint64(array.ptr) for array in arrays), cupy.int32(len(arrays[0])))
            functions[name]((-(-threads // 256),), (256,), values)

    with cupy.cuda.Device(jax.devices()[0].local_hardware_id):  # JAX may have left another one current in this thread
        return {name: acs.Kernel(function) for name, function in functions.items()}, launch


def cpu_kernels(bodies):
    """The same for the CPU. The kernels' bodies know how many particles there are."""
    import numba
    import numpy

    @numba.njit(nogil=True)
    def pull(pulls, places):
        for i in range(bodies):
            for k in range(3):
                pulls[i, k] = 0
            for j in range(bodies):
                near = SOFTENING
                for k in range(3):
                    near += (places[j, k] - places[i, k]) ** 2
                weight = near ** -1.5 / bodies
                for k in range(3):
                    pulls[i, k] += (places[j, k] - places[i, k]) * weight

    @numba.njit(nogil=True)
    def move(places, speeds, pulls):
        for i in range(bodies):
            for k in range(3):
                speeds[i, k] += pulls[i, k] * STEP
                places[i, k] += speeds[i, k] * STEP

    pointers = numba.types.CPointer(numba.types.CPointer(numba.types.CPointer(numba.float32)))
    body = numba.types.void(numba.types.voidptr, pointers)  # the launch, and where the argument values are
    shape = (bodies, 3)

    @numba.cfunc(body)
    def pull_body(_, values):
        pull(numba.carray(values[0][0], shape), numba.carray(values[1][0], shape))

    @numba.cfunc(body)
    def move_body(_, values):
        move(numba.carray(values[0][0], shape), numba.carray(values[1][0], shape), numba.carray(values[2][0], shape))

    functions = {"pull": pull, "move": move}

    def launch(context, name, threads, *arrays):
        functions[name](*map(numpy.asarray, arrays))

    return {"pull": acs.Kernel(host=pull_body, name="pull"), "move": acs.Kernel(host=move_body, name="move")}, launch


def make_op(step):
    """An op that advances all systems: places and speeds in place, and room for the pulls."""
    def outputs(places, speeds):
        like = jax.ShapeDtypeStruct(places.shape, places.dtype)
        return like, like, like

    @acs.jax.op(outputs=outputs, input_output_aliases={0: 0, 1: 1})
    def advance(context, old_places, old_speeds, places, speeds, pulls):
        systems = list(zip(places, speeds, pulls))
        for _ in range(SUBSTEPS):
            for system in systems:
                step(context, *system)

    return advance


def through_acs(kernels, bodies, on_gpu):
    """A step of one system as ops. Those of different systems touch different memory, so they run side by side."""
    count = (ctypes.c_int32(bodies),) if on_gpu else ()  # the CPU's bodies know it
    blocks, wide_blocks = -(-bodies // 256), -(-3 * bodies // 256)

    def step(context, places, speeds, pulls):
        context.launch(kernels["pull"], blocks, 256, (pulls, places, *count), reads=[places], writes=[pulls])
        context.launch(kernels["move"], wide_blocks, 256, (places, speeds, pulls, *count), reads=[pulls],
                       updates=[places, speeds])

    return step


def one_by_one(launch, bodies):
    """The same without ACS: in XLA's stream, or in this thread."""
    def step(context, places, speeds, pulls):
        launch(context, "pull", bodies, pulls, places)
        launch(context, "move", 3 * bodies, places, speeds, pulls)

    return step


def make_rollout(advance, steps):
    """JAX's own work and the op, in turns, in one compiled loop."""
    def step(_, state):
        places, speeds = state
        speeds = speeds - 0.1 * places.mean(axis=1, keepdims=True)  # a policy: towards the middle
        places, speeds, _ = advance(places, speeds)
        return places, speeds

    return jax.jit(lambda places, speeds: jax.lax.fori_loop(0, steps, step, (places, speeds)))


def seconds(rollout, state, times=3):
    """Shortest of several runs, behind one that compiles, and the result."""
    result = jax.block_until_ready(rollout(*state))
    best = float("inf")
    for _ in range(times):
        begin = time.perf_counter()
        result = jax.block_until_ready(rollout(*state))
        best = min(best, time.perf_counter() - begin)
    return best, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", type=int, default=32)
    parser.add_argument("--bodies", type=int, default=128)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    on_gpu = jax.devices()[0].platform == "gpu"
    try:
        kernels, launch = gpu_kernels() if on_gpu else cpu_kernels(options.bodies)
    except ImportError as error:
        print(f"skipped: the kernels need CuPy on a GPU, numba on the CPU: {error}")
        return 77
    key = jax.random.key(1)
    places = jax.random.normal(key, (options.systems, options.bodies, 3))
    state = places, jnp.zeros_like(places)
    results = []
    for name, step in (("one by one", one_by_one(launch, options.bodies)),
                       ("through ACS", through_acs(kernels, options.bodies, on_gpu))):
        time_s, result = seconds(make_rollout(make_op(step), options.steps), state)
        results.append(result)
        kernels_run = options.steps * SUBSTEPS * options.systems * 2
        print(f"{name:12} {time_s * 1e3:8.2f} ms, {time_s / kernels_run * 1e6:6.2f} us a kernel "
              f"({options.systems} systems of {options.bodies} bodies, {kernels_run} kernels, {jax.devices()[0].device_kind})")
    equal = all((one == other).all() for one, other in zip(*results))
    print("equal results" if equal else "different results")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
