/* The proofs that a leader is gone (a to f).
 *
 *   (b) a pidfd of a process on this host, after which that process has answered: so the pid cannot
 *       have been another process's. Readable: the process has ended.
 *   (c) a certificate whose secret has the hash that the dead process had sent, authenticated.
 *   (d) a greeting of a higher incarnation: only the holder of the data directory's lock counts up.
 *       Not of a member whose program may outlive its process (GREETING_GUARDIAN_ONLY).
 *   (e) on loopback, declared free of forwarders: a connection that had greeted ends, and the next
 *       dial is refused. A process under a lease never closes its listener; but a tunnel, a sidecar
 *       or a port forward that ends refuses as well, and no greeting distinguishes the two.
 *
 *   (f) the exit code 0 of the fence command: the whole host was off (docs/fencing.md). To the core
 *       it is a certificate.
 *
 * (a), the resignation, is a message of the core. The end of a connection alone proves nothing.
 */
#include "net/digest.h"
#include "provider/raft/node.h"
#include "provider/raft/session_host.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Reads the boot id from its text 8-4-4-4-12. Zeros if it cannot be read: then no pid is used. */
static void read_boot_id(uint8_t ret[16])
{
    char text[64] = "";
    size_t used = 0;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (file) {
        if (!fgets(text, sizeof(text), file)) {
            text[0] = '\0';
        }
        (void)fclose(file);
    }
    for (const char *c = text; c[0] && c[1] && used < 16;) {
        unsigned byte;
        if (*c == '-') {
            c++;
        } else if (sscanf(c, "%2x", &byte) == 1) {
            ret[used++] = (uint8_t)byte;
            c += 2;
        } else {
            break;
        }
    }
}

void proof_make_greeting(struct node *node)
{
    struct greeting *greeting = &node->greeting;
    struct stat info;

    if (RAND_bytes(node->secret, sizeof(node->secret)) != 1) {
        node->options.wants_guardian =
            false; /* without a secret there is no certificate, only the lease */
    }
    digest_sha256(greeting->commitment, node->secret, sizeof(node->secret));
    (void)snprintf(greeting->cluster, sizeof(greeting->cluster), "%s", node->options.cluster);
    (void)snprintf(greeting->name, sizeof(greeting->name), "%s", node->options.node);
    greeting->incarnation = node->incarnation;
    greeting->lease = node->options.settings.lease;
    greeting->heartbeat_timeout = node->options.settings.heartbeat_timeout;
    greeting->clock_drift_ppm = node->options.settings.clock_drift_ppm;
    greeting->pid = (uint32_t)getpid();
    greeting->pid_namespace = stat("/proc/self/ns/pid", &info) == 0 ? (uint64_t)info.st_ino : 0;
    read_boot_id(greeting->boot_id);
    greeting->flags = (uint8_t)((node->options.is_guardian_only ? GREETING_GUARDIAN_ONLY : 0) |
                                (node->eligible ? 0 : GREETING_CORDONED));
}

struct acquaintance *acquaintance_of(const struct node *node, raft_id id)
{
    struct acquaintance *found;
    HASH_FIND(hh, node->acquaintances, &id, sizeof(id), found);
    return found;
}

/* First it is noted: the step may make this node the leader, which ends the dead one's sessions. */
static void tell(struct node *node, enum raft_proof_kind kind, raft_id id, uint64_t incarnation,
                 raft_id heir)
{
    struct acquaintance *known = acquaintance_of(node, id);
    struct raft_input input = {
        .type = RAFT_IN_PROOF,
        .proof = {.kind = kind,
                  .proof = {.node = id,
                            .incarnation = incarnation,
                            .through_term = RAFT_TERM_FOREVER},
                  .heir = heir},
    };

    if (known && incarnation > known->proved) {
        known->proved = incarnation;
    }
    (void)node_step(node, &input);
    if (known && node->host) {
        session_host_proved(node->host, id, incarnation);
    }
}

bool proof_is_guardian_only(const struct acquaintance *known)
{
    return known && (known->flags & GREETING_GUARDIAN_ONLY) != 0;
}

/* ---- (b) ---------------------------------------------------------------------------------------
 */

static void pid_poll_closed(uv_handle_t *handle)
{
    struct node *node = handle->data;
    free(handle);
    node_release(node);
}

void proof_drop_pidfd(struct link *link)
{
    if (link->pid_poll) {
        (void)uv_poll_stop(link->pid_poll);
        link->pid_poll->data = link->node;
        uv_close((uv_handle_t *)link->pid_poll, pid_poll_closed);
        link->pid_poll = NULL;
    }
    if (link->pidfd >= 0) {
        (void)close(link->pidfd);
        link->pidfd = -1;
    }
    link->is_pinned = false;
}

static void on_process_ended(uv_poll_t *poll, int status, int events)
{
    struct link *link = poll->data;
    struct node *node = link->node;
    raft_id id = link->id;
    uint64_t incarnation = link->pidfd_incarnation;
    (void)events;

    proof_drop_pidfd(link);
    if (status == 0 && !node->is_closing) {
        tell(node, RAFT_PROOF_PIDFD, id, incarnation, RAFT_NOBODY);
    }
}

static bool is_on_this_host(const struct node *node, const struct greeting *greeting)
{
    static const uint8_t unknown[16];
    const struct greeting *ours = &node->greeting;

    return memcmp(ours->boot_id, unknown, sizeof(unknown)) != 0 && ours->pid_namespace != 0 &&
           memcmp(ours->boot_id, greeting->boot_id, sizeof(unknown)) == 0 &&
           ours->pid_namespace == greeting->pid_namespace;
}

static void open_pidfd(struct connection *connection, const struct greeting *greeting)
{
    struct link *link = connection->link;

    if (link->is_pinned && link->pidfd_incarnation == greeting->incarnation) {
        return; /* already known from another connection to this process */
    }
    proof_drop_pidfd(link);
    if (!connection->node->options.believes_pidfd ||
        proof_is_guardian_only(acquaintance_of(connection->node, greeting->id)) ||
        !is_on_this_host(connection->node, greeting) || greeting->pid == (uint32_t)getpid()) {
        return;
    }
    link->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)greeting->pid, 0); /* always close-on-exec */
    if (link->pidfd >= 0) {
        link->pidfd_incarnation = greeting->incarnation;
        connection_ask(connection);
    }
}

/* The peer has answered since the pidfd was opened, so its process number was not reused. */
void proof_on_pinned(struct connection *connection)
{
    struct link *link = connection->link;
    struct node *node = connection->node;

    if (!link || link->pidfd < 0 || link->is_pinned ||
        link->pidfd_incarnation != connection->incarnation) {
        return;
    }
    link->pid_poll = calloc(1, sizeof(*link->pid_poll));
    if (!link->pid_poll || uv_poll_init(node->loop, link->pid_poll, link->pidfd) != 0) {
        free(link->pid_poll);
        link->pid_poll = NULL;
        return;
    }
    node->open_handles++;
    link->pid_poll->data = link;
    link->is_pinned = uv_poll_start(link->pid_poll, UV_READABLE, on_process_ended) == 0;
}

/* ---- (d) ---------------------------------------------------------------------------------------
 */

static bool meet(struct node *node, const struct greeting *greeting)
{
    struct acquaintance *known = acquaintance_of(node, greeting->id);

    if (known && greeting->incarnation < known->incarnation) {
        return false; /* of an incarnation that has ended */
    }
    if (!known) {
        known = calloc(1, sizeof(*known));
        if (!known) {
            return false;
        }
        known->id = greeting->id;
        HASH_ADD(hh, node->acquaintances, id, sizeof(known->id), known);
        if (!known->hh.tbl) {
            free(known);
            return false;
        }
    }
    if (proof_is_guardian_only(known) && greeting->incarnation > known->incarnation) {
        known->uncertified = known->incarnation; /* its certificate may still come */
        memcpy(known->uncertified_commitment, known->commitment, sizeof(known->commitment));
    }
    memcpy(known->name, greeting->name, sizeof(known->name));
    memcpy(known->commitment, greeting->commitment, sizeof(known->commitment));
    known->flags = (uint8_t)(greeting->flags | (known->flags & GREETING_GUARDIAN_ONLY));
    known->incarnation = greeting->incarnation;
    return true;
}

bool proof_on_greeting(struct connection *connection, const struct greeting *greeting)
{
    struct node *node = connection->node;
    const struct acquaintance *known = acquaintance_of(node, greeting->id);
    bool is_reborn = known && greeting->incarnation > known->incarnation;
    bool is_proof = is_reborn && !proof_is_guardian_only(known);

    if (!meet(node, greeting)) {
        return false;
    }
    if (is_proof) {
        tell(node, RAFT_PROOF_GREETING, greeting->id, greeting->incarnation - 1, RAFT_NOBODY);
    }
    if (connection->link) {
        open_pidfd(connection, greeting);
    }
    return true;
}

/* ---- (c) ---------------------------------------------------------------------------------------
 */

/* The hash of the incarnation's secret, from its greeting; NULL: not known. */
static const uint8_t *commitment_of(const struct acquaintance *known, uint64_t incarnation)
{
    if (known && known->incarnation == incarnation) {
        return known->commitment;
    }
    return known && known->uncertified == incarnation ? known->uncertified_commitment : NULL;
}

void proof_on_certificate(struct node *node, const void *frame)
{
    struct certificate certificate;
    struct acquaintance *known = NULL;
    const uint8_t *commitment = NULL;
    uint8_t digest[32];

    if (certificate_decode(&certificate, frame, CERTIFICATE_BYTES)) {
        known = acquaintance_of(node, certificate.node);
        commitment = commitment_of(known, certificate.incarnation);
        digest_sha256(digest, certificate.secret, sizeof(certificate.secret));
    }
    if (!commitment || CRYPTO_memcmp(digest, commitment, sizeof(digest)) != 0) {
        node->counters.refused_certificate++;
        return;
    }
    if (known->certified != certificate.incarnation) { /* it comes by two ways: datagram.c */
        known->certified = certificate.incarnation;
        tell(node, RAFT_PROOF_GUARDIAN, certificate.node, certificate.incarnation,
             certificate.heir);
    }
}

/* ---- (f) ---------------------------------------------------------------------------------------
 */

/* A proof of the later incarnation does not cover the program of an earlier one; this does. */
void proof_on_fenced(struct node *node, struct acquaintance *known)
{
    if (known->at_fence == 0) {
        return;
    }
    known->fenced = known->at_fence;
    known->fenced_index = known->index_at_fence;
    if (known->uncertified_at_fence != 0) {
        tell(node, RAFT_PROOF_GUARDIAN, known->id, known->uncertified_at_fence, node->id);
    }
    tell(node, RAFT_PROOF_GUARDIAN, known->id, known->at_fence, node->id);
    if (node->host) {
        session_host_fenced(node->host, known->id, known->fenced_index);
    }
}

/* ---- (e) ---------------------------------------------------------------------------------------
 */

void proof_on_refused(struct link *link)
{
    const struct acquaintance *known = acquaintance_of(link->node, link->id);

    if (link->was_greeted && link->last_was_loopback && link->node->options.trusts_loopback &&
        known && !proof_is_guardian_only(known)) {
        tell(link->node, RAFT_PROOF_REFUSED, link->id, link->last_incarnation, RAFT_NOBODY);
    }
}
