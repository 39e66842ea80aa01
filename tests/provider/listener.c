#include "provider/listener.h"

#include "provider/group.h"

#include <stdio.h>
#include <string.h>

static void hear(struct baton_election *election, const struct baton_event *event, void *userdata)
{
    struct listener *listener = userdata;

    pthread_mutex_lock(&listener->lock);
    if (!listener->is_there) {
        snprintf(listener->latest, sizeof(listener->latest), "%s", event->error.message);
        listener->is_there = strstr(listener->latest, listener->wanted) != NULL;
    }
    pthread_mutex_unlock(&listener->lock);
}

void listener_open(struct listener *listener, const char *url, const char *wanted)
{
    *listener = (struct listener){.wanted = wanted};
    pthread_mutex_init(&listener->lock, NULL);
    ASSERT_OK(baton_open(&listener->baton, url, NULL, failure));
    ASSERT_OK(baton_campaign(&listener->election, listener->baton, "race", NULL, failure));
    ASSERT_OK(baton_on(NULL, listener->election, BATON_EVENT_ERROR, BATON_ON_LOOP, hear, listener,
                       failure));
}

void listener_close(struct listener *listener)
{
    baton_close(listener->baton);
    pthread_mutex_destroy(&listener->lock);
}

void listener_want(struct listener *listener, const char *wanted)
{
    pthread_mutex_lock(&listener->lock);
    listener->wanted = wanted;
    listener->latest[0] = '\0';
    listener->is_there = false;
    pthread_mutex_unlock(&listener->lock);
}

void listener_await(struct listener *listener)
{
    for (int looks = 0; !listener->is_there; looks++) {
        if (looks > PATIENCE_MS) {
            struct listener now;

            pthread_mutex_lock(&listener->lock);
            now = *listener;
            pthread_mutex_unlock(&listener->lock);
            fail_msg("no %s; the latest: %s", now.wanted, now.latest);
        }
        group_pause();
    }
    assert_null(strstr(listener->latest, "geheim"));
}
