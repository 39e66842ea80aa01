/* The group: its members, and how it changes. */
#ifndef MEMBER_MEMBERS_H
#define MEMBER_MEMBERS_H

#include "member/election.h"

/* Passes all members to `done`, borrowed during the call. BATON_ENOTSUP, BATON_ECLOSED, or the
 * provider's own code. */
int members_list(struct election *election, provider_members_cb done, void *userdata,
                 struct baton_error *reterr);

/* BATON_EINVAL unless it is a JSON object, or NULL. Any thread. */
int members_check_metadata(const char *metadata, struct baton_error *reterr);

/* Sets this process's metadata in the registry: a JSON object, or NULL for none; borrowed during
 * the call. BATON_EINVAL, BATON_ETOOBIG, BATON_ENOTSUP, BATON_ENOMEM, BATON_ECLOSED. */
int members_set_metadata(struct election *election, const char *metadata,
                         struct baton_error *reterr);

/* BATON_ENOTSUP: the members of this provider join when they start, and leave when they end;
 * BATON_ECLOSED. */
int members_check_change(const struct election *election, struct baton_error *reterr);

/* Adds a member to the group, or changes one: of `member` count name, address, kind, weight and
 * priority. A member that is there keeps its address unless it `replaces`: BATON_EEXIST. `done`
 * comes when the change is complete; at the deadline with BATON_ETIMEDOUT (it may go on),
 * BATON_EBUSY (another change was under way) or BATON_EUNAVAILABLE (nobody led): nothing began. */
int members_add(struct election *election, const struct baton_member *member, bool replaces,
                instant deadline, provider_done_cb done, void *userdata,
                struct baton_error *reterr);
/* BATON_ENOENT: no such member. Otherwise as members_add(). */
int members_remove(struct election *election, const char *id, instant deadline,
                   provider_done_cb done, void *userdata, struct baton_error *reterr);

#endif
