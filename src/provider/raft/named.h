/* Named elections of a group (`group=NAME`), any number, by this process's session on the group's
 * log. The node campaigns for the log's leadership for itself; who leads the log leads no election.
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
/* Calls the election's callback; after its last event it is freed. */
void named_deliver(void *election, const struct baton_event *event);
/* Stops all elections. */
void named_stop(struct node *node);

/* Functions of the provider. */
int named_campaign(struct provider_election **ret, struct provider *provider,
                   const struct provider_campaign *campaign, struct baton_error *reterr);
int named_check_heir(struct provider_election *base, const char *to, struct baton_error *reterr);
int named_resign(struct provider_election *base, const char *to, instant deadline,
                 struct baton_error *reterr);
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

#endif
