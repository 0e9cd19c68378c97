# Read by every bash of a case (BASH_ENV): the order of the calls in the record, and ways to call the tool for signals.
# shellcheck shell=bash disable=SC2034 # read by the trap

# ESPALIER_STEP is the place of a command in the script, so that the record has the same order whichever process starts first:
# 1.100000.100004 is the fourth command, 1.100000.100004.100007.100001 the first of a subshell within it, at line 7. All numbers have
# six digits, so that they sort as text. The commands of a pipeline count as they are written.
step_above=$ESPALIER_STEP.100000 step_shell=$BASHPID step=100000
trap '((step_shell == BASHPID)) || { step_above=$ESPALIER_STEP.$((100000 + LINENO)) step_shell=$BASHPID step=100000; }
    ESPALIER_STEP=$step_above.$((++step))' DEBUG
set -o functrace

# The tool itself in the background, for signals to the process $started.
start() # ARGUMENT...
{
    started_call=$ESPALIER_RECORD/$ESPALIER_STEP,$BASHPID
    printf '%s\0' espalier "$@" >"$started_call"
    "$ESPALIER_TOOL" "$@" <&0 &
    started=$!
}

# Sends $started a signal, if one is given, and waits for it; records and returns its exit code.
finish() # [SIGNAL]
{
    local code
    { [ $# = 0 ] || kill -s "$1" "$started"; wait "$started"; code=$?; } 2>/dev/null # the shell says "Killed"
    echo "$code" >"$started_call.code"
    return "$code"
}

# The tool itself below `timeout`, which signals the process and then its group. Records and returns the exit code of the tool.
interrupt() # SIGNAL SECONDS ARGUMENT...
{
    local call=$ESPALIER_RECORD/$ESPALIER_STEP,$BASHPID code
    printf '%s\0' timeout -s "$1" "$2" espalier "${@:3}" >"$call"
    timeout --preserve-status -s "$1" "$2" "$ESPALIER_TOOL" "${@:3}"
    code=$?
    echo "$code" >"$call.code"
    return "$code"
}
