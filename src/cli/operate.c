/* `baton pass`, `cordon`, `uncordon`, `join`, `leave`: orders to one node. */
#include "cli/ask.h"
#include "cli/print.h"

#include <stdio.h>
#include <string.h>

static json_t *request_of(const struct invocation *invocation)
{
    const struct options *options = invocation->options;
    const char *name = invocation->command->name;
    json_t *request = json_pack("{s:s}", "do", name);
    json_int_t timeout_ms = options_duration(options, "timeout").ns / 1000000;
    const char *to = options_find(options, "to") ? options_text(options, "to") : NULL;
    (void)json_object_set_new(request, "timeout_ms", json_integer(timeout_ms));
    if (to) {
        (void)json_object_set_new(request, "to", json_string(to));
    }
    if (options_find(options, "replace") && options_flag(options, "replace")) {
        (void)json_object_set_new(request, "replace", json_true());
    }
    if (invocation->argc > 0) {
        (void)json_object_set_new(request, "member", json_string(invocation->argv[0]));
    }
    return request;
}

int operate_main(const struct invocation *invocation)
{
    struct baton_error error = {0};
    json_t *answer = NULL;
    json_t *request = request_of(invocation);
    int code = ask_node(invocation->options, request, &answer, &error);
    json_decref(request);
    if (code) {
        return command_fail(invocation, &error);
    }
    const char *leader = json_string_value(json_object_get(answer, "leader"));
    if (options_flag(invocation->options, "json")) {
        print_json(stdout, answer);
    } else if (leader) {
        printf("%s leads in epoch %lld\n", leader,
               (long long)json_integer_value(json_object_get(answer, "epoch")));
    }
    json_decref(answer);
    return EXIT_OK;
}
