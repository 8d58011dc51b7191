/*
 * Three-vectors, quaternions and the elementary functions of the simulation, the same on the GPU and on the CPU.
 *
 * Only +, -, *, / and sqrt are used, all correctly rounded by IEEE 754, and the build forbids fused multiply-add: so a
 * kernel gives the same bits on every backend. That is why there is no sin, tanh or atan2 here.
 */
#ifndef PHYSICS_VEC_H
#define PHYSICS_VEC_H

#include <cmath>

#ifdef __CUDACC__
#define PHYSICS_HD __host__ __device__ inline
#else
#define PHYSICS_HD inline
#endif

struct vec3 {
    float x, y, z;
};

struct quat {
    float w, x, y, z;
};

PHYSICS_HD vec3 operator+(vec3 a, vec3 b)
{
    return {a.x + b.x, a.y + b.y, a.z + b.z};
}

PHYSICS_HD vec3 operator-(vec3 a, vec3 b)
{
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}

PHYSICS_HD vec3 operator*(vec3 a, float s)
{
    return {a.x * s, a.y * s, a.z * s};
}

PHYSICS_HD float dot(vec3 a, vec3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

PHYSICS_HD vec3 cross(vec3 a, vec3 b)
{
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

PHYSICS_HD float length(vec3 a)
{
    return sqrtf(dot(a, a));
}

PHYSICS_HD float clamp(float x, float lo, float hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/** `a`, shortened to `most` if it is longer. */
PHYSICS_HD vec3 limit_length(vec3 a, float most)
{
    float size = length(a);
    return size > most ? a * (most / size) : a;
}

PHYSICS_HD quat multiply(quat a, quat b)
{
    return {a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
            a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}

PHYSICS_HD quat conjugate(quat q)
{
    return {q.w, -q.x, -q.y, -q.z};
}

PHYSICS_HD quat normalize(quat q)
{
    float scale = 1.0f / sqrtf(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z);
    return {q.w * scale, q.x * scale, q.y * scale, q.z * scale};
}

PHYSICS_HD vec3 rotate(quat q, vec3 v)
{
    vec3 u = {q.x, q.y, q.z};
    vec3 t = cross(u, v) * 2.0f;
    return v + t * q.w + cross(u, t);
}

/**
 * How far `q` turns about each axis: twice the vector part, 2 sin(angle / 2) for a turn about one axis. It grows with
 * the angle up to half a turn, which is all that joints need, and costs no arc tangent.
 */
PHYSICS_HD vec3 turn_of(quat q)
{
    float s = q.w < 0.0f ? -2.0f : 2.0f;
    return {q.x * s, q.y * s, q.z * s};
}

/** A squashing function with the shape of tanh: within 2.5 % of it, and exactly 1 from 3 on. */
PHYSICS_HD float squash(float x)
{
    x = clamp(x, -3.0f, 3.0f);
    return x * (27.0f + x * x) / (27.0f + 9.0f * x * x);
}

/** A symmetric 3 x 3 matrix. */
struct sym3 {
    float xx, yy, zz, xy, xz, yz;
};

/** The mass matrix, inverted, of a point at `r` from the centre of a body with scalar inertia. */
PHYSICS_HD sym3 point_mobility(float inverse_mass, float inverse_inertia, vec3 r)
{
    float s = inverse_inertia;
    return {inverse_mass + s * (r.y * r.y + r.z * r.z),
            inverse_mass + s * (r.x * r.x + r.z * r.z),
            inverse_mass + s * (r.x * r.x + r.y * r.y),
            -s * r.x * r.y,
            -s * r.x * r.z,
            -s * r.y * r.z};
}

PHYSICS_HD sym3 operator+(sym3 a, sym3 b)
{
    return {a.xx + b.xx, a.yy + b.yy, a.zz + b.zz, a.xy + b.xy, a.xz + b.xz, a.yz + b.yz};
}

/** The x with m x = b, by Cramer's rule; m is positive definite. */
PHYSICS_HD vec3 solve(sym3 m, vec3 b)
{
    vec3 c0 = {m.xx, m.xy, m.xz}, c1 = {m.xy, m.yy, m.yz}, c2 = {m.xz, m.yz, m.zz};
    float scale = 1.0f / dot(c0, cross(c1, c2));
    return {dot(b, cross(c1, c2)) * scale, dot(c0, cross(b, c2)) * scale, dot(c0, cross(c1, b)) * scale};
}

#endif
