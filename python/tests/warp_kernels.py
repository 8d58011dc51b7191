"""Kernels of Warp that tests of acs.warp and its benchmark share."""

import warp as wp


@wp.struct
class Pair:
    source: wp.array(dtype=float)
    to: wp.array(dtype=float)
    by: float


@wp.kernel
def add(to: wp.array(dtype=float), source: wp.array(dtype=float), by: float):
    i = wp.tid()
    to[i] = to[i] * 0.5 + source[i] * by


@wp.kernel
def add_pair(pair: Pair):
    i = wp.tid()
    pair.to[i] = pair.to[i] * 0.5 + pair.source[i] * pair.by
