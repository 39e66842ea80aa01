#include "fleet/program/program.h"

#include "fleet/program/declared.h"
#include "net/loop.h"
#include "options/notify.h"
#include "options/serve.h"
#include "options/uv_threads.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4 /* of libuv */ };

struct program {
    struct program_settings settings;
    uv_loop_t loop;
    struct serve serve;
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
    serve_end(&program->serve);
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
    (void)serve_prepare(); /* each worker takes a descriptor, and so does each client of the API */
    program->logger = program_logger(options);
    if (!program->logger || loop_init(&program->loop) != 0) {
        logger_free(program->logger);
        free(program);
        return error_set(reterr, BATON_EIO, "no event loop: no memory or descriptor is left");
    }
    serve_begin(&program->serve, &program->loop, SERVE_SIGNALS, on_signal, program);
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
