# bash completion for seckillctl: verbs, words and options are what --help of the
# installed tool says, so that they never differ from it.  Needs nothing but bash.

_seckillctl()
{
    local tool=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]}
    local prev=${COMP_WORDS[COMP_CWORD - 1]} verb="" i

    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -c | --config) i=$((i + 1)) ;;
        -*) ;;
        *) verb=${COMP_WORDS[i]}; break ;;
        esac
    done

    case $prev in
    -c | --config | --key-file | --cacert | --journal)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    --dir)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        return
        ;;
    --alg)
        mapfile -t COMPREPLY < <(compgen -W "HS256 HS384 HS512" -- "$cur")
        return
        ;;
    --repair)
        mapfile -t COMPREPLY < <(compgen -W "none replay release" -- "$cur")
        return
        ;;
    --to)
        mapfile -t COMPREPLY < <(compgen -W "product redis" -- "$cur")
        return
        ;;
    esac

    local text candidates

    if [[ $verb ]]; then
        text=$("$tool" "$verb" --help 2>/dev/null)
    else
        text=$("$tool" --help 2>/dev/null)
    fi

    if [[ $cur == -* ]]; then
        candidates=$(grep -oE -- '--[a-z][a-z-]+' <<< "$text" | sort -u)

    elif [[ $verb == limit ]]; then
        candidates="off default burst="

    elif [[ $verb ]]; then
        # "usage: seckillctl dead list ID": the lower-case word after the verb
        candidates=$(sed -nE "s/^(usage:)? +seckillctl $verb ([a-z]+).*/\2/p" <<< "$text" | sort -u)

    else
        candidates=$(sed -n '/^verbs:/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p' <<< "$text")
    fi

    mapfile -t COMPREPLY < <(compgen -W "$candidates" -- "$cur")
}

complete -F _seckillctl seckillctl
