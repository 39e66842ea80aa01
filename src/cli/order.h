/* The messages between `baton run` and its supervisor (cli/supervisor.h). */
#ifndef CLI_ORDER_H
#define CLI_ORDER_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

enum order_type {
    ORDER_START = 1, /* .arguments, .variables, .descriptors; with these, the words first */
    ORDER_SIGNAL,    /* .number, to the command's process group */
    ORDER_KILL,      /* kills the command and all its descendants */
};

/* Descriptors with START. */
enum { RIGHT_WORDS, RIGHT_OUTPUT, RIGHT_PROGRESS, ORDER_RIGHTS };

struct order {
    enum order_type type;
    uint32_t command; /* a number that START gives; never used again */
    int number;
    uint32_t arguments; /* as words.h has them */
    uint32_t variables;
    int descriptors; /* so many of ORDER_RIGHTS; a command with an output reads nothing */
};

/* Whether a message that was not sent may be sent later: the socket is full, or there is no memory
 * just now. After any other errno the other side is dead. */
static inline bool order_may_pass_later(int errnum)
{
    return errnum == EAGAIN || errnum == ENOBUFS || errnum == ENOMEM || errnum == EINTR;
}

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
