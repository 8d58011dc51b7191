# Faults that are planted in copies of the library's sources; the explorer must find each in the scenario that is named.
# model_mutant(<name> <scenario> <source> <text> <replacement>): the text stands in the source exactly once. Read twice: by
# CMakeLists.txt, which makes a program of each, and by mutate.cmake, which writes one mutated source.

model_mutant(fifo_published_early fifo_wrap window/fifo
[==[
    cell->record = record;
    atomic_store_explicit(&cell->turn, (ticket & fifo->lap) + 1, memory_order_release); /* A */
]==] [==[
    atomic_store_explicit(&cell->turn, (ticket & fifo->lap) + 1, memory_order_release); /* A */
    cell->record = record;
]==])

model_mutant(fifo_freed_early fifo_wrap window/fifo
[==[
    acs_record *record = cell->record;
    const uint32_t span = acs_record_span(record);
]==] [==[
    atomic_store_explicit(&cell->turn, (head + fifo->mask + 1) & fifo->lap, memory_order_release); /* B */
    acs_record *record = cell->record;
    const uint32_t span = acs_record_span(record);
]==])

model_mutant(fifo_ticket_not_exchanged fifo_producers window/fifo
[==[
        if (atomic_compare_exchange_weak_explicit(&fifo->tail, &ticket, ticket + count, memory_order_relaxed,
                                                  memory_order_relaxed))
            break;
]==] [==[
        atomic_store_explicit(&fifo->tail, ticket + count, memory_order_relaxed);
        break;
]==])

model_mutant(record_no_tag record_aba window/record
    "return (((top >> 32) + 1) << 32) | entry;"
    "return ((top >> 32) << 32) | entry;")

model_mutant(record_before_block record_blocks window/record
[==[
    release_block(pool, record);
    stack_push(&pool->free, pool->record_links, record->index);
]==] [==[
    stack_push(&pool->free, pool->record_links, record->index);
    release_block(pool, record);
]==])

model_mutant(record_chain_cut record_chain window/record
    "pool->record_links, chain->first - 1, chain->last - 1);"
    "pool->record_links, chain->first - 1, chain->first - 1);")

model_mutant(notified_without_epoch eventcount api/eventcount
    "    eventcount->epoch++;\n"
    "")

model_mutant(epoch_read_late eventcount api/eventcount
[==[
    acs_lock_acquire(&eventcount->lock);
    bool in_time = true;
]==] [==[
    acs_lock_acquire(&eventcount->lock);
    epoch = eventcount->epoch;
    bool in_time = true;
]==])

model_mutant(worker_sleeps_without_a_look worker_queue api/threads
    "    if (!stopping(context) && !acs_step_with(context, start->action, worker_may(start))) {"
    "    if (!stopping(context)) {")

model_mutant(worker_taken_for_awake worker_queue api/threads
    "return acs_eventcount_waiters(&context->work) >= context->issuers;"
    "return acs_eventcount_waiters(&context->work) > context->issuers;")

model_mutant(came_in_vain_and_sleeps workers_kernel scheduler/step
    "    core->turned_away |= core->polling;\n"
    "")

model_mutant(worker_stopped_before_the_flag worker_stop api/threads
[==[
    atomic_store_explicit(&context->stop, 1, memory_order_release); /* C */
    acs_eventcount_notify(&context->work);
    acs_eventcount_notify(&context->host_work);
]==] [==[
    acs_eventcount_notify(&context->work);
    acs_eventcount_notify(&context->host_work);
    atomic_store_explicit(&context->stop, 1, memory_order_release); /* C */
]==])

model_mutant(caller_announces_after_the_look worker_wait api/wait
[==[
    uint64_t epoch = acs_eventcount_prepare_wait(&context->ends);
    bool stepped = false;
    if (holds_back(w))
        let_go_on(w, false);
    if (!try_finish(w)) {
]==] [==[
    bool stepped = false;
    bool over = try_finish(w);
    uint64_t epoch = acs_eventcount_prepare_wait(&context->ends);
    if (!over) {
]==])

model_mutant(left_over_wakes_oneself worker_host api/threads
    "acs_eventcount_notify(has_host_thread(context) ? &context->host_work : issuers);"
    "acs_eventcount_notify(issuers);")

model_mutant(condition_not_told worker_wait scheduler/step
    "        news.condition_met |= came_true;\n"
    "")

model_mutant(completed_before_the_op timeline_wait host/host_executor
    "return entry->wait_value <= acs_host_completed(slots, entry->wait_slot);"
    "return entry->wait_value <= acs_host_completed(slots, entry->wait_slot) + 1;")

model_mutant(default_opened_twice default_open api/default
    "    acs_registry_lock_default();\n    context = acs_registry_default();\n"
    "    acs_registry_lock_default();\n")

model_mutant(sealed_replay_not_let_go replay_sealed scheduler/retire
    "        acs_window_let_go(&core->window, entry);\n"
    "")

model_mutant(sealed_without_the_lock replay_sealed scheduler/retire
[==[
    acs_lock_acquire(&core->lock);
    record->u.replay.replay = replay;
    record->u.replay.depth = depth;
    core->counters.unused += record->u.replay.span - replay->count;
]==] [==[
    record->u.replay.replay = replay;
    record->u.replay.depth = depth;
    acs_lock_acquire(&core->lock);
    core->counters.unused += record->u.replay.span - replay->count;
]==])

model_mutant(issue_given_early issue_give scheduler/issue_queue
[==[
    for (uint32_t i = 0; i < count; i++)
        *at(q, r, tail + i) = commands[i];
    atomic_store_explicit(&r->tail, tail + count, memory_order_release);            /* A */
]==] [==[
    atomic_store_explicit(&r->tail, tail + count, memory_order_release);            /* A */
    for (uint32_t i = 0; i < count; i++)
        *at(q, r, tail + i) = commands[i];
]==])

model_mutant(issue_empty_forgets issue_give scheduler/issue_queue
[==[
    if (count_left(&q->ring[s]))
        atomic_fetch_or_explicit(&q->filled, 1ull << s, memory_order_relaxed); /* relaxed: who sees it loads `tail`, A */
]==] [==[
]==])

model_mutant(issue_unrecorded_wait issue_takers scheduler/issue_queue
[==[
                return ACS_ISSUE_BLOCKED;
            ops->wait(user, c->slot, c->share, &c->mark);
]==] [==[
                (void)0;
            ops->wait(user, c->slot, c->share, &c->mark);
]==])

model_mutant(issue_claim_weakened issue_takers scheduler/issue_queue
[==[
        atomic_fetch_or_explicit(&q->claimed, bit, memory_order_acq_rel) & bit) /* D, F */
]==] [==[
        (atomic_store_explicit(&q->claimed, bit, memory_order_release), false)) /* D, F */
]==])

model_mutant(issue_halted_late issue_refused scheduler/issue_queue
[==[
    if (ACS_UNLIKELY(failed))
        atomic_store_explicit(&q->halted, true, memory_order_release); /* E, F */
    if (c->marks)
        mark(q, &c->mark, ops, user);
]==] [==[
    if (c->marks)
        mark(q, &c->mark, ops, user);
    if (ACS_UNLIKELY(failed))
        atomic_store_explicit(&q->halted, true, memory_order_release); /* E, F */
]==])

model_mutant(issue_stands_too_soon issue_refused scheduler/issue_queue
[==[
    return acs_issue_queue_halted(q) && atomic_load_explicit(&q->claimed, memory_order_acquire) == 0; /* D, F */
]==] [==[
    return acs_issue_queue_halted(q);
]==])
