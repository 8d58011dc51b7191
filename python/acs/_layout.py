"""What include/acs.h says: numbers and places of fields. Made by tools/python_layout.c."""

VERSION = "0.1.0"

ACS_OK = 0
ACS_NOT_READY = 1
ACS_ERR_ARGUMENT = 2
ACS_ERR_FULL = 3
ACS_ERR_MEMORY = 4
ACS_ERR_STATE = 5
ACS_ERR_OPTION = 6
ACS_ERR_UNSUPPORTED = 7
ACS_ERR_LAUNCH = 8
ACS_ERR_HOST = 9
ACS_ERR_SKIPPED = 10
ACS_ERR_DEVICE = 11
ACS_ERR_CHECK = 12
ACS_ERR_INTERNAL = 13

OPTIONS_BYTES = 1264
OPTIONS: dict[str, tuple[str, int, int, str | None]] = {
    "backend": ("choice", 8, 4, "auto|cuda|host|sim"),
    "window": ("number", 16, 8, None),
    "fifo": ("number", 24, 8, None),
    "streams": ("number", 32, 8, None),
    "workers": ("number", 40, 8, None),
    "cpus": ("text", 48, 128, None),
    "executors": ("number", 176, 8, None),
    "wait": ("choice", 184, 4, "gpu|host"),
    "batch": ("number", 192, 8, None),
    "issue": ("choice", 200, 4, "auto|launch|replay|layers|gpu|resident"),
    "repeats": ("choice", 204, 4, "named|auto"),
    "graph_nodes": ("number", 208, 8, None),
    "spin_us": ("number", 216, 8, None),
    "log": ("choice", 224, 4, "off|error|warn|info|debug"),
    "serial": ("choice", 228, 4, "0|1"),
    "disable": ("choice", 232, 4, "0|1"),
    "check": ("choice", 236, 4, "off|overlap|writes|reads|all"),
    "check_every": ("number", 240, 8, None),
    "barriers": ("text", 248, 128, None),
    "stats": ("choice", 376, 4, "0|1"),
    "watchdog_s": ("number", 384, 8, None),
    "seed": ("number", 392, 8, None),
    "faults": ("number", 400, 8, None),
    "fault_kinds": ("text", 408, 128, None),
    "sim_order": ("choice", 536, 4, "seed|time"),
    "sim_gpu": ("choice", 540, 4, "h200|a100|rtx3070|rtx3060"),
    "sim_kernel_us": ("number", 544, 8, None),
    "pool": ("choice", 552, 4, "off|on|auto"),
    "memory_limit": ("number", 560, 8, None),
    "memory_slack": ("number", 568, 8, None),
    "memory_log": ("text", 576, 128, None),
    "rename": ("number", 704, 8, None),
    "spill": ("number", 712, 8, None),
    "growth": ("choice", 720, 4, "pages|chunks"),
    "ledger": ("text", 724, 128, None),
    "devices": ("number", 856, 8, None),
    "policy": ("choice", 864, 4, "single|round-robin|stream-aware|min-transfer-size|min-max-transfer-time|auto"),
    "topology": ("text", 868, 128, None),
    "dot": ("text", 996, 128, None),
    "devices_per_gpu": ("number", 1128, 8, None),
    "costs": ("text", 1136, 128, None),
}

SIZES: dict[str, int] = {
    "acs_dim3": 12,
    "acs_grid": 40,
    "acs_site": 24,
    "acs_error": 384,
    "acs_kernel": 32,
    "acs_arg": 16,
    "acs_attributes": 24,
    "acs_uses": 40,
    "acs_segment": 40,
    "acs_launch_params": 176,
    "acs_op_params": 16,
    "acs_group_params": 16,
    "acs_group_report": 96,
    "acs_footprint_input": 80,
    "acs_variant": 32,
    "acs_launch_shape": 32,
    "acs_share_info": 152,
    "acs_measure_params": 32,
    "acs_measured": 40,
}

STATISTICS_BYTES = 528
STATISTICS: tuple[tuple[str, int, int], ...] = (
    ("queued", 8, 1),
    ("retired", 16, 1),
    ("failed", 24, 1),
    ("skipped", 32, 1),
    ("kernels", 40, 1),
    ("copies", 48, 1),
    ("fills", 56, 1),
    ("host_functions", 64, 1),
    ("calls", 72, 1),
    ("edges", 80, 1),
    ("joins", 88, 1),
    ("same_slot", 96, 1),
    ("waits_sent", 104, 1),
    ("waits_implied", 112, 1),
    ("waits_complete", 120, 1),
    ("marks", 128, 1),
    ("submissions", 136, 1),
    ("caller_waits", 144, 1),
    ("barriers", 152, 1),
    ("window_high", 160, 1),
    ("running_high", 168, 1),
    ("levels", 176, 1),
    ("slots_used", 184, 1),
    ("issued_by", 192, 6),
    ("bundles", 240, 1),
    ("bundles_refused", 248, 1),
    ("launched_unfit", 256, 1),
    ("launched_few", 264, 1),
    ("launched_refused", 272, 1),
    ("captured", 280, 1),
    ("copies_as_kernels", 288, 1),
    ("nodes_built", 296, 1),
    ("memory_live", 304, 1),
    ("memory_reserved", 312, 1),
    ("memory_peak", 320, 1),
    ("memory_obtained", 328, 1),
    ("memory_resting", 336, 1),
    ("memory_versions", 344, 1),
    ("memory_homed", 352, 1),
    ("memory_early", 360, 1),
    ("memory_spilled", 368, 1),
    ("memory_returned", 376, 1),
    ("memory_moved", 384, 1),
    ("transfers", 392, 1),
    ("transfer_bytes", 400, 1),
    ("calls_as_kernels", 408, 1),
    ("ran_high", 416, 1),
    ("ran_ns", 424, 1),
    ("span_ns", 432, 1),
    ("idle_ns", 440, 1),
    ("replays", 448, 1),
    ("replayed", 456, 1),
    ("unmatched", 464, 1),
    ("not_run", 472, 1),
    ("undeclared", 480, 1),
    ("unknown_memory", 488, 1),
    ("shares", 496, 1),
    ("shares_ignored", 504, 1),
    ("variants", 512, 1),
    ("trials", 520, 1),
)
