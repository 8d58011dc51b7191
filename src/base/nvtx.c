/*
 * Ranges of NVTX (nvtx.h): owns the process's domain, its categories, its schemas of payloads, and the table of
 * registered messages. Called by all modules that show work or waits, while a tool takes ranges. Takes no lock, never
 * fails and never waits. Without NVTX's headers, a part of CUDA's toolkit, no tool is ever found.
 *
 * A row of the table is claimed by its key, then given the tool's handle. A thread that finds a row without handle, or
 * no row, sends its text unregistered. Two messages of one key would be shown as one: 1 in 2^40 for a full table.
 */
#include "base/nvtx.h"

#include "base/tuning.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>)
#define ACS_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif
#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <nvtx3/nvToolsExtPayload.h>
#endif
#endif

bool acs_nvtx_taken;

/* ------------------------------------------------------------------------------------------------------------ keys */

uint64_t acs_nvtx_key(uint64_t key, uint64_t number)
{
    return acs_hash64(acs_hash64(key) + number);
}

uint64_t acs_nvtx_key_text(uint64_t key, const char *text)
{
    const size_t bytes = strlen(text);
    for (size_t at = 0; at < bytes; at += sizeof key) {
        uint64_t word = 0;
        memcpy(&word, text + at, bytes - at < sizeof word ? bytes - at : sizeof word);
        key = acs_nvtx_key(key, word);
    }
    return acs_nvtx_key(key, bytes);
}

static void write_function(const void *contents, char *text)
{
    (void)snprintf(text, ACS_NVTX_TEXT_BYTES, "%s", (const char *)contents);
}

void acs_nvtx_push_wait(const char *function, acs_op op)
{
    const acs_nvtx_range range = {.kind = ACS_NVTX_WAIT,
                             .key = acs_nvtx_key_text(ACS_NVTX_WAIT, function),
                             .write = write_function,
                             .contents = function,
                             .payload.op = op};
    acs_nvtx_push(&range);
}

#ifdef ACS_HAVE_NVTX

/* ---------------------------------------------------------------------------------------------------------- domain */

static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static nvtxDomainHandle_t g_domain; /* one per process: tools would show each domain apart */
static uint64_t g_launch_schema, g_bundle_schema; /* 0: the tool takes no extended payloads */

static void name_categories(void)
{
    static const char *const names[ACS_NVTX_KINDS] = {
        [ACS_NVTX_KERNEL] = "kernel", [ACS_NVTX_COPY] = "copy",          [ACS_NVTX_FILL] = "fill",
        [ACS_NVTX_HOST] = "host function", [ACS_NVTX_CALL] = "library call", [ACS_NVTX_FREE] = "free",
        [ACS_NVTX_BUNDLE] = "bundle", [ACS_NVTX_REPLAY] = "replay",      [ACS_NVTX_WAIT] = "wait"};
    for (uint32_t kind = ACS_NVTX_KERNEL; kind < ACS_NVTX_KINDS; kind++)
        nvtxDomainNameCategoryA(g_domain, kind, names[kind]);
}

#ifdef NVTX_PAYLOAD_SCHEMA_ATTR_FIELDS_V1
#define ENTRY(kind, title, place, length)                                                                              \
    {.type = NVTX_PAYLOAD_ENTRY_TYPE_##kind, .name = (title), .offset = (place), .arrayOrUnionDetail = (length)}
#define NUMBER(kind, title, type, field) ENTRY(kind, title, offsetof(type, field), 0)

/* A payload of fixed layout. 0: the tool does not take it. */
static uint64_t make_schema(const char *name, const nvtxPayloadSchemaEntry_t *entries, size_t count, size_t bytes)
{
    const nvtxPayloadSchemaAttr_t schema = {
        .fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE,
        .name = name,
        .type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
        .entries = entries,
        .numEntries = count,
        .payloadStaticSize = bytes};
    return nvtxPayloadSchemaRegister(g_domain, &schema);
}

static void make_schemas(void)
{
    static const nvtxPayloadSchemaEntry_t launch[] = {
        NUMBER(UINT64, "op", acs_nvtx_launch, op),
        NUMBER(UINT32, "grid x", acs_nvtx_launch, grid.x),
        NUMBER(UINT32, "grid y", acs_nvtx_launch, grid.y),
        NUMBER(UINT32, "grid z", acs_nvtx_launch, grid.z),
        NUMBER(UINT32, "block x", acs_nvtx_launch, block.x),
        NUMBER(UINT32, "block y", acs_nvtx_launch, block.y),
        NUMBER(UINT32, "block z", acs_nvtx_launch, block.z),
        NUMBER(UINT64, "shared bytes", acs_nvtx_launch, shared_bytes),
        NUMBER(INT32, "slot", acs_nvtx_launch, slot),
        NUMBER(UINT32, "device", acs_nvtx_launch, device)};
    static const nvtxPayloadSchemaEntry_t bundle[] = {
        NUMBER(UINT64, "first op", acs_nvtx_bundle, op),
        NUMBER(UINT32, "ops", acs_nvtx_bundle, ops),
        ENTRY(CSTRING, "method", offsetof(acs_nvtx_bundle, method), ACS_NVTX_METHOD_BYTES),
        NUMBER(INT32, "slot", acs_nvtx_bundle, slot),
        NUMBER(UINT32, "device", acs_nvtx_bundle, device)};
    g_launch_schema = make_schema("op", launch, sizeof launch / sizeof *launch, sizeof(acs_nvtx_launch));
    g_bundle_schema = make_schema("bundle", bundle, sizeof bundle / sizeof *bundle, sizeof(acs_nvtx_bundle));
}
#else
static void make_schemas(void)
{
}
#endif

/*
 * NVTX's first call, which looks for a tool. pthread_once guards it, since a thread sanitizer does not know NVTX's own
 * guard.
 */
static void make_domain(void)
{
    g_domain = nvtxDomainCreateA("ACS");
    acs_nvtx_taken = g_domain != NULL;
    if (!acs_nvtx_taken)
        return;
    name_categories();
    make_schemas();
}

void acs_nvtx_open(void)
{
    (void)pthread_once(&g_once, make_domain);
}

/* -------------------------------------------------------------------------------------------------------- messages */

typedef struct message {
    _Atomic(uint64_t) key; /* 0: the row is free */
    _Atomic(nvtxStringHandle_t) handle; /* A: register_text -> registered */
} message;

static message g_messages[TUNE_NVTX_MESSAGES];

/* The row of a key. NULL: there is no room. *made: the row is new, and this thread fills it. */
static message *find_message(uint64_t key, bool *made)
{
    for (uint64_t probe = 0; probe < TUNE_NVTX_PROBES; probe++) {
        message *row = &g_messages[(key + probe) % TUNE_NVTX_MESSAGES];
        /* Relaxed: what a row leads to is published by its handle (A). */
        uint64_t seen = atomic_load_explicit(&row->key, memory_order_relaxed);
        *made = !seen && atomic_compare_exchange_strong_explicit(&row->key, &seen, key, memory_order_relaxed,
                                                                 memory_order_relaxed);
        if (*made || seen == key)
            return row;
    }
    return NULL;
}

static nvtxStringHandle_t register_text(message *row, const char *text)
{
    const nvtxStringHandle_t handle = nvtxDomainRegisterStringA(g_domain, text);
    atomic_store_explicit(&row->handle, handle, memory_order_release); /* A */
    return handle;
}

/* The message of a range, registered if there is room; else in `text`, and NULL. */
static nvtxStringHandle_t find_text(const acs_nvtx_range *range, char *text)
{
    bool made = false;
    message *row = find_message(range->key ? range->key : 1, &made);
    nvtxStringHandle_t handle = row ? atomic_load_explicit(&row->handle, memory_order_acquire) : NULL; /* A */
    if (handle)
        return handle;
    range->write(range->contents, text);
    return made ? register_text(row, text) : NULL;
}

/* ---------------------------------------------------------------------------------------------------------- ranges */

/* Attach the payload: by a schema, in *data, or else the op's number alone. */
#ifdef NVTX_PAYLOAD_SCHEMA_ATTR_FIELDS_V1
typedef nvtxPayloadData_t payload_data;

static void attach_payload(const acs_nvtx_range *range, nvtxEventAttributes_t *event, payload_data *data)
{
    const bool bundle = range->kind == ACS_NVTX_BUNDLE || range->kind == ACS_NVTX_REPLAY;
    event->payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    event->payload.ullValue = range->payload.op;
    if (range->kind == ACS_NVTX_WAIT || !(bundle ? g_bundle_schema : g_launch_schema))
        return;
    data->schemaId = bundle ? g_bundle_schema : g_launch_schema;
    data->size = bundle ? sizeof range->payload.bundle : sizeof range->payload.launch;
    data->payload = &range->payload;
    event->payloadType = NVTX_PAYLOAD_TYPE_EXT;
    event->payload.ullValue = (uint64_t)(uintptr_t)data;
    event->reserved0 = 1; /* number of payloads */
}
#else
typedef char payload_data;

static void attach_payload(const acs_nvtx_range *range, nvtxEventAttributes_t *event, payload_data *data)
{
    (void)data;
    event->payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    event->payload.ullValue = range->payload.op;
}
#endif

void acs_nvtx_push(const acs_nvtx_range *range)
{
    char text[ACS_NVTX_TEXT_BYTES];
    payload_data data;
    nvtxEventAttributes_t event = {
        .version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE, .category = (uint32_t)range->kind};
    const nvtxStringHandle_t handle = find_text(range, text);
    event.messageType = handle ? NVTX_MESSAGE_TYPE_REGISTERED : NVTX_MESSAGE_TYPE_ASCII;
    if (handle)
        event.message.registered = handle;
    else
        event.message.ascii = text;
    attach_payload(range, &event, &data);
    (void)nvtxDomainRangePushEx(g_domain, &event);
}

void acs_nvtx_pop(void)
{
    (void)nvtxDomainRangePop(g_domain);
}

#else

void acs_nvtx_open(void)
{
}

void acs_nvtx_push(const acs_nvtx_range *range)
{
    (void)range;
}

void acs_nvtx_pop(void)
{
}

#endif
