# Part of run: three hosts, which are network namespaces of this machine with names of their own, on one bridge. A script in place
# of ssh starts what mpirun wants to have started there.
net=esp$$
lan=10.213.$(($$ % 250)).
hosts_end()
{
    for i in 1 2 3; do ip netns del $net-$i 2>/dev/null; done
    ip link del $net 2>/dev/null
}
hosts_begin()
{
    ip link add $net type bridge && ip link set $net up || return 1
    for i in 1 2 3; do
        ip netns add $net-$i && ip link add $net.$i type veth peer name eth0 netns $net-$i && ip link set $net.$i master $net up &&
            ip -n $net-$i address add $lan$i/24 dev eth0 && ip -n $net-$i link set eth0 up && ip -n $net-$i link set lo up || return 1
    done
}
if ! command -v ip >/dev/null || ! unshare -n true 2>/dev/null || ! hosts_begin >log 2>&1; then
    skip "three hosts: network namespaces cannot be made here"
    hosts_end
    return
fi
trap 'hosts_end; rm -rf "$work"' EXIT
cat >launch <<END
#!/bin/sh
host=\$1
shift
exec ip netns exec $net-\${host#$lan} unshare -u sh -c 'hostname "node\$0" && exec sh -c "\$1"' "\${host#$lan}" "\$*"
END
chmod +x launch
rest=("${mpi[@]:3}") # without timeout and mpirun
cluster() # RANKS COMMAND...: on the three hosts
{
    timeout 120 ip netns exec $net-1 unshare -u sh -c 'hostname node1 && exec "$@"' here mpirun "${rest[@]}" --host ${lan}1:2,${lan}2:2,${lan}3:2 --map-by node -n "$1" --mca plm_rsh_agent "$work/launch" \
        --mca oob_tcp_if_include ${lan}0/24 --mca btl self,tcp --mca btl_tcp_if_include ${lan}0/24 "${@:2}"
}
if ! cluster 3 hostname >log 2>&1 || [ "$(sort -u log | grep -c '^node[123]$')" != 3 ]; then
    skip "three hosts: mpirun does not reach them: $(head -n 1 log)"
    hosts_end
    return
fi
across() # OUTPUT COMMAND OPTION...: the same bytes as by one process
{
    rm -f "$1"
    ./espalier "$2" -q "${@:3}" && mv "$1" one.file && cluster 6 ./espalier "$2" --mpi -q "${@:3}" && cmp "$1" one.file
}
check "three hosts: gram" across out.npy gram -k "$kernel" -o out.npy data.jsonl
check "three hosts: train" across out.model train --solver folded -k "$kernel" -o out.model data.jsonl
check "three hosts: who does what" says 0 "rank 2 on node3: " cluster 3 ./espalier train -v --mpi --solver folded -k "$kernel" -o out.model data.jsonl
cut_off() # a host is lost: all ends, and nothing is left
{
    rm -f out.npy
    cluster 3 ./espalier gram --mpi --threads 1 -k "$slow" -o out.npy more.jsonl >said 2>&1 &
    local job=$! i
    for i in $(seq 200); do
        ls -A | grep -q '\.tmp$' && break
        sleep 0.05
    done
    ip netns pids $net-3 | xargs kill -9
    wait $job
    local code=$?
    cat said
    [ $code != 0 ] && nothing_left
}
check "three hosts: one is lost" cut_off
rm -f out.npy out.model
hosts_end
