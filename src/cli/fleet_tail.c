/* `baton fleet tail`: what happens, as it happens. */
#include "base/json_load.h"
#include "base/json_text.h"
#include "cli/fleet.h"
#include "cli/interrupt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NAME_ROOM = 64, ID_ROOM = 64, SILENCE_S = 40, RETRY_US = 500000, PATH_ROOM = 512 };

/* The event that is being read, and the id of the latest one. */
struct tail {
    bool is_json;
    char name[NAME_ROOM], id[ID_ROOM];
};

/* A line of text without the braces of its JSON: every value is a text or a number. */
static void print_fields(const json_t *fields)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)fields, key, value)
    {
        char *text = json_text(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
        const char *bare = json_string_value(value);
        bool is_bare = bare && *bare && text && !strpbrk(text, " \\");

        printf(" %s=%s", key, is_bare ? bare : text ? text : "?"); /* out of memory */
        free(text);
    }
}

static void print_event(const struct tail *tail, const char *data)
{
    json_t *fields = json_load_text(data, 0, NULL);
    time_t now = time(NULL);
    struct tm local;
    char at[16] = "";

    if (tail->is_json) {
        json_t *line = json_pack("{s:s, s:O}", "event", tail->name, "fields", fields);
        char *text = json_text(line, JSON_COMPACT | JSON_ENSURE_ASCII);
        puts(text ? text : "{}");
        free(text);
        json_decref(line);
    } else {
        if (localtime_r(&now, &local)) {
            (void)strftime(at, sizeof(at), "%T", &local);
        }
        printf("%s %s", at, tail->name);
        print_fields(fields);
        (void)putchar('\n');
    }
    json_decref(fields);
    (void)fflush(stdout);
}

static void on_line(void *userdata, const char *line)
{
    struct tail *tail = userdata;

    if (strncmp(line, "id: ", 4) == 0) {
        (void)snprintf(tail->id, sizeof(tail->id), "%s", line + 4);
    } else if (strncmp(line, "event: ", 7) == 0) {
        (void)snprintf(tail->name, sizeof(tail->name), "%s", line + 7);
    } else if (strncmp(line, "data: ", 6) == 0) {
        print_event(tail, line + 6);
    }
}

/* A process that goes is followed by another one behind the same name, or comes back: tail goes on
 * behind the latest event. Only the first connection must succeed. */
int fleet_tail(const struct invocation *invocation, struct fleet_link *link)
{
    const char *only = options_text(invocation->options, "only");
    struct tail tail = {.is_json = options_flag(invocation->options, "json")};
    char path[PATH_ROOM], headers[ID_ROOM + 32] = "";
    struct fleet_stream stream = {.method = "GET",
                                  .path = path,
                                  .headers = headers,
                                  .silence = SPAN_S(SILENCE_S),
                                  .on_line = on_line,
                                  .userdata = &tail};
    struct baton_error error = {0};
    bool was_open = false;
    int code = fleet_path(path, sizeof(path), only ? "/events?only=" : "/events", only ? only : "",
                          "", &error);

    while (code == BATON_OK && !ferror(stdout)) {
        code = fleet_read_lines(link, &stream, &error);
        was_open = was_open || tail.id[0] != '\0' || code == BATON_OK;
        if (interrupt_signal()) {
            return EXIT_OK;
        }
        if (was_open &&
            (code == BATON_ECLOSED || code == BATON_EUNAVAILABLE || code == BATON_ETIMEDOUT)) {
            code = BATON_OK;
        }
        (void)snprintf(headers, sizeof(headers), tail.id[0] ? "last-event-id: %s\r\n" : "%s",
                       tail.id);
        if (code == BATON_OK) {
            (void)clock_nanosleep(CLOCK_MONOTONIC, 0,
                                  &(struct timespec){.tv_nsec = RETRY_US * 1000L}, NULL);
        }
    }
    return code ? command_fail(invocation, &error) : EXIT_OK;
}
