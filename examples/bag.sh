#!/bin/sh
# A bag of commands and a service on one machine: an agent, two workers, and the worker that runs
# the service is killed. On several machines each has an agent of one group, and a worker.
set -eu

dir=$(mktemp -d)
pids=
trap 'kill -9 $pids 2>/dev/null || true; rm -rf "$dir"' EXIT
export BATON_PROVIDER="agent:$dir/agent.sock"

baton agent --provider memory: --socket "$dir/agent.sock" 2>"$dir/agent.log" &
pids=$!
until [ -S "$dir/agent.sock" ]; do sleep 0.05; done
for name in one two; do
    baton worker --worker $name --slots 2 2>"$dir/$name.log" &
    pids="$pids $!"
    echo $! >"$dir/$name.pid"
done

# The bag: a line is a command. The same name again submits nothing again, and waits for the rest.
seq 20 | sed 's/.*/sleep 0.1; echo frame &/' |
    baton work submit --name frames --retries 2 --wait --file -
echo "frames.19 wrote: $(baton work logs frames.19)"

# The service: in one place at a time, and soon in another one.
baton work submit --service --id collector -- \
    sh -c 'echo "on $BATON_NODE, epoch $BATON_EPOCH" >>"$0"; exec sleep 1000' "$dir/seen"
until [ -s "$dir/seen" ]; do sleep 0.05; done
worker=$(sed -n 's/^on \(.*\),.*/\1/p' "$dir/seen")
echo "kill -9 of the worker that runs the collector"
kill -9 "$(cat "$dir/$worker.pid")"
until [ "$(wc -l <"$dir/seen")" -eq 2 ]; do sleep 0.05; done
sed 's/^/the collector ran /' "$dir/seen"
