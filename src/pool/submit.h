/* Items given to a pool. */
#ifndef POOL_SUBMIT_H
#define POOL_SUBMIT_H

#include "member/member.h"
#include "work/item.h"

enum {
    POOL_CHUNK_MAX = 120 * 1024, /* bytes of one key, so that every provider takes it */
    POOL_SUBMISSION_MAX = 40,    /* bytes of a submission's name, without the NUL */
    POOL_SUBMITTED_MAX = 100000  /* items */
};

/* What was submitted; borrowed during the call. */
struct pool_submission {
    const char *name;
    const char *const *ids; /* of the items, in their order */
    size_t count;           /* of the items that are stored: all, or those before the failure */
    bool was_there;         /* all of them were, by an earlier submission of the same */
};

typedef void (*pool_submitted_cb)(void *userdata, int code,
                                  const struct pool_submission *submission,
                                  const struct baton_error *error);

/* Submits the items: a JSON array of objects (work/item.h), borrowed during the call. An item
 * without an id gets one that begins with the submission's name.
 *
 * `name`: as an id, and no earlier submission has it; to submit the same by the same name again is
 * to submit it once. NULL: a new one, of random digits. Many items are several keys, stored one
 * after the other.
 *
 * BATON_EINVAL names the item and its member; BATON_EEXIST (by `done`): the name was used for other
 * items; and as client.h. */
int pool_submit(struct member *member, const char *pool, const char *name, const json_t *items,
                pool_submitted_cb done, void *userdata, struct baton_error *reterr);

#endif
