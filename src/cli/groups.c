#include "cli/groups.h"

#include "options/spec.h"

const struct option_group group_general = {
    "General",
    (const struct option_spec[]){
        {.name = "help", .letter = 'h', .type = OPTION_FLAG, .help = "print this help and exit"},
        TEXT("config", "FILE", NULL, NULL,
             "read options from this YAML file; its keys are the names of the flags"),
        CHOICE("log-level", "error|warning|notice|info|debug", "notice", NULL,
               "how much to write to standard error"),
        FLAG("log-json", "write the log as lines of JSON"),
        END,
    }};

#define NODE                                                                                       \
    {                                                                                              \
        .name = "node", .letter = 'n', .type = OPTION_TEXT, .value = "NAME",                       \
        .help = "name of this node in the group; the host's name if not given"                     \
    }
#define PROVIDER(text)                                                                             \
    {                                                                                              \
        .name = "provider", .type = OPTION_TEXT, .value = "URL", .is_secret = true, .help = (text) \
    }

const struct option_group group_election = {
    "Election",
    (const struct option_spec[]){
        NODE,
        {.name = "election",
         .letter = 'e',
         .type = OPTION_TEXT,
         .value = "NAME",
         .initial = "default",
         .help = "the election to take part in"},
        PROVIDER("the provider that holds the election; if not given, the agent of this host, if "
                 "its socket is there and no option is of a group of this process's own; else the "
                 "embedded raft:// at --listen"),
        CHOICE("init", "auto|on|off", "auto", NULL,
               "let another process be process 1 of a container, so that a proof of this one's "
               "death outlives it; auto: if this process is process 1"),
        END,
    }};

const struct option_group group_cluster = {
    "Group",
    (const struct option_spec[]){
        NODE,
        PROVIDER("the provider of the elections; the embedded raft:// at --listen if not given"),
        END,
    }};

const struct option_group group_peers = {
    "Embedded Raft provider",
    (const struct option_spec[]){
        ADDRESS("listen", "127.0.0.1:7400", NULL, "address at which the peers reach this node"),
        {.name = "peer",
         .letter = 'p',
         .type = OPTION_LIST,
         .value = "NAME=HOST:PORT",
         .provider_key = "peers",
         .help = "another member of the group; once for each, none for a group of one; *WEIGHT, "
                 "^PRIORITY and /KIND may follow"},
        {.name = "data",
         .letter = 'd',
         .type = OPTION_TEXT,
         .value = "DIR",
         .provider_key = "data",
         .help = "directory of this node's state and control socket; $STATE_DIRECTORY if not "
                 "given"},
        TEXT("group", "NAME", NULL, "group",
             "name of the group, which then has any number of elections; without it, one"),
        CHOICE("kind", "voter|witness|learner", NULL, "kind",
               "vote and lead, vote only, or follow only"),
        NUMBER("weight", 0, 1000000, NULL, "weight", "weight of this node's vote"),
        NUMBER("priority", -1000000, 1000000, NULL, "priority",
               "the healthy node of the highest priority leads"),
        TEXT("key-file", "FILE", NULL, "key-file",
             "file of the key that all peers share, readable by its owner alone"),
        TEXT("tls-cert", "FILE", NULL, "tls-cert",
             "certificate of this node, whose name is the node's"),
        TEXT("tls-key", "FILE", NULL, "tls-key", "private key of the certificate"),
        TEXT("tls-ca", "FILE", NULL, "tls-ca", "authority that signed the peers' certificates"),
        {.name = "insecure",
         .type = OPTION_FLAG,
         .provider_key = "insecure",
         .help = "allow peers without authentication beyond the loopback interface"},
        {.name = "join",
         .type = OPTION_FLAG,
         .provider_key = "join",
         .help = "start without knowing the group, whatever the peers are; 'baton join' on a "
                 "member adds "
                 "this node, and sets its kind, weight and priority"},
        CHOICE("guardian", "on|off", NULL, "guardian",
               "keep a guardian process, which proves this node's death at once"),
        DURATION(
            "hang", NULL, "hang",
            "have the guardian kill this process if its loop stands still for so long while it "
            "leads, so that a hang costs this time and not the lease; not if not given"),
        DURATION("fence-after", NULL, "fence-after",
                 "count a host as silent after this time; see docs/fencing.md; never if not given"),
        TEXT("fence", "CMD", NULL, "fence",
             "program that switches a silent host off (the calling convention of fence-agents), "
             "run with the agreement of a quorum"),
        DURATION("fence-timeout", NULL, "fence-timeout",
                 "kill that program after this time; 60s if not given"),
        TEXT("fence-hosts", "MEMBER=HOST,...", NULL, "fence-hosts",
             "hosts of members whose address does not name it as CMD knows it"),
        CHOICE("proofs", "all|guardian|none", NULL, "proofs",
               "which proofs of a leader's death to accept before its lease has run out"),
        DURATION("checkpoint", NULL, "checkpoint", "how often the log is compacted"),
        END,
    }};

const struct option_group group_timing = {
    "Timing",
    (const struct option_spec[]){
        CHOICE("preset", "default|lan|wan|fast", "default", "preset",
               "set of times that the flags below override"),
        DURATION("heartbeat-interval", NULL, "heartbeat-interval",
                 "how often a leader asks for its lease again"),
        DURATION("heartbeat-timeout", NULL, "heartbeat-timeout",
                 "silence of the leader after which the others may elect another"),
        DURATION("lease", NULL, "lease",
                 "how long a leader may lead after its latest successful renewal"),
        {.name = "election-timeout",
         .type = OPTION_RANGE,
         .value = "MIN-MAX",
         .provider_key = "election-timeout",
         .help = "random time after which a round of votes is given up"},
        NUMBER("clock-drift-ppm", 0, 500000, NULL, "clock-drift-ppm",
               "how wrong a clock's rate may be, in millionths (ppm)"),
        DURATION(
            "preferred-stable", NULL, "preferred-stable",
            "how long a node of higher priority must be well before leadership is handed to it"),
        NUMBER("elections-per-hour-max", 0, 255, NULL, "elections-per-hour-max",
               "warn if there are more elections in an hour; 0: never"),
        END,
    }};

const struct option_group group_serve = {
    "Status server",
    (const struct option_spec[]){
        ADDRESS("http", NULL, NULL, "serve /status, /healthz, /leader and /metrics there"),
        TEXT("http-token-file", "FILE", NULL, NULL,
             "file of the bearer token that requests must carry; required beyond loopback"),
        {.name = "http-host",
         .type = OPTION_LIST,
         .value = "NAME",
         .help = "host name that a request's Host may have, besides the address itself"},
        END,
    }};

#define DEFAULT_SOCKET                                                                             \
    "$BATON_AGENT, or else /run/baton/agent.sock, or for a user $XDG_RUNTIME_DIR/baton/agent.sock"
#define SOCKET                                                                                     \
    TEXT("socket", "PATH", NULL, NULL,                                                             \
         "the agent's Unix socket; if not given, that of $BATON_PROVIDER if it is agent:PATH, or " \
         "else " DEFAULT_SOCKET)

const struct option_group group_agent = {
    "Agent",
    (const struct option_spec[]){
        TEXT("socket", "PATH", NULL, NULL,
             "the agent's Unix socket; if not given, " DEFAULT_SOCKET),
        TEXT("socket-mode", "MODE", "0660", NULL, "permissions of the socket, in octal"),
        TEXT("socket-group", "GROUP", NULL, NULL,
             "group of the socket; the process's if not given"),
        /* A client renews several times in it, and the agent's loop wakes for each. */
        DURATION_OF("client-lease", 50, 0, "3s", NULL,
                    "how long a client may lead after its latest message to the agent"),
        {.name = "allow",
         .type = OPTION_LIST,
         .value = "ELECTION=WHO,...",
         .help = "who may take part in an election, pass it on and cordon others in it: users and "
                 "@groups; of several, the first whose pattern (* ? [a-z]) fits decides; root and "
                 "the agent's user always may"},
        END,
    }};

const struct option_group group_socket = {"Agent", (const struct option_spec[]){SOCKET, END}};

const struct option_group group_ask_agent = {
    "Agent", (const struct option_spec[]){
                 SOCKET,
                 DURATION("timeout", "10s", NULL, "how long to wait for the answer"),
                 END,
             }};

const struct option_group group_of_agent = {
    "Of the agent of this host",
    (const struct option_spec[]){
        {.name = "election",
         .letter = 'e',
         .type = OPTION_TEXT,
         .value = "NAME",
         .help = "an election of the agent, which is asked in place of a node"},
        SOCKET,
        END,
    }};

const struct option_group group_change = {
    "Changing a key",
    (const struct option_spec[]){
        NUMBER("revision", 0, INT64_MAX, NULL, NULL,
               "change the key only if it is at this revision; 0: only if it is absent"),
        DURATION("lifetime", NULL, NULL, "how long the value is kept; for ever if not given"),
        END,
    }};

const struct option_group group_subscribe = {
    "Ending",
    (const struct option_spec[]){
        NUMBER("count", 0, INT64_MAX, "0", NULL, "end after so many messages; 0: never"),
        DURATION("timeout", NULL, NULL, "end after this time; if not given, with the agent"),
        END,
    }};

const struct option_group group_client = {
    "Which node to ask",
    (const struct option_spec[]){
        {.name = "data",
         .letter = 'd',
         .type = OPTION_TEXT,
         .value = "DIR",
         .help = "data directory of a node on this machine; $STATE_DIRECTORY if not given"},
        END,
    }};

const struct option_group group_answer = {
    "The answer", (const struct option_spec[]){
                      DURATION("timeout", "30s", NULL, "how long to wait for the answer"),
                      END,
                  }};

const struct option_group group_ask_http = {
    "By HTTP", (const struct option_spec[]){
                   ADDRESS("http", NULL, NULL, "ask the status server at this address instead"),
                   TEXT("http-token-file", "FILE", NULL, NULL, "file of the bearer token to send"),
                   END,
               }};

const struct option_group group_output = {"Output", (const struct option_spec[]){
                                                        FLAG("json", "print JSON for programs"),
                                                        END,
                                                    }};

#define STOP_TIMEOUT                                                                               \
    DURATION("stop-timeout", "10s", NULL,                                                          \
             "how long CMD may take from SIGTERM to its end; less if the lease ends first")

const struct option_group group_run = {
    "Running CMD",
    (const struct option_spec[]){
        CHOICE(
            "on-loss", "restart|exit|kill", "restart", NULL,
            "when leadership is lost: stop CMD and campaign again; stop CMD and exit; or kill CMD "
            "at once, and have the guardian kill baton, too, if it hangs beyond its lease"),
        FLAG("watchdog",
             "with --hang: give CMD a $NOTIFY_SOCKET and $WATCHDOG_USEC; once CMD has sent "
             "WATCHDOG=1, "
             "as by sd_notify(3), it counts as hung if it does not send it again in that time"),
        FLAG("outlive-lease", "if baton itself hangs, let CMD go on when the lease ends: CMD then "
                              "acts beside the next leader's CMD"),
        STOP_TIMEOUT,
        DURATION("wait-timeout", "0", NULL,
                 "give up if leadership is not won in this time; 0 waits forever"),
        END,
    }};

const struct option_group group_once = {
    "Running CMD once",
    (const struct option_spec[]){
        DURATION(
            "wait-timeout", "5m", NULL,
            "give up if in this time there is neither a result nor leadership for this node; 0 "
            "waits forever"),
        STOP_TIMEOUT,
        DURATION("keep", "1h", NULL,
                 "how long the result is kept for nodes that come later; 0 keeps it forever"),
        DURATION("keep-failed", "1m", NULL,
                 "the same for a result that is not 0; a node that comes after it runs CMD again"),
        END,
    }};

const struct option_group group_cron = {
    "Crontab",
    (const struct option_spec[]){
        {.name = "file",
         .letter = 'f',
         .type = OPTION_TEXT,
         .value = "FILE",
         .help = "the crontab; for run and check"},
        STOP_TIMEOUT,
        NUMBER("count", 0, 1000, "3", NULL, "for check: how many fires of each line to print"),
        DURATION("timeout", "10s", NULL, "for ls: how long to wait for the answer"),
        FLAG("json", "for ls and check: print JSON for programs"),
        END,
    }};

const struct option_group group_pass = {
    "Handing over", (const struct option_spec[]){
                        TEXT("to", "NAME", NULL, NULL,
                             "the node or process that is to lead; the best placed if not given"),
                        END,
                    }};

const struct option_group group_join = {
    "Joining", (const struct option_spec[]){
                   FLAG("replace", "if there is a member of this name, give it the new address"),
                   END,
               }};

const struct option_group group_watch = {
    "Watching", (const struct option_spec[]){
                    DURATION("timeout", NULL, NULL,
                             "end after this time; if not given, with the node or the agent"),
                    END,
                }};

const struct option_group group_demo = {
    "Demonstration",
    (const struct option_spec[]){
        NUMBER("nodes", 3, 9, "5", NULL, "how many nodes to start"),
        FLAG("keep", "leave the group running at the end, and print how to use it"),
        FLAG("plain", "print lines instead of redrawing a table"),
        END,
    }};

const struct option_group group_bench = {
    "Benchmark",
    (const struct option_spec[]){
        {.name = "provider",
         .type = OPTION_CHOICE,
         .value = "raft|agent|redis|seed|seed-tuned|etcd|libraft|libraft-tuned",
         .choices = "raft|agent|redis|seed|seed-tuned|etcd|libraft|libraft-tuned",
         .initial = "raft",
         .is_flag_only = true, /* other sources may set a URL that contains a password */
         .help =
             "what to measure; agent: processes that take part through one agent, or with --rtt "
             "through one at each host; seed: SET NX "
             "and polling, as a plain program does it on Redis; seed-tuned: the same with a "
             "lock of 1 s"},
        NUMBER("nodes", 1, 9, "3", NULL, "number of processes"),
        CHOICE("fault",
               "kill|crash|elector|container|oom|stop|resign|partition|redis-restart|worker|master",
               "kill", NULL,
               "the fault: SIGKILL or SIGSEGV of the leader, SIGKILL of the process that leads in "
               "a container (a PID namespace whose process 1 is baton), the end of the container "
               "by its process 1, the out-of-memory killer (these three take root), SIGSTOP, a "
               "command to resign, no network; or the server is killed and comes back empty"),
        NUMBER("rounds", 1, 100000, "50", NULL, "number of rounds"),
        CHOICE("preset", "default|lan|wan|fast", "default", NULL, "times of the raft provider"),
        CHOICE("guardian", "on|off", "on", NULL, "whether each node has a guardian"),
        DURATION("lease", "30s", NULL,
                 "lifetime of the lock on Redis, or of the lease that the agent gives"),
        DURATION("rtt", "0", NULL,
                 "round trip between the nodes, each of which then has a network namespace of its "
                 "own and trusts the others by a key; needs root or user namespaces; 0: loopback"),
        DURATION("jitter", "0", NULL, "each way takes up to half as much more or less; with --rtt"),
        TEXT("loss", "PERCENT", "0", NULL, "share of the packets that are lost; with --rtt"),
        DURATION("hang", NULL, NULL,
                 "setting hang of each node, for --fault stop; with --provider agent its client "
                 "lease, by which it notices a hang"),
        NUMBER("resident-mb", 0, 65536, "0", NULL, "memory that each process holds, in MiB"),
        FLAG("json", "print JSON for programs"),
        END,
    }};

const struct option_group group_bench_renew = {
    "Many elections",
    (const struct option_spec[]){
        NUMBER("elections", 1, 16000, "10000", NULL,
               "how many elections there are; for renew, how many one process leads"),
        NUMBER("held", 1, 16000, "3000", NULL,
               "for elections: how many of them the process leads that is killed"),
        TEXT("url", "URL", NULL, NULL,
             "the server to measure on, redis:// or unix://; one of its own if not given"),
        TEXT("seconds", "TIME", "5", NULL,
             "for how long renewals or writes are counted, for each of --clients; without a unit, "
             "seconds"),
        DURATION("interval", "0", NULL,
                 "how often each lease is renewed; 0: as soon as the previous answer has come, "
                 "which is compared with redis-benchmark"),
        END,
    }};

const struct option_group group_bench_state = {
    "Keyed state",
    (const struct option_spec[]){
        TEXT("clients", "N,...", "1,64,512", NULL,
             "numbers of clients, each of which writes as soon as its previous write is done"),
        NUMBER("bytes", 1, 65536, "256", NULL, "bytes of a value"),
        END,
    }};

const struct option_group group_bench_placement = {
    "Placement", (const struct option_spec[]){
                     NUMBER("items", 1, 1000000, "10000", NULL, "items of the pool"),
                     NUMBER("workers", 1, 100000, "500", NULL, "workers of the pool"),
                     CHOICE("strategy", "round-robin|least-loaded|capability|priority",
                            "least-loaded", NULL, "which worker an item goes to"),
                     END,
                 }};

const struct option_group group_bench_work = {
    "Work",
    (const struct option_spec[]){
        CHOICE(
            "ledger", "stored|lost", "stored", NULL,
            "with --fault master: what the next leader finds; lost: nothing, so that it asks the "
            "workers"),
        END,
    }};

#define LIST(n, v, h)                                                                              \
    {                                                                                              \
        .name = (n), .type = OPTION_LIST, .value = (v), .help = (h)                                \
    }

const struct option_group group_pool = {
    "Pool", (const struct option_spec[]){
                TEXT("pool", "NAME", "default", NULL, "the pool, whose workers share the work"),
                PROVIDER("the provider that holds the pool; the agent of this host if not given"),
                END,
            }};

const struct option_group group_worker = {
    "Worker",
    (const struct option_spec[]){
        TEXT("worker", "NAME", NULL, NULL,
             "name of this worker in the pool; the host's name if not given"),
        NUMBER("slots", 0, 1024, NULL, NULL,
               "sum of the weights of what runs at a time; the processors if not given; 0: leads "
               "the pool and runs nothing"),
        LIST("label", "LABEL", "what this host has, for items that need it"),
        NUMBER("gpus", 0, 1024, "0", NULL, "number of GPUs"),
        NUMBER("memory-mib", 1, INT64_MAX, NULL, NULL,
               "memory for the items, in MiB; the host's if not given"),
        STOP_TIMEOUT,
        DURATION("drain-timeout", "1h", NULL,
                 "how long jobs may go on after the first SIGTERM; then another worker runs them"),
        END,
    }};

const struct option_group group_pool_leader = {
    "Leading the pool",
    (const struct option_spec[]){
        FLAG("never-lead", "leave the leadership of the pool to others"),
        CHOICE("strategy", "round-robin|least-loaded|capability|priority", "least-loaded", NULL,
               "where an item goes, of the workers that have room for it"),
        DURATION("report-interval", "1s", NULL, "how often a worker reports what it runs"),
        DURATION("silence", "5s", NULL, "after that without a report a worker gets nothing new"),
        DURATION("worker-lease", "30s", NULL,
                 "how long a worker may act without being heard, at most: the provider's longest "
                 "lease (max-lease of redis:)"),
        DURATION("rebalance-every", "30s", NULL, "how often services are spread anew; 0: never"),
        NUMBER("rebalance-percent", 0, 1000, "20", NULL,
               "difference of two workers' loads that moves nothing"),
        DURATION("keep", "24h", NULL, "how long results and ended items are kept"),
        END,
    }};

const struct option_group group_submit = {
    "Submitting",
    (const struct option_spec[]){
        TEXT("file", "FILE", NULL, NULL, "one command a line; - is standard input"),
        TEXT("name", "NAME", NULL, NULL,
             "name of the submission, from which the items get their ids: to submit the same again "
             "is to submit it once; random if not given"),
        TEXT("id", "ID", NULL, NULL,
             "id of the item, of one CMD: to submit the same again is to submit it once"),
        FLAG("service", "CMD is to run always: it is started again when it ends"),
        FLAG("wait", "wait until the items have ended"),
        NUMBER("retries", 0, 1000, "0", NULL, "further attempts after one that failed"),
        DURATION("backoff", "1s", NULL, "before the first of them; doubles with each"),
        DURATION("time-limit", "0", NULL, "end an attempt that takes longer; 0: never"),
        NUMBER("priority", -1000000, 1000000, "0", NULL, "higher ones first"),
        NUMBER("weight", 1, 1000000, "1", NULL, "slots that the item takes"),
        LIST("needs", "LABEL", "label that its worker must have"),
        NUMBER("gpus", 0, 1024, "0", NULL, "GPUs that it needs"),
        NUMBER("memory-mib", 0, INT64_MAX, "0", NULL, "memory that it needs, in MiB"),
        TEXT("together", "KEY", NULL, NULL, "items of the same key run on one worker"),
        TEXT("dir", "DIR", NULL, NULL, "folder in which CMD starts, on the worker's host"),
        LIST("env", "NAME=VALUE", "variable for CMD"),
        END,
    }};

const struct option_group group_ask_pool = {
    "Asking",
    (const struct option_spec[]){
        DURATION(
            "timeout", "10s", NULL,
            "how long to wait for an answer; with --wait, for the items, for ever if not given"),
        END,
    }};

const struct option_group group_fleet = {
    "Which fleet to ask",
    (const struct option_spec[]){
        TEXT("fleet", "URL", "http://127.0.0.1:8090", NULL, "a process of the fleet"),
        TEXT("token-file", "FILE", NULL, NULL, "file of the bearer token to send"),
        TEXT("tls-ca", "FILE", NULL, NULL,
             "with https: authority that signed its certificate; those of the system if not given"),
        DURATION("timeout", "30s", NULL, "how long to wait for an answer"),
        END,
    }};

const struct option_group group_fleet_apply = {
    "For some of its verbs",
    (const struct option_spec[]){
        FLAG("prune", "for apply: delete what is not in the file"),
        FLAG("dry-run", "for apply: change nothing, and print what would be changed"),
        TEXT("only", "NAME,...", NULL, NULL, "for tail: names of events; all if not given"),
        END,
    }};

const struct option_group group_help = {
    "Format", (const struct option_spec[]){
                  CHOICE("format", "text|man|bash|fish|zsh", "text", NULL, "format of the help"),
                  END,
              }};

const struct option_group group_measure = {
    "Measurement", (const struct option_spec[]){
                       HIDDEN_TEXT("act-file", "shared file in which leadership is stamped"),
                       {.name = "act-slot",
                        .type = OPTION_NUMBER,
                        .value = "N",
                        .min = 0,
                        .max = 63,
                        .help = "which slot of it",
                        .is_hidden = true},
                       {.name = "resident-mb",
                        .type = OPTION_NUMBER,
                        .value = "N",
                        .min = 0,
                        .max = 65536,
                        .help = "memory to hold",
                        .is_hidden = true},
                       {.name = "test-switches",
                        .type = OPTION_FLAG,
                        .help = "allow 'isolate' over the control socket",
                        .is_hidden = true},
                       END,
                   }};
