# Sourced by tests that are a list of steps; $work is their scratch folder.
passed=0 failed=0

check() # NAME COMMAND...: says how it went and how long it took; shows what it printed if it failed
{
    local start=$SECONDS
    if "${@:2}" >"$work/log" 2>&1; then
        echo "ok   $1 ($((SECONDS - start)) s)"
        passed=$((passed + 1))
        return
    fi
    echo "FAIL $1"
    sed 's/^/     /' "$work/log"
    failed=$((failed + 1))
    return 1
}
