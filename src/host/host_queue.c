/*
 * The run queue of the host backend: slots that can advance, in the order in which they became able to, and lists of
 * slots blocked behind another slot's timeline. Called by host.c under the backend's lock, except for the two hints.
 * Never runs an op or wakes an executor.
 */
#include "host/host_internal.h"

/* Relaxed: a hint for threads without the lock (see the struct). */
static void count_runnable_locked(host_backend *h, uint32_t more)
{
    uint32_t count = atomic_load_explicit(&h->runnable, memory_order_relaxed) + more;
    atomic_store_explicit(&h->runnable, count, memory_order_relaxed);
}

uint32_t acs_host_runnable(const host_backend *h)
{
    return atomic_load_explicit(&h->runnable, memory_order_relaxed); /* a hint, see the struct */
}

bool acs_host_closing(const host_backend *h)
{
    return atomic_load_explicit(&h->closing, memory_order_relaxed); /* a hint, see the struct */
}

/* The run queue is a list through `next` in order of becoming runnable; `run_last` means nothing while it is empty. */
void acs_host_queue_push_locked(host_backend *h, uint32_t slot)
{
    h->links[slot].state = HOST_QUEUED;
    h->links[slot].next = HOST_NONE;
    if (h->run_first == HOST_NONE)
        h->run_first = slot;
    else
        h->links[h->run_last].next = slot;
    h->run_last = slot;
    count_runnable_locked(h, 1);
}

uint32_t acs_host_queue_pop_locked(host_backend *h)
{
    uint32_t slot = h->run_first;

    if (slot != HOST_NONE) {
        h->run_first = h->links[slot].next;
        count_runnable_locked(h, UINT32_MAX); /* one less, counted round */
    }
    return slot;
}

/* A slot blocks behind one other at a time: its head entry has one wait, and further waits are entries of their own. */
static void block_locked(host_backend *h, uint32_t slot, uint32_t behind)
{
    h->links[slot].state = HOST_BLOCKED;
    h->links[slot].next = h->links[behind].blocked;
    h->links[behind].blocked = slot;
}

/* Queue the slots whose wait for this one is satisfied; the others stay in its list. */
static void unblock_locked(host_backend *h, uint32_t behind)
{
    uint32_t *link = &h->links[behind].blocked;

    while (*link != HOST_NONE) {
        uint32_t slot = *link;
        if (!acs_host_satisfied(&h->slots, acs_host_head(&h->slots, slot))) {
            link = &h->links[slot].next;
            continue;
        }
        *link = h->links[slot].next;
        acs_host_queue_push_locked(h, slot);
    }
}

void acs_host_finish_locked(host_backend *h, uint32_t slot)
{
    acs_host_finish(&h->slots, slot);
    if (h->crowded)
        acs_cond_broadcast(&h->room);
    unblock_locked(h, slot);
}

acs_record *acs_host_advance_locked(host_backend *h, uint32_t slot)
{
    const acs_host_entry *head;

    while ((head = acs_host_head(&h->slots, slot)) != NULL) {
        if (!acs_host_satisfied(&h->slots, head)) {
            block_locked(h, slot, head->wait_slot);
            return NULL;
        }
        if (head->op) {
            h->links[slot].state = HOST_CLAIMED;
            return head->op;
        }
        acs_host_finish_locked(h, slot);
    }
    h->links[slot].state = HOST_IDLE;
    return NULL;
}
