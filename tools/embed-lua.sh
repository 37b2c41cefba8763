#!/bin/sh
#
# Writes a C header with each Lua script's exact bytes and its SHA-1, which is
# what EVALSHA wants.
#
#   tools/embed-lua.sh OUT FILE.lua...
#
# OUT is touched only when its content changes, so nothing is compiled in vain.
# Runs with POSIX sh, od, awk and sha1sum: nginx's configure calls it too.

set -eu

LC_ALL=C
export LC_ALL

fail() { echo "embed-lua.sh: $*" >&2; exit 1; }

[ $# -ge 2 ] || fail "usage: embed-lua.sh OUT FILE.lua..."

out=$1
shift

# One string literal per line of the script.  Everything but plain ASCII becomes
# three octal digits, "?" is escaped because of trigraphs.
literals() {
    od -An -v -tu1 "$1" | awk '
        BEGIN {
            for (i = 32; i < 127; i++) text[i] = sprintf("%c", i)
            text[9] = "\\t"; text[10] = "\\n"; text[13] = "\\r"
            text[34] = "\\\""; text[63] = "\\?"; text[92] = "\\\\"
        }
        {
            for (i = 1; i <= NF; i++) {
                line = line (($i in text) ? text[$i] : sprintf("\\%03o", $i))
                if ($i == 10) { printf "    \"%s\"\n", line; line = "" }
            }
        }
        END { if (line != "") printf "    \"%s\"\n", line }'
}

sha1() {
    sum=$(sha1sum < "$1") || fail "sha1sum failed for \"$1\""
    echo "${sum%% *}"
}

embed() {
    for file; do
        noun=$(basename "$file" .lua)

        case $noun in
            ''|[!a-z]*|*[!a-z0-9_]*) fail "\"$file\" is no name for a script" ;;
        esac
        [ -s "$file" ] || fail "\"$file\" is missing or empty"

        sum=$(sha1 "$file")
        text=$(literals "$file")
        [ -n "$text" ] || fail "od or awk failed for \"$file\""

        printf '\n/* lua/%s.lua */\n\n' "$noun"
        printf 'static const char  sk_script_%s_text[] SK_SCRIPT_MAYBE_UNUSED =\n' "$noun"
        printf '%s;\n\n' "$text"
        printf 'static const char  sk_script_%s_sha1[] SK_SCRIPT_MAYBE_UNUSED =\n' "$noun"
        printf '    "%s";\n\n' "$sum"
    done
}

mkdir -p "$(dirname "$out")"
new=$out.$$.new
trap 'rm -f "$new"' EXIT
trap 'exit 1' HUP INT TERM

{
    echo '/* Made by tools/embed-lua.sh: do not edit. */'
    echo
    echo '#define SK_SCRIPT_MAYBE_UNUSED  __attribute__((unused))'
    embed "$@"
} > "$new"

if ! cmp -s "$new" "$out"; then
    mv -f "$new" "$out"
fi
