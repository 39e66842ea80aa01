/* Keys with revisions, which all members share; feed.h tells of their changes.
 *
 * A key has at most PROVIDER_KEY_MAX bytes, a value PROVIDER_VALUE_MAX: else BATON_ETOOBIG. All
 * texts and data are borrowed during the call. BATON_ENOTSUP: the provider keeps no state.
 * BATON_ECLOSED: the member was closed.
 */
#ifndef MEMBER_STORE_H
#define MEMBER_STORE_H

#include "member/member.h"

/* `done` gets the value, or one without data: there is none. */
int store_get(struct member *member, const char *key, provider_values_cb done, void *userdata,
              struct baton_error *reterr);

/* `done` gets those of the keys, at most PROVIDER_EACH_MAX, that are there. */
int store_get_each(struct member *member, const char *const *keys, size_t count,
                   provider_values_cb done, void *userdata, struct baton_error *reterr);

/* `done` gets every key that begins with `prefix`, in the order of their bytes. */
int store_list(struct member *member, const char *prefix, provider_values_cb done, void *userdata,
               struct baton_error *reterr);

/* Compare and set: BATON_ECONFLICT unless the key is at `revision` (0: absent;
 * PROVIDER_ANY_REVISION: any). data NULL deletes. After `lifetime` (0: never) the key
 * is gone. `done` gets the key's revision after it, with which the next write need not read. */
int store_put(struct member *member, const char *key, const void *data, size_t bytes,
              uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
              struct baton_error *reterr);

/* A message to all that listen at this moment (feed.h), at most once. */
int store_publish(struct member *member, const char *channel, const void *data, size_t bytes,
                  provider_done_cb done, void *userdata, struct baton_error *reterr);

#endif
