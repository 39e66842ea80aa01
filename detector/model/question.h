/* Asks the server of a model whether it has another one, and keeps what comes. It may block for
 * long, so each try runs on a thread of libuv's pool; between two of them it has none. */
#ifndef DETECTOR_MODEL_QUESTION_H
#define DETECTOR_MODEL_QUESTION_H

#include "detector/model/fetch.h"

#include <uv.h>

/* What is known of the server's archive: nothing; it is the model in use; it is none, or cannot be
 * used. */
enum source_state { SOURCE_UNSURE, SOURCE_CURRENT, SOURCE_BAD };

/* What is known of a source. */
struct knowledge {
    enum source_state state;
    char etag[ETAG_BYTES];       /* of the server's archive, when it was last seen; "": none */
    char rejected[DIGEST_BYTES]; /* one that cannot run, for this reason; "": none */
    struct baton_error why_rejected;
};

/* Puts on the disk what has run, by a thread, so that the next process finds it. */
void note_origin(uv_loop_t *loop, struct store *store, const char *key, const char *digest,
                 const char *etag);

struct question {
    struct store *store;      /* where models are put, … */
    struct fetch_rules rules; /* … as they are fetched */
    atomic_bool is_canceled;  /* of these rules, and the wait for the store */
    const char *key;          /* of number and address; borrowed */
    const char *url;          /* of the next try, borrowed; NULL: as of the one before */
    struct knowledge known;   /* then with the present ETag */
    struct model *model;      /* the one in use, or then that of the disk; NULL: none */
    bool is_recheck;          /* a model was in use */
    int fd;                   /* for the archive; -1: none yet */
    struct fetch *fetch;      /* NULL: not yet */

    enum source_state outcome; /* UNSURE if there was no reply */
    struct model *found;       /* a new one; NULL: none */
    struct fetch_result reply; /* its pause: until another try; 0: this was the last one */
    bool has_arrived;          /* an archive came */
    int code;                  /* of the error; a rejected one that came again has 0 */
    struct baton_error error;
};

void question_try(struct question *question);
void question_fini(struct question *question);

#endif
