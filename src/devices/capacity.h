/*
 * The device on which a group runs: HuntKTm's task scheduling (section 5.3, Algorithm 1). Of the devices with enough
 * free memory and queues, it is the one with the most SMs left. Threads, registers or shared memory count, whichever is
 * scarcest. Pure bookkeeping; not thread-safe.
 *
 * The paper defers a task if no SM is left. Here kernels that fill the device many times over would wait for ever: SMs
 * decide between devices, memory and queues decide whether there is one.
 */
#ifndef ACS_DEVICES_CAPACITY_H
#define ACS_DEVICES_CAPACITY_H

#include "base/base.h"

/* Resources of a device; 0: not known. */
typedef struct acs_capacity {
    uint64_t sms;
    uint64_t threads, registers, shared; /* of one SM; `shared` in bytes */
    uint64_t memory;                     /* bytes */
    uint64_t queues;                     /* slots */
} acs_capacity;

/* The most that a group takes at once. */
typedef struct acs_demand {
    uint64_t threads, registers, shared, memory, queues;
} acs_demand;

typedef struct acs_device_load {
    acs_capacity of;
    acs_demand in_use;
} acs_device_load;

/* Bytes that are not in use; 0 if more is in use than there is. */
uint64_t acs_capacity_memory_left(const acs_device_load *device);
/* SMs that are left beside a group; negative: it has to share SMs. */
double acs_capacity_left(const acs_device_load *device, const acs_demand *group);
/*
 * The device for a group, the first of equals; -1: none has room now. A group that asks for more queues than a device
 * has gets all of them.
 */
int acs_capacity_choose(const acs_device_load *devices, uint32_t count, const acs_demand *group);
void acs_capacity_add(acs_device_load *device, const acs_demand *group);
void acs_capacity_remove(acs_device_load *device, const acs_demand *group);

#endif
