#!/usr/bin/env python3
"""A matrix product in CUDA C++ and one in Triton: searched for versions that are best on all of a GPU and on a tenth, then launched.

usage: tune_matmul.py [--size N] [--trials N] [--again]      or: acs-tune --search tune_matmul.py
The versions are saved to tune_matmul_cuda.json and tune_matmul_triton.json; a later run declares them without a search, unless
--again asks for one. Behind acs-tune -- python3 tune_matmul.py, the library knows when to pick which version. Needs PyTorch on a
GPU; Triton, and cuda.core or CuPy, for their part.
Exit status: 0, 1 if results are wrong, 77 where something is missing.
"""
import argparse
import importlib.util
import os
import sys
import time

try:
    import torch
    import acs
    import acs.tune
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

SOURCE = r"""
// c = a * b, row by row. A block makes TILE_M x TILE_N of c, a thread EACH_M x EACH_N of these.
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    constexpr int ACROSS = TILE_N / EACH_N, THREADS = ACROSS * (TILE_M / EACH_M);
    __shared__ float as[TILE_M][TILE_K + 1], bs[TILE_K][TILE_N];
    const int row = blockIdx.y * TILE_M, column = blockIdx.x * TILE_N, x = threadIdx.x % ACROSS, y = threadIdx.x / ACROSS;
    float sum[EACH_M][EACH_N] = {};
    for (int at = 0; at < k; at += TILE_K) {
        for (int i = threadIdx.x; i < TILE_M * TILE_K; i += THREADS) {
            const int r = row + i / TILE_K, c = at + i % TILE_K;
            as[i / TILE_K][i % TILE_K] = r < m && c < k ? a[(size_t)r * k + c] : 0;
        }
        for (int i = threadIdx.x; i < TILE_K * TILE_N; i += THREADS) {
            const int r = at + i / TILE_N, c = column + i % TILE_N;
            bs[i / TILE_N][i % TILE_N] = r < k && c < n ? b[(size_t)r * n + c] : 0;
        }
        __syncthreads();
#pragma unroll
        for (int p = 0; p < TILE_K; p++)
            for (int i = 0; i < EACH_M; i++)
                for (int j = 0; j < EACH_N; j++)
                    sum[i][j] += as[y * EACH_M + i][p] * bs[p][j * ACROSS + x];
        __syncthreads();
    }
    for (int i = 0; i < EACH_M; i++)
        for (int j = 0; j < EACH_N; j++)
            if (row + y * EACH_M + i < m && column + j * ACROSS + x < n)
                c[(size_t)(row + y * EACH_M + i) * n + column + j * ACROSS + x] = sum[i][j];
}
"""
SPACE = {"TILE_M": [16, 32, 64, 128], "TILE_N": [16, 32, 64, 128], "TILE_K": [8, 16, 32], "EACH_M": [1, 2, 4, 8],
         "EACH_N": [1, 2, 4, 8]}
TRITON_SPACE = {"BLOCK_M": [16, 32, 64, 128], "BLOCK_N": [16, 32, 64, 128], "BLOCK_K": [32, 64], "num_warps": [2, 4, 8],
                "num_stages": [2, 3, 4]}
SHARES = (100, 10)
CHAINS, LENGTH = 8, 20


def threads(config):
    return (config["TILE_M"] // config["EACH_M"]) * (config["TILE_N"] // config["EACH_N"])


def may_be_good(config):
    return config["EACH_M"] <= config["TILE_M"] and 32 <= threads(config) <= 512 and config["EACH_M"] * config["EACH_N"] <= 32


def upwards(number, step):
    return -(-number // step)


def cuda_family():
    return acs.tune.Cuda(
        SOURCE, "matmul", signature="pointer, pointer, pointer, int32, int32, int32", block=threads,
        grid=lambda config, args: (upwards(args[4], config["TILE_N"]), upwards(args[3], config["TILE_M"])))


def triton_family():
    sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
    from tune_matmul_triton import matmul
    return acs.tune.Triton(
        matmul, grid=lambda config, args: upwards(args[3], config["BLOCK_M"]) * upwards(args[4], config["BLOCK_N"]))


class Product:
    """Operands of a product, and what it must be."""

    def __init__(self, size, kind):
        self.a, self.b = (torch.randn(size, size, device="cuda").to(kind) for _ in range(2))
        self.c = torch.zeros(size, size, device="cuda")
        self.right = self.a.double() @ self.b.double()
        torch.cuda.synchronize()
        self.args = (self.a, self.b, self.c, size, size, size)
        self.uses = {"reads": [self.a, self.b], "writes": [self.c]}

    def is_right(self, _=None):
        return bool(torch.allclose(self.c.double(), self.right, rtol=0, atol=0.02 * self.a.shape[0] ** 0.5))


def has(*names):
    return any(importlib.util.find_spec(name.split(".")[0]) and importlib.util.find_spec(name) for name in names)


def described(size, trials):
    """The searches that can be done here."""
    found = []
    if has("cuda.core", "cupy"):
        product = Product(size, torch.float32)
        found.append({"family": cuda_family(), "space": SPACE, "constraint": may_be_good, "file": "tune_matmul_cuda.json",
                      "product": product})
    if has("triton"):
        product = Product(size, torch.float16)
        found.append({"family": triton_family(), "space": TRITON_SPACE, "file": "tune_matmul_triton.json", "product": product})
    for wanted in found:
        product = wanted["product"]
        problem = acs.tune.Problem(product.args, name=f"{size} x {size} x {size}", **product.uses)
        wanted.update(launches=[problem], shares=SHARES, trials=trials, check=product.is_right)
    return found


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=768)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--again", action="store_true")
    return parser.parse_args()


def searches(context):
    """For acs-tune --search."""
    wanted = options()
    found = described(wanted.size, wanted.trials)
    for search in found:
        search.pop("product")
    return found


def search_or_load(context, wanted, path, again):
    if not again and os.path.exists(path):
        try:
            return acs.tune.load(path, wanted["family"])
        except (acs.StateError, ValueError) as error:
            print(error)
    found = acs.tune.search(context=context, progress=True, **wanted)
    found.save(path)
    return found


def seconds(context, tuned, products, **how):
    """How long chains of products take that are independent of each other."""
    context.sync()
    began = time.perf_counter()
    for _ in range(LENGTH):
        for product in products:
            tuned.launch(context, product.args, **product.uses, **how)
    context.sync()
    return time.perf_counter() - began


def use(context, found, size, kind):
    """Launch the kernel, in chains side by side. Returns whether all results are right."""
    tuned = found.declare()
    products = [Product(size, kind) for _ in range(CHAINS)]
    ways = [("the library picks the version", {}), ("version base", {"variant": "base"})]
    ways += [(f"version {name}", {"variant": name}) for name in found.versions]
    ways.append(("a tenth of the GPU each, the version for that", {"share": 10, "fit": 10}))
    right = True
    for name, how in ways:
        seconds(context, tuned, products, **how)  # the first time, things are loaded
        for product in products:
            product.c.zero_()
        torch.cuda.synchronize()
        took = seconds(context, tuned, products, **how)
        good = all(product.is_right() for product in products)
        right = right and good
        print(f"  {CHAINS} chains, {name}: {1e6 * took / (CHAINS * LENGTH):.1f} us a product{'' if good else ', WRONG'}")
    print("  launches whose version the library picked:", context.stats()["variants"])
    return right


def main():
    wanted = options()
    if not torch.cuda.is_available():
        print("skipped: there is no GPU")
        return 77
    try:
        context = acs.Context(backend="cuda")
    except acs.UnsupportedError as error:
        print(f"skipped: {error}")
        return 77
    right = True
    with context:
        found = described(wanted.size, wanted.trials)
        if not found:
            print("skipped: neither cuda.core, CuPy nor Triton is installed")
            return 77
        for search in found:
            path, product = search.pop("file"), search.pop("product")
            result = search_or_load(context, search, path, wanted.again)
            print(result.table())
            right = use(context, result, wanted.size, product.a.dtype) and right
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
