#include "fleet/program/program.h"

#include "fleet/outlets/event_names.h"
#include "options/spec.h"

static const struct option_group group_general = {
    "General", (const struct option_spec[]){PROGRAM_OPTIONS("options", ""), END}};

static const struct option_group group_fleet = {
    "Fleet",
    (const struct option_spec[]){
        {.name = "provider",
         .type = OPTION_TEXT,
         .value = "URL",
         .initial = "agent:",
         .is_secret = true,
         .help = "where the processes of the fleet meet: agent:, raft:, redis: or memory:"},
        TEXT("node", "NAME", NULL, NULL,
             "this process's name among them; the host's name if not given"),
        TEXT("name", "NAME", "fleet", NULL,
             "the fleet: of its election, and the beginning of its keys"),
        TEXT("config", "FILE", NULL, NULL,
             "YAML that declares models, cameras, displays, subscriptions and workers; read again "
             "when it changes and on SIGHUP"),
        END,
    }};

static const struct option_group group_workers = {
    "Workers",
    (const struct option_spec[]){
        {.name = "worker",
         .type = OPTION_LIST,
         .value = "URL",
         .help = "a worker at ws://HOST:PORT or wss://HOST:PORT; at dns+ws://NAME:PORT one at each "
                 "address of the name, at srv+ws://_SERVICE._tcp.NAME one for each SRV record"},
        DURATION_OF("resolve-every", 100, 0, "10s", NULL,
                    "how often names of workers are resolved again"),
        TEXT("worker-token-file", "FILE", NULL, NULL,
             "file of the bearer token that workers ask for"),
        TEXT("worker-ca", "FILE", NULL, NULL,
             "trusted certificates for workers by wss; the system's if not given"),
        DURATION_OF(
            "grace", 100, 0, "1s", NULL,
            "a worker whose connection ended is offline if it cannot be reached again within "
            "this time; at least 100ms"),
        DURATION_OF("silence", 1000, 0, "10s", NULL,
                    "a worker that reports nothing for so long is offline"),
        NUMBER("subscriptions-max", 1, 1024, "64", NULL,
               "most subscriptions of a worker that has no limit of its own"),
        NUMBER("hysteresis", 0, 1000, "200", NULL,
               "difference of two workers' loads, in thousandths, that moves no camera"),
        END,
    }};

static const struct option_group group_http = {
    "HTTP: the API and the page",
    (const struct option_spec[]){
        ADDRESS("http", "127.0.0.1:8090", NULL,
                "listen here; port 0: a free one, which the log names"),
        TEXT("read-token-file", "FILE", NULL, NULL, "file of the bearer token that allows reading"),
        TEXT("change-token-file", "FILE", NULL, NULL,
             "file of the bearer token that allows changes too"),
        FLAG("insecure", "listen off loopback without tokens: everybody there may change all"),
        {.name = "http-host",
         .type = OPTION_LIST,
         .value = "NAME",
         .help = "host name that a request may have as Host, besides addresses and this host's"},
        TEXT("tls-cert", "FILE", NULL, NULL, "certificate, PEM: https only"),
        TEXT("tls-key", "FILE", NULL, NULL, "private key of the certificate"),
        END,
    }};

static const struct option_group group_models = {
    "Models at s3://BUCKET/KEY",
    (const struct option_spec[]){
        TEXT("s3-endpoint", "URL", NULL, NULL, "the server, such as https://s3.example"),
        TEXT("s3-region", "NAME", "us-east-1", NULL, "its region"),
        TEXT("s3-credentials", "FILE", NULL, NULL,
             "two lines, the key's id and the secret; URLs are signed with them for an hour"),
        END,
    }};

static const struct option_group group_outlets = {
    "Events that leave",
    (const struct option_spec[]){
        {.name = "webhook",
         .type = OPTION_LIST,
         .value = "URL",
         .is_secret = true,
         .hides_path = true,
         .help = "post events as JSON to this http:// or https:// URL; may be given several times"},
        TEXT("webhook-secret-file", "FILE", NULL, NULL,
             "file of the secret that signs them, in the header Baton-Signature"),
        TEXT("webhook-events", "NAMES", EVENT_NAMES_USUAL, NULL,
             "events that are posted, with commas between them"),
        {.name = "mqtt",
         .type = OPTION_TEXT,
         .value = "URL",
         .is_secret = true,
         .help =
             "publish events at this MQTT broker, mqtt://[USER:PASSWORD@]HOST[:PORT] or mqtts://"},
        TEXT("mqtt-topic", "TOPIC", NULL, NULL,
             "topic before the event's name; baton/ and the fleet's name if not given"),
        TEXT("mqtt-events", "NAMES", EVENT_NAMES_USUAL, NULL,
             "events that are published, with commas between them"),
        END,
    }};

static const struct option_group *const groups[] = {
    &group_general, &group_fleet, &group_workers, &group_http, &group_models, &group_outlets, NULL};

const struct program_about program_about = {
    .name = "baton-fleet",
    .text =
        "Is one process of a fleet's control plane: spreads cameras over detector workers.\n\nAny "
        "number of processes with the same --provider and --name share the fleet. One of them, the "
        "master, places the subscriptions; each keeps the connections of its share of the workers. "
        "SIGTERM passes all of that on and ends; SIGHUP reads --config again.",
    .examples = "  baton-fleet --provider agent: --config fleet.yaml\n"
                "  baton-fleet --provider redis://10.0.0.5 --worker dns+ws://workers:8000\n",
    .file = "options",
    .groups = groups,
    .run = program_run,
};
