"""The matrix product of tune_matmul.py in Triton."""
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    across = tl.cdiv(n, BLOCK_N)
    rows = (tl.program_id(0) // across) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (tl.program_id(0) % across) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for at in range(0, k, BLOCK_K):
        inner = at + tl.arange(0, BLOCK_K)
        left = tl.load(a + rows[:, None] * k + inner[None, :], mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0)
        right = tl.load(b + inner[:, None] * n + columns[None, :], mask=(inner[:, None] < k) & (columns[None, :] < n), other=0.0)
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))
