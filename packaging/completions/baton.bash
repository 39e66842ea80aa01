# Completion of baton for bash; written by 'baton help --format bash'.
_baton() {
    local word=${COMP_WORDS[COMP_CWORD]} words
    case ${COMP_CWORD}:${COMP_WORDS[1]} in
        1:*) words=" node run once status members watch pass cordon uncordon join leave explain demo bench help --help --version" ;;
        *:node) words=" --node --election --provider --listen --peer --data --kind --weight --priority --key-file --tls-cert --tls-key --tls-ca --insecure --join --guardian --proofs --checkpoint --preset --heartbeat-interval --heartbeat-timeout --lease --election-timeout --clock-drift-ppm --preferred-stable --elections-per-hour-max --http --http-token-file --http-host --help --config --log-level --log-json" ;;
        *:run) words=" --on-loss --outlive-lease --stop-timeout --wait-timeout --node --election --provider --listen --peer --data --kind --weight --priority --key-file --tls-cert --tls-key --tls-ca --insecure --join --guardian --proofs --checkpoint --preset --heartbeat-interval --heartbeat-timeout --lease --election-timeout --clock-drift-ppm --preferred-stable --elections-per-hour-max --http --http-token-file --http-host --help --config --log-level --log-json" ;;
        *:once) words=" --wait-timeout --stop-timeout --keep --node --election --provider --listen --peer --data --kind --weight --priority --key-file --tls-cert --tls-key --tls-ca --insecure --join --guardian --proofs --checkpoint --preset --heartbeat-interval --heartbeat-timeout --lease --election-timeout --clock-drift-ppm --preferred-stable --elections-per-hour-max --help --config --log-level --log-json" ;;
        *:status) words=" --data --http --http-token-file --timeout --json --help --config --log-level --log-json" ;;
        *:members) words=" --data --http --http-token-file --timeout --json --help --config --log-level --log-json" ;;
        *:watch) words=" --data --timeout --json --help --config --log-level --log-json" ;;
        *:pass) words=" --to --data --timeout --json --help --config --log-level --log-json" ;;
        *:cordon) words=" --data --timeout --json --help --config --log-level --log-json" ;;
        *:uncordon) words=" --data --timeout --json --help --config --log-level --log-json" ;;
        *:join) words=" --replace --data --timeout --json --help --config --log-level --log-json" ;;
        *:leave) words=" --data --timeout --json --help --config --log-level --log-json" ;;
        *:explain) words=" --preset --heartbeat-interval --heartbeat-timeout --lease --election-timeout --clock-drift-ppm --preferred-stable --elections-per-hour-max --json --help --config --log-level --log-json" ;;
        *:demo) words=" --nodes --keep --plain --help --config --log-level --log-json" ;;
        *:bench) words=" --provider --nodes --fault --rounds --preset --guardian --lease --resident-mb --json --elections --url --seconds --interval --help --config --log-level --log-json" ;;
        *:help) words=" --format --help --config --log-level --log-json" ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _baton baton
