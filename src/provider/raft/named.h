/* Named elections of a group (`group=NAME`), any number, by sessions on the group's log: this
 * process's own, and one for each process that takes part through it (attach.c). The node campaigns
 * for the log's leadership for itself; who leads the log leads no election.
 *
 *   named.c   the elections of a process        line.c   the group's view of an election
 *   attach.c  processes that take part here     asks.c   requests about other processes' elections
 *
 * One thread; inside of this folder only.
 */
#ifndef PROVIDER_RAFT_NAMED_H
#define PROVIDER_RAFT_NAMED_H

#include "provider/provider.h"

struct node;
struct named;

/* Opens this process's session. BATON_ENOMEM. */
int named_begin(struct node *node, struct baton_error *reterr);
void named_free(struct named *named); /* NULL allowed */
/* An event of the core, which no election has: those about members go to all elections. */
void named_take(struct node *node, const struct baton_event *event);
/* Ends this process's session, and stops all its elections. */
void named_stop(struct node *node);
/* Of the node, or of a handle. */
struct node *named_node(struct provider *provider);

span named_lease(const struct provider *provider);
int named_take_part(struct provider *provider, struct baton_error *reterr);
/* Functions of the provider, and of a handle. */
int named_campaign(struct provider_election **ret, struct provider *provider,
                   const struct provider_campaign *campaign, struct baton_error *reterr);
int named_check_heir(struct provider_election *base, const char *to, struct baton_error *reterr);
int named_resign(struct provider_election *base, const char *to, instant deadline,
                 struct baton_error *reterr);
void named_drained(struct provider_election *base);
int named_set_eligible(struct provider_election *base, bool eligible, struct baton_error *reterr);
int named_set_metadata(struct provider_election *base, const char *metadata,
                       struct baton_error *reterr);
void named_leave(struct provider_election *base);
void named_leader(struct provider_election *base, struct baton_member *ret, uint64_t *ret_epoch);
int named_members(struct provider_election *base, provider_members_cb done, void *userdata,
                  struct baton_error *reterr);
int named_member_add(struct provider_election *base, const struct baton_member *member,
                     bool replaces, instant deadline, provider_done_cb done, void *userdata,
                     struct baton_error *reterr);
int named_member_remove(struct provider_election *base, const char *id, instant deadline,
                        provider_done_cb done, void *userdata, struct baton_error *reterr);
int named_elections(struct provider *provider, provider_elections_cb done, void *userdata,
                    struct baton_error *reterr);
/* Those of attach.c. */
int attach_open(struct provider **ret, struct provider *provider,
                const struct provider_process *process, struct baton_error *reterr);
void attach_detach(struct provider *handle, void (*closed)(void *userdata), void *userdata);

#endif
