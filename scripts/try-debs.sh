#!/bin/bash
# try-debs.sh SUITE [FOLDER]: as root, installs the Debian packages of dist/ in a new system of that Debian
# suite, which has nothing else of ours, uses them as a newcomer does, and removes them again. The system
# stays in FOLDER (default: build/system/SUITE-deb) for the next try.
# shellcheck disable=SC2016  # the system's shell expands the variables
set -euo pipefail
. scripts/system.sh
make_system "$1" "${2:-build/system/$1-deb}"
rm -rf "$system/debs" "$system/try"
mkdir "$system/debs" "$system/try"
cp dist/*.deb "$system/debs/"

# Its own tools, and not what daqloom brings: networks, a compiler, and systemd for its check of the services.
in_system 'apt-get update -q && apt-get install -y -qq --no-install-recommends iproute2 iputils-ping g++ cmake \
    ninja-build pkg-config systemd
    find / -xdev -path /try -prune -o -path /var -prune -o -path /proc -prune -o -print | sort >files-before
    apt-get install -y -qq --no-install-recommends /debs/*.deb'
in_system 'daqloom --version
    du -sm /usr/lib/daqloom
    daqloom demo
    daqloom measure laptop --duration "2 s"'

echo "The services:"
in_system 'for service in daqloom-switch daqloom-control@site daqloom-unit@0; do
        systemd-analyze verify "$service.service"
        systemd-analyze security --offline=true --no-pager "$service.service" | tail -n 1
    done'

echo "A switch of two ports, without huge pages:"
apart=1 in_system '
    mkdir -p /run/netns
    for host in 1 2; do
        ip netns add host$host
        ip link add port$host type veth peer name eth0 netns host$host
        ip link set port$host up
        ip -n host$host address add 10.0.0.$host/24 dev eth0
        ip -n host$host link set eth0 up
        printf "[ports.port%d]\ndevice = \"net_af_packet%d,iface=port%d\"\n" $host $host $host >>switch.toml
    done
    printf "[runs]\nhuge_pages = false\nsleep = \"100 us\"\n" >>switch.toml
    daqloom switch check switch.toml
    daqloom switch run switch.toml >switch.txt &
    until daqloom switch status >status.txt 2>&1; do kill -0 $!; sleep 0.2; done
    ip netns exec host1 ping -c 3 10.0.0.2
    daqloom switch stop
    wait $!'

echo "Sources and sinks in C++:"
in_system '
    examples=/usr/share/doc/libdaqloom-dev/examples
    for name in source sink gpu; do
        cmake -G Ninja -S $examples/$name -B $name
        cmake --build $name
    done
    g++ -std=c++20 $examples/sink/main.cpp -o my_sink $(pkg-config --cflags --libs daqloom)
    sources=
    mkfifo commands
    daqloom control laptop --start --set event.packing=100 --set measure.source=user \
        --set measure.sink=user --set measure.when_full=wait <commands >control.txt &
    exec 3>commands
    name="import json, sys; print(json.load(sys.stdin)[\"run\"])"
    until daqloom control status --json >status.json 2>/dev/null; do kill -0 $!; sleep 0.2; done
    run=$(python3 -c "$name" <status.json)
    for unit in 0 1 2 3; do
        source/my_source daqloom/$run/$unit/stream-0 $unit 100 400 &
        sources="$sources $!"
        ./my_sink daqloom/$run/$unit/output >sink-$unit.txt &
    done
    wait $sources
    daqloom control exit
    wait
    cat sink-*.txt
    [ "$(grep -c "incomplete: 0" sink-*.txt | grep -c ":1")" = 4 ]'

echo "Removal:"
in_system 'apt-get purge -y -qq daqloom daqloom-switch libdaqloom-dev && apt-get autoremove --purge -y -qq
    find / -xdev -path /try -prune -o -path /var -prune -o -path /proc -prune -o -print | sort >files-after
    comm -13 files-before files-after >left
    find / -xdev -path /try -prune -o -path /debs -prune -o -iname "*daqloom*" -print >>left
    getent passwd daqloom >>left || true
    if [ -s left ]; then echo "try-debs.sh: the removal leaves:"; cat left; exit 1; fi
    echo "nothing is left"'
