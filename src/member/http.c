#include "member/http.h"

#include "member/election.h"
#include "web/exposition.h"

#include <string.h>

static void ignore(void *userdata, int code)
{
    (void)userdata;
    (void)code;
}

static void answer_leader(const struct status *status, struct http_answer *answer)
{
    const struct election *election = status_election(status);
    struct baton_member leader;
    uint64_t epoch;
    bool leads = election_is_leader(election, NULL);
    election_leader(election, &leader, &epoch);
    http_answer_json(answer, leads ? 200 : 503,
                     json_pack("{s:b,s:s,s:s,s:I}", "is_leader", (int)leads, "leader", leader.id,
                               "address", leader.address, "epoch", (json_int_t)epoch));
}

static void on_request(void *userdata, const char *path, struct http_answer *answer)
{
    struct status *status = userdata;
    if (strcmp(path, "/status") == 0) {
        (void)status_refresh(status, ignore, NULL, NULL);
        http_answer_json(answer, 200, status_json(status));
    } else if (strcmp(path, "/healthz") == 0) {
        http_answer_json(answer, 200, json_pack("{s:b}", "ok", 1));
    } else if (strcmp(path, "/leader") == 0) {
        answer_leader(status, answer);
    } else if (strcmp(path, "/metrics") == 0) {
        answer->status = 200;
        answer->type = EXPOSITION_TYPE;
        status_metrics(status, &answer->body);
    }
}

int member_http_open(struct http_server **ret, const struct http_config *config,
                     struct status *status, struct baton_error *reterr)
{
    struct http_config own = *config;
    own.on_request = on_request;
    own.userdata = status;
    int code = http_server_open(ret, &own, reterr);
    if (!code) {
        status_set_http_port(status, http_server_port(*ret));
    }
    return code;
}
