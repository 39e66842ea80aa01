/* A member that takes part in "race" and waits for a text in the error events. */
#ifndef TESTS_PROVIDER_LISTENER_H
#define TESTS_PROVIDER_LISTENER_H

#include <baton.h>
#include <pthread.h>

/* Static memory: a test that fails leaves it open. */
struct listener {
    struct baton *baton;
    struct baton_election *election;
    const char *wanted;
    _Atomic bool is_there; /* the text has come */
    pthread_mutex_t lock;
    char latest[BATON_ERROR_MESSAGE_MAX];
};

void listener_open(struct listener *listener, const char *url, const char *wanted);
void listener_close(struct listener *listener);
/* Waits for this text from now on. */
void listener_want(struct listener *listener, const char *wanted);
/* Waits until the text has come; fails if an event contains a password. */
void listener_await(struct listener *listener);

#endif
