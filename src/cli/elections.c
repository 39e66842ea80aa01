/* `baton elections`: what the group of this host's agent elects. */
#include "cli/agent_link.h"
#include "cli/command.h"
#include "cli/print.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 5, NUMBER_MAX = 32 };

struct numbers {
    char epoch[NUMBER_MAX], left[NUMBER_MAX], waiting[NUMBER_MAX];
};

static void fill_row(const char **row, struct numbers *numbers, const json_t *one)
{
    const char *name = json_string_value(json_object_get(one, "election"));
    const char *leader = json_string_value(json_object_get(one, "leader"));
    const json_t *left = json_object_get(one, "left_ms");

    (void)snprintf(numbers->epoch, NUMBER_MAX, "%lld",
                   (long long)json_integer_value(json_object_get(one, "epoch")));
    (void)snprintf(numbers->waiting, NUMBER_MAX, "%lld",
                   (long long)json_integer_value(json_object_get(one, "waiting")));
    (void)snprintf(numbers->left, NUMBER_MAX, left ? "%.0f ms" : "-", json_number_value(left));
    row[0] = name ? name : "?";
    row[1] = leader ? leader : "-";
    row[2] = leader ? numbers->epoch : "-";
    row[3] = numbers->left;
    row[4] = numbers->waiting;
}

static void print(const json_t *elections)
{
    static const char *const heads[] = {"ELECTION", "LEADER", "EPOCH", "LEFT", "WAITING", NULL};
    size_t count = json_array_size(elections), index;
    const char **cells = calloc((count + 1) * (COLUMNS + 1) + 1, sizeof(*cells));
    struct numbers *numbers = calloc(count + 1, sizeof(*numbers));
    json_t *one;

    if (cells && numbers) {
        memcpy(cells, heads, sizeof(heads));
        json_array_foreach(elections, index, one)
        {
            fill_row(cells + (index + 1) * (COLUMNS + 1), &numbers[index], one);
        }
        print_table(stdout, cells);
    }
    free(cells);
    free(numbers);
}

int elections_main(const struct invocation *invocation)
{
    const struct options *options = invocation->options;
    struct baton_error error = {0};
    json_t *reply;

    if (agent_link_call(&reply, options, json_pack("{s:s}", "do", "elections"), &error)) {
        return command_fail(invocation, &error);
    }
    if (options_flag(options, "json")) {
        print_json(stdout, json_object_get(reply, "elections"));
    } else {
        print(json_object_get(reply, "elections"));
    }
    json_decref(reply);
    return EXIT_OK;
}
