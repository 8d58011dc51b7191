/*
 * Without a GPU: each version's shape covers the output of each operator of each network and keeps within what a GPU has;
 * operators have the numbers that networks.h says; instances share weights and nothing that they write.
 */
#include <cstdio>
#include <set>

#include "networks.h"

using namespace variants;

static int g_wrong;

static void expect(bool ok, const std::string &what)
{
    if (!ok) {
        printf("WRONG: %s\n", what.c_str());
        g_wrong++;
    }
}

static int64_t ceiling(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Whether each output has a thread, and no block has none. */
static bool covers(const operation &o, const version &v, const acs_launch_shape &s)
{
    const problem &p = o.p;
    const int64_t x = s.grid.x, rows = p.rows;

    switch (o.family) {
    case CONV:
    case MATMUL:
        if (v.name.compare(0, 6, "vector") == 0)
            return x == ceiling(p.n, v.number[0]) && s.grid.y == static_cast<uint32_t>(p.m) && s.block.x % 32 == 0;
        return x == ceiling(p.n, v.number[1]) && s.grid.y == ceiling(p.m, v.number[0]) &&
               s.grid.z == static_cast<uint32_t>(p.batch);
    case POOL:
        return x == ceiling(static_cast<int64_t>(p.channels) * p.out_height * p.out_width, v.number[0] * v.number[1]);
    case ELEMENTS: return x == ceiling(rows * p.columns, v.number[0] * v.number[1]);
    case EMBEDDING: return x == ceiling(rows * p.tables, v.number[2]);
    default: return x == ceiling(rows, v.number[1]);
    }
}

static void check_operation(const std::string &where, const operation &o)
{
    const family &f = family_of(o.family);
    const std::vector<unsigned> numbers = fitting(o);

    expect(!numbers.empty() && numbers[0] == 0, where + ": base does not fit");
    expect(numbers.size() >= 3, where + ": fewer than three versions fit");
    for (unsigned k : numbers) {
        acs_launch_shape s = {};
        const std::string what = where + ", version " + f.versions[k].name;
        expect(shape_for(f.versions[k], o.p, s), what + ": fits only once");
        expect(s.block.x >= 32 && s.block.x <= 1024 && s.block.y == 1 && s.block.z == 1, what + ": block");
        expect(s.shared_bytes <= 227 * 1024, what + ": shared memory");
        expect(covers(o, f.versions[k], s), what + ": the grid does not match the output");
    }
}

/* One output; every segment is some memory. */
static void check_footprint(const std::string &where, const operation &o)
{
    int outputs = 0;

    for (const acs_segment &s : o.segments) {
        outputs += s.access == ACS_WRITE;
        expect(s.base != 0 && s.row_bytes > 0 && s.rows > 0, where + ": an empty segment");
        if (s.access == ACS_WRITE)
            expect(s.base == reinterpret_cast<uint64_t>(o.y), where + ": its output is not what it writes");
    }
    expect(outputs == 1, where + ": not one output");
}

static void check_network(const std::string &name, int batch, unsigned operators)
{
    tensors where(nullptr, 1);
    network n(name, batch, where);
    std::set<const void *> written;

    n.need(2);
    expect(n.operators() == operators, n.label() + " has " + std::to_string(n.operators()) + " operators");
    for (size_t k = 0; k < n.at(0).ops.size(); k++) {
        const operation &o = n.at(0).ops[k], &other = n.at(1).ops[k];
        const std::string text = n.label() + ", " + std::to_string(o.number) + " " + o.name;
        check_operation(text, o);
        check_footprint(text, o);
        expect(o.bias == other.bias && (o.w == other.w) == (o.name.find(" x ") == std::string::npos),
               text + ": weights are not shared");
        expect(o.y != other.y && written.insert(o.y).second, text + ": outputs are shared");
    }
    for (unsigned number = 1; number <= n.operators(); number++)
        printf("%-12s %2u  %s\n", n.label().c_str(), number, n.sample(number).name.c_str());
}

/* Names are what acs_variants takes. */
static void check_names()
{
    for (int id = 0; id < FAMILIES; id++) {
        std::set<std::string> names;
        for (const version &v : family_of(static_cast<family_id>(id)).versions)
            expect(v.name.size() < 48 && names.insert(v.name).second, "a version's name: " + v.name);
    }
}

int main()
{
    check_names();
    check_network("resnet-18", 1, 28);
    check_network("vgg-19", 1, 18);
    check_network("bert-small", 1, 9);
    for (int batch : {512, 1024, 2048})
        check_network("dlrm", batch, 7);
    return g_wrong ? 1 : 0;
}
