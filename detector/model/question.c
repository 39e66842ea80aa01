#include "detector/model/question.h"

#include "base/error.h"

#include <string.h>
#include <unistd.h>

static struct archive_rules rules_for(const struct question *question,
                                      const struct question_shelf *shelf)
{
    struct archive_rules rules = shelf->archive;

    rules.is_canceled = fetch_is_stopped(question->fetch);
    return rules;
}

/* Finds the last model that ran. Without it the whole archive is fetched. */
static void find_on_disk(struct question *question, const struct question_shelf *shelf)
{
    const struct archive_rules rules = rules_for(question, shelf);
    struct origin origin = {.etag = ""};

    if (store_origin(shelf->store, question->key, &origin, NULL) == 0 &&
        store_find(shelf->store, origin.digest, &rules, &question->model, NULL) == 0) {
        memcpy(question->proven, origin.digest, sizeof(question->proven));
        if (question->etag[0] == '\0') {
            memcpy(question->etag, origin.etag, sizeof(question->etag));
        }
    }
}

static void note(const struct question *question, const struct question_shelf *shelf)
{
    struct origin origin = {.etag = ""};

    memcpy(origin.digest, question->proven, sizeof(origin.digest));
    memcpy(origin.etag, question->etag, sizeof(origin.etag));
    /* If this fails, the archive is fetched again another time. */
    (void)store_origin_set(shelf->store, question->key, &origin, NULL);
}

static void add(struct question *question, const struct question_shelf *shelf, int fd)
{
    const struct archive_rules rules = rules_for(question, shelf);

    question->code = store_add(shelf->store, fd, &rules, &question->found, &question->error);
    question->outcome = question->code == 0 ? SOURCE_CURRENT
                        : question->code == BATON_EPROTO || question->code == BATON_ETOOBIG
                            ? SOURCE_BAD
                            : SOURCE_UNSURE;
    if (question->code != 0) {
        (void)error_wrap(&question->error, "model from %s", fetch_shown(question->fetch));
    }
}

/* An archive that is in use already is neither unpacked nor read from the disk. */
static void take_archive(struct question *question, const struct question_shelf *shelf, int fd)
{
    char digest[DIGEST_BYTES] = "";

    if (digest_file(fd, digest) == 0 && question->model != NULL &&
        strcmp(question->model->digest, digest) == 0) {
        question->outcome = SOURCE_CURRENT;
        if (strcmp(question->proven, digest) == 0) {
            note(question, shelf); /* its new ETag */
        }
    } else if (question->model != NULL && strcmp(question->rejected, digest) == 0) {
        question->outcome = SOURCE_BAD;
        question->error = question->why_rejected;
    } else {
        add(question, shelf, fd);
    }
}

/* A reply that nothing has changed leaves a bad archive a bad one. */
static void ask(struct question *question, const struct question_shelf *shelf)
{
    struct fetch_result result = {.etag = ""};
    enum source_state before = question->outcome;
    char known[ETAG_BYTES];
    int fd = store_file(shelf->store, &question->error);

    memcpy(known, question->etag, sizeof(known));
    question->has_asked = fd >= 0;
    question->outcome = SOURCE_UNSURE;
    question->code =
        fd < 0 ? fd : fetch_run(question->fetch, question->etag, fd, &result, &question->error);
    question->is_same = question->code == 0 && result.is_same;
    question->has_arrived = question->code == 0 && !result.is_same;
    if (question->is_same) {
        question->outcome = before == SOURCE_BAD ? SOURCE_BAD : SOURCE_CURRENT;
    } else if (question->has_arrived || (question->code == BATON_ETOOBIG && result.etag[0])) {
        question->outcome = SOURCE_BAD;
        memcpy(question->etag, result.etag, sizeof(question->etag));
    }
    if (question->has_arrived) {
        take_archive(question, shelf, fd);
    }
    if (question->outcome == SOURCE_UNSURE) { /* such as an archive that found no room */
        memcpy(question->etag, known, sizeof(question->etag));
    }
    if (fd >= 0) {
        close(fd);
    }
}

void question_run(struct question *question, const struct question_shelf *shelf)
{
    if (question->fetch == NULL) {
        note(question, shelf);
        return;
    }
    if (question->model == NULL) {
        find_on_disk(question, shelf);
    }
    ask(question, shelf);
}

void question_fini(struct question *question)
{
    fetch_free(question->fetch);
    model_release(question->model);
    model_release(question->found);
    *question = (struct question){.fetch = NULL};
}
