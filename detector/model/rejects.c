#include "detector/model/rejects.h"

#include <stdio.h>
#include <string.h>

int rejects_init(struct rejects *rejects)
{
    *rejects = (struct rejects){0};
    return uv_mutex_init(&rejects->lock) == 0 ? 0 : BATON_ENOMEM;
}

void rejects_fini(struct rejects *rejects)
{
    uv_mutex_destroy(&rejects->lock);
}

/* Returns the digest's place, or the place where it would be added. */
static unsigned place_of(const struct rejects *rejects, const char *digest)
{
    for (unsigned i = 0; i < REJECTS_MAX; i++) {
        if (strcmp(rejects->of[i].digest, digest) == 0) {
            return i;
        }
    }
    return rejects->count % REJECTS_MAX;
}

void rejects_add(struct rejects *rejects, const char *digest, const struct baton_error *error)
{
    unsigned place;

    uv_mutex_lock(&rejects->lock);
    place = place_of(rejects, digest);
    rejects->count += strcmp(rejects->of[place].digest, digest) != 0;
    (void)snprintf(rejects->of[place].digest, DIGEST_BYTES, "%s", digest);
    rejects->of[place].error = *error;
    uv_mutex_unlock(&rejects->lock);
}

bool rejects_have(struct rejects *rejects, const char *digest, struct baton_error *ret)
{
    unsigned place;
    bool is_there;

    uv_mutex_lock(&rejects->lock);
    place = place_of(rejects, digest);
    is_there = digest[0] != '\0' && strcmp(rejects->of[place].digest, digest) == 0;
    if (is_there && ret != NULL) {
        *ret = rejects->of[place].error;
    }
    uv_mutex_unlock(&rejects->lock);
    return is_there;
}
