/* See nvtx_tool.h. Called by NVTX, and by the test that loads it too. */
#include "nvtx_tool.h"

#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static nvtx_tool_seen g_seen;

EXPORTED const nvtx_tool_seen *nvtx_tool_look(void);
EXPORTED int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables);

const nvtx_tool_seen *nvtx_tool_look(void)
{
    return &g_seen;
}

static nvtxDomainHandle_t NVTX_API domain_create(const char *name)
{
    g_seen.domains++;
    (void)snprintf(g_seen.domain, sizeof g_seen.domain, "%s", name);
    return (nvtxDomainHandle_t)(void *)&g_seen;
}

static int NVTX_API range_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range)
{
    if ((void *)domain != &g_seen || range->version != NVTX_VERSION ||
        range->size != NVTX_EVENT_ATTRIB_STRUCT_SIZE || range->messageType != NVTX_MESSAGE_TYPE_ASCII)
        return NVTX_NO_PUSH_POP_TRACKING; /* is not counted */
    (void)snprintf(g_seen.last, sizeof g_seen.last, "%s", range->message.ascii);
    return g_seen.pushed++ - g_seen.popped;
}

static int NVTX_API range_pop(nvtxDomainHandle_t domain)
{
    if ((void *)domain != &g_seen)
        return NVTX_NO_PUSH_POP_TRACKING;
    return g_seen.pushed - ++g_seen.popped;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables)
{
    const NvtxExportTableCallbacks *callbacks = tables(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) ||
        size <= NVTX_CBID_CORE2_DomainCreateA)
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)domain_create;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)range_push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)range_pop;
    g_seen.attached++;
    return 1;
}
