# shellcheck shell=bash
# Sourced by scripts/test and scripts/demo: installs Debian or Ubuntu packages, but only those whose purpose is unmet.
. "$(dirname "${BASH_SOURCE[0]}")/progress.sh"

# have_command <name>, have_header <file>, have_pc <module>: what a package is needed for.
have_command() { command -v "$1" >/dev/null 2>&1; }
have_header() { echo "#include <$1>" | cc -E -x c - >/dev/null 2>&1; }
have_pc() { pkg-config --exists "$1" 2>/dev/null; }
have_cmake() { have_command cmake && cmake --version | awk 'NR == 1 { split($3, v, "."); exit !(v[1] > 3 || v[2] >= 24) }'; }
# Can clang link a program with the thread sanitizer? Its runtime is a package of its own.
have_clang_sanitizers()
{
    local program
    program=$(mktemp)
    echo 'int main(void) { return 0; }' | clang -fsanitize=thread -x c - -o "$program" 2>/dev/null
    local status=$?
    rm -f "$program"
    return $status
}

# Can the page of ACS_REPORT be tried in a browser?
have_browser()
{
    local name
    for name in chromium-headless-shell chromium chromium-browser google-chrome chrome; do
        ! have_command "$name" || return 0
    done
    [ -n "${ACS_TEST_BROWSER:-}" ]
}

missing=()
need() # <package> <check...>
{
    "${@:2}" || missing+=("$1")
}

die()
{
    echo "$*" >&2
    exit 1
}

install_missing()
{
    [ ${#missing[@]} -gt 0 ] || return 0
    local list="${missing[*]}" as_root=()
    have_command apt-get || die "Missing: $list. This machine has no apt-get; install the equivalents and run again."
    if [ "$(id -u)" -ne 0 ]; then
        have_command sudo || die "Missing: $list. Run as root, or install them: apt-get install $list"
        as_root=(sudo)
    fi
    echo "== installing $list"
    "${as_root[@]}" apt-get update -qq || die "apt-get update failed; missing: $list"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
        >/dev/null || die "apt-get could not install $list"
    missing=()
}

step() { echo "== $* (after $SECONDS s)"; }

# Copies what ninja or ctest prints, but for steps and tests that pass. Of them it tells how many are done, and the time that
# is left (progress.sh).
show_progress() # <what>
{
    local line begun=""
    while IFS= read -r line; do
        if [[ $line =~ ^\ +Start\ +[0-9]+: || ! $line ]]; then
            continue
        elif [[ $line == *"***"[FTEN]* || ! $line =~ ^\ *([0-9]+)/([0-9]+)\  ]]; then
            progress_hide
            printf '%s\n' "$line"
        else
            [ -n "$begun" ] || progress_begin "$1" "${BASH_REMATCH[2]}"
            begun=1 progress_steps=${BASH_REMATCH[2]}
            progress_at "${BASH_REMATCH[1]}" "after $SECONDS s in all"
        fi
    done
    progress_hide
}
