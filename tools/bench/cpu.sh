# shellcheck shell=bash
#
# Who used the processors, from /proc.  Sourced by tools/bench/run.sh.

cpus=$(nproc)
tick_us=$((1000000 / $(getconf CLK_TCK)))

# Microseconds that the named servers have used, workers and threads included.
cpu_us() {
    local name pid file used sum=0
    local -a family

    for name in "$@"; do
        family=()
        read -ra family < "/proc/${pid_of[$name]}/task/${pid_of[$name]}/children" || true
        for pid in "${pid_of[$name]}" "${family[@]}"; do
            for file in "/proc/$pid"/task/*/schedstat; do
                if read -r used _ 2>/dev/null < "$file"; then
                    sum=$((sum + used))
                fi
            done
        done
    done
    echo $((sum / 1000))
}

# Microseconds that the machine was busy; what a hypervisor took counts too.
machine_us() {
    local -a field

    read -ra field < /proc/stat
    echo $(((field[1] + field[2] + field[3] + field[6] + field[7] + field[8]) * tick_us))
}

# Microseconds of this shell and of the children that it has waited for.
shell_us() {
    local -a field
    local text

    text=$(<"/proc/$$/stat")
    read -ra field <<< "${text##*) }"
    echo $(((field[11] + field[12] + field[13] + field[14]) * tick_us))
}

# Wall clock in microseconds.
clock_us() { echo "${EPOCHREALTIME/./}"; }
