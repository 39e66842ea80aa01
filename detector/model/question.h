/* Asks the server of a model whether it has another one, and unpacks what comes. It may block for
 * long, so each question runs on a thread of libuv's pool. */
#ifndef DETECTOR_MODEL_QUESTION_H
#define DETECTOR_MODEL_QUESTION_H

#include "detector/model/fetch.h"

/* What is known of the server's archive: nothing; it is the model in use; it is none, or cannot be
 * used. */
enum source_state { SOURCE_UNSURE, SOURCE_CURRENT, SOURCE_BAD };

/* What is known of a source. */
struct knowledge {
    enum source_state state;
    char etag[ETAG_BYTES];       /* of the server's archive, when it was last seen; "": none */
    char proven[DIGEST_BYTES];   /* the last one that ran; "": none */
    char rejected[DIGEST_BYTES]; /* one that cannot run, for this reason; "": none */
    struct baton_error why_rejected;
};

struct question {
    struct fetch *fetch;        /* NULL: only notes on the disk that `proven` has run */
    struct store *store;        /* where models are put, … */
    struct archive_rules rules; /* … and by which rules */
    const char *key;            /* of number and address; borrowed */
    struct knowledge known;     /* then with the present ETag, and what ran according to the disk */
    struct model *model;        /* the one in use, or then that of the disk; NULL: none */
    bool is_recheck;            /* a model was in use */

    enum source_state outcome; /* UNSURE if there was no reply */
    struct model *found;       /* a new one; NULL: none */
    bool has_asked;            /* the server; else a file for its reply could not be made */
    bool has_arrived, is_same; /* an archive came; the server has the one of that ETag */
    int code;                  /* of the error; a rejected one that came again has 0 */
    struct baton_error error;
};

void question_run(struct question *question);
void question_fini(struct question *question);

#endif
