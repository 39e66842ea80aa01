/* The verbs of `baton work`; each returns an exit code. argv[0] is the verb. */
#ifndef CLI_WORK_H
#define CLI_WORK_H

#include "cli/command.h"
#include "cli/work_link.h"
#include "work/message.h"

#include <jansson.h>

int work_submit(const struct invocation *invocation, struct work_link *link);
int work_list(const struct invocation *invocation, struct work_link *link);
int work_show(const struct invocation *invocation, struct work_link *link);
int work_logs(const struct invocation *invocation, struct work_link *link);
int work_watch(const struct invocation *invocation, struct work_link *link);
int work_stats(const struct invocation *invocation, struct work_link *link);

/* What submit is given, as an array for pool_submit(); NULL: BATON_EINVAL names what is wrong. */
json_t *work_items(const struct invocation *invocation, struct baton_error *reterr);

/* All items of the pool as an array, sorted by id, which the caller owns in any case. */
int work_entries(json_t **ret, const struct invocation *invocation, struct work_link *link,
                 struct baton_error *reterr);
/* Borrowed from `entries`; NULL: it is not there. */
json_t *work_entry(const json_t *entries, const char *id, const struct work_link *link,
                   struct baton_error *reterr);

/* What the pool's leader says (pool_ask_status()); the caller owns it in any case. */
int work_status(json_t **ret, struct work_link *link, span within, struct baton_error *reterr);

/* As it is, to standard output. */
void work_print_output(const struct work_result *result);

#endif
