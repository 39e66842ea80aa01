/* The messages that docs/worker-protocol.md shows are read by both ends. */
#include "cmocka_all.h"
#include "protocol/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES_MAX = 65536 };

static const char fence[] = "```json\n";

static char *page(void)
{
    char *text = calloc(1, PAGE_BYTES_MAX);
    FILE *file = fopen(PROTOCOL_PAGE, "re");

    assert_non_null(text);
    assert_non_null(file);
    assert_true(fread(text, 1, PAGE_BYTES_MAX - 1, file) < PAGE_BYTES_MAX - 1);
    (void)fclose(file);
    return text;
}

static bool is_read(const char *text, size_t bytes, bool is_from_worker, struct baton_error *error)
{
    struct command command = {0};
    json_t *message = NULL;
    int r;

    if (is_from_worker) {
        r = worker_message_parse(text, bytes, &message, error);
        json_decref(message);
        return r == 0;
    }
    r = command_parse(text, bytes, sizeof(struct subscription), &command, error);
    if (r == 0) {
        assert_int_not_equal(command.type, COMMAND_UNKNOWN);
        assert_int_equal(command.rejection_count, 0);
        command_fini(&command);
    }
    return r == 0;
}

static void every_message_of_the_page_is_read(void **state)
{
    char *text = page();
    const char *workers = strstr(text, "\n## What a worker sends\n");
    int messages = 0;

    assert_non_null(workers);
    for (char *at = strstr(text, fence); at != NULL; at = strstr(at, fence)) {
        struct baton_error error = {0};
        char *end = strstr(at += strlen(fence), "```");

        assert_non_null(end);
        if (!is_read(at, (size_t)(end - at), at > workers, &error)) {
            fail_msg("%.*s: %s", (int)(end - at), at, error.message);
        }
        messages++;
    }
    assert_int_equal(messages, 8);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_message_of_the_page_is_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
