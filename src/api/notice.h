/* Events on their way to listeners, and the running of a listener. All under the lock, which is let
 * go of while the listener itself runs.
 */
#ifndef API_NOTICE_H
#define API_NOTICE_H

#include "api/object.h"

/* A copy of an event, texts and all. */
struct notice {
    struct notice *next;
    struct baton_listener *listener;
    struct baton_event event;
};

/* NULL when out of memory. */
struct notice *notice_new(const struct baton_event *event);
/* Runs the listener, and frees; or only frees. The notice's reference to the listener goes. */
void notice_run_locked(struct notice *notice);
void notice_drop_locked(struct notice *notice);

void mailbox_init(struct mailbox *mailbox);
void mailbox_put(struct mailbox *mailbox, struct notice *notice);
struct notice *mailbox_take(struct mailbox *mailbox); /* NULL: empty */

/* Calls the listener, unless it is off. */
void listener_run_locked(struct baton_listener *listener, const struct baton_event *event);
void listener_unref_locked(struct baton_listener *listener);
/* Whether the calling thread is inside this listener, or inside one of this election. */
bool listener_runs_here(const struct baton_listener *listener);
bool listener_runs_for(const struct baton_election *election);
/* Frees the listeners without references. */
void listeners_bury_locked(struct baton *baton);

/* Counts a listener that has handled the event, or will never get it: for BATON_EVENT_DRAIN the
 * last one ends the draining. */
void drain_over_locked(struct baton_election *election, const struct baton_event *event);

#endif
