/* `baton pass`, `cordon`, `uncordon`, `join`, `leave`: commands to one node, or of an election of
 * the agent. */
#include "cli/ask.h"
#include "cli/by_agent.h"
#include "cli/print.h"

#include <stdio.h>
#include <string.h>

/* Fails if the text cannot be added: without --to, any member could take over. */
static int put_text(json_t *request, const char *key, const char *text, struct baton_error *reterr)
{
    return json_object_set_new(request, key, json_string(text)) == 0
               ? 0
               : error_set(reterr, BATON_EINVAL, "'%s': is not UTF-8", text);
}

static int fill_request(json_t *request, const struct invocation *invocation,
                        struct baton_error *reterr)
{
    const struct options *options = invocation->options;
    int code = put_text(request, "do", invocation->command->name, reterr);
    const char *to = options_find(options, "to") ? options_text(options, "to") : NULL;
    (void)json_object_set_new(request, "timeout_ms", json_integer(ask_wait_ms(options)));
    if (!code && to) {
        code = put_text(request, "to", to, reterr);
    }
    if (options_find(options, "replace") && options_flag(options, "replace")) {
        (void)json_object_set_new(request, "replace", json_true());
    }
    if (!code && invocation->argc > 0) {
        code = put_text(request, "member", invocation->argv[0], reterr);
    }
    return code;
}

static int operate_node(json_t **ret, const struct invocation *invocation,
                        struct baton_error *reterr)
{
    json_t *request = json_object();
    int code = fill_request(request, invocation, reterr);
    code = code ? code : ask_node(invocation->options, request, ret, reterr);
    json_decref(request);
    return code;
}

/* A node cordons itself, so that only an agent is told of whom. */
static int check_arguments(const struct invocation *invocation, struct baton_error *reterr)
{
    bool is_needed = invocation->command->arguments_min > 0;
    return is_needed || invocation->argc == 0
               ? 0
               : error_set(reterr, BATON_EINVAL,
                           "%s: a node is named by --data; a process goes with --election",
                           invocation->argv[0]);
}

int operate_main(const struct invocation *invocation)
{
    struct baton_error error = {0};
    json_t *answer = NULL;
    int code;
    if (by_agent(invocation->options)) {
        code = by_agent_operate(&answer, invocation, &error);
    } else {
        code = check_arguments(invocation, &error);
        code = code ? code : operate_node(&answer, invocation, &error);
    }
    if (code) {
        return command_fail(invocation, &error);
    }
    const char *leader = json_string_value(json_object_get(answer, "name"));
    if (options_flag(invocation->options, "json")) {
        print_json(stdout, answer);
    } else if (leader) {
        printf("%s leads in epoch %lld\n", leader,
               (long long)json_integer_value(json_object_get(answer, "epoch")));
    }
    json_decref(answer);
    return EXIT_OK;
}
