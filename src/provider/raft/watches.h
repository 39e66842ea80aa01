/* The watches of keys, and the changes that were not reported yet.
 *
 * Changes are noted while the log is applied, and reported when no step is under way: a callback
 * may ask, write and stop watching. Keys without a watch are not noted. One thread; inside of this
 * folder only.
 */
#ifndef PROVIDER_RAFT_WATCHES_H
#define PROVIDER_RAFT_WATCHES_H

#include "provider/provider.h"
#include "provider/raft/keys.h"

struct watch;  /* opaque */
struct change; /* opaque */

struct watches {
    struct watch *first;
    struct change *oldest, **after_newest;
};

void watches_init(struct watches *watches);
/* Ends all watches. May be called from inside a callback; then sweep. */
void watches_end(struct watches *watches);
/* Frees the watches that have ended. Not from inside a callback. */
void watches_sweep(struct watches *watches);

/* Watches keys that begin with `prefix`. BATON_ENOMEM. */
int watches_add(struct watches *watches, const char *prefix, provider_values_cb on_change,
                void *userdata);
/* Ends the watch that was added with these arguments: no callback follows. Then sweep. */
void watches_drop(struct watches *watches, const char *prefix, const void *userdata);

/* Notes a change for the present watches of `name`. `value` is copied; without data: it was
 * deleted. Without memory the change is not reported. */
void watches_note(struct watches *watches, const char *name, const struct keys_value *value);
/* Reports the oldest change that was not reported. False: there is none. */
bool watches_deliver(struct watches *watches);

#endif
