#include "base/thread.h"

#include <pthread.h>
#include <signal.h>

int thread_start_detached(void *(*body)(void *userdata), void *userdata)
{
    pthread_t thread;
    sigset_t all, before;
    int errnum;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    errnum = pthread_create(&thread, NULL, body, userdata);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errnum == 0) {
        (void)pthread_detach(thread);
    }
    return errnum;
}
