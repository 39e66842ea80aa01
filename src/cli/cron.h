/* `baton cron`: what its parts share. */
#ifndef CLI_CRON_H
#define CLI_CRON_H

#include "cli/command.h"
#include "cron/crontab.h"

/* Reads --file. BATON_EINVAL: "FILE:LINE: …"; it is not given, or cannot be read. */
int cron_read_file(struct crontab **ret, const struct options *options, struct baton_error *reterr);

/* "2026-11-25 12:00:00 CET" or "+01:00", by the clocks of that zone. */
enum { CRON_TIME_BYTES = 40 };
void cron_format_time(char ret[static CRON_TIME_BYTES], const char *zone, int64_t at_s);

int cron_run_main(const struct invocation *invocation);
int cron_list_main(const struct invocation *invocation);

#endif
