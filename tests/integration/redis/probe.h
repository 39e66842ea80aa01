/* One connection of net/redis on its own loop, and the results of its commands. */
#ifndef TESTS_INTEGRATION_REDIS_PROBE_H
#define TESTS_INTEGRATION_REDIS_PROBE_H

#include "net/redis/redis.h"

#include <stdio.h>

enum { PROBE_TEXT_MAX = 512 };

struct probe {
    uv_loop_t loop;
    uv_timer_t tick; /* wakes the loop every few milliseconds, for a condition to be checked */
    struct logger *logger;
    FILE *log;
    struct redis *redis;
    struct redis_identity identity;
    int ups, downs;
    struct baton_error error; /* of the latest on_down */
    int answers;
    int answer_type;                 /* 0: none came */
    char answer[PROBE_TEXT_MAX];     /* of the latest: its text or number */
    char heard[PROBE_TEXT_MAX];      /* the latest message */
    enum redis_fault fault;          /* of the latest answer */
    struct baton_error answer_error; /* the same as an error */
};

/* Opens; a URL that is refused fails the test. A subscriber's connection if there is a channel. */
void probe_open(struct probe *probe, const char *url, const char *channel);
void probe_close(struct probe *probe);

/* Sends, waits for the answer; probe->answer has its text. */
void probe_ask(struct probe *probe, int count, const char **words);
#define PROBE_ASK(probe, ...)                                                                      \
    probe_ask(probe, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                \
              (const char *[]){__VA_ARGS__})

/* Whether the connection has logged this. */
bool probe_has_logged(struct probe *probe, const char *text);

/* Runs the loop until the condition holds; the test fails when patience runs out. */
#define PROBE_AWAIT(probe, condition)                                                              \
    do {                                                                                           \
        int turns_ = 0;                                                                            \
        while (!(condition)) {                                                                     \
            probe_turn(probe, &turns_);                                                            \
        }                                                                                          \
    } while (0)
void probe_turn(struct probe *probe, int *turns);

#endif
