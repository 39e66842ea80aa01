/* Requests about elections of other processes: to hand over, to lead or not to lead.
 *
 *   ask ─▶ order of the log ─▶ carried out ─▶ ELIGIBLE: done
 *    ▲         │ no reply                 └─▶ PASS: the leader hands over ─▶ another holds it: done
 *    └─────────┘
 *
 * One thread; inside of this folder only.
 */
#ifndef PROVIDER_RAFT_ASKS_H
#define PROVIDER_RAFT_ASKS_H

#include "provider/provider.h"

struct node;

/* Functions of the provider. */
int ask_pass(struct provider *provider, const char *election, const char *to, instant deadline,
             provider_done_cb done, void *userdata, struct baton_error *reterr);
int ask_eligible(struct provider *provider, const char *election, const char *process,
                 bool eligible, instant deadline, provider_done_cb done, void *userdata,
                 struct baton_error *reterr);

/* All get BATON_ECANCELED. */
void asks_end(struct node *node);

#endif
