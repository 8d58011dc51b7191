/*
 * On which device a group runs: HuntKTm's task scheduling (section 5.3, Algorithm 1). Of the devices with enough free memory
 * and queues, the one with the most SMs left, by threads, registers and shared memory, whichever is scarcest. Pure
 * bookkeeping; not thread-safe.
 *
 * The paper puts a task off where no SM is left. Here kernels that fill the device many times over would wait for ever: SMs
 * decide which device it is, memory and queues whether there is one.
 */
#ifndef ACS_DEVICES_CAPACITY_H
#define ACS_DEVICES_CAPACITY_H

#include "base/base.h"

/* What a device has; of a figure that is not known, 0. */
typedef struct acs_capacity {
    uint64_t sms;
    uint64_t threads, registers, shared; /* of one SM; shared: bytes */
    uint64_t memory;                     /* bytes */
    uint64_t queues;                     /* slots */
} acs_capacity;

/* What a group takes at most, all of it at once. */
typedef struct acs_demand {
    uint64_t threads, registers, shared, memory, queues;
} acs_demand;

typedef struct acs_device_load {
    acs_capacity of;
    acs_demand in_use;
} acs_device_load;

/* Bytes that nobody has; 0 where more is in use than there is. */
uint64_t acs_capacity_memory_left(const acs_device_load *device);
/* SMs that are left beside a group; negative: it has to share some. */
double acs_capacity_left(const acs_device_load *device, const acs_demand *group);
/*
 * The device for a group, the first of equals; -1: none has room for it now. What one device does not have at all is no
 * reason: a group that asks for more queues than there are gets them all.
 */
int acs_capacity_choose(const acs_device_load *devices, uint32_t count, const acs_demand *group);
void acs_capacity_add(acs_device_load *device, const acs_demand *group);
void acs_capacity_remove(acs_device_load *device, const acs_demand *group);

#endif
