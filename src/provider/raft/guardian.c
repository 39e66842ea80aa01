/* This node's use of its guardian, which certifies the node's death to the peers and names the
 * heir. */
#include "guardian/guardian.h"
#include "guardian/hang.h"
#include "guardian/tally.h"
#include "provider/raft/node.h"

#include <stdio.h>
#include <string.h>

static void on_warning(void *userdata, const struct baton_error *error)
{
    struct node *node = userdata;

    log_warning(node->logger, "guardian", LOG_STR("problem", error->message));
    event_error(node, error->code, error);
    event_deliver(node);
}

static void poison(void *cell)
{
    lease_cell_poison(cell);
}

/* Takes the setting `hang`, or more if hangs were found here lately: some were perhaps none. */
static void allow_for_kills(struct node *node, const char *tally)
{
    node->hang_kills = node->options.hang.ns > 0 ? tally_read(tally) : 0;
    node->hang = hang_bound(node->options.hang, node->hang_kills, node->options.settings.lease);
    if (node->hang_kills > 0) {
        log_warning(node->logger, "hang-kills", LOG_U64("count", node->hang_kills),
                    LOG_F64("bound_ms", (double)node->hang.ns / 1e6),
                    LOG_STR("text", "this node was killed for hangs in the last hour, so the next "
                                    "one may last longer"));
    }
}

/* A failure is only a warning: without a guardian everything works, but after a crash peers on
 * other hosts wait for the lease's end. */
void guard_begin(struct node *node)
{
    char tally[OPTIONS_PATH_MAX + 16];
    struct guardian_options options = {
        .loop = node->loop,
        .certificate = {.cluster = node->cluster,
                        .node = node->id,
                        .incarnation = node->incarnation},
        .kills_outliving = node->options.kills_outliving,
        .alive_ns = node->alive_ns,
        .tally = tally,
        .on_warning = on_warning,
        .userdata = node,
    };
    struct baton_error error;

    if (!node->options.wants_guardian) {
        return;
    }
    (void)snprintf(tally, sizeof(tally), "%s/hang-kills", node->options.data);
    allow_for_kills(node, tally);
    options.hang = node->hang;
    memcpy(options.certificate.secret, node->secret, sizeof(options.certificate.secret));
    if (guardian_start(&node->guardian, &options, &error) != BATON_OK) {
        node->guardian = NULL;
        log_warning(node->logger, "no-guardian", LOG_STR("reason", error.message));
        event_error(node, error.code, &error);
        return;
    }
    if (node->election && node->election->cell &&
        guardian_arm(node->guardian, poison, node->election->cell, &error) != BATON_OK) {
        log_warning(node->logger, "not-armed", LOG_STR("reason", error.message));
    }
    guard_follow_membership(node);
    if (node->has_victims) {
        guardian_set_victims(node->guardian, &node->victims);
    }
}

void guard_follow_membership(struct node *node)
{
    const struct raft_configuration *members = raft_get_configuration(node->raft);
    struct guardian_peer peers[RAFT_MEMBERS_MAX];
    size_t count = 0;

    if (!node->guardian) {
        return;
    }
    for (size_t i = 0; i < members->count; i++) {
        if (members->members[i].id != node->id && members->members[i].address[0]) {
            peers[count++] = (struct guardian_peer){.node = members->members[i].id,
                                                    .address = members->members[i].address};
        }
    }
    guardian_set_peers(node->guardian, peers, count);
}

void guard_publish(struct node *node, const struct raft_lease *lease)
{
    if (node->guardian) {
        guardian_publish(node->guardian, lease->held ? lease->end : (instant){0});
    }
}

void guard_set_heir(struct node *node, raft_id heir)
{
    if (node->guardian) {
        guardian_set_heir(node->guardian, heir);
    }
}

void guard_set_victims(struct provider *provider, const struct victims *victims)
{
    struct node *node = (struct node *)provider;

    node->has_victims = victims != NULL;
    if (victims) {
        node->victims = *victims;
    }
    if (node->guardian) {
        guardian_set_victims(node->guardian, victims);
    }
}

static void on_stopped(void *userdata)
{
    node_release(userdata);
}

void guard_end(struct node *node)
{
    struct guardian *guardian = node->guardian;

    if (guardian) {
        node->guardian = NULL;
        node->open_handles++;
        guardian_stop(guardian, on_stopped, node);
    }
}
