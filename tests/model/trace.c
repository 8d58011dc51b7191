/*
 * How an interleaving is printed: one line per visible operation. Called by the search for an execution that fails or is
 * replayed. Knows nothing of what comes next.
 */
#include "internal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

const char *order_name(int order)
{
    switch (order) {
    case memory_order_relaxed:
        return "relaxed";
    case memory_order_acquire:
        return "acquire";
    case memory_order_release:
        return "release";
    case memory_order_acq_rel:
        return "acq_rel";
    case memory_order_seq_cst:
        return "seq_cst";
    default:
        return "";
    }
}

static void print_value(const char *before, uint64_t value)
{
    bool big = value > 1000000;
    printf(big ? "%s%#llx" : "%s%llu", before, (unsigned long long)value);
}

static void print_access(const model_op *op)
{
    static const char *const names[] = {"load", "store", "add", "exchange", "compare"};
    printf("%s %s %s #%d", names[op->kind], order_name(op->order), op->site->text, machine_name(op->at));
    switch (op->kind) {
    case MODEL_STORE:
        print_value(" = ", op->operand);
        return;
    case MODEL_ADD:
        printf(" += %lld, was %llu", (long long)op->operand, (unsigned long long)op->value);
        return;
    case MODEL_EXCHANGE:
        print_value(" = ", op->operand);
        print_value(", was ", op->value);
        return;
    case MODEL_CAS:
        print_value(" ", op->expected);
        print_value(" -> ", op->operand);
        printf(op->done ? " done" : " failed");
        if (!op->done)
            print_value(", reads ", op->value);
        break;
    default:
        print_value(" reads ", op->value);
    }
    if (op->value != op->newest)
        print_value(", stale: the newest is ", op->newest);
}

void trace_print(const model_op *op, int thread, uint32_t step)
{
    static const char *const names[] = {[MODEL_FENCE] = "fence", [MODEL_LOCK] = "lock", [MODEL_UNLOCK] = "unlock",
                                        [MODEL_WAIT] = "wait", [MODEL_RELOCK] = "wake up", [MODEL_WAKE] = "wake all",
                                        [MODEL_SPAWN] = "make", [MODEL_JOIN] = "join", [MODEL_EXIT] = "end"};
    const char *file = strrchr(op->site->file, '/');
    printf("%4u  %*s%c  %s:%d %s: ", step, 2 * thread, "", 'a' + thread, file ? file + 1 : op->site->file,
           op->site->line, op->site->function);
    if (op->kind <= MODEL_CAS)
        print_access(op);
    else if (op->kind == MODEL_FENCE)
        printf("fence %s", order_name(op->order));
    else
        printf("%s %s #%d", names[op->kind], op->site->text, machine_name(op->at));
    putchar('\n');
}
