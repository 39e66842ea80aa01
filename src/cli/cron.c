/* `baton cron`: a crontab that runs on one node of a group. `run` is cli/cron_run.c, `ls`
 * cli/cron_list.c; `check` is here. */
#include "cli/cron.h"

#include "cli/print.h"
#include "cron/zone.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- The file -------------------------------------------------------------------------------- */

/* At most one byte more than a crontab may have. For free(). */
static int read_all(char **ret, size_t *ret_bytes, const char *path, struct baton_error *reterr)
{
    char *text = malloc(CRONTAB_BYTES_MAX + 1);
    FILE *file = text ? fopen(path, "re") : NULL;
    int code = BATON_OK;

    if (!text) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    if (!file) {
        code = error_set(reterr, BATON_EINVAL, "--file %s: %s", path, strerror(errno));
    } else {
        errno = 0;
        *ret_bytes = fread(text, 1, CRONTAB_BYTES_MAX + 1, file);
        if (ferror(file)) {
            code = error_set(reterr, BATON_EINVAL, "--file %s: %s", path,
                             strerror(errno ? errno : EIO));
        }
        (void)fclose(file);
    }
    if (code) {
        free(text);
        return code;
    }
    *ret = text;
    return BATON_OK;
}

int cron_read_file(struct crontab **ret, const struct options *options, struct baton_error *reterr)
{
    const char *path = options_text(options, "file");
    size_t bytes = 0;
    char *text = NULL;
    int code;

    if (!path) {
        return error_set(reterr, BATON_EINVAL, "--file is missing: name the crontab");
    }
    code = read_all(&text, &bytes, path, reterr);
    if (code) {
        return code;
    }
    code = crontab_parse(ret, text, bytes, path, zone_exists, reterr);
    free(text);
    return code;
}

void cron_format_time(char ret[static CRON_TIME_BYTES], const char *zone, int64_t at_s)
{
    struct calendar_zone clocks = zone_of(zone);
    int32_t ahead_s = clocks.offset(clocks.userdata, at_s);
    time_t local = (time_t)(at_s + ahead_s);
    struct tm parts = {0};
    char text[24];
    int32_t minutes = (ahead_s < 0 ? -ahead_s : ahead_s) / 60;

    (void)gmtime_r(&local, &parts);
    (void)strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
    (void)snprintf(ret, CRON_TIME_BYTES, "%s %c%02d:%02d", text, ahead_s < 0 ? '-' : '+',
                   (int)(minutes / 60), (int)(minutes % 60));
}

/* ---- check ----------------------------------------------------------------------------------- */

static json_t *line_json(const struct cron_line *line, int64_t now_s, int64_t count)
{
    struct calendar_zone zone = zone_of(line->zone);
    json_t *next = json_array();
    int64_t at_s = now_s;

    for (int64_t i = 0; i < count && at_s < INT64_MAX; i++) {
        at_s = cron_next(&line->schedule, &zone, at_s);
        if (at_s < INT64_MAX) {
            (void)json_array_append_new(next, json_integer((json_int_t)at_s));
        }
    }
    return json_pack("{s:s, s:i, s:s, s:s, s:s, s:I, s:o}", "line", line->id, "number",
                     (int)line->number, "schedule", line->when, "zone", line->zone, "command",
                     line->command, "delay_s", (json_int_t)line->delay_s, "next", next);
}

static void print_line(const struct cron_line *line, const json_t *json)
{
    const json_t *at;
    char text[CRON_TIME_BYTES];
    size_t index;

    printf("%s  %s  %s\n", line->id, line->when, line->command);
    json_array_foreach(json_object_get(json, "next"), index, at)
    {
        cron_format_time(text, line->zone, json_integer_value(at));
        printf("    %s\n", text);
    }
}

static int check_main(const struct invocation *invocation)
{
    const struct options *options = invocation->options;
    struct crontab *crontab;
    struct baton_error error = {0};
    json_t *lines = json_array();
    int64_t now_s = (int64_t)time(NULL), count = options_number(options, "count");

    if (cron_read_file(&crontab, options, &error)) {
        json_decref(lines);
        return command_fail(invocation, &error);
    }
    for (size_t i = 0; i < crontab->count; i++) {
        json_t *json = line_json(&crontab->lines[i], now_s, count);
        if (!options_flag(options, "json")) {
            print_line(&crontab->lines[i], json);
        }
        (void)json_array_append_new(lines, json);
    }
    if (options_flag(options, "json")) {
        print_json(stdout, lines);
    }
    json_decref(lines);
    crontab_free(crontab);
    return EXIT_OK;
}

/* ---- All of them ----------------------------------------------------------------------------- */

int cron_main(const struct invocation *invocation)
{
    const char *word = invocation->argv[0];
    struct baton_error error;

    zone_begin();
    if (strcmp(word, "run") == 0) {
        return cron_run_main(invocation);
    }
    if (strcmp(word, "ls") == 0) {
        return cron_list_main(invocation);
    }
    if (strcmp(word, "check") == 0) {
        return check_main(invocation);
    }
    (void)error_set(&error, BATON_EINVAL, "'%s': must be run, ls or check", word);
    return command_fail(invocation, &error);
}
