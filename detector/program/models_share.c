#include "detector/program/models_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static void on_closed(void *userdata)
{
    struct shared *shared = userdata;

    LL_DELETE(shared->models->shareds, shared);
    model_release(shared->model);
    free(shared);
}

/* If several models have this archive, counts the failure for one and reports it to all. */
static void note_failure(const struct shared *shared, const struct baton_error *error)
{
    bool is_counted = false;

    for (struct bound *bound = shared->models->bounds; bound; bound = bound->hh.next) {
        if (bound->running && bound->running->shared == shared) {
            work_figure(bound->running)->failures += !is_counted;
            is_counted = true;
            (void)snprintf(bound->last_error, sizeof(bound->last_error), "%s", error->message);
        }
    }
}

static void on_failed(void *userdata, const struct baton_error *error)
{
    struct shared *shared = userdata;
    const struct models_config *config = &shared->models->config;

    note_failure(shared, error);
    log_warning(config->logger, "model-failed", LOG_STR("digest", shared->model->digest),
                LOG_STR("error", error->message));
    if (config->failed) {
        config->failed(config->userdata, error);
    }
}

static struct shared *find_shared(struct models *models, const char *digest)
{
    for (struct shared *shared = models->shareds; shared; shared = shared->next) {
        if (shared->users > 0 && strcmp(shared->model->digest, digest) == 0) {
            return shared;
        }
    }
    return NULL;
}

static int open_inference(struct shared *shared, struct baton_error *reterr)
{
    const struct models_config *models = &shared->models->config;
    const struct inference_config config = {.loop = models->loop,
                                            .engine = models->engine,
                                            .files = shared->model->unpacked.files,
                                            .uses_stream_time = models->uses_stream_time,
                                            .hooks = {models_opened, on_failed, on_closed, shared}};
    struct pipeline pipeline = {0};
    int code = model_pipeline(&pipeline, shared->model, reterr);

    code = code ? code : inference_open(&shared->inference, &pipeline, &config, reterr);
    pipeline_fini(&pipeline);
    return code;
}

int shared_begin(struct shared **ret, struct models *models, struct model *model,
                 struct baton_error *reterr)
{
    struct shared *shared = find_shared(models, model->digest);
    int code;

    if (!shared) {
        shared = calloc(1, sizeof(*shared));
        if (!shared) {
            return error_set(reterr, BATON_ENOMEM, "out of memory");
        }
        shared->models = models;
        shared->model = model_share(model);
        code = open_inference(shared, reterr);
        if (code) {
            model_release(shared->model);
            free(shared);
            return code;
        }
        LL_PREPEND(models->shareds, shared);
    }
    shared->users++;
    *ret = shared;
    return 0;
}

void shared_end(struct shared *shared)
{
    if (shared && --shared->users == 0) {
        inference_close(shared->inference);
    }
}
