#!/bin/sh
# usage.sh BATON-SIM: whoever uses it wrongly gets 2, and reads what was wrong; what it says works.
set -eu
sim=$1

refuses() { # what it says, then the words
    wanted=$1
    shift
    told=$("$sim" "$@" 2>&1) && code=0 || code=$?
    case $code-$told in
    2-"baton-sim: "*"$wanted"*"see --help") ;;
    *)
        echo "baton-sim $*: $code: $told (not: $wanted)" >&2
        exit 1
        ;;
    esac
}

refuses 'one of --seed, --seeds and --mutants is needed'
refuses 'only one of' --seed 1 --seeds 1..2
refuses "'extra': takes no such word" --seed 1 extra
refuses "'--nonsense'" --nonsense
refuses "'--seed'" --seed
refuses '--seed -1: must be a number from 0' --seed -1
refuses '--seeds 1: must be a number from 5' --seeds 5..1
refuses '--nodes 10: must be a number from 1 to 9' --seed 1 --nodes 10
refuses '--mutant none: must be a name that --mutants lists' --seed 1 --mutant none

# What it says to replay plays the same again.
told=$("$sim" --mutant VOTE_UNGATED --seeds 1..500) && code=0 || code=$?
replay=$(printf '%s\n' "$told" | sed -n 's/^replay: baton-sim //p')
# shellcheck disable=SC2086 # words
again=$("$sim" $replay) && code_again=0 || code_again=$?
if [ "$code-$code_again" != 1-1 ]; then
    echo "replay: baton-sim $replay: $code, and then $code_again" >&2
    exit 1
fi
