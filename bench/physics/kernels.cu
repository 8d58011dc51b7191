/*
 * The bench's own kernel: narrow over all pair types at once. It shares the sample's function for one contact, so it
 * writes the bits that the sample's kernels write; only which thread does what differs.
 */
#include "contact.h"
#include "fuse.h"

PHYSICS_HD void narrow_fused_thread(const narrow_fused_args &a, unsigned i)
{
    const unsigned block = i / CONTACT_BLOCK;
    int k = 0;

    while (k + 1 < a.types && block >= a.of[k + 1].first_block)
        k++;
    const fused_type &f = a.of[k];
    const unsigned place = i - f.first_block * CONTACT_BLOCK;
    if (place >= f.threads)
        return;
    const int *const words = reinterpret_cast<const int *>(a.base);
    const narrow_args n = {f.threads,
                           a.worlds,
                           f.type,
                           a.tick,
                           reinterpret_cast<const model *>(a.base),
                           words + f.candidates,
                           words + f.counts,
                           a.pos,
                           a.rot,
                           a.vel,
                           a.base + f.manifold,
                           nullptr};
    narrow_nth(n, place);
}

PHYSICS_KERNEL(narrow_fused, narrow_fused_args, CONTACT_BLOCK)
