/*
 * Owns the lists of versions and the shapes in which they run problems. Called by launches and tests; uses no GPU.
 */
#include <cstring>

#include "functions.h"
#include "memory.h"
#include "operators.h"
#include "versions.h"

namespace variants {

namespace {

/* Blocks of a grid in y and z; in x there are more. */
const int64_t MOST_BLOCKS = 65535;

int64_t quotient_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

bool set(acs_launch_shape &shape, int64_t x, int64_t y, int64_t z, int64_t threads, int64_t shared_bytes)
{
    if (x < 1 || x > INT32_MAX || y < 1 || y > MOST_BLOCKS || z < 1 || z > MOST_BLOCKS)
        return false;
    shape.grid = acs_dim3{static_cast<uint32_t>(x), static_cast<uint32_t>(y), static_cast<uint32_t>(z)};
    shape.block = acs_dim3{static_cast<uint32_t>(threads), 1, 1};
    shape.shared_bytes = static_cast<uint64_t>(shared_bytes);
    return true;
}

bool tile_shape(const version &v, const problem &p, acs_launch_shape &shape)
{
    const int bm = v.number[0], bn = v.number[1], bk = v.number[2], split = v.number[5];
    const int group = bm / v.number[3] * (bn / v.number[4]);
    const int tiles = 2 * split * bk * (bm + bn + 2 * VARIANTS_TILE_PAD), sums = (split - 1) * bm * bn;

    return set(shape, quotient_up(p.n, bn), quotient_up(p.m, bm), p.batch, group * split,
               static_cast<int64_t>(sizeof(float)) * (tiles > sums ? tiles : sums));
}

bool conv_shape(const version &v, const problem &p, acs_launch_shape &shape)
{
    const int64_t window = static_cast<int64_t>(p.window_rows) * p.window_columns;
    const int64_t beyond = p.k + static_cast<int64_t>(v.number[2]) * v.number[5]; /* k that a tile may ask for */

    return beyond * window < 65536 && window * p.window_columns < 65536 && p.batch == 1 && tile_shape(v, p, shape);
}

bool vector_shape(const version &v, const problem &p, acs_launch_shape &shape)
{
    const bool wide = p.k % 4 == 0 && p.a_row % 4 == 0 && p.b_n % 4 == 0; /* reads four at a time */

    return p.m <= 4 && p.batch == 1 && p.b_k == 1 && wide &&
           set(shape, quotient_up(p.n, v.number[0]), p.m, 1, v.number[0] * v.number[1], 0);
}

bool items_shape(const version &v, int64_t count, acs_launch_shape &shape)
{
    return count <= INT32_MAX / 2 && set(shape, quotient_up(count, v.number[0] * v.number[1]), 1, 1, v.number[0], 0);
}

bool pool_shape(const version &v, const problem &p, acs_launch_shape &shape)
{
    return items_shape(v, static_cast<int64_t>(p.channels) * p.out_height * p.out_width, shape);
}

bool elements_shape(const version &v, const problem &p, acs_launch_shape &shape)
{
    return items_shape(v, static_cast<int64_t>(p.rows) * p.columns, shape);
}

bool rows_shape(const version &v, const problem &p, acs_launch_shape &shape)
{
    return set(shape, quotient_up(p.rows, v.number[1]), 1, 1, v.number[0] * v.number[1], 0);
}

bool embedding_shape(const version &v, const problem &p, acs_launch_shape &shape)
{
    const int64_t bags = static_cast<int64_t>(p.rows) * p.tables;

    return p.columns % v.number[1] == 0 && p.y_row % v.number[1] == 0 && bags <= INT32_MAX / 2 &&
           set(shape, quotient_up(bags, v.number[2]), 1, 1, v.number[0] * v.number[2], 0);
}

bool interaction_shape(const version &v, const problem &p, acs_launch_shape &shape)
{
    const int64_t bytes = static_cast<int64_t>(sizeof(float)) * v.number[1] * p.tables * (p.columns + 1);

    return bytes <= 227 * 1024 && p.tables <= 1024 &&
           set(shape, quotient_up(p.rows, v.number[1]), 1, 1, v.number[0] * v.number[1], bytes);
}

template <size_t N> std::string joined(const int (&number)[N])
{
    std::string text;
    for (size_t k = 0; k < N; k++)
        text += (k ? "x" : "") + std::to_string(number[k]);
    return text;
}

template <size_t N>
void add(family &f, const char *head, function_list functions, size_t place, shape_rule rule, const int (&number)[N])
{
    version v = {head + joined(number), functions[place], rule, {}};
    for (size_t k = 0; k < N && k < 6; k++)
        v.number[k] = number[k];
    f.versions.push_back(v);
}

/* One row of versions.h; the number of a tile's unrolling is in its name only. */
#define ADD(head, functions, rule, ...)                                                                                \
    {                                                                                                                  \
        const int number[] = {__VA_ARGS__};                                                                            \
        add(f, head, functions, place++, rule, number);                                                                \
    }
#define ADD_CONV(...) ADD("", conv_functions(), conv_shape, __VA_ARGS__)
#define ADD_TILE(...) ADD("", matmul_functions(), tile_shape, __VA_ARGS__)
#define ADD_VECTOR(...) ADD("vector", vector_functions(), vector_shape, __VA_ARGS__)
#define ADD_POOL(...) ADD("", pool_functions(), pool_shape, __VA_ARGS__)
#define ADD_AVERAGE(...) ADD("", average_functions(), rows_shape, __VA_ARGS__)
#define ADD_SOFTMAX(...) ADD("", softmax_functions(), rows_shape, __VA_ARGS__)
#define ADD_LAYER_NORM(...) ADD("", layer_norm_functions(), rows_shape, __VA_ARGS__)
#define ADD_ELEMENTS(...) ADD("", element_functions(), elements_shape, __VA_ARGS__)
#define ADD_EMBEDDING(...) ADD("", embedding_functions(), embedding_shape, __VA_ARGS__)
#define ADD_INTERACTION(...) ADD("", interaction_functions(), interaction_shape, __VA_ARGS__)

void fill(family_id id, family &f)
{
    size_t place = 0;

    switch (id) {
    case CONV: VARIANTS_CONV(ADD_CONV) break;
    case MATMUL:
        VARIANTS_MATMUL(ADD_TILE)
        place = 0;
        VARIANTS_VECTOR(ADD_VECTOR)
        break;
    case POOL: VARIANTS_POOL(ADD_POOL) break;
    case AVERAGE: VARIANTS_AVERAGE(ADD_AVERAGE) break;
    case SOFTMAX: VARIANTS_SOFTMAX(ADD_SOFTMAX) break;
    case LAYER_NORM: VARIANTS_LAYER_NORM(ADD_LAYER_NORM) break;
    case ELEMENTS: VARIANTS_ELEMENTS(ADD_ELEMENTS) break;
    case EMBEDDING: VARIANTS_EMBEDDING(ADD_EMBEDDING) break;
    case INTERACTION: VARIANTS_INTERACTION(ADD_INTERACTION) break;
    case FAMILIES: break;
    }
}

std::vector<family> make_families()
{
    static const char *const names[FAMILIES] = {"conv",     "matmul",   "max pool",  "average pool", "softmax",
                                                "layer norm", "elements", "embedding", "interaction"};
    std::vector<family> all;

    for (int id = 0; id < FAMILIES; id++) {
        family f = {names[id], {}, {}, {}};
        fill(static_cast<family_id>(id), f);
        f.kernel = acs_kernel{names[id], f.versions[0].function, nullptr, ACS_KERNEL_FUNCTION, 0};
        f.site = acs_site{names[id], __FILE__, __LINE__};
        all.push_back(f);
    }
    return all;
}

} // namespace

const family &family_of(family_id id)
{
    static const std::vector<family> all = make_families();
    return all[static_cast<size_t>(id)];
}

bool shape_for(const version &v, const problem &p, acs_launch_shape &shape)
{
    return v.rule(v, p, shape);
}

std::vector<unsigned> fitting(const operation &o)
{
    const family &f = family_of(o.family);
    std::vector<unsigned> numbers;
    acs_launch_shape shape;

    for (unsigned k = 0; k < f.versions.size(); k++)
        if (shape_for(f.versions[k], o.p, shape))
            numbers.push_back(k);
    return numbers;
}

/* acs_variant.shape of every version. */
static size_t variant_shape(const acs_footprint_input *in, acs_launch_shape *shape)
{
    problem p;

    if (in->arg_count != 6 || in->arg_bytes[0] != sizeof p)
        return ACS_FOOTPRINT_REFUSED;
    memcpy(&p, in->args[0], sizeof p);
    return shape_for(*static_cast<const version *>(in->user), p, *shape) ? ACS_SHAPE_FITS : ACS_SHAPE_UNFIT;
}

void declare_versions()
{
    for (int id = 0; id < FAMILIES; id++) {
        const family &f = family_of(static_cast<family_id>(id));
        std::vector<acs_kernel> kernels;
        std::vector<acs_variant> list;

        for (const version &v : f.versions)
            kernels.push_back(acs_kernel{f.name, v.function, nullptr, ACS_KERNEL_FUNCTION, 0});
        for (size_t k = 1; k < f.versions.size(); k++)
            list.push_back(acs_variant{f.versions[k].name.c_str(), &kernels[k], variant_shape, &f.versions[k]});
        bench::require(acs_variants(&f.kernel, list.data(), list.size()) == ACS_OK, "acs_variants failed");
    }
}

} // namespace variants
