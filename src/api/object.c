#include "api/object.h"

#include <signal.h>
#include <unistd.h>

/* Not by the thread's number: the C library gives it to another thread once this one has ended. */
static _Thread_local const struct baton *loop_here;

void loop_begins_here(const struct baton *baton)
{
    loop_here = baton;
}

bool on_loop(const struct baton *baton)
{
    return loop_here == baton;
}

int check_owner(const struct baton *baton, struct baton_error *reterr)
{
    if (getpid() == baton->owner) {
        return BATON_OK;
    }
    return error_set(reterr, BATON_ECLOSED,
                     "a forked child (pid %d) is no member, its parent (pid %d) is: open anew in "
                     "the child",
                     (int)getpid(), (int)baton->owner);
}

int thread_begin(pthread_t *ret, void *(*body)(void *), void *userdata)
{
    sigset_t all;
    sigset_t before;
    int r;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(ret, NULL, body, userdata);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}
