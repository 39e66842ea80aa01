#include "detector/model/question.h"

#include "base/error.h"

#include <string.h>
#include <unistd.h>

/* Finds the last model that ran. Without it the whole archive is fetched. */
static void find_on_disk(struct question *question)
{
    struct origin origin = {.etag = ""};

    if (store_origin(question->store, question->key, &origin, NULL) == 0 &&
        store_find(question->store, origin.digest, &question->rules, &question->model, NULL) == 0) {
        memcpy(question->known.proven, origin.digest, sizeof(question->known.proven));
        if (question->known.etag[0] == '\0') {
            memcpy(question->known.etag, origin.etag, sizeof(question->known.etag));
        }
    }
}

/* If this fails, the archive is fetched again another time. */
static void note(const struct question *question)
{
    (void)store_origin_set(question->store, question->key, question->known.proven,
                           question->known.etag, NULL);
}

static void add(struct question *question, int fd)
{
    question->code =
        store_add(question->store, fd, &question->rules, &question->found, &question->error);
    question->outcome = question->code == 0 ? SOURCE_CURRENT
                        : question->code == BATON_EPROTO || question->code == BATON_ETOOBIG
                            ? SOURCE_BAD
                            : SOURCE_UNSURE;
    if (question->code != 0) {
        (void)error_wrap(&question->error, "model from %s", fetch_shown(question->fetch));
    }
}

/* An archive that is in use already is neither unpacked nor read from the disk. */
static void take_archive(struct question *question, int fd)
{
    char digest[DIGEST_BYTES] = "";

    if (digest_file(fd, digest) == 0 && question->model != NULL &&
        strcmp(question->model->digest, digest) == 0) {
        question->outcome = SOURCE_CURRENT;
        if (strcmp(question->known.proven, digest) == 0) {
            note(question); /* its new ETag */
        }
    } else if (question->model != NULL && strcmp(question->known.rejected, digest) == 0) {
        question->outcome = SOURCE_BAD;
        question->error = question->known.why_rejected;
    } else {
        add(question, fd);
    }
}

/* A reply that nothing has changed leaves a bad archive a bad one. */
static void ask(struct question *question)
{
    struct fetch_result result = {.etag = ""};
    char known[ETAG_BYTES];
    int fd = store_file(question->store, &question->error);

    memcpy(known, question->known.etag, sizeof(known));
    question->has_asked = fd >= 0;
    question->code =
        fd < 0 ? fd
               : fetch_run(question->fetch, question->known.etag, fd, &result, &question->error);
    question->is_same = question->code == 0 && result.is_same;
    question->has_arrived = question->code == 0 && !result.is_same;
    if (question->is_same) {
        question->outcome = question->known.state == SOURCE_BAD ? SOURCE_BAD : SOURCE_CURRENT;
    } else if (question->has_arrived || (question->code == BATON_ETOOBIG && result.etag[0])) {
        question->outcome = SOURCE_BAD;
        memcpy(question->known.etag, result.etag, sizeof(question->known.etag));
    }
    if (question->has_arrived) {
        take_archive(question, fd);
    }
    if (question->outcome == SOURCE_UNSURE) { /* such as an archive that found no room */
        memcpy(question->known.etag, known, sizeof(question->known.etag));
    }
    if (fd >= 0) {
        close(fd);
    }
}

void question_run(struct question *question)
{
    if (question->fetch == NULL) {
        note(question);
        return;
    }
    if (question->model == NULL) {
        find_on_disk(question);
    }
    ask(question);
}

void question_fini(struct question *question)
{
    fetch_free(question->fetch);
    model_release(question->model);
    model_release(question->found);
    *question = (struct question){.fetch = NULL};
}
