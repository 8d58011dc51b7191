/*
 * Owns the search for islands. Called when a plan is built, and by programs whose host decides about contacts. Knows
 * nothing of worlds: all worlds of a scene have the same islands.
 */
#include "islands.h"

#include <utility>

/* Ranges that overlap, or have a pair type in common, are one island. The nearest ones are united until no more than
   MAX_ISLANDS are left. */
int find_islands(const model &m, unsigned active, island_model *out)
{
    island_model found[MAX_SLOTS];
    int count = 0;

    for (int k = 0; k < m.slots; k++) {
        const slot_model &s = m.slot[k];
        if (!(active >> s.type & 1))
            continue;
        const bool both = m.body[s.b].inverse_mass > 0;
        const int low = both && s.b < s.a ? s.b : s.a, high = both && s.b > s.a ? s.b : s.a;
        found[count++] = {low, high - low + 1, 1u << s.type};
    }
    /* Unite the two ranges that are nearest (negative: they overlap) until what is left is apart and few enough. */
    for (;;) {
        int best = MAX_BODIES, x = 0, y = 0;
        for (int i = 0; i < count; i++)
            for (int j = i + 1; j < count; j++) {
                const island_model &p = found[i].first <= found[j].first ? found[i] : found[j];
                const island_model &q = found[i].first <= found[j].first ? found[j] : found[i];
                const int between = (found[i].types & found[j].types) ? -1 : q.first - p.first - p.bodies;
                if (between < best) {
                    best = between;
                    x = i;
                    y = j;
                }
            }
        if (count < 2 || (best >= 0 && count <= MAX_ISLANDS))
            break;
        const int first = found[x].first < found[y].first ? found[x].first : found[y].first;
        const int end_x = found[x].first + found[x].bodies, end_y = found[y].first + found[y].bodies;
        found[x] = {first, (end_x > end_y ? end_x : end_y) - first, found[x].types | found[y].types};
        found[y] = found[--count];
    }
    for (int k = 0; k < count; k++)
        out[k] = found[k];
    return count;
}

static unsigned range_mask(const island_model &i)
{
    return ((1u << i.bodies) - 1) << i.first;
}

bool fill_islands(model &m)
{
    unsigned all = 0;
    static_assert(MAX_ISLANDS == 2 && MAX_BODIES < 32, "islands are ordered by hand, and bodies are bits");

    m.islands = find_islands(m, (1u << m.types) - 1, m.island);
    if (m.islands == 2) {
        if (m.island[0].first > m.island[1].first)
            std::swap(m.island[0], m.island[1]);
        /* Islands of fewer pair types may be united over the bodies in between. Then both of these have candidates. */
        m.island[0].bodies = m.island[1].first - m.island[0].first;
    }
    for (int k = 0; k < m.islands; k++)
        all |= range_mask(m.island[k]);
    for (unsigned active = 0; active < 1u << m.types; active++) {
        island_model found[MAX_ISLANDS];
        m.in_islands[active] = 0;
        for (int k = find_islands(m, active, found); k-- > 0;)
            m.in_islands[active] |= range_mask(found[k]);
        if (m.in_islands[active] & ~all)
            return false;
    }
    return true;
}
