/* This process as a member: an open provider on the caller's loop, and all that it does there.
 *
 *     api   cli   work   fleet
 *      │ calls              ▲ events, replies
 *      ▼                    │
 *   join      enter and leave an election        join.h
 *   handover  drain, then resign, pass, cordon   handover.h
 *   election  the leader; observers              election.h
 *   members   the list; metadata; add, remove    members.h
 *   store     keys with revisions                store.h
 *   feed      changes of keys, messages          feed.h
 *   member    the provider, opened and closed    this file
 *      │
 *   provider
 *
 * Threads: all functions of this folder belong to the loop's thread, and all callbacks come on it,
 * but for those that say otherwise. Nothing blocks.
 *
 * Errors: a function returns 0 or a negative BATON_E… and fills `reterr` (NULL allowed) on failure
 * only; then nothing was begun and no callback comes. A callback `done` comes exactly once, perhaps
 * before the function returns. BATON_ENOTSUP names the provider that lacks a feature; BATON_ECLOSED
 * is the answer of an election that has ended.
 */
#ifndef MEMBER_MEMBER_H
#define MEMBER_MEMBER_H

#include "provider/provider.h"

struct member; /* opaque */

/* Opens the provider that the URL names. Texts of `config` are borrowed during the call; its loop
 * and logger outlive the member. Errors as provider_open(). */
int member_open(struct member **ret, const struct provider_config *config,
                struct baton_error *reterr);

/* Votes, and has state and channels, before the first election. Errors as provider_ops.begin. */
int member_begin(struct member *member, struct baton_error *reterr);

/* Resigns every leadership and leaves every election, from the loop's next turn on: each gets its
 * BATON_EVENT_STOPPED. So it may be called from within an event. `closed` comes once; until then
 * the loop has to run. */
void member_close(struct member *member, void (*closed)(void *userdata), void *userdata);

/* After `closed`, and after the loop has nothing left to do. Elections are freed by themselves,
 * before this. NULL is nothing. */
void member_free(struct member *member);

uv_loop_t *member_loop(const struct member *member);
/* "raft", "redis", …: static storage. Any thread. */
const char *member_scheme(const struct member *member);
/* Whether the provider has all of these bits of enum provider_feature. Any thread. */
bool member_has(const struct member *member, unsigned features);
/* BATON_ENOTSUP without them: "the provider memory: has no …", `what`. Any thread. */
int member_need(const struct member *member, unsigned features, const char *what,
                struct baton_error *reterr);

/* Returns the provider's part of the status, as a new JSON object; NULL: none. */
struct json_t *member_provider_status(const struct member *member);

/* Whether the provider's own disk has failed, after which it does nothing more in this process: a
 * program ends, so that it is started again. It told a BATON_EVENT_ERROR with the reason. */
bool member_has_failed(const struct member *member);

/* The processes that act for this one: they are killed before a certificate says that it died.
 * Copied; NULL: none. Providers without a guardian have no use for them. */
void member_set_victims(struct member *member, const struct victims *victims);

/* Reads certificates, keys and the passwords of `url` again, as provider_ops.reload(). */
int member_reload(struct member *member, const char *url, provider_done_cb done, void *userdata,
                  struct baton_error *reterr);

/* Below the interface, for measurements and switches of tests. Borrowed until member_close(). */
struct provider *member_provider(const struct member *member);

#endif
