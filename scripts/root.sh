# Sourced by scripts/bare and by tests: a bare Debian in a folder, and commands in it. It takes root.
#
#   root_make FOLDER SUITE [PACKAGE...]     makes it by debootstrap, minbase, with these packages
#   root_enter FOLDER WORK COMMAND...       runs a command in it, in the folder WORK; NETWORK=no takes the network away
#   root_leave                              ends what root_enter runs; for traps
#
# Mirror, proxies, keys and passwords come from the apt and pip settings of this machine, certificates too. All mounts
# live in a namespace that ends with the command, so nothing stays mounted, not even after kill -9.

root_runner=

root_make()
{
    local root=$1 suite=$2 packages=${*:3} mirror proxy place
    mirror=$(apt-get indextargets 'Created-By: Packages' --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' |
        awk -v suite="$suite" '$2 == "main" && first == "" { first = $3 }
            $2 == "main" && $1 == suite && own == "" { own = $3 } END { print own == "" ? first : own }')
    [ -n "$mirror" ] || { echo "the apt sources of this machine have no main" >&2; return 1; }
    proxy=$(apt-config shell proxy Acquire::http::Proxy)
    eval "$proxy"
    if [ -n "${proxy:-}" ]; then export http_proxy=${http_proxy:-$proxy}; fi
    rm -rf --one-file-system "$root"
    debootstrap --variant=minbase --include="${packages// /,}" "$suite" "$root" "$mirror" || return

    # How to fetch, as this machine does it: sources, keys, passwords, proxies, certificates, names of hosts.
    rm -f "$root/etc/apt/sources.list"
    for place in /etc/apt/{sources.list,sources.list.d,auth.conf,auth.conf.d,trusted.gpg,trusted.gpg.d,keyrings} \
        /usr/share/keyrings /usr/local/share/ca-certificates /etc/ssl/certs/ca-certificates.crt \
        /etc/pip.conf /etc/resolv.conf /etc/hosts; do
        [ -e "$place" ] || continue
        mkdir -p "$root$(dirname "$place")"
        cp -RL "$place" "$root$(dirname "$place")/"
    done
    if ! grep -rqsw "$suite" "$root"/etc/apt/sources.list*; then
        rm -rf "$root"/etc/apt/sources.list*
        echo "deb $mirror $suite main" >"$root/etc/apt/sources.list"
    fi
    for place in .pip/pip.conf .config/pip/pip.conf; do
        if [ -f "$HOME/$place" ]; then install -D -m 600 "$HOME/$place" "$root/srv/$place"; fi
    done
    apt-config dump | grep '^Acquire::' >"$root/etc/apt/apt.conf.d/99machine"
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # packages start no services here
    chmod +x "$root/usr/sbin/policy-rc.d"
}

# Inside the namespaces: mounts what a running system has, then runs the command.
root_inside()
{
    local root=$1 variables=(HOME=/srv TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin) name node
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount -t tmpfs -o mode=755 dev "$root/dev"
    for node in null zero full random urandom tty; do
        touch "$root/dev/$node"
        mount --bind "/dev/$node" "$root/dev/$node"
    done
    mkdir "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    for name in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${name%:*}" "$root/dev/${name#*:}"; done
    # A folder of wheels that pip is told to look into, by its path.
    if [ -d "${PIP_FIND_LINKS:-}" ]; then mkdir -p "$root$PIP_FIND_LINKS" && mount --bind "$PIP_FIND_LINKS" "$root$PIP_FIND_LINKS"; fi
    for name in $(compgen -e); do
        case $name in
        *_proxy | *_PROXY | PIP_* | SSL_CERT_FILE | SSL_CERT_DIR | *_CA_BUNDLE) variables+=("$name=${!name}") ;;
        esac
    done
    chroot "$root" env -i "${variables[@]}" sh -c 'cd "$0" && exec "$@"' "${@:2}"
}
export -f root_inside

# Ended from outside, all that the command started ends too.
root_enter()
{
    local without=()
    if [ "${NETWORK:-}" = no ]; then without=(--net); fi
    setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child "${without[@]}" bash -ec 'root_inside "$@"' root_inside "$@" &
    root_runner=$!
    wait "$root_runner"
}
root_leave()
{
    if [ -n "$root_runner" ] && kill -KILL "$root_runner" 2>/dev/null; then wait "$root_runner" 2>/dev/null || true; fi
}
