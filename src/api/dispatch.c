/* The listeners of BATON_ON_DISPATCH, on whichever thread calls. */
#include "api/dispatch.h"

#include "api/notice.h"

#include <sys/eventfd.h>

bool dispatch_is_here_locked(const struct baton *baton)
{
    return baton->has_dispatcher && pthread_equal(pthread_self(), baton->dispatcher);
}

int baton_fd(const struct baton *baton)
{
    return baton->event_fd;
}

/* Delivers only the events that wait at its start, so that a busy election cannot keep the caller
 * for ever. */
int baton_dispatch(struct baton *baton)
{
    struct notice *notice;
    size_t most;
    int count = 0;
    int code = check_owner(baton, NULL);

    if (code != BATON_OK) {
        return code;
    }
    lock(baton);
    if (baton->is_dispatching) {
        unlock(baton);
        return BATON_EBUSY;
    }
    baton->is_dispatching = true;
    baton->has_dispatcher = true;
    baton->dispatcher = pthread_self();
    for (most = baton->dispatch.count; most > 0; most--) {
        notice = mailbox_take(&baton->dispatch);
        if (!notice) {
            break; /* an election was left from inside a listener of another one */
        }
        notice_run_locked(notice);
        count++;
    }
    baton->is_dispatching = false;
    if (!baton->dispatch.first) {
        eventfd_t ignored;
        (void)eventfd_read(baton->event_fd, &ignored);
    }
    unlock(baton);
    return count;
}
