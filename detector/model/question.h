/* Asks the server of a model whether it has another one, and unpacks what comes. It may block for
 * long, so each question runs on a thread of libuv's pool. */
#ifndef DETECTOR_MODEL_QUESTION_H
#define DETECTOR_MODEL_QUESTION_H

#include "detector/model/fetch.h"

/* Where models are put, and by which rules. */
struct question_shelf {
    struct store *store;
    struct archive_rules archive;
};

/* What is known of the server's archive: nothing; it is the model in use; it is none, or cannot be
 * used. */
enum source_state { SOURCE_UNSURE, SOURCE_CURRENT, SOURCE_BAD };

struct question {
    struct fetch *fetch;         /* NULL: only notes on the disk that `proven` has run */
    const char *key;             /* of number and address; borrowed */
    struct model *model;         /* the one in use, or then that of the disk; NULL: none */
    char etag[ETAG_BYTES];       /* of the server's last archive, then of its present one */
    char proven[DIGEST_BYTES];   /* the last one that ran, or then that of the disk */
    char rejected[DIGEST_BYTES]; /* one that cannot run, for this reason */
    struct baton_error why_rejected;
    bool is_recheck; /* a model was in use */

    enum source_state outcome; /* before: what is known; then: UNSURE if there was no reply */
    struct model *found;       /* a new one; NULL: none */
    bool has_asked;            /* the server; else a file for its reply could not be made */
    bool has_arrived, is_same; /* an archive came; the server has the one of that ETag */
    int code;                  /* of the error; a rejected one that came again has 0 */
    struct baton_error error;
};

void question_run(struct question *question, const struct question_shelf *shelf);
void question_fini(struct question *question);

#endif
