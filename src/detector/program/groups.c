#include "detector/program/program.h"

#include "detector/infer/runner.h"
#include "options/spec.h"

#include <string.h>

static const struct option_group group_general = {
    "General",
    (const struct option_spec[]){
        {.name = "help", .letter = 'h', .type = OPTION_FLAG, .help = "print this help and exit"},
        CHOICE("help-format", "text|man|bash|zsh|fish", "text", NULL,
               "what to print the help as: for people, as options of a manual page, or as "
               "completions of a shell"),
        FLAG("version", "print the version and exit"),
        TEXT("config", "FILE", NULL, NULL,
             "read options from this YAML file; its keys are the names of the flags"),
        CHOICE("log-level", "error|warning|notice|info|debug", "notice", NULL,
               "how much to write to standard error; read anew on SIGHUP"),
        FLAG("log-json", "write the log as lines of JSON"),
        END,
    }};

static const struct option_group group_server = {
    "Backend and images",
    (const struct option_spec[]){
        NUMBER("port", 0, 65535, "8000", NULL,
               "port of WebSocket and HTTP; 0: a free one, which the log tells"),
        TEXT("host", "ADDRESS", NULL, NULL,
             "listen on this address of the machine only, IPv4 or IPv6, or localhost; else on "
             "every one"),
        TEXT("token-file", "FILE", NULL, NULL,
             "file of the bearer token that backends and browsers must show"),
        {.name = "http-host",
         .type = OPTION_LIST,
         .value = "NAME",
         .help = "host name that HTTP may ask for without a token, besides addresses, this "
                 "machine's name and names without a dot"},
        TEXT("tls-cert", "FILE", NULL, NULL, "certificate, PEM: wss and https only"),
        TEXT("tls-key", "FILE", NULL, NULL, "private key of the certificate"),
        DURATION("report-interval", "2s", NULL,
                 "how often a stateReport is sent; read anew on SIGHUP"),
        NUMBER("queue", 1, 1000000, "1000", NULL,
               "how many detections wait for a backend; then the oldest is dropped; read anew on "
               "SIGHUP"),
        DURATION("drain-timeout", "5s", NULL,
                 "on SIGTERM, how long to wait until all detections are delivered; read anew on "
                 "SIGHUP"),
        END,
    }};

static const struct option_group group_cameras = {
    "Cameras",
    (const struct option_spec[]){
        NUMBER("camera-fps", 0, 240, "0", NULL,
               "frames a second of a camera at most; 0: all; read anew on SIGHUP"),
        CHOICE("rtsp-transport", "tcp|udp", "tcp", NULL, "how media of a stream travels"),
        TEXT("camera-ca", "FILE", NULL, NULL,
             "certificates that cameras are checked against by rtsps and https; else the system's"),
        CHOICE("camera-tls-verify", "yes|no", "yes", NULL,
               "no: whoever answers by rtsps or https is taken for the camera, and is given its "
               "password"),
        TEXT("hardware", "NAME", NULL, NULL,
             "decoder of the machine, such as vaapi or cuda; software where it is not there"),
        DURATION("open-timeout", "10s", NULL, "a camera that is not open by then is tried anew"),
        DURATION("stall-timeout", "10s", NULL, "a camera without a frame for so long is, too"),
        DURATION("backoff-min", "1s", NULL, "pause before a camera is opened again"),
        DURATION("backoff-max", "60s", NULL, "the longest, after many failures"),
        NUMBER("motion", 0, 1000, "0", NULL,
               "show a frame only if so many thousandths of the picture moved; 0: all"),
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
               "what is used longest ago goes first when models take more; read anew on SIGHUP"),
        NUMBER("model-max-mib", 1, 4096, "1024", NULL, "a larger archive is refused"),
        TEXT("model-ca", "FILE", NULL, NULL,
             "certificates that servers of models are checked against; else the system's"),
        {.name = "model-host",
         .type = OPTION_LIST,
         .value = "HOST",
         .help = "fetch models from this host only, or with .HOST from those below it, too; once "
                 "for each; else from any"},
        DURATION("model-recheck", "10m", NULL,
                 "how often to ask whether the archive of a model that runs is another by now, by "
                 "its ETag; 0: only when a list has a fresh URL; read anew on SIGHUP"),
        CHOICE("engine", "any|onnxruntime|opencv", "any", NULL,
               "what runs models; any: ONNX Runtime if it is found, else OpenCV"),
        TEXT("engine-library", "FILE", NULL, NULL,
             "the engine's shared library; else it is searched"),
        CHOICE("provider", "cpu|cuda|tensorrt", "cpu", NULL,
               "what ONNX Runtime runs models on; the CPU where it is not there"),
        NUMBER("model-threads", 1, 64, "1", NULL,
               "threads of each model; with one, a model is confined the most"),
        NUMBER("model-batch", 1, RUNNER_BATCH, "1", NULL,
               "frames of several cameras at once, for models whose first side is open: for "
               "GPUs"),
        DURATION("model-open-timeout", "60s", NULL, "a model that is not open by then is refused"),
        DURATION("model-run-timeout", "10s", NULL,
                 "a model that takes longer for one run is ended and opened again"),
        END,
    }};

static const struct option_group group_try = {
    "Trying a model",
    (const struct option_spec[]){
        TEXT("try", "CLIP", NULL, NULL,
             "run the archive of --model on every frame of a clip, without a backend: a line of "
             "JSON for each detection on standard output"),
        TEXT("out", "FOLDER", NULL, NULL,
             "write detections.jsonl there instead, sheet.png, the frames with detections as PNG, "
             "and objects.jsonl: every object of every frame, reported or not"),
        TEXT("sheet", "FILE", NULL, NULL,
             "write frames of the clip, with what was seen in them, into this PNG"),
        END,
    }};

const struct option_group *const program_groups[] = {&group_general, &group_server, &group_cameras,
                                                     &group_models,  &group_try,    NULL};

bool program_option_is_known(const char *name)
{
    for (size_t i = 0; program_groups[i]; i++) {
        for (const struct option_spec *spec = program_groups[i]->specs; spec->name; spec++) {
            if (strcmp(spec->name, name) == 0) {
                return true;
            }
        }
    }
    return false;
}
