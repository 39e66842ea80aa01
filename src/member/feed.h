/* Changes of keys, or messages of a channel, until the feed is stopped. */
#ifndef MEMBER_FEED_H
#define MEMBER_FEED_H

#include "member/member.h"

struct feed; /* opaque; belongs to its opener */

/* data NULL: deleted or expired. Borrowed during the call; the feed may be stopped from inside. */
typedef void (*feed_value_cb)(void *userdata, const struct provider_value *value);
typedef void (*feed_message_cb)(void *userdata, const char *channel, const void *data,
                                size_t bytes);

/* First what is there, then the changes of each key that begins with `prefix`, in their order; of
 * several that came too fast, the last. The first calls may come before
 * this function returns: *ret is written before them, and NULL after a failure. BATON_ENOTSUP,
 * BATON_ETOOBIG, BATON_ENOMEM.
 */
int feed_watch(struct feed **ret, struct member *member, const char *prefix, feed_value_cb on_value,
               void *userdata, struct baton_error *reterr);

/* BATON_ENOTSUP, BATON_EINVAL, BATON_ETOOBIG, BATON_ENOMEM. */
int feed_subscribe(struct feed **ret, struct member *member, const char *channel,
                   feed_message_cb on_message, void *userdata, struct baton_error *reterr);

/* Nothing comes any more. Also for the feeds of a closed member, before member_free(). NULL is
 * nothing. */
void feed_stop(struct feed *feed);

#endif
