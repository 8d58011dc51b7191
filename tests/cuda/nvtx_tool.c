/* See nvtx_tool.h. Called by NVTX, and by the test that loads it too. */
#include "nvtx_tool.h"

#include <nvtx3/nvToolsExt.h>
#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <nvtx3/nvToolsExtPayload.h>
#endif
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

enum { DEPTH_MOST = 64, STRINGS_MOST = 8192, SCHEMAS_MOST = 4, FIRST_SCHEMA = 1000 };

#ifdef NVTX_PAYLOAD_SCHEMA_ATTR_FIELDS_V1
typedef struct schema {
    nvtxPayloadSchemaEntry_t entry[NVTX_TOOL_FIELDS];
    size_t entries, bytes;
} schema;
static schema g_schema[SCHEMAS_MOST];
#endif

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static nvtx_tool_seen g_seen;
static char *g_string[STRINGS_MOST + 1]; /* from 1 on; a handle points at its element */
static _Thread_local int tl_thread, tl_depth, tl_open[DEPTH_MOST];

EXPORTED const nvtx_tool_seen *nvtx_tool_look(void);
EXPORTED int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables);

const nvtx_tool_seen *nvtx_tool_look(void)
{
    return &g_seen;
}

/* ------------------------------------------------------------------------------------------- domain and its names */

static nvtxDomainHandle_t NVTX_API domain_create(const char *name)
{
    g_seen.domains++;
    (void)snprintf(g_seen.domain, sizeof g_seen.domain, "%s", name);
    return (nvtxDomainHandle_t)(void *)&g_seen;
}

static void NVTX_API name_category(nvtxDomainHandle_t domain, uint32_t category, const char *name)
{
    if ((void *)domain != &g_seen || category >= NVTX_TOOL_CATEGORIES)
        g_seen.wrong++;
    else
        (void)snprintf(g_seen.category[category], sizeof g_seen.category[category], "%s", name);
}

static nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t domain, const char *text)
{
    pthread_mutex_lock(&g_mutex);
    char **place = NULL;
    if ((void *)domain == &g_seen && g_seen.strings < STRINGS_MOST) {
        place = &g_string[++g_seen.strings];
        *place = strdup(text);
    } else {
        g_seen.wrong++;
    }
    pthread_mutex_unlock(&g_mutex);
    return (nvtxStringHandle_t)(void *)place;
}

/* ---------------------------------------------------------------------------------------------- extended payloads */

#ifdef NVTX_PAYLOAD_SCHEMA_ATTR_FIELDS_V1
EXPORTED int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module);

static uint64_t NVTX_API register_schema(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t *attr)
{
    if ((void *)domain != &g_seen || attr->type != NVTX_PAYLOAD_SCHEMA_TYPE_STATIC ||
        attr->numEntries > NVTX_TOOL_FIELDS || g_seen.schemas == SCHEMAS_MOST) {
        g_seen.wrong++;
        return 0;
    }
    schema *s = &g_schema[g_seen.schemas];
    memcpy(s->entry, attr->entries, attr->numEntries * sizeof *attr->entries);
    s->entries = attr->numEntries;
    s->bytes = attr->payloadStaticSize;
    return FIRST_SCHEMA + (uint64_t)g_seen.schemas++;
}

static void read_field(const nvtxPayloadSchemaEntry_t *entry, const char *at, nvtx_tool_field *field)
{
    uint64_t wide = 0;
    uint32_t half = 0;
    int32_t with_sign = 0;
    (void)snprintf(field->name, sizeof field->name, "%s", entry->name);
    switch (entry->type) {
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT64:
        memcpy(&wide, at, sizeof wide);
        field->number = (long long)wide;
        break;
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT32:
        memcpy(&half, at, sizeof half);
        field->number = half;
        break;
    case NVTX_PAYLOAD_ENTRY_TYPE_INT32:
        memcpy(&with_sign, at, sizeof with_sign);
        field->number = with_sign;
        break;
    case NVTX_PAYLOAD_ENTRY_TYPE_CSTRING:
        (void)snprintf(field->text, sizeof field->text, "%.*s", (int)entry->arrayOrUnionDetail, at);
        break;
    default:
        g_seen.wrong++;
    }
}

static void read_extended(const nvtxEventAttributes_t *event, nvtx_tool_range *range)
{
    const nvtxPayloadData_t *data = (const nvtxPayloadData_t *)(uintptr_t)event->payload.ullValue;
    const bool good = event->payloadType == (int32_t)NVTX_PAYLOAD_TYPE_EXT;
    const uint64_t at = good ? data->schemaId - FIRST_SCHEMA : UINT64_MAX;
    if (at >= (uint64_t)g_seen.schemas || event->reserved0 != 1 || data->size != g_schema[at].bytes) {
        g_seen.wrong++;
        return;
    }
    range->extended = 1;
    for (size_t i = 0; i < g_schema[at].entries; i++)
        read_field(&g_schema[at].entry[i], (const char *)data->payload + g_schema[at].entry[i].offset,
                   &range->field[range->fields++]);
}

int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module)
{
    if (getenv("NVTX_TOOL_PLAIN") || module->moduleId != NVTX_EXT_PAYLOAD_MODULEID || module->segmentsCount < 1 ||
        module->segments->slotCount <= NVTX3EXT_CBID_nvtxPayloadSchemaRegister)
        return 0;
    module->segments->functionSlots[NVTX3EXT_CBID_nvtxPayloadSchemaRegister] = (intptr_t)register_schema;
    return 1;
}
#else
static void read_extended(const nvtxEventAttributes_t *event, nvtx_tool_range *range)
{
    (void)event;
    (void)range;
    g_seen.wrong++;
}
#endif

/* --------------------------------------------------------------------------------------------------------- ranges */

static void read_message(const nvtxEventAttributes_t *event, nvtx_tool_range *range)
{
    const char *text = event->message.ascii;
    if (event->messageType == NVTX_MESSAGE_TYPE_REGISTERED) {
        const long at = (char **)(void *)event->message.registered - g_string;
        const bool known = at > 0 && at <= g_seen.strings;
        g_seen.wrong += !known;
        range->registered = (int)at;
        text = known ? g_string[at] : "?";
    } else {
        g_seen.wrong += event->messageType != NVTX_MESSAGE_TYPE_ASCII;
    }
    (void)snprintf(range->text, sizeof range->text, "%s", text);
}

static void read_payload(const nvtxEventAttributes_t *event, nvtx_tool_range *range)
{
    if (event->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64)
        range->payload = (long long)event->payload.ullValue;
    else
        read_extended(event, range);
}

static int NVTX_API range_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    pthread_mutex_lock(&g_mutex);
    nvtx_tool_range *range = &g_seen.range[g_seen.pushed % NVTX_TOOL_KEPT];
    memset(range, 0, sizeof *range);
    tl_thread = tl_thread ? tl_thread : ++g_seen.threads;
    range->thread = tl_thread;
    range->depth = tl_depth;
    range->category = (int)event->category;
    if ((void *)domain != &g_seen || event->version != NVTX_VERSION || event->size != NVTX_EVENT_ATTRIB_STRUCT_SIZE ||
        event->category >= NVTX_TOOL_CATEGORIES || !*g_seen.category[event->category] || tl_depth == DEPTH_MOST)
        g_seen.wrong++;
    else
        g_seen.of_category[event->category]++;
    read_message(event, range);
    read_payload(event, range);
    if (event->category < NVTX_TOOL_CATEGORIES && (strcmp(g_seen.category[event->category], "bundle") == 0 ||
                                                   strcmp(g_seen.category[event->category], "replay") == 0))
        memcpy(g_seen.last, range->text, sizeof g_seen.last);
    tl_open[tl_depth % DEPTH_MOST] = g_seen.pushed++;
    pthread_mutex_unlock(&g_mutex);
    return tl_depth++;
}

static int NVTX_API range_pop(nvtxDomainHandle_t domain)
{
    pthread_mutex_lock(&g_mutex);
    if ((void *)domain != &g_seen || !tl_depth) {
        g_seen.wrong++;
    } else {
        tl_depth--;
        g_seen.range[tl_open[tl_depth % DEPTH_MOST] % NVTX_TOOL_KEPT].ended = g_seen.pushed;
        g_seen.popped++;
    }
    pthread_mutex_unlock(&g_mutex);
    return tl_depth;
}

/* ------------------------------------------------------------------------------------------------------- attaching */

/* For programs that do not look themselves: they fail if a range is missing, or was not ended. */
static void __attribute__((destructor)) look_at_the_end(void)
{
    const char *wanted = getenv("NVTX_TOOL_WANTS");
    if (!wanted || (strstr(g_seen.last, wanted) && g_seen.pushed == g_seen.popped && !g_seen.wrong))
        return;
    fprintf(stderr, "nvtx_tool: last is '%s', not '%s'; %d ranges began, %d ended; %d calls were wrong\n",
            g_seen.last, wanted, g_seen.pushed, g_seen.popped, g_seen.wrong);
    _exit(1);
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables)
{
    const NvtxExportTableCallbacks *callbacks = tables(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) ||
        size <= NVTX_CBID_CORE2_DomainRegisterStringA)
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)domain_create;
    *table[NVTX_CBID_CORE2_DomainNameCategoryA] = (NvtxFunctionPointer)name_category;
    *table[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)register_string;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)range_push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)range_pop;
    g_seen.attached++;
    return 1;
}
