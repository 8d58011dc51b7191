/*
 * The sim backend's virtual time and its injected faults, for the threads that step it (src/simulator/sim_driver.c),
 * and for tools and tests that look inside. All functions need a backend whose id is ACS_BACKEND_SIM, and its one
 * stepping thread.
 */
#ifndef ACS_BACKEND_SIM_H
#define ACS_BACKEND_SIM_H

#include "scheduler/backend.h"
#include "simulator/machine.h"

/*
 * Kinds of faults; the option ACS_FAULT_KINDS has their names. The last three cost the device (a kernel that never
 * ends does so through the watchdog). They are a tenth as frequent as the others.
 */
#define ACS_FAULT_TABLE(X)                                                                                             \
    X(LAUNCH, "launch")   /* a kernel is refused */                                                                    \
    X(COPY, "copy")       /* a copy or fill is refused */                                                              \
    X(BOUNCE, "bounce")   /* an op must be issued again */                                                             \
    X(MEMORY, "memory")   /* an allocation fails */                                                                    \
    X(SLOW, "slow")       /* a kernel takes a thousand times as long */                                                \
    X(METHOD, "vehicle")  /* a bundle or an instantiation is refused, or all cached graphs are thrown out */           \
    X(EVENT, "event")     /* recording a mark fails */                                                                 \
    X(LOST, "lost")       /* a poll finds the device lost */                                                           \
    X(ENDLESS, "endless")

typedef enum acs_fault_kind {
#define ACS_FAULT_ENUM_(name, text) ACS_FAULT_##name,
    ACS_FAULT_TABLE(ACS_FAULT_ENUM_)
#undef ACS_FAULT_ENUM_
    ACS_FAULT_KINDS
} acs_fault_kind;

/* The host's time in ns: that of the thread, real or virtual, whose turn it is to call the backend. */
uint64_t acs_sim_backend_now(const acs_backend *backend);
void acs_sim_backend_at(acs_backend *backend, uint64_t now);
/*
 * Whether anything happened since then, or became known, perhaps of a slot that a poll had passed. Only if time
 * decides.
 */
bool acs_sim_backend_news(const acs_backend *backend, uint64_t since);
/* Time at which the host can next see something new. ACS_SIM_NEVER: nothing will happen by itself. */
uint64_t acs_sim_backend_next(const acs_backend *backend);
/* Let one of the threads that issue (ACS_ISSUERS) carry out a command. False: none can. */
bool acs_sim_backend_issues(acs_backend *backend);
/* Number of injected faults, by kind. */
const uint64_t *acs_sim_backend_faults(const acs_backend *backend);
const acs_sim *acs_sim_backend_machine(const acs_backend *backend);

/*
 * For tools: let `describe` change the needs of a kernel and the time of its blocks, by its record. Before the first
 * op.
 */
typedef void (*acs_sim_describe)(void *user, const acs_record *op, acs_sim_kernel *kernel);
void acs_sim_backend_describe(acs_backend *backend, acs_sim_describe describe, void *user);

typedef struct acs_sim_noted {
    const acs_record **op;
    uint32_t used, capacity;
} acs_sim_noted;

/* sim_faults.c: the choice of calls that fail. It draws numbers only for kinds that were asked for. */
typedef struct acs_sim_faults {
    uint32_t per_mille;
    uint32_t kinds;                  /* mask of acs_fault_kind */
    acs_random *random;
    uint64_t count[ACS_FAULT_KINDS];
    acs_sim_noted retries;           /* ops that must be issued again, and were not yet */
    acs_sim_noted doomed;            /* ops whose bundle was refused because of them; alone they are refused, too */
} acs_sim_faults;

/* ACS_ERR_OPTION through ACS_FAIL, with the unknown name of a kind. */
acs_status acs_sim_faults_init(acs_sim_faults *faults, const acs_options *options, acs_random *random);
void acs_sim_faults_fini(acs_sim_faults *faults);
/* Whether the fault happens now; if so, it is counted. */
bool acs_sim_fault(acs_sim_faults *faults, acs_fault_kind kind);
/* Decide on an item whose status is ACS_OK: refused, to be issued again, or unchanged. */
void acs_sim_fault_item(acs_sim_faults *faults, acs_item *item);
/* Whether a bundle is refused because of an op in it. That op also fails when it is launched alone. */
bool acs_sim_fault_bundle(acs_sim_faults *faults, const acs_batch *batch);

#endif
