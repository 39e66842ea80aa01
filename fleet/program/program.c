#include "fleet/program/program.h"

#include "fleet/program/declared.h"
#include "net/loop.h"
#include "options/notify.h"
#include "options/uv_threads.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SIGNALS = 3, THREADS = 4 /* of libuv */ };

struct program {
    struct program_settings settings;
    uv_loop_t loop;
    uv_signal_t signals[SIGNALS];
    uv_timer_t alive;
    struct logger *logger;
    struct engine *engine;
    struct declared *declared; /* NULL: no --config */
    bool has_begun, is_closing;
    struct baton_error failure; /* code 0: none */
};

static void on_closed(void *userdata)
{
    struct program *program = userdata;

    program->engine = NULL;
    for (size_t i = 0; i < SIGNALS; i++) {
        uv_close((uv_handle_t *)&program->signals[i], NULL);
    }
    uv_close((uv_handle_t *)&program->alive, NULL);
}

static void leave(struct program *program)
{
    if (program->is_closing) {
        return;
    }
    program->is_closing = true;
    notify_stopping();
    if (program->has_begun) {
        log_notice(program->logger, "leaving");
    }
    declared_close(program->declared);
    engine_close(program->engine, on_closed, program);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct program *program = handle->data;

    if (number != SIGHUP) {
        leave(program);
    } else if (program->declared && !program->is_closing) {
        declared_read(program->declared);
    }
}

static void on_alive(uv_timer_t *timer)
{
    (void)timer;
    notify_alive();
}

static void start_handles(struct program *program)
{
    static const int numbers[SIGNALS] = {SIGTERM, SIGINT, SIGHUP};
    uint64_t alive_ms = (uint64_t)(notify_interval().ns / 1000000);

    for (size_t i = 0; i < SIGNALS; i++) {
        (void)uv_signal_init(&program->loop, &program->signals[i]);
        program->signals[i].data = program;
        (void)uv_signal_start(&program->signals[i], on_signal, numbers[i]);
    }
    (void)uv_timer_init(&program->loop, &program->alive);
    if (alive_ms > 0) {
        (void)uv_timer_start(&program->alive, on_alive, alive_ms, alive_ms);
    }
}

/* Each worker takes a descriptor, and so does each client of the API. */
static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void on_failed(void *userdata, const struct baton_error *error)
{
    struct program *program = userdata;

    program->failure = *error;
    leave(program);
}

static int begin(struct program *program, struct baton_error *reterr)
{
    struct engine_config *config = &program->settings.engine;
    int code;

    config->loop = &program->loop;
    config->logger = program->logger;
    config->on_failed = on_failed;
    config->userdata = program;
    if (program->settings.config) {
        code = declared_check(program->settings.config, reterr);
        if (code != BATON_OK) {
            return error_wrap(reterr, "--config");
        }
    }
    code = uv_threads_start(&program->loop, THREADS, reterr);
    code = code ? code : engine_open(&program->engine, config, reterr);
    if (code == BATON_OK && program->settings.config) {
        code = declared_open(&program->declared, program->engine, program->settings.config,
                             program->logger, reterr);
    }
    return code;
}

int program_run(int argc, char **argv, const struct options *options, struct baton_error *reterr)
{
    struct program *program = calloc(1, sizeof(*program));
    int code;

    (void)argc;
    (void)argv;
    if (!program) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    code = program_settings(&program->settings, options, reterr);
    if (code != BATON_OK) {
        free(program);
        return code;
    }
    raise_file_limit();
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond RLIMIT_FSIZE becomes an ordinary error */
    program->logger =
        logger_new(STDERR_FILENO, log_format_for(STDERR_FILENO, program->settings.log_json),
                   program->settings.log_level);
    if (!program->logger || loop_init(&program->loop) != 0) {
        logger_free(program->logger);
        free(program);
        return error_set(reterr, BATON_EIO, "no event loop: no memory or descriptor is left");
    }
    start_handles(program);
    code = begin(program, reterr);
    program->has_begun = code == BATON_OK;
    if (code == BATON_OK) {
        notify_ready();
    } else if (program->engine) {
        leave(program);
    } else {
        on_closed(program);
    }
    (void)uv_run(&program->loop, UV_RUN_DEFAULT);
    if (code == BATON_OK && program->failure.code != 0) {
        *reterr = program->failure;
        code = reterr->code;
    }
    (void)uv_loop_close(&program->loop);
    logger_free(program->logger);
    explicit_bzero(program, sizeof(*program));
    free(program);
    return code;
}
