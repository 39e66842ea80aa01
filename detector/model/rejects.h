/* Models that arrived whole but could not run: their digests and the reasons. They are those of one
 * process, since another one may have an engine that can run them; the last REJECTS_MAX are kept.
 * Any thread. */
#ifndef DETECTOR_MODEL_REJECTS_H
#define DETECTOR_MODEL_REJECTS_H

#include "detector/model/digest.h"

#include <baton/error.h>

#include <stdbool.h>
#include <uv.h>

enum { REJECTS_MAX = 16 };

struct rejects {
    uv_mutex_t lock;
    struct {
        char digest[DIGEST_BYTES];
        struct baton_error error;
    } of[REJECTS_MAX];
    unsigned count; /* so far */
};

int rejects_init(struct rejects *rejects); /* BATON_ENOMEM */
void rejects_fini(struct rejects *rejects);

void rejects_add(struct rejects *rejects, const char *digest, const struct baton_error *error);
/* `ret` gets the reason; NULL: it is not needed. */
bool rejects_have(struct rejects *rejects, const char *digest, struct baton_error *ret);

#endif
