/* SIGHUP: a running process reads certificates, keys, tokens and passwords again. */
#ifndef CLI_RELOAD_H
#define CLI_RELOAD_H

#include "agent/agent.h"
#include "base/log.h"
#include "member/member.h"
#include "member/status_server.h"
#include "options/option.h"

struct reload {
    const struct options *options;
    struct logger *logger;
    struct member *member;
    struct http_server *http; /* NULL: none */
    struct agent *agent;      /* NULL: none */
    /* Of reload.c. */
    bool is_wanted;             /* an operator asked for it, and the result must be logged */
    bool is_going, is_again;    /* again: what was asked for meanwhile is still to be read */
    char token[HTTP_TOKEN_MAX]; /* as read last */
    char url[OPTION_TEXT_MAX + 1];
};

/* Logs `reloaded` if an operator wants it, or in any case `reload-refused` if one of them is wrong:
 * then none of them changes. Leadership continues in both cases. *reload lives until the member is
 * closed. */
void reload_begin(struct reload *reload, bool is_wanted);

/* From now on a SIGHUP does not end the process: it is kept until the loop handles signals. */
void reload_hold(void);
/* Whether one was kept. */
bool reload_was_held(void);

/* Whether this process was started from a terminal. If the terminal is closed, SIGHUP comes, and
 * does not mean a reload. */
bool reload_has_terminal(void);

#endif
