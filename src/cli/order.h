/* The messages between `baton run` and its supervisor (cli/supervisor.h). */
#ifndef CLI_ORDER_H
#define CLI_ORDER_H

#include <stdbool.h>
#include <stdint.h>

enum order_type {
    ORDER_START = 1, /* .arguments, .variables, .has_output; with descriptors, the words first */
    ORDER_SIGNAL,    /* .number, to the command's process group */
    ORDER_KILL,      /* kills the command and all its descendants */
};

enum { ORDER_RIGHTS = 2 }; /* descriptors with START: the words, the output */

struct order {
    enum order_type type;
    uint32_t command; /* a number that START gives; never used again */
    int number;
    uint32_t arguments; /* as words.h has them */
    uint32_t variables;
    bool has_output; /* the second descriptor is for what the command writes; it reads nothing */
};

enum news_type {
    NEWS_STARTED = 1, /* .value: the command's process id */
    NEWS_REFUSED,     /* .value: errno */
    NEWS_ENDED,       /* .value: the command's wait status; none of its descendants is left */
};

struct news {
    enum news_type type;
    uint32_t command;
    int value;
    bool is_overdue; /* ENDED: the supervisor ended it because the lease was about to end */
};

#endif
