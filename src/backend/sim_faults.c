/*
 * Faults on purpose: which calls of the sim backend fail, by seed and by kind (ACS_FAULTS, ACS_FAULT_KINDS). Called by
 * sim.c under its lock. Decides and counts; what a fault does is done by the caller.
 */
#include "backend/sim.h"

#include <stdlib.h>
#include <string.h>

enum { NATIVE_FIRST = 700, NATIVE_KINDS = 20, RARE = 10 }; /* injected failures carry a code of 700..719 */

static const char *const fault_names[ACS_FAULT_KINDS] = {
#define FAULT_NAME(name, text) text,
    ACS_FAULT_TABLE(FAULT_NAME)
#undef FAULT_NAME
};

static int kind_of(const char *name, size_t length)
{
    for (int kind = 0; kind < ACS_FAULT_KINDS; kind++) {
        if (strlen(fault_names[kind]) == length && strncmp(fault_names[kind], name, length) == 0)
            return kind;
    }
    return -1;
}

acs_status acs_sim_faults_init(acs_sim_faults *faults, const acs_options *options, acs_random *random)
{
    const char *at = options->fault_kinds;

    memset(faults, 0, sizeof *faults);
    faults->per_mille = (uint32_t)options->faults;
    faults->random = random;
    while (*at) {
        size_t length = strcspn(at, ",");
        int kind = kind_of(at, length);
        if (kind < 0)
            return ACS_FAIL(ACS_ERR_OPTION, 0,
                            "ACS_FAULT_KINDS: '%.*s' is not one of launch, copy, bounce, memory, slow, vehicle, event, "
                            "lost, endless",
                            (int)length, at);
        faults->kinds |= 1u << kind;
        at += length;
        at += *at == ',';
    }
    return ACS_OK;
}

void acs_sim_faults_fini(acs_sim_faults *faults)
{
    free(faults->bounced);
}

bool acs_sim_fault(acs_sim_faults *faults, acs_fault_kind kind)
{
    uint32_t of = kind >= ACS_FAULT_EVENT ? 1000 * RARE : 1000;

    if (!faults->per_mille || !(faults->kinds & 1u << kind) || acs_random_below(faults->random, of) >= faults->per_mille)
        return false;
    faults->count[kind]++;
    return true;
}

/* -------------------------------------------------------------------------------------------------------- bounces */

/* Did the op bounce before? Then forget it: it will not bounce again. */
static bool bounced_take(acs_sim_faults *faults, const acs_record *op)
{
    for (uint32_t i = 0; i < faults->bounced_used; i++) {
        if (faults->bounced[i] == op) {
            faults->bounced[i] = faults->bounced[--faults->bounced_used];
            return true;
        }
    }
    return false;
}

/* Room to remember one more; without it the op does not bounce, since nobody would know that it did. */
static bool bounced_room(acs_sim_faults *faults)
{
    uint32_t capacity = faults->bounced_capacity ? faults->bounced_capacity * 2 : 16;
    const acs_record **grown;

    if (faults->bounced_used < faults->bounced_capacity)
        return true;
    grown = realloc(faults->bounced, capacity * sizeof *grown);
    if (!grown)
        return false;
    faults->bounced = grown;
    faults->bounced_capacity = capacity;
    return true;
}

/* An op bounces once at most, so that every program ends; a failure may follow a bounce. */
void acs_sim_fault_item(acs_sim_faults *faults, acs_item *item)
{
    uint8_t kind = item->op ? item->op->kind : ACS_KIND_COUNT;
    bool copies = kind == ACS_KIND_MEMCPY || kind == ACS_KIND_MEMSET;
    bool again;

    if (kind != ACS_KIND_KERNEL && !copies)
        return;
    again = faults->bounced_used && bounced_take(faults, item->op);
    if (acs_sim_fault(faults, copies ? ACS_FAULT_COPY : ACS_FAULT_LAUNCH)) {
        item->status = ACS_ERR_LAUNCH;
        item->native = NATIVE_FIRST + (int)acs_random_below(faults->random, NATIVE_KINDS);
        item->text = "injected";
    } else if (!again && bounced_room(faults) && acs_sim_fault(faults, ACS_FAULT_BOUNCE)) {
        faults->bounced[faults->bounced_used++] = item->op;
        item->status = ACS_NOT_READY;
        item->text = "injected";
    }
}
