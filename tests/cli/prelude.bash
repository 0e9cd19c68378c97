# Read by every bash of a case (BASH_ENV): the order of the commands in the record, and ways to call the tool for signals.
# shellcheck shell=bash

# ESPALIER_STEP is the place of a command in the script, so that the record has an order that does not depend on who starts first:
# 1.100004 is the fourth command, 1.100004.100007.100001 the first one of a subshell within it, at line 7. Numbers have six digits
# and sort as text. The commands of a pipeline count as they are written.
step_above=$ESPALIER_STEP.100000 step_shell=$BASHPID step=100000
trap '((step_shell == BASHPID)) || { step_above=$ESPALIER_STEP.$((100000 + LINENO)) step_shell=$BASHPID step=100000; }
    ESPALIER_STEP=$step_above.$((++step))' DEBUG
set -o functrace

# The tool itself in the background, as a case needs it that sends signals to the process $started.
start() # ARGUMENT...
{
    started_call=$ESPALIER_RECORD/$ESPALIER_STEP,$BASHPID
    printf '%s\0' espalier "$@" >"$started_call"
    "$ESPALIER_TOOL" "$@" <&0 &
    started=$!
}

# Waits for it; its exit code is recorded and returned.
finish()
{
    local code
    { wait "$started"; code=$?; } 2>/dev/null # where the shell says "Killed"
    echo "$code" >"$started_call.code"
    return "$code"
}

# The tool itself below `timeout`, which sends a signal to its process and to its group; the exit code is the tool's.
interrupt() # SIGNAL SECONDS ARGUMENT...
{
    local call=$ESPALIER_RECORD/$ESPALIER_STEP,$BASHPID code
    printf '%s\0' timeout -s "$1" "$2" espalier "${@:3}" >"$call"
    timeout --preserve-status -s "$1" "$2" "$ESPALIER_TOOL" "${@:3}"
    code=$?
    echo "$code" >"$call.code"
    return "$code"
}
