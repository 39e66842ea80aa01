/* Between the files member*.c; not for others. */
#ifndef CLI_MEMBER_INTERNAL_H
#define CLI_MEMBER_INTERNAL_H

#include "cli/participant.h"
#include "net/control.h"
#include "net/http_server.h"

enum { MEMBER_OPTIONS_MAX = 64 };

/* Leadership is being given away on a client's request. */
struct pass {
    uint64_t client; /* 0: none is under way */
    bool is_draining;
    bool is_cordon; /* the answer comes as soon as it is begun */
    instant deadline;
    char to[BATON_NAME_MAX]; /* "": the best placed */
    uv_timer_t timer;
};

struct participant {
    struct participant_config config;
    struct provider *provider;
    struct provider_election *election;
    struct lease_cell *cell;
    struct control_server *control;
    struct http_server *http;
    struct pass pass;
    bool drains_for_group; /* the provider waits until what acts under the lease has stopped */
    bool hands_over;       /* nothing acts under it: the lease is about to go */
    uv_timer_t watchdog;
    uv_timer_t quiet; /* once it is over, the leader sheds pages */
    bool has_timers;
    bool is_cordoned;
    bool is_closing;
    instant started;
    char node[BATON_NAME_MAX];
    char *data; /* directory; NULL: none */
    char *control_path;
    json_t *members; /* as last told */
    char obstacle[BATON_ERROR_MESSAGE_MAX];
    uint64_t elections_won;
    uint64_t leaderships_lost;
    uint64_t leader_changes;
    uint64_t events;
    void (*closed)(void *userdata);
    void *closed_userdata;
};

/* participant_provider.c */
int member_provider_open(struct participant *member, struct baton_error *reterr);

/* member_status.c: new references; NULL when out of memory. */
json_t *member_status_json(struct participant *member);
json_t *member_event_json(const struct baton_event *event);
json_t *member_member_json(const struct baton_member *member);
json_t *member_error_json(int code, const char *text);
void member_metrics(struct participant *member, struct buffer *ret);
/* Asks the provider for the members; `done` comes with member->members renewed, or a code. */
int member_refresh(struct participant *member, void (*done)(void *userdata, int code),
                   void *userdata, struct baton_error *reterr);

/* member_control.c */
void member_on_control(void *userdata, uint64_t client, const json_t *request);
void member_pass_watch(struct participant *member, const struct baton_event *event);
void member_drain_watch(struct participant *member, const struct baton_event *event);
void member_on_pass_timeout(uv_timer_t *timer);

/* member_http.c */
int member_http_open(struct participant *member, struct baton_error *reterr);

#endif
