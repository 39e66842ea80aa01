# Completion of baton for bash; written by 'baton help --format bash'.
# Names of members of the group that --data asks; $1: which lines, for awk.
_baton_members() {
    local i data=()
    for ((i = 2; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == @(-d|--data) ]] && data=(--data "${COMP_WORDS[i + 1]}")
    done
    baton members "${data[@]}" --timeout 1s 2>/dev/null | awk "NR > 1 && ($1) { print \$1 }"
}
_baton() {
    local word=${COMP_WORDS[COMP_CWORD]} words
    case ${COMP_CWORD}:${COMP_WORDS[1]} in
        1:*) words=" node agent elections run once cron status members watch pass cordon uncordon join leave state publish subscribe worker work fleet explain demo bench help --help --version" ;;
        *:node) words=" --node --election --provider --init --listen --peer --data --group --kind --weight --priority --key-file --tls-cert --tls-key --tls-ca --insecure --join --guardian --hang --fence-after --fence --fence-timeout --fence-hosts --proofs --checkpoint --preset --heartbeat-interval --heartbeat-timeout --lease --election-timeout --clock-drift-ppm --preferred-stable --elections-per-hour-max --http --http-token-file --http-host --help --config --log-level --log-json" ;;
        *:agent) words=" --socket --socket-mode --socket-group --client-lease --allow --node --provider --listen --peer --data --group --kind --weight --priority --key-file --tls-cert --tls-key --tls-ca --insecure --join --guardian --hang --fence-after --fence --fence-timeout --fence-hosts --proofs --checkpoint --preset --heartbeat-interval --heartbeat-timeout --lease --election-timeout --clock-drift-ppm --preferred-stable --elections-per-hour-max --help --config --log-level --log-json" ;;
        *:elections) words=" --socket --timeout --json --help --config --log-level --log-json" ;;
        *:run) words=" --on-loss --watchdog --outlive-lease --stop-timeout --wait-timeout --node --election --provider --init --listen --peer --data --group --kind --weight --priority --key-file --tls-cert --tls-key --tls-ca --insecure --join --guardian --hang --fence-after --fence --fence-timeout --fence-hosts --proofs --checkpoint --preset --heartbeat-interval --heartbeat-timeout --lease --election-timeout --clock-drift-ppm --preferred-stable --elections-per-hour-max --http --http-token-file --http-host --help --config --log-level --log-json" ;;
        *:once) words=" --wait-timeout --stop-timeout --keep --keep-failed --node --election --provider --init --listen --peer --data --group --kind --weight --priority --key-file --tls-cert --tls-key --tls-ca --insecure --join --guardian --hang --fence-after --fence --fence-timeout --fence-hosts --proofs --checkpoint --preset --heartbeat-interval --heartbeat-timeout --lease --election-timeout --clock-drift-ppm --preferred-stable --elections-per-hour-max --help --config --log-level --log-json" ;;
        *:cron) words=" --file --stop-timeout --count --timeout --json --node --election --provider --init --listen --peer --data --group --kind --weight --priority --key-file --tls-cert --tls-key --tls-ca --insecure --join --guardian --hang --fence-after --fence --fence-timeout --fence-hosts --proofs --checkpoint --preset --heartbeat-interval --heartbeat-timeout --lease --election-timeout --clock-drift-ppm --preferred-stable --elections-per-hour-max --http --http-token-file --http-host --help --config --log-level --log-json" ;;
        *:status) words=" --data --election --socket --http --http-token-file --timeout --json --help --config --log-level --log-json" ;;
        *:members) words=" --data --election --socket --http --http-token-file --timeout --json --help --config --log-level --log-json" ;;
        *:watch) words=" --data --election --socket --timeout --json --help --config --log-level --log-json" ;;
        *:pass) words=" --to --data --election --socket --timeout --json --help --config --log-level --log-json" ;;
        *:cordon) words=" --data --election --socket --timeout --json --help --config --log-level --log-json" ;;
        *:uncordon) words=" --data --election --socket --timeout --json --help --config --log-level --log-json" ;;
        *:join) words=" --replace --data --timeout --json --help --config --log-level --log-json" ;;
        *:leave) words=" --data --timeout --json --help --config --log-level --log-json" ;;
        *:state) words=" --revision --lifetime --socket --timeout --json --help --config --log-level --log-json" ;;
        *:publish) words=" --socket --timeout --help --config --log-level --log-json" ;;
        *:subscribe) words=" --count --timeout --socket --json --help --config --log-level --log-json" ;;
        *:worker) words=" --pool --provider --worker --slots --label --gpus --memory-mib --stop-timeout --drain-timeout --never-lead --strategy --report-interval --silence --worker-lease --rebalance-every --rebalance-percent --keep --http --http-token-file --http-host --help --config --log-level --log-json" ;;
        *:work) words=" --pool --provider --file --name --id --service --wait --retries --backoff --time-limit --priority --weight --needs --gpus --memory-mib --together --dir --env --timeout --json --help --config --log-level --log-json" ;;
        *:fleet) words=" --fleet --token-file --tls-ca --timeout --prune --dry-run --only --json --help --config --log-level --log-json" ;;
        *:explain) words=" --preset --heartbeat-interval --heartbeat-timeout --lease --election-timeout --clock-drift-ppm --preferred-stable --elections-per-hour-max --json --help --config --log-level --log-json" ;;
        *:demo) words=" --nodes --keep --plain --help --config --log-level --log-json" ;;
        *:bench) words=" --provider --nodes --fault --rounds --preset --guardian --lease --rtt --jitter --loss --hang --resident-mb --json --elections --held --url --seconds --interval --clients --bytes --items --workers --strategy --ledger --help --config --log-level --log-json" ;;
        *:help) words=" --format --help --config --log-level --log-json" ;;
    esac
    case ${COMP_CWORD}:${COMP_WORDS[1]} in
        2:cron) words+=" run ls check" ;;
        2:state) words+=" get put delete list watch" ;;
        2:work) words+=" submit ls show logs watch cancel drain undrain stats" ;;
        2:fleet) words+=" status workers cameras displays apply cordon uncordon drain undrain move session stage tail" ;;
        2:bench) words+=" failover renew elections state placement work" ;;
        2:help) words+="  node agent elections run once cron status members watch pass cordon uncordon join leave state publish subscribe worker work fleet explain demo bench help" ;;
    esac
    case ${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD - 1]} in
        node:--init) words="auto on off" ;;
        node:--kind) words="voter witness learner" ;;
        node:--guardian) words="on off" ;;
        node:--proofs) words="all guardian none" ;;
        node:--preset) words="default lan wan fast" ;;
        node:--log-level) words="error warning notice info debug" ;;
        agent:--kind) words="voter witness learner" ;;
        agent:--guardian) words="on off" ;;
        agent:--proofs) words="all guardian none" ;;
        agent:--preset) words="default lan wan fast" ;;
        agent:--log-level) words="error warning notice info debug" ;;
        elections:--log-level) words="error warning notice info debug" ;;
        run:--on-loss) words="restart exit kill" ;;
        run:--init) words="auto on off" ;;
        run:--kind) words="voter witness learner" ;;
        run:--guardian) words="on off" ;;
        run:--proofs) words="all guardian none" ;;
        run:--preset) words="default lan wan fast" ;;
        run:--log-level) words="error warning notice info debug" ;;
        once:--init) words="auto on off" ;;
        once:--kind) words="voter witness learner" ;;
        once:--guardian) words="on off" ;;
        once:--proofs) words="all guardian none" ;;
        once:--preset) words="default lan wan fast" ;;
        once:--log-level) words="error warning notice info debug" ;;
        cron:--init) words="auto on off" ;;
        cron:--kind) words="voter witness learner" ;;
        cron:--guardian) words="on off" ;;
        cron:--proofs) words="all guardian none" ;;
        cron:--preset) words="default lan wan fast" ;;
        cron:--log-level) words="error warning notice info debug" ;;
        status:--log-level) words="error warning notice info debug" ;;
        members:--log-level) words="error warning notice info debug" ;;
        watch:--log-level) words="error warning notice info debug" ;;
        pass:--log-level) words="error warning notice info debug" ;;
        cordon:--log-level) words="error warning notice info debug" ;;
        uncordon:--log-level) words="error warning notice info debug" ;;
        join:--log-level) words="error warning notice info debug" ;;
        leave:--log-level) words="error warning notice info debug" ;;
        state:--log-level) words="error warning notice info debug" ;;
        publish:--log-level) words="error warning notice info debug" ;;
        subscribe:--log-level) words="error warning notice info debug" ;;
        worker:--strategy) words="round-robin least-loaded capability priority" ;;
        worker:--log-level) words="error warning notice info debug" ;;
        work:--log-level) words="error warning notice info debug" ;;
        fleet:--log-level) words="error warning notice info debug" ;;
        explain:--preset) words="default lan wan fast" ;;
        explain:--log-level) words="error warning notice info debug" ;;
        demo:--log-level) words="error warning notice info debug" ;;
        bench:--provider) words="raft agent redis seed seed-tuned etcd libraft libraft-tuned" ;;
        bench:--fault) words="kill crash elector container oom stop resign partition redis-restart worker master" ;;
        bench:--preset) words="default lan wan fast" ;;
        bench:--guardian) words="on off" ;;
        bench:--strategy) words="round-robin least-loaded capability priority" ;;
        bench:--ledger) words="stored lost" ;;
        bench:--log-level) words="error warning notice info debug" ;;
        help:--format) words="text man bash fish zsh" ;;
        help:--log-level) words="error warning notice info debug" ;;
        pass:--to) words=$(_baton_members '$7 == "yes" && $3 == "voter" && $4 != "leader"') ;;
        leave:-*) ;;
        leave:*) words+=" $(_baton_members 1)" ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _baton baton
