#!/usr/bin/env bash
#
# Manuals and references against the code: every directive, setting, verb,
# verdict and metric is told of, and nothing that does not exist.
#
#   tools/check-docs.sh [BUILD]      default: build
#
# Man pages are checked with mandoc where it is installed, else with man.

set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
build=${1:-build}
failed=0

wrong() {
    echo "check-docs.sh: $*" >&2
    failed=1
}

# each line of standard input must occur in FILE as a whole word
told() {
    local what=$1 file=$2 word

    while read -r word; do
        grep -qwF -- "$word" "$file" || wrong "$file: $what $word is missing"
    done
}

for page in docs/man/*.[0-9]; do
    if command -v mandoc >/dev/null; then
        said=$(mandoc -Tlint -Wwarning "$page" 2>&1) || true
    else
        said=$(man --warnings -E UTF-8 -l "$page" 2>&1 >/dev/null) || true
    fi
    [ -z "$said" ] || wrong "$said"
done

directives=$(sed -n 's/^    { ngx_string("\(seckill[a-z_]*\)"),$/\1/p' ngx_http_seckill_module.c)
told directive docs/directives.md <<< "$directives"
told directive README.md <<< "$directives"
told directive README.zh-CN.md <<< "$directives"
# shellcheck disable=SC2016  # backquotes of Markdown
sed -n 's/^### `\(seckill[a-z_]*\)`$/\1/p' docs/directives.md | while read -r name; do
    grep -qx "$name" <<< "$directives" || { echo "$name"; exit 1; }
done || wrong "docs/directives.md has a directive that does not exist"

sed -n 's/^    { "[a-z]*", "\([a-z_]*\)", skb_set.*/\1/p' src/backend/skb_setting.c \
    | told setting docs/man/seckilld.conf.5

verbs=$("$build/seckillctl" --help | sed -n '/^verbs:/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p')
[ -n "$verbs" ] || wrong "seckillctl --help names no verbs"
told verb docs/man/seckillctl.1 <<< "$verbs"
told verb README.md <<< "$verbs"
told verb README.zh-CN.md <<< "$verbs"

# both languages grant the same rights
grants() { awk '/^    ACL SETUSER/ { on = 1 } /^$/ { on = 0 } on' "$1"; }
[ "$(grants README.md)" = "$(grants README.zh-CN.md)" ] \
    || wrong "README.zh-CN.md: other ACL rights than in README.md"

sed -n 's/^SK_VERDICT([A-Z_]*, *[^,]*, *\([0-9]*\),.*/\1/p' src/shared/sk_verdicts_x.h \
    | told code docs/openapi.yaml

# metrics of dashboard and rules exist; those of redis_exporter are not ours
metrics=$(grep -ohE '"seckilld?_[a-z_]+"' src/http/ngx_http_seckill_status_text.c \
              src/consumer/skd_*.[ch] | tr -d '"' | sort -u)
metrics+=$'\n'$(grep -oE 'seckill_due_[a-z_]+' tools/grafana/seckill-due.sh | sort -u)

grep -ohE '\bseckilld?_[a-z_]+' tools/grafana/seckill.rules.yml tools/grafana/seckill.dashboard.json \
    | sed -E 's/_(bucket|sum|count)$//' | sort -u > "$build/check-docs.used"

while read -r name; do
    grep -qx "$name" <<< "$metrics"$'\n'"$directives" || wrong "tools/grafana: no such metric: $name"
done < "$build/check-docs.used"
rm -f "$build/check-docs.used"

# files that the architecture names: a path, a name, or a name of the module without its prefix
files=$(find src lua sql t tools docs config ./*.c -type f -printf '%p\n' | sed 's,^\./,,')
{ grep -oE '\b[A-Za-z0-9][A-Za-z0-9_/.-]*\.(c|h|lua|t|sh|yaml|md|conf|1|5)\b' docs/architecture.md || true; } | sort -u \
    | while read -r name; do
    grep -qE "(^|/)(ngx_http_seckill_)?${name//./\\.}$" <<< "$files" || { echo "$name"; exit 1; }
done || wrong "docs/architecture.md names a file that does not exist"

# relative links of the documents lead somewhere
for page in README.md README.zh-CN.md CONTRIBUTING.md docs/*.md; do
    { grep -oE '\]\([^)#: ]+' "$page" || true; } | cut -c3- | while read -r link; do
        [ -e "$(dirname "$page")/$link" ] || { echo "$page: $link"; exit 1; }
    done || wrong "$page has a dead link"
done

exit $failed
