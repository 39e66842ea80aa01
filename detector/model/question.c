#include "detector/model/question.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct note {
    uv_work_t work;
    struct store *store;
    char key[DIGEST_BYTES];
    struct origin origin;
};

/* If this fails, the archive is fetched again another time. */
static void write_note(uv_work_t *work)
{
    const struct note *note = work->data;

    (void)store_origin_set(note->store, note->key, note->origin.digest, note->origin.etag);
}

static void on_noted(uv_work_t *work, int status)
{
    (void)status;
    free(work->data);
}

void note_origin(uv_loop_t *loop, struct store *store, const char *key, const char *digest,
                 const char *etag)
{
    struct note *note = calloc(1, sizeof(*note));

    if (note != NULL) {
        note->work.data = note;
        note->store = store;
        memcpy(note->key, key, sizeof(note->key));
        memcpy(note->origin.digest, digest, sizeof(note->origin.digest));
        memcpy(note->origin.etag, etag, sizeof(note->origin.etag));
        (void)uv_queue_work(loop, &note->work, write_note, on_noted); /* never fails */
    }
}

/* Finds the last model that ran. Without it the whole archive is fetched. */
static void find_on_disk(struct question *question)
{
    struct origin origin = {.etag = ""};

    if (store_origin(question->store, question->key, &origin) == 0 &&
        store_find(question->store, origin.digest, &question->model, NULL) == 0) {
        if (question->known.etag[0] == '\0') {
            memcpy(question->known.etag, origin.etag, sizeof(question->known.etag));
        }
    }
}

static void add(struct question *question)
{
    question->code = store_add(question->store, question->fd, &question->is_canceled,
                               &question->found, &question->error);
    question->outcome = question->code == 0 ? SOURCE_CURRENT : SOURCE_UNSURE;
    if (question->code != 0) {
        (void)error_wrap(&question->error, "model from %s", fetch_shown(question->fetch));
    }
}

/* An archive that is in use already is not read from the disk. */
static void take_archive(struct question *question)
{
    char digest[DIGEST_BYTES] = "";

    if (digest_file(question->fd, digest) == 0 && question->model != NULL &&
        strcmp(question->model->digest, digest) == 0) {
        question->outcome = SOURCE_CURRENT;
    } else if (question->model != NULL && strcmp(question->known.rejected, digest) == 0) {
        question->outcome = SOURCE_BAD;
        question->error = question->known.why_rejected;
    } else {
        add(question);
    }
}

/* Looks at the disk, and makes what the tries have in common. */
static int prepare(struct question *question)
{
    if (question->model == NULL) {
        find_on_disk(question);
    }
    if (question->fd < 0) {
        question->fd = store_file(question->store, &question->error);
    }
    return question->fd < 0 ? question->fd
                            : fetch_new(&question->fetch, &question->rules, question->known.etag,
                                        question->fd, &question->error);
}

/* A reply that nothing has changed leaves a bad archive a bad one. */
void question_try(struct question *question)
{
    struct fetch_result *reply = &question->reply;
    int code = question->fetch == NULL ? prepare(question) : 0;

    *reply = (struct fetch_result){.etag = ""};
    code = code ? code : fetch_try(question->fetch, question->url, reply, &question->error);
    question->outcome = SOURCE_UNSURE;
    question->code = code;
    question->has_arrived = code == 0 && !reply->is_same;
    if (reply->is_same) {
        question->outcome = question->known.state == SOURCE_BAD ? SOURCE_BAD : SOURCE_CURRENT;
    } else if (question->has_arrived) {
        take_archive(question);
    } else if (code == BATON_ETOOBIG && reply->etag[0] != '\0') {
        question->outcome = SOURCE_BAD;
    }
    if (question->outcome != SOURCE_UNSURE) { /* else there was no room for it, for example */
        memcpy(question->known.etag, reply->etag, sizeof(question->known.etag));
    }
}

void question_fini(struct question *question)
{
    fetch_free(question->fetch);
    if (question->fd >= 0) {
        close(question->fd);
    }
    model_release(question->model);
    model_release(question->found);
}
