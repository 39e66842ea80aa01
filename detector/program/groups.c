#include "detector/program/program.h"

#include "options/spec.h"

#include <string.h>

static const struct option_group group_general = {
    "General",
    (const struct option_spec[]){PROGRAM_OPTIONS("config", "; read anew on SIGHUP"), END}};

static const struct option_group group_server = {
    "Backend and images",
    (const struct option_spec[]){
        NUMBER("port", 0, 65535, "8000", NULL,
               "port of WebSocket and HTTP; 0: a free one, which the log names"),
        TEXT("host", "ADDRESS", NULL, NULL,
             "listen on this address of the machine only, IPv4 or IPv6, or localhost; all "
             "addresses if not given"),
        TEXT("token-file", "FILE", NULL, NULL,
             "file of the bearer token that backends and browsers must send"),
        {.name = "http-host",
         .type = OPTION_LIST,
         .value = "NAME",
         .help = "host name that a request without a token may have as Host, besides addresses, "
                 "this machine's name and names without a dot"},
        TEXT("tls-cert", "FILE", NULL, NULL, "certificate, PEM: wss and https only"),
        TEXT("tls-key", "FILE", NULL, NULL, "private key of the certificate"),
        DURATION_OF("report-interval", 100, 60000, "2s", NULL,
                    "how often a stateReport is sent; read anew on SIGHUP"),
        NUMBER("queue", 1, 1000000, "1000", NULL,
               "how many detections may wait for a backend before the oldest is dropped, besides "
               "up to 1024 that are sent and not yet acknowledged; read anew on SIGHUP"),
        DURATION("drain-timeout", "5s", NULL,
                 "on SIGTERM, how long to wait until all detections are delivered; read anew on "
                 "SIGHUP"),
        END,
    }};

static const struct option_group group_cameras = {
    "Cameras",
    (const struct option_spec[]){
        NUMBER("camera-fps", 0, 240, "0", NULL,
               "most frames a second of a camera; 0: all; read anew on SIGHUP"),
        CHOICE("rtsp-transport", "tcp|udp", "tcp", NULL, "transport of a stream's media"),
        TEXT("camera-ca", "FILE", NULL, NULL,
             "trusted certificates for cameras by rtsps and https; the system's if not given"),
        CHOICE("camera-tls-verify", "yes|no", "yes", NULL,
               "no: any server that answers by rtsps or https counts as the camera, and gets its "
               "password"),
        TEXT("hardware", "NAME", NULL, NULL,
             "hardware decoder, such as vaapi or cuda; software if the machine has none"),
        DURATION_OF("open-timeout", 1, 0, "10s", NULL,
                    "a camera that is not open after this time is opened again"),
        DURATION_OF("stall-timeout", 1, 0, "10s", NULL,
                    "a camera without a frame for this time is opened again"),
        DURATION_OF("backoff-min", 1, 0, "1s", NULL,
                    "shortest pause before a camera is opened again"),
        DURATION("backoff-max", "60s", NULL, "longest such pause, after many failures"),
        NUMBER("motion", 0, 1000, "0", NULL,
               "show only frames in which so many thousandths of the picture moved; 0: all"),
        END,
    }};

static const struct option_group group_models = {
    "Models",
    (const struct option_spec[]){
        TEXT("model", "FILE", NULL, NULL,
             "run this archive for every subscription, whatever the backend names"),
        TEXT("model-cache", "DIR", NULL, NULL,
             "keep fetched models here; else $CACHE_DIRECTORY, $XDG_CACHE_HOME/baton-detector or "
             "~/.cache/baton-detector"),
        NUMBER("model-cache-mib", 1, 1 << 20, "4096", NULL,
               "size of the cache; beyond it the model used longest ago is removed; read anew on "
               "SIGHUP"),
        NUMBER("model-max-mib", 1, 4096, "1024", NULL, "refuse a larger archive"),
        TEXT("model-ca", "FILE", NULL, NULL,
             "trusted certificates for servers of models; the system's if not given"),
        {.name = "model-host",
         .type = OPTION_LIST,
         .value = "HOST",
         .help =
             "fetch models from this host only, or with .HOST also from hosts below it; once for "
             "each; any host if not given"},
        FLAG("model-redirect-private",
             "a server of models may redirect to loopback and to private networks; else only to "
             "itself"),
        DURATION(
            "model-recheck", "10m", NULL,
            "how often to ask, by the ETag, whether the archive of a running model has changed; "
            "0: only when a list has a fresh URL; read anew on SIGHUP"),
        CHOICE("engine", ENGINE_KINDS, "any", NULL,
               "what runs models; any: ONNX Runtime if it is found, else OpenCV"),
        TEXT("engine-library", "FILE", NULL, NULL,
             "the engine's shared library; searched for if not given"),
        CHOICE("provider", ENGINE_PROVIDERS, "cpu", NULL,
               "what ONNX Runtime runs models on; the CPU if it is missing"),
        NUMBER("model-threads", 1, 64, "1", NULL,
               "threads of each model; with one, its process is confined the most"),
        DURATION_OF("model-open-timeout", 1, 0, "60s", NULL,
                    "refuse a model that is not open after this time"),
        DURATION_OF("model-run-timeout", 1, 0, "10s", NULL,
                    "end and reopen a model that takes longer for one run"),
        END,
    }};

static const struct option_group group_try = {
    "Trying a model",
    (const struct option_spec[]){
        TEXT("try", "CLIP", NULL, NULL,
             "run the archive of --model on every frame of a clip, without a backend: a line of "
             "JSON for each detection on standard output"),
        TEXT("out", "FOLDER", NULL, NULL,
             "write into this folder: detections.jsonl, objects.jsonl with every object of every "
             "frame, reported or not, and seen.html with frames in which the objects are drawn"),
        END,
    }};

static const struct option_group *const groups[] = {&group_general, &group_server, &group_cameras,
                                                    &group_models,  &group_try,    NULL};

const struct program_about program_about = {
    .name = "baton-detector",
    .text =
        "Watches cameras with models, on the order of a backend, and reports what it sees.\n\nA "
        "backend "
        "connects over WebSocket and says which cameras to watch; the same port serves the newest "
        "image of each (/camera/DISPLAY;CAMERA/image), /status, /metrics, /healthz and /readyz. "
        "SIGTERM delivers what waits and ends; SIGHUP reads the log's level and the limits anew.",
    .examples = "  baton-detector --port 8000 --token-file /etc/baton/token\n"
                "  baton-detector --try clip.mp4 --model cars.mpta --out seen\n",
    .file = "config",
    .groups = groups,
    .run = program_run,
};
