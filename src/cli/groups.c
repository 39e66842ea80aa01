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

const struct option_group group_election = {
    "Election",
    (const struct option_spec[]){
        {.name = "node",
         .letter = 'n',
         .type = OPTION_TEXT,
         .value = "NAME",
         .help = "name of this node in the cluster; the host's name if not given"},
        {.name = "election",
         .letter = 'e',
         .type = OPTION_TEXT,
         .value = "NAME",
         .initial = "default",
         .help = "which election to take part in"},
        {.name = "provider",
         .type = OPTION_TEXT,
         .value = "URL",
         .is_secret = true,
         .help = "where the election happens, as URL; the embedded raft:// at --listen if not "
                 "given"},
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
         .help = "another member of the cluster; once for each, none for a node that stands alone; "
                 "*WEIGHT, ^PRIORITY and /KIND may follow"},
        {.name = "data",
         .letter = 'd',
         .type = OPTION_TEXT,
         .value = "DIR",
         .provider_key = "data",
         .help = "directory of this node's state and control socket; $STATE_DIRECTORY if not "
                 "given"},
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
         .help = "allow peers without authentication off the loopback interface"},
        {.name = "join",
         .type = OPTION_FLAG,
         .provider_key = "join",
         .help =
             "start without knowing the cluster; 'baton join' there adds this node, and says its "
             "kind, weight and priority"},
        CHOICE("guardian", "on|off", NULL, "guardian",
               "keep a guardian process, whose word proves this node's death at once"),
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
                 "silence after which a leader is doubted"),
        DURATION("lease", NULL, "lease", "how long a leader leads without being heard again"),
        {.name = "election-timeout",
         .type = OPTION_RANGE,
         .value = "MIN-MAX",
         .provider_key = "election-timeout",
         .help = "random time after which a round of votes is given up"},
        NUMBER("clock-drift-ppm", 0, 500000, NULL, "clock-drift-ppm",
               "how wrong a clock's rate may be, in millionths"),
        DURATION("preferred-stable", NULL, "preferred-stable",
                 "how long a node of higher priority is watched before it is handed leadership"),
        NUMBER("elections-per-hour-max", 0, 1000000, NULL, "elections-per-hour-max",
               "more elections than these in an hour raise a warning; 0 for never"),
        END,
    }};

const struct option_group group_serve = {
    "Status server",
    (const struct option_spec[]){
        ADDRESS("http", NULL, NULL, "serve /status, /healthz, /leader and /metrics there"),
        TEXT("http-token-file", "FILE", NULL, NULL,
             "file of the bearer token that requests must show; needed off loopback"),
        {.name = "http-host",
         .type = OPTION_LIST,
         .value = "NAME",
         .help = "host name that a request may ask for, besides the address itself"},
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
    "Its answer", (const struct option_spec[]){
                      DURATION("timeout", "30s", NULL, "how long to wait for the answer"),
                      END,
                  }};

const struct option_group group_ask_http = {
    "By HTTP", (const struct option_spec[]){
                   ADDRESS("http", NULL, NULL, "ask the status server of a node there instead"),
                   TEXT("http-token-file", "FILE", NULL, NULL, "file of the bearer token to show"),
                   END,
               }};

const struct option_group group_output = {"Output", (const struct option_spec[]){
                                                        FLAG("json", "print JSON for programs"),
                                                        END,
                                                    }};

#define STOP_TIMEOUT                                                                               \
    DURATION("stop-timeout", "10s", NULL,                                                          \
             "how long CMD may take from SIGTERM to its end; less where the lease ends first")

const struct option_group group_run = {
    "Running CMD",
    (const struct option_spec[]){
        CHOICE(
            "on-loss", "restart|exit|kill", "restart", NULL,
            "after leadership is lost: stop CMD and campaign again; stop it and exit; or kill it "
            "at once, and have the guardian kill baton too if it hangs beyond its lease"),
        FLAG("outlive-lease", "if baton itself hangs, let CMD go on when the lease ends: it then "
                              "acts beside the next leader's"),
        STOP_TIMEOUT,
        DURATION("wait-timeout", "0", NULL,
                 "give up if leadership is not won in this time; 0 waits for ever"),
        END,
    }};

const struct option_group group_once = {
    "Running CMD once",
    (const struct option_spec[]){
        DURATION("wait-timeout", "5m", NULL,
                 "give up if there is no result, and no turn of this node's, in this time; 0 waits "
                 "for ever"),
        STOP_TIMEOUT,
        DURATION("keep", "1h", NULL,
                 "how long the result is kept for nodes that come later; 0 keeps it for ever"),
        END,
    }};

const struct option_group group_pass = {
    "Passing on",
    (const struct option_spec[]){
        TEXT("to", "NODE", NULL, NULL, "the node that shall lead; the best placed if not given"),
        END,
    }};

const struct option_group group_join = {
    "Joining", (const struct option_spec[]){
                   FLAG("replace", "give a member of this name, if there is one, the new address"),
                   END,
               }};

const struct option_group group_watch = {
    "Watching",
    (const struct option_spec[]){
        DURATION("timeout", NULL, NULL, "end after this time; if not given, when the node ends"),
        END,
    }};

const struct option_group group_demo = {
    "Demonstration",
    (const struct option_spec[]){
        NUMBER("nodes", 3, 9, "5", NULL, "how many nodes to start"),
        FLAG("keep", "leave the cluster running at the end, and say how to play with it"),
        FLAG("plain", "print lines instead of redrawing a table"),
        END,
    }};

const struct option_group group_bench = {
    "Benchmark",
    (const struct option_spec[]){
        {.name = "provider",
         .type = OPTION_CHOICE,
         .value = "raft|redis|seed|seed-tuned|etcd|libraft|libraft-tuned",
         .choices = "raft|redis|seed|seed-tuned|etcd|libraft|libraft-tuned",
         .initial = "raft",
         .is_flag_only = true, /* elsewhere it is a URL, which may have a password in it */
         .help = "whom to measure; seed: SET NX and polling, as a plain program does it on Redis; "
                 "seed-tuned: the same with a lock of 1 s"},
        NUMBER("nodes", 1, 9, "3", NULL, "how many processes"),
        CHOICE("fault", "kill|crash|stop|resign|partition|redis-restart", "kill", NULL,
               "what befalls the leader: SIGKILL, SIGSEGV, SIGSTOP, an order, or no network; or "
               "the server: it is killed and comes back empty"),
        NUMBER("rounds", 1, 100000, "50", NULL, "how often"),
        CHOICE("preset", "default|lan|wan|fast", "default", NULL, "times of the raft provider"),
        CHOICE("guardian", "on|off", "on", NULL, "whether each node has a guardian"),
        DURATION("lease", "30s", NULL, "lifetime of the lock on Redis"),
        NUMBER("resident-mb", 0, 65536, "0", NULL, "memory that each process holds, in MiB"),
        FLAG("json", "print JSON for programs"),
        END,
    }};

const struct option_group group_bench_renew = {
    "Renewals",
    (const struct option_spec[]){
        NUMBER("elections", 1, 16000, "10000", NULL, "how many elections one process leads"),
        TEXT("url", "URL", NULL, NULL,
             "the server to measure on, redis:// or unix://; one of its own if not given"),
        DURATION("seconds", "5s", NULL, "for how long renewals are counted"),
        DURATION("interval", "0", NULL,
                 "how often each lease is renewed; 0: as soon as the last answer is there, which "
                 "is compared with redis-benchmark"),
        END,
    }};

const struct option_group group_help = {
    "Format",
    (const struct option_spec[]){
        CHOICE("format", "text|man|bash|fish|zsh", "text", NULL, "what to print the help as"),
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
