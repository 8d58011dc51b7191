/* The table of scenarios, in the order in which they run. Read by main.c. */
#include "scenarios.h"

const model_scenario *const g_scenarios[] = {
    &scenario_litmus_sb, &scenario_litmus_sb_fences, &scenario_litmus_sb_sc, &scenario_litmus_mp,
    &scenario_litmus_mp_orders, &scenario_litmus_mp_fences, &scenario_litmus_sequence, &scenario_litmus_coherence,
    &scenario_litmus_iriw, &scenario_litmus_iriw_fences, &scenario_litmus_lb, &scenario_litmus_2w,
    &scenario_fault_race, &scenario_fault_locks, &scenario_fault_count, &scenario_fifo_wrap,
    &scenario_fifo_ahead, &scenario_fifo_peek, &scenario_fifo_producers, &scenario_fifo_full, &scenario_fifo_pair,
    &scenario_fifo_spanned, &scenario_fifo_wide, &scenario_fifo_spanned_full, &scenario_fifo_three, &scenario_fifo_order,
    &scenario_fifo_consumers, &scenario_fifo_ready, &scenario_record_pair, &scenario_record_three,
    &scenario_record_aba, &scenario_record_chain, &scenario_record_blocks, &scenario_record_steal, &scenario_eventcount,
    &scenario_eventcount_waiters, &scenario_eventcount_notifiers, &scenario_eventcount_again,
    &scenario_eventcount_two, &scenario_timeline,
    &scenario_timeline_wait, &scenario_default_open, &scenario_default_retry, &scenario_worker_queue,
    &scenario_worker_settled,
    &scenario_worker_wait, &scenario_worker_callers, &scenario_worker_room, &scenario_worker_stop,
    &scenario_worker_host, &scenario_worker_kernel, &scenario_replay_sealed,
    &scenario_replay_again, &scenario_replay_wait,
    &scenario_workers_kernel, &scenario_workers_devices,
    &scenario_issue_give, &scenario_issue_takers, &scenario_issue_refused, &scenario_issue_room,
    &scenario_issue_slot, &scenario_issue_beside,
    &scenario_caller_kernel, &scenario_callers_action, &scenario_callers, NULL};
