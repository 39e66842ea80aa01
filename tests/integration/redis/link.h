/* One connection of net/redis on a loop of its own, and what came of it. */
#ifndef TESTS_INTEGRATION_REDIS_LINK_H
#define TESTS_INTEGRATION_REDIS_LINK_H

#include "net/redis/redis.h"

#include <stdio.h>

enum { LINK_PATIENCE_MS = 60000, LINK_TEXT_MAX = 512 };

struct link {
    uv_loop_t loop;
    uv_timer_t tick; /* so that a look at a condition comes every few milliseconds */
    struct logger *logger;
    FILE *log;
    struct redis *redis;
    struct redis_identity identity;
    int ups, downs;
    struct baton_error error; /* of the latest on_down */
    int answers;
    int answer_type;                 /* 0: none came */
    char answer[LINK_TEXT_MAX];      /* of the latest: its text or number */
    char heard[LINK_TEXT_MAX];       /* the latest message */
    enum redis_fault fault;          /* of the latest answer */
    struct baton_error answer_error; /* the same as an error */
};

/* Opens; a URL that is refused fails the test. A subscriber's connection if there is a channel. */
void link_open(struct link *link, const char *url, const char *channel);
void link_close(struct link *link);

/* Sends, waits for the answer; link->answer has its text. */
void link_ask(struct link *link, int count, const char **words);
#define LINK_ASK(link, ...)                                                                        \
    link_ask(link, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                  \
             (const char *[]){__VA_ARGS__})

/* Whether the connection has logged this. */
bool link_has_logged(struct link *link, const char *text);

/* Runs the loop until the condition holds; the test fails when patience runs out. */
#define LINK_AWAIT(link, condition)                                                                \
    do {                                                                                           \
        int turns_ = 0;                                                                            \
        while (!(condition)) {                                                                     \
            link_turn(link, &turns_);                                                              \
        }                                                                                          \
    } while (0)
void link_turn(struct link *link, int *turns);

#endif
