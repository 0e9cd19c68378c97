#!/bin/sh
# Stands for espalier in the cases: runs it, and keeps its arguments and its exit code for the file `commands`.
# It survives a signal to the group, to keep the code of the tool; `:` and not '', as children inherit what is ignored.
trap : INT TERM HUP
call=${ESPALIER_RECORD:?}/${ESPALIER_STEP:?},$$
printf '%s\0' espalier "$@" >"$call" || exit 99 # no call without a record
"${ESPALIER_TOOL:?}" "$@"
code=$?
echo $code >"$call.code"
exit $code
