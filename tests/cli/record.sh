#!/bin/sh
# Stands for espalier in the cases: runs it and keeps its arguments and its exit code, which tests/cli/run writes to `commands`.
# A signal to the group of processes is for the tool; `:` and not '' because a child inherits what is ignored.
trap : INT TERM HUP
call=${ESPALIER_RECORD:?}/${ESPALIER_STEP:?},$$
printf '%s\0' espalier "$@" >"$call" || exit 99 # no call without a record
"${ESPALIER_TOOL:?}" "$@"
code=$?
echo $code >"$call.code"
exit $code
