"""The arithmetic of PTX instructions that Python has no operator for. Numbers of integer types are unsigned unless said."""

import math
import struct


def bits_to_float(bits, value):
    return struct.unpack({16: "<e", 32: "<f", 64: "<d"}[bits], value.to_bytes(bits // 8, "little"))[0]


def float_to_bits(bits, value):
    try:
        raw = struct.pack({16: "<e", 32: "<f", 64: "<d"}[bits], value)
    except OverflowError:
        raw = struct.pack({16: "<e", 32: "<f", 64: "<d"}[bits], math.copysign(math.inf, value))
    return int.from_bytes(raw, "little")


def divide(a, b):
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a, b):
    return a if b == 0 else a - b * divide(a, b)


def float_divide(a, b):
    if b:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def safe(function, *args):
    try:
        return function(*args)
    except (ValueError, OverflowError, ZeroDivisionError):
        return math.nan


def to_integer(value, mode, low, high):
    if value != value:
        return 0
    if math.isinf(value):
        return high if value > 0 else low
    value = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode](value)
    return max(low, min(high, value))


def round_float(value, mode):
    if value != value or math.isinf(value):
        return value
    return float({"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode](value))


def prmt(a, b, select):
    both, found = a | b << 32, 0
    for i in range(4):
        nibble = select >> 4 * i & 15
        byte = both >> 8 * (nibble & 7) & 255
        found |= (255 * (byte >> 7) if nibble & 8 else byte) << 8 * i
    return found


def lop3(a, b, c, table, mask):
    found = 0
    for i in range(8):
        if table >> i & 1:
            found |= (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
    return found & mask


def bfe(a, at, count, bits, signed):
    at, count = at & 255, count & 255
    if not count:
        return 0
    if signed:
        a = (a ^ 1 << bits - 1) - (1 << bits - 1)
    found = a >> min(at, bits) & (1 << min(count, bits)) - 1
    return found - (1 << count) if signed and count < bits and found >> count - 1 & 1 else found


def bfi(a, b, at, count, bits):
    at, count = at & 255, min(count & 255, bits)
    if at >= bits:
        return b
    mask = (1 << count) - 1 << at & (1 << bits) - 1
    return b & ~mask | a << at & mask


def bfind(a, bits, signed, amount):
    if signed and a >> bits - 1:
        a = ~a & (1 << bits) - 1
    if not a:
        return 0xffffffff
    return bits - a.bit_length() if amount else a.bit_length() - 1


def shf(a, b, c, left, clamp):
    c = min(c, 32) if clamp else c & 31
    both = a | b << 32
    return (both << c >> 32 if left else both >> c) & 0xffffffff


def atomic(operation, old, b, c, bits, signed):
    if signed:
        half = 1 << bits - 1
        old, b = (old ^ half) - half, (b ^ half) - half
    return {"add": lambda: old + b, "min": lambda: min(old, b), "max": lambda: max(old, b), "and": lambda: old & b,
            "or": lambda: old | b, "xor": lambda: old ^ b, "exch": lambda: b, "cas": lambda: c if old == b else old,
            "inc": lambda: 0 if old >= b else old + 1, "dec": lambda: b if old == 0 or old > b else old - 1}[operation]()
