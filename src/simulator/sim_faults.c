/*
 * Injected faults: which calls of the sim backend fail, by seed and by kind (ACS_FAULTS, ACS_FAULT_KINDS). Called by
 * the other sim files under the backend's lock. Decides and counts; the caller carries the fault out.
 */
#include "simulator/sim.h"

#include <stdlib.h>
#include <string.h>

enum { NATIVE_FIRST = 700, NATIVE_KINDS = 20, RARE = 10 }; /* injected failures have native codes from 700 to 719 */

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
    free(faults->retries.op);
    free(faults->doomed.op);
}

bool acs_sim_fault(acs_sim_faults *faults, acs_fault_kind kind)
{
    uint32_t of = kind >= ACS_FAULT_EVENT ? 1000 * RARE : 1000;

    if (!faults->per_mille || !(faults->kinds & 1u << kind) || acs_random_below(faults->random, of) >= faults->per_mille)
        return false;
    faults->count[kind]++;
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- ops */

/* Whether the op was noted; the note is removed, since the fault happens once. */
static bool noted_take(acs_sim_noted *noted, const acs_record *op)
{
    for (uint32_t i = 0; i < noted->used; i++) {
        if (noted->op[i] == op) {
            noted->op[i] = noted->op[--noted->used];
            return true;
        }
    }
    return false;
}

/* Make room for one more note. False: no memory, and the op must get no fault. */
static bool noted_reserve(acs_sim_noted *noted)
{
    return ACS_GROW(noted->op, noted->capacity, noted->used + 1);
}

static void refuse_item(acs_sim_faults *faults, acs_item *item)
{
    item->status = ACS_ERR_LAUNCH;
    item->native = NATIVE_FIRST + (int)acs_random_below(faults->random, NATIVE_KINDS);
    item->text = "injected";
}

/* An op must be issued again at most once, so that every program ends. A failure may follow. */
void acs_sim_fault_item(acs_sim_faults *faults, acs_item *item)
{
    uint8_t kind = item->op ? item->op->kind : ACS_KIND_COUNT;
    bool copies = kind == ACS_KIND_MEMCPY || kind == ACS_KIND_MEMSET;
    bool again;

    if (kind != ACS_KIND_KERNEL && !copies)
        return;
    again = noted_take(&faults->retries, item->op);
    if (noted_take(&faults->doomed, item->op) || acs_sim_fault(faults, copies ? ACS_FAULT_COPY : ACS_FAULT_LAUNCH)) {
        refuse_item(faults, item);
    } else if (!again && noted_reserve(&faults->retries) && acs_sim_fault(faults, ACS_FAULT_BOUNCE)) {
        faults->retries.op[faults->retries.used++] = item->op;
        item->status = ACS_NOT_READY;
        item->text = "injected";
    }
}

/* As on a GPU, a refused kernel has its whole graph refused. */
bool acs_sim_fault_bundle(acs_sim_faults *faults, const acs_batch *batch)
{
    bool any = false;

    for (uint32_t i = 0; i < batch->items_used; i++) {
        const acs_record *op = batch->items[i].op;
        if (!op || !noted_reserve(&faults->doomed) || !acs_sim_fault(faults, ACS_FAULT_LAUNCH))
            continue;
        faults->doomed.op[faults->doomed.used++] = op;
        any = true;
    }
    return any;
}
