#include "detector/program/local_model.h"

#include "base/error.h"
#include "detector/model/archive.h"
#include "detector/program/own_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char unpacked[] = "model"; /* in the folder of our own */

struct local_model {
    uv_loop_t *loop;
    struct own_folder folder;
    char whole[PATH_MAX + sizeof(unpacked) + 1]; /* folder and the unpacked one in it */
};

struct ticket {
    uv_work_t work;
    struct local_model *model;
    void *asker; /* NULL: dropped */
    bool is_answered;
    struct pipeline pipeline;
    struct baton_error error;
};

int local_model_new(struct local_model **ret, uv_loop_t *loop, const char *path,
                    struct baton_error *reterr)
{
    struct archive_rules rules = archive_rules_default();
    struct local_model *model = calloc(1, sizeof(*model));
    int archive = open(path, O_RDONLY | O_CLOEXEC);
    int code = 0;

    if (!model) {
        code = error_set(reterr, BATON_ENOMEM, "out of memory");
    } else if (archive < 0) {
        code = error_set(reterr, error_from_errno(errno), "%s: %s", path, strerror(errno));
    }
    code = code ? code : own_folder_new(&model->folder, reterr);
    if (code) {
        if (archive >= 0) {
            (void)close(archive);
        }
        free(model);
        return code;
    }
    model->loop = loop;
    (void)snprintf(model->whole, sizeof(model->whole), "%s/%s", model->folder.path, unpacked);
    code = archive_unpack(archive, model->folder.fd, unpacked, &rules, reterr);
    (void)close(archive);
    if (code) {
        error_wrap(reterr, "%s", path);
        local_model_free(model);
        return code;
    }
    *ret = model;
    return 0;
}

void local_model_free(struct local_model *model)
{
    if (model) {
        own_folder_remove(&model->folder);
        free(model);
    }
}

/* ---- Questions ------------------------------------------------------------------------------ */

static void read_pipeline(uv_work_t *work)
{
    struct ticket *ticket = work->data;

    (void)archive_pipeline(&ticket->pipeline, ticket->model->folder.fd, unpacked, &ticket->error);
}

static void answer(uv_work_t *work, int status)
{
    struct ticket *ticket = work->data;

    ticket->is_answered = true;
    if (!ticket->asker) {
        pipeline_fini(&ticket->pipeline);
        free(ticket);
        return;
    }
    if (status != 0) {
        (void)error_set(&ticket->error, BATON_EIO, "%s", uv_strerror(status));
    }
    models_arrived(ticket->asker, ticket->model->whole, &ticket->pipeline,
                   ticket->error.code ? &ticket->error : NULL);
}

static int want(void *userdata, void **ret, const char *url, int64_t model_id, void *asker,
                struct baton_error *reterr)
{
    struct local_model *model = userdata;
    struct ticket *ticket = calloc(1, sizeof(*ticket));

    (void)url;
    (void)model_id;
    if (!ticket) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    ticket->model = model;
    ticket->asker = asker;
    ticket->work.data = ticket;
    if (uv_queue_work(model->loop, &ticket->work, read_pipeline, answer) != 0) {
        free(ticket);
        return error_set(reterr, BATON_EIO, "no further work can be queued");
    }
    *ret = ticket;
    return 0;
}

static void drop(void *userdata, void *opaque)
{
    struct ticket *ticket = opaque;

    (void)userdata;
    ticket->asker = NULL;
    if (ticket->is_answered) {
        free(ticket);
    }
}

struct models_source local_model_source(struct local_model *model)
{
    return (struct models_source){.want = want, .drop = drop, .userdata = model};
}
