/* Options to settings. */
#include "base/value.h"
#include "detector/program/program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int ms(const struct options *options, const char *name)
{
    int64_t value = options_duration(options, name).ns / 1000000;

    return value > INT32_MAX ? INT32_MAX : (int)value;
}

static uint64_t mib(const struct options *options, const char *name)
{
    return (uint64_t)options_number(options, name) << 20;
}

/* Returns the least time between two frames; 0: no limit. */
static int interval_ms(const struct options *options)
{
    int64_t fps = options_number(options, "camera-fps");

    return fps > 0 ? (int)(1000 / fps) : 0;
}

/* Checks the files that are opened only later, by other processes. An engine's library may also be
 * a name that the loader finds. */
static int check_files(const struct options *options, struct baton_error *reterr)
{
    static const char *const names[] = {"engine-library", "model-ca", "camera-ca"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *path = options_text(options, names[i]);
        bool is_searched = i == 0 && path && !strchr(path, '/');
        if (path && !is_searched && access(path, R_OK) != 0) {
            return error_set(reterr, BATON_EINVAL, "--%s %s: %s", names[i], path, strerror(errno));
        }
    }
    if (options_text(options, "camera-ca") && options_text(options, "camera-ca")[0] != '/') {
        return error_set(reterr, BATON_EINVAL,
                         "--camera-ca %s: must begin with /, as cameras' processes start elsewhere",
                         options_text(options, "camera-ca"));
    }
    return 0;
}

static int check_hardware(const struct options *options, struct baton_error *reterr)
{
    const char *name = options_text(options, "hardware");
    char known[CAMERA_HARDWARE_MAX];

    if (name && name[0] && !camera_hardware_is_known(name, known)) {
        return error_set(reterr, BATON_EINVAL,
                         "--hardware %s: FFmpeg knows no such decoder, but: %s", name, known);
    }
    return 0;
}

static int check_hosts(const struct options *options, struct baton_error *reterr)
{
    const char *const *host = options_list(options, "model-host");

    for (; host && *host; host++) {
        if (*host[0] == '\0' || strpbrk(*host, "/:@?#*, ")) {
            return error_set(reterr, BATON_EINVAL,
                             "--model-host %s: must be one host, such as models.example, or "
                             ".example with all below it",
                             *host);
        }
    }
    return 0;
}

static int check(const struct options *options, struct baton_error *reterr)
{
    if (!options_text(options, "tls-cert") != !options_text(options, "tls-key")) {
        return error_set(reterr, BATON_EINVAL, "--tls-cert and --tls-key: one needs the other");
    }
    if (options_text(options, "try") && !options_text(options, "model")) {
        return error_set(reterr, BATON_EINVAL, "--try %s: needs --model FILE",
                         options_text(options, "try"));
    }
    if (options_text(options, "out") && !options_text(options, "try")) {
        return error_set(reterr, BATON_EINVAL, "--out %s: needs --try CLIP",
                         options_text(options, "out"));
    }
    if (ms(options, "backoff-min") > ms(options, "backoff-max")) {
        return error_set(reterr, BATON_EINVAL, "--backoff-min %d ms is above --backoff-max %d ms",
                         ms(options, "backoff-min"), ms(options, "backoff-max"));
    }
    int code = check_files(options, reterr);
    code = code ? code : check_hosts(options, reterr);
    return code ? code : check_hardware(options, reterr);
}

int program_settings(struct program_settings *ret, const struct options *options,
                     struct baton_error *reterr)
{
    const char *library = options_text(options, "engine-library");
    const char *ca_file = options_text(options, "camera-ca");
    const char *hardware = options_text(options, "hardware");
    struct library_options *engine = &ret->models.engine.library;
    int code = check(options, reterr);

    if (code) {
        return code;
    }
    *ret = (struct program_settings){
        .service = {.web = {.host = options_text(options, "host"),
                            .port = (int)options_number(options, "port"),
                            .tls_cert = options_text(options, "tls-cert"),
                            .tls_key = options_text(options, "tls-key")},
                    .hosts = options_list(options, "http-host"),
                    .report_interval_ms = ms(options, "report-interval"),
                    .queue_max = (size_t)options_number(options, "queue")},
        .camera = {.interval_ms = interval_ms(options),
                   .stall_ms = ms(options, "stall-timeout"),
                   .open_ms = ms(options, "open-timeout"),
                   .uses_udp = strcmp(options_text(options, "rtsp-transport"), "udp") == 0,
                   .trusts_any = strcmp(options_text(options, "camera-tls-verify"), "no") == 0,
                   .motion_permille = (int)options_number(options, "motion")},
        .pool = {.backoff_min_ms = ms(options, "backoff-min"),
                 .backoff_max_ms = ms(options, "backoff-max")},
        .supply = {.recheck_ms = ms(options, "model-recheck"), .fetch = fetch_rules_default()},
        .models.engine = {.open_ms = ms(options, "model-open-timeout"),
                          .run_ms = ms(options, "model-run-timeout")},
        .folder = options_text(options, "model-cache"),
        .cache_bytes_max = mib(options, "model-cache-mib"),
        .file = options_text(options, "model"),
        .clip = options_text(options, "try"),
        .out = options_text(options, "out"),
        .log_level = (enum log_level)log_level_parse(options_text(options, "log-level")),
        .drain = options_duration(options, "drain-timeout"),
    };
    (void)snprintf(ret->camera.ca_file, PATH_MAX, "%s", ca_file ? ca_file : "");
    (void)snprintf(ret->camera.hardware, sizeof(ret->camera.hardware), "%s",
                   hardware ? hardware : "");
    ret->supply.fetch.bytes_max = ret->models.engine.archive_bytes_max =
        mib(options, "model-max-mib");
    ret->supply.fetch.hosts = options_list(options, "model-host");
    ret->supply.fetch.ca_file = options_text(options, "model-ca");
    ret->supply.fetch.leads_inside = options_flag(options, "model-redirect-private");
    engine->kind =
        (enum engine_kind)value_choice(options_text(options, "engine"), ENGINE_KINDS, NULL);
    engine->provider = (enum engine_provider)value_choice(options_text(options, "provider"),
                                                          ENGINE_PROVIDERS, NULL);
    engine->threads = (int)options_number(options, "model-threads");
    (void)snprintf(engine->path, sizeof(engine->path), "%s", library ? library : "");
    return program_token(&ret->service.token, ret->token, sizeof(ret->token), options, "token-file",
                         reterr);
}
