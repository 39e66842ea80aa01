/* The status server of a member. */
#include "cli/member_internal.h"

#include "base/bearer.h"
#include "base/value.h"

#include <stdlib.h>
#include <string.h>

static void put_json(struct http_answer *answer, unsigned status, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    answer->status = text ? status : 500;
    answer->type = "application/json";
    if (text) {
        buffer_put_text(&answer->body, text);
        buffer_put_text(&answer->body, "\n");
    }
    free(text);
    json_decref(json);
}

static void ignore(void *userdata, int code)
{
    (void)userdata;
    (void)code;
}

static void answer_leader(struct participant *member, struct http_answer *answer)
{
    struct baton_member leader = {0};
    uint64_t epoch = 0;
    bool leads = participant_is_leader(member, NULL);
    member->provider->ops->leader(member->election, &leader, &epoch);
    put_json(answer, leads ? 200 : 503,
             json_pack("{s:b,s:s,s:s,s:I}", "is_leader", (int)leads, "leader", leader.id, "address",
                       leader.address, "epoch", (json_int_t)epoch));
}

static void on_request(void *userdata, const char *path, struct http_answer *answer)
{
    struct participant *member = userdata;
    if (strcmp(path, "/status") == 0) {
        (void)member_refresh(member, ignore, NULL, NULL);
        put_json(answer, 200, member_status_json(member));
    } else if (strcmp(path, "/healthz") == 0) {
        put_json(answer, 200, json_pack("{s:b}", "ok", 1));
    } else if (strcmp(path, "/leader") == 0) {
        answer_leader(member, answer);
    } else if (strcmp(path, "/metrics") == 0) {
        answer->status = 200;
        answer->type = "text/plain; version=0.0.4";
        member_metrics(member, &answer->body);
    }
}

int participant_token(char *ret, size_t bytes, const char *path, struct baton_error *reterr)
{
    int code = bearer_read(ret, bytes, path, reterr);
    if (code == BATON_EIO) { /* rather a name that is wrong than a disk that fails */
        reterr->code = BATON_EINVAL;
    }
    return code ? error_wrap(reterr, "--http-token-file") : 0;
}

int member_http_open(struct participant *member, struct baton_error *reterr)
{
    const struct options *options = member->config.options;
    const char *address = options_text(options, "http");
    const char *token_file = options_text(options, "http-token-file");
    const char *hosts[17] = {0};
    char host[256];
    char token[HTTP_TOKEN_MAX];
    int port = 0;
    if (!address) {
        return 0;
    }
    int code = value_address(address, true, host, sizeof(host), &port, reterr);
    if (!code && token_file) {
        code = participant_token(token, sizeof(token), token_file, reterr);
    }
    if (code) {
        return code;
    }
    for (size_t i = 0; i < options_count(options, "http-host") && i < 16; i++) {
        hosts[i] = options_item(options, "http-host", i);
    }
    struct http_config config = {.loop = member->config.loop,
                                 .host = host,
                                 .port = port,
                                 .token = token_file ? token : NULL,
                                 .hosts = hosts,
                                 .on_request = on_request,
                                 .userdata = member};
    return http_server_open(&member->http, &config, reterr);
}
