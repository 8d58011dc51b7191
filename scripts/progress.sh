# shellcheck shell=bash
# Sourced by scripts/lib.sh and the shell tools: progress of long runs, on standard error, with the time that is left. On a
# terminal one line that changes, elsewhere a line each 5 s or BENCH_PROGRESS_S. In the words of bench/harness/progress.c.

progress_name="" progress_steps=0 progress_done=0 progress_begun=0 progress_told=0 progress_every=5 progress_clear="" progress_shown=""

progress_begin() # <program> <steps>
{
    progress_name=$1 progress_steps=$2 progress_done=0 progress_begun=$SECONDS progress_told=$SECONDS progress_shown=""
    progress_every=${BENCH_PROGRESS_S:-5} progress_clear=""
    [ ! -t 2 ] || { progress_clear=$'\r\033[K' progress_every=${BENCH_PROGRESS_S:-0}; }
}

progress_hide() # something else is printed
{
    [ -z "$progress_shown" ] || printf '%s' "$progress_clear" >&2
    progress_shown=""
}

progress_time() # <seconds>: as people say it
{
    if (($1 < 100)); then echo "$1 s"; elif (($1 < 6000)); then echo "$(($1 / 60)) min"; else echo "$(($1 / 3600)) h"; fi
}

progress_at() # <steps that are done> <what>
{
    local left="" last=""
    progress_done=$1
    ((progress_done < progress_steps)) || last=1
    if ((SECONDS - progress_told < progress_every)) && { [ -z "$last" ] || [ -n "$progress_clear" ]; }; then return 0; fi
    progress_told=$SECONDS
    if [ -z "$last" ] && ((progress_done > 0)); then
        left=", about $(progress_time $(((SECONDS - progress_begun) * (progress_steps - progress_done) / progress_done))) left"
    fi
    printf '%s%s: %d of %d (%d %%)%s: %s' "$progress_clear" "$progress_name" "$progress_done" "$progress_steps" \
        $((100 * progress_done / (progress_steps > 0 ? progress_steps : 1))) "$left" "$2" >&2
    if [ -n "$progress_clear" ]; then progress_shown=1; else echo >&2; fi
}

progress_step() # <what>: a step more is done
{
    progress_at $((progress_done + 1)) "$1"
}
