/* Models that came whole and could not be run: their digests, and why. Those of one process, as
 * another one may have an engine that can; the last REJECTS_MAX. Several threads may ask. */
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
/* `ret`: why; NULL: it is not asked for. */
bool rejects_have(struct rejects *rejects, const char *digest, struct baton_error *ret);

#endif
