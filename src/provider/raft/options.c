#include "provider/raft/options.h"

#include "base/host.h"
#include "base/value.h"
#include "guardian/guardian.h"
#include "net/digest.h"
#include "provider/setting_rows.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAY_OUT                                                                                    \
    "give tls-cert, tls-key and tls-ca, or a key-file, or insecure=on if the network itself is "   \
    "trusted"

#define NO_WEIGHT   UINT32_MAX /* a value that no user can give */
#define NO_PRIORITY INT32_MIN

enum {
    PEERS_TEXT_MAX = 64 * 1024,
    HOSTS_TEXT_MAX = 16 * 1024,
    FENCE_AFTER_MS_MIN = 100,
    FENCE_TIMEOUT_S_MAX = 600,
    ELECTIONS_LIMIT_MAX = 255, /* the core remembers 256 elections: it never counts more */
};

raft_id raft_id_of(const char *name)
{
    uint8_t digest[32];
    raft_id id = 0;

    digest_sha256(digest, name, strlen(name));
    for (int i = 7; i >= 0; i--) {
        id = id << 8 | digest[i];
    }
    return id != RAFT_NOBODY ? id : 1;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static int parse_number(const char *what, const char *text, int64_t min, int64_t max, int64_t *ret,
                        struct baton_error *reterr)
{
    int r = value_number(text, min, max, ret, reterr);

    return r == BATON_OK ? r : error_wrap(reterr, "%s", what);
}

static int check_name(const char *what, const char *name, struct baton_error *reterr)
{
    size_t length = strlen(name);

    if (length == 0 || length >= RAFT_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL, "%s \"%s\": must have 1 to %d bytes", what, name,
                         RAFT_NAME_MAX - 1);
    }
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)name[i]) && !strchr("-_.:{}", name[i])) {
            return error_set(reterr, BATON_EINVAL,
                             "%s \"%s\": only letters, digits and - _ . : { } are allowed", what,
                             name);
        }
    }
    return BATON_OK;
}

int raft_options_parse_address(const char *text, char *ret_host, size_t host_bytes, int *ret_port,
                               struct baton_error *reterr)
{
    const char *colon = strrchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;
    int64_t port = 0;

    if (!colon || length == 0) {
        return error_set(reterr, BATON_EINVAL, "address \"%s\": must be HOST:PORT", text);
    }
    if (parse_number("port", colon + 1, 0, 65535, &port, reterr) != BATON_OK) {
        return error_wrap(reterr, "address \"%s\"", text);
    }
    if (text[0] == '[' && length >= 2 && text[length - 1] == ']') {
        text++;
        length -= 2;
    }
    if (length >= host_bytes) {
        return error_set(reterr, BATON_ETOOBIG, "address \"%s\": its host is too long", text);
    }
    memcpy(ret_host, text, length);
    ret_host[length] = '\0';
    *ret_port = (int)port;
    return BATON_OK;
}

/* As people write it: of fe80::1 the end may be a port. Stored addresses are taken as they are. */
static int parse_given_address(const char *text, char *ret_host, size_t host_bytes, int *ret_port,
                               struct baton_error *reterr)
{
    int r = raft_options_parse_address(text, ret_host, host_bytes, ret_port, reterr);

    if (r == BATON_OK && strchr(ret_host, ':') && (text[0] != '[' || ret_host[0] == '[')) {
        r = error_set(reterr, BATON_EINVAL, "address \"%s\": write an IPv6 address as [ADDR]:PORT",
                      text);
    }
    return r;
}

/* ---- Peers ----------------------------------------------------------------------------------- */

static int parse_kind(const char *text, enum raft_kind *ret, struct baton_error *reterr)
{
    if (strcmp(text, "voter") == 0) {
        *ret = RAFT_VOTER;
    } else if (strcmp(text, "witness") == 0) {
        *ret = RAFT_WITNESS;
    } else if (strcmp(text, "learner") == 0) {
        *ret = RAFT_LEARNER;
    } else {
        return error_set(reterr, BATON_EINVAL, "kind \"%s\": must be voter, witness or learner",
                         text);
    }
    return BATON_OK;
}

/* Splits the text at the last of `marks` and returns the part behind it; NULL: no mark. */
static char *cut(char *text, const char *marks)
{
    char *at = NULL;
    for (const char *mark = marks; *mark && !at; mark++) {
        at = strrchr(text, *mark);
    }
    if (at) {
        *at++ = '\0';
    }
    return at;
}

int raft_options_parse_peer(struct raft_member *ret, const char *text, struct baton_error *reterr)
{
    struct raft_member member = {.kind = RAFT_VOTER, .weight = 1};
    char copy[RAFT_NAME_MAX + RAFT_ADDRESS_MAX + 64];
    char host[RAFT_ADDRESS_MAX];
    char *kind, *priority, *weight, *address;
    int64_t number = 0;
    int port = 0;
    int r = BATON_OK;

    if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy)) {
        return error_set(reterr, BATON_ETOOBIG, "peer \"%.40s…\": too long", text);
    }
    kind = cut(copy, "/");
    priority = cut(copy, "^");
    weight = cut(copy, "*");
    address = cut(copy, "@=");
    if (!address) {
        return error_set(reterr, BATON_EINVAL,
                         "peer \"%s\": must be NAME=HOST:PORT[*WEIGHT][^PRIORITY][/KIND] (@ in "
                         "place of = is the same)",
                         text);
    }
    r = check_name("peer", copy, reterr);
    if (r == BATON_OK) {
        r = parse_given_address(address, host, sizeof(host), &port, reterr);
        r = r == BATON_OK ? r : error_wrap(reterr, "peer \"%s\"", text);
    }
    if (r == BATON_OK && port == 0) {
        r = error_set(reterr, BATON_EINVAL,
                      "peer \"%s\": at port 0 nobody can be reached; give the port that it listens "
                      "at",
                      text);
    }
    if (r == BATON_OK && kind && (r = parse_kind(kind, &member.kind, reterr)) == BATON_OK &&
        member.kind == RAFT_LEARNER) {
        member.weight = 0;
    }
    if (r == BATON_OK && weight &&
        (r = parse_number("weight", weight, 0, 1000000, &number, reterr)) == BATON_OK) {
        member.weight = (uint32_t)number;
    }
    if (r == BATON_OK && priority &&
        (r = parse_number("priority", priority, -1000000, 1000000, &number, reterr)) == BATON_OK) {
        member.priority = (int32_t)number;
    }
    if (r == BATON_OK && strlen(address) >= RAFT_ADDRESS_MAX) {
        r = error_set(reterr, BATON_ETOOBIG, "address \"%.40s…\": too long", address);
    }
    if (r != BATON_OK) {
        return r;
    }
    memcpy(member.name, copy, strlen(copy) + 1); /* check_name has bounded it */
    memcpy(member.address, address, strlen(address) + 1);
    member.id = raft_id_of(member.name);
    *ret = member;
    return BATON_OK;
}

static int add_peer(struct raft_configuration *members, const struct raft_member *member)
{
    struct raft_member *grown =
        realloc(members->members, (members->count + 1) * sizeof(*members->members));
    if (!grown) {
        return BATON_ENOMEM;
    }
    members->members = grown;
    members->members[members->count++] = *member;
    return BATON_OK;
}

/* Parses peers, separated by commas or white space; a comment reaches from # to the end of the
 * line. */
static int parse_peers(struct raft_configuration *members, char *text, struct baton_error *reterr)
{
    char *rest = text;
    char *word;
    int r = BATON_OK;

    for (char *c = text; *c; c++) {
        if (*c == '#') {
            while (*c && *c != '\n') {
                *c++ = ' ';
            }
            if (!*c) {
                break;
            }
        }
    }
    while (r == BATON_OK && (word = strsep(&rest, ", \t\r\n"))) {
        struct raft_member member;
        if (!*word) {
            continue;
        }
        r = raft_options_parse_peer(&member, word, reterr);
        if (r == BATON_OK && raft_configuration_find(members, member.id)) {
            r = error_set(reterr, BATON_EINVAL, "peer \"%s\": a peer of this name is given twice",
                          word);
        }
        if (r == BATON_OK && add_peer(members, &member) != BATON_OK) {
            r = error_set(reterr, BATON_ENOMEM, "out of memory for the peers");
        }
    }
    return r;
}

static int read_peers_file(char *text, size_t size, const char *path, struct baton_error *reterr)
{
    FILE *file = fopen(path, "re");
    size_t bytes;

    if (!file) {
        return error_set(reterr, error_from_errno(errno), "peers file %s: %s", path,
                         strerror(errno));
    }
    bytes = fread(text, 1, size - 1, file);
    (void)fclose(file);
    if (bytes == size - 1) {
        return error_set(reterr, BATON_ETOOBIG, "peers file %s: larger than %zu bytes", path,
                         size - 1);
    }
    text[bytes] = '\0';
    return BATON_OK;
}

static int take_peers(struct raft_options *options, char *text, struct baton_error *reterr)
{
    char path[OPTIONS_PATH_MAX];
    int r = BATON_OK;

    if (!text[0]) {
        return BATON_OK;
    }
    if (text[0] == '@') {
        if ((size_t)snprintf(path, sizeof(path), "%s", text + 1) >= sizeof(path)) {
            return error_set(reterr, BATON_EINVAL, "peers: the file's name is too long");
        }
        r = read_peers_file(text, PEERS_TEXT_MAX, path, reterr);
    }
    if (r == BATON_OK) {
        r = parse_peers(&options->members, text, reterr);
    }
    if (r == BATON_OK && options->members.count == 0) {
        r = error_set(reterr, BATON_EINVAL,
                      "peers: contains no member; leave it out for a group of one");
    }
    return r;
}

/* ---- The settings ---------------------------------------------------------------------------- */

/* The settings as given, before they become options. */
struct given {
    struct raft_options options;
    struct raft_member self; /* kind, weight and priority, if the peers have none */
    bool has_kind;           /* `kind` was set */
    char peers[PEERS_TEXT_MAX];
    char hosts[HOSTS_TEXT_MAX];
};

static int take_preset(void *target, const char *key, const char *value, struct baton_error *reterr)
{
    struct raft_settings *settings = &((struct given *)target)->options.settings;
    int r = raft_settings_preset(settings, value, reterr);

    (void)key;
    settings->lease = SPAN_NS(0); /* 0 unless set: the heartbeat timeout then */
    return r;
}

static int take_election_timeout(void *target, const char *key, const char *value,
                                 struct baton_error *reterr)
{
    struct raft_settings *settings = &((struct given *)target)->options.settings;
    int r = value_range(value, &settings->election_timeout_min, &settings->election_timeout_max,
                        reterr);

    return r == BATON_OK ? r : error_wrap(reterr, "%s", key);
}

static int take_proofs(void *target, const char *key, const char *value, struct baton_error *reterr)
{
    struct raft_options *options = &((struct given *)target)->options;
    int r = value_choice(value, "all|guardian|none", reterr);

    options->is_guardian_only = strcmp(value, "all") != 0;
    if (strcmp(value, "none") == 0) {
        options->believes_pidfd = options->wants_guardian = false;
    }
    return r >= 0 ? BATON_OK : error_wrap(reterr, "%s", key);
}

static int take_kind(void *target, const char *key, const char *value, struct baton_error *reterr)
{
    (void)key;
    ((struct given *)target)->has_kind = true;
    return parse_kind(value, &((struct given *)target)->self.kind, reterr);
}

#define TARGET struct given

/* Processed in this order: a preset before the settings that override it, `proofs` before its
 * exceptions. */
const struct provider_setting raft_provider_settings[] = {
    TEXT("node", options.node),
    TEXT("cluster", options.cluster),
    TEXT("group", options.group),
    TEXT("data", options.data),
    LIST("peers", "peer", peers),
    OWN("kind", take_kind),
    NUMBER("weight", self.weight, 0, 1000000),
    NUMBER("priority", self.priority, -1000000, 1000000),
    TEXT("key-file", options.cluster_key),
    TEXT("tls-cert", options.tls_certificate),
    TEXT("tls-key", options.tls_key),
    TEXT("tls-ca", options.tls_ca),
    FLAG("insecure", options.is_insecure),
    FLAG("join", options.is_joining),
    OWN("preset", take_preset),
    SPAN("heartbeat-interval", options.settings.heartbeat_interval),
    SPAN("heartbeat-timeout", options.settings.heartbeat_timeout),
    SPAN("lease", options.settings.lease),
    OWN("election-timeout", take_election_timeout),
    NUMBER("clock-drift-ppm", options.settings.clock_drift_ppm, 0, 999999),
    SPAN("preferred-stable", options.settings.preferred_stable),
    NUMBER("elections-per-hour-max", options.settings.elections_per_hour_max, 0,
           ELECTIONS_LIMIT_MAX),
    SPAN("checkpoint", options.checkpoint),
    OWN("proofs", take_proofs),
    FLAG("trusted", options.trusts_loopback),
    FLAG("pidfd", options.believes_pidfd),
    FLAG("guardian", options.wants_guardian),
    FLAG("kill-outliving", options.kills_outliving),
    SPAN("hang", options.hang),
    TEXT("fence", options.fence),
    SPAN("fence-after", options.fence_after),
    SPAN("fence-timeout", options.fence_timeout),
    LIST("fence-hosts", "fence-host", hosts),
    END,
};

static int set_defaults(struct given *given, struct baton_error *reterr)
{
    struct raft_options *options = &given->options;

    options->checkpoint = SPAN_S(60);
    options->fence_timeout = SPAN_S(60);
    options->believes_pidfd = options->wants_guardian = true;
    given->self.weight = NO_WEIGHT;
    given->self.priority = NO_PRIORITY;
    if (gethostname(options->node, sizeof(options->node) - 1) != 0) {
        (void)snprintf(options->node, sizeof(options->node), "node");
    }
    return take_preset(given, "preset", "default", reterr);
}

/* ---- Fencing --------------------------------------------------------------------------------- */

static int take_host(struct raft_options *options, const char *text, struct baton_error *reterr)
{
    struct raft_host *host = &options->hosts[options->host_count];
    const char *equals = strchr(text, '=');
    char name[RAFT_NAME_MAX + 1];
    size_t length = equals ? (size_t)(equals - text) : 0;

    if (length == 0 || length > RAFT_NAME_MAX || !equals[1]) {
        return error_set(reterr, BATON_EINVAL,
                         "fence-hosts \"%.80s\": must be MEMBER=HOST, the name of a member and of "
                         "the host as the fence command knows it",
                         text);
    }
    if (options->host_count == OPTIONS_HOSTS_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "fence-hosts: %d at most", OPTIONS_HOSTS_MAX);
    }
    memcpy(name, text, length);
    name[length] = '\0';
    if (check_name("fence-hosts: member", name, reterr) != BATON_OK ||
        check_name("fence-hosts: host", equals + 1, reterr) != BATON_OK) {
        return BATON_EINVAL;
    }
    memcpy(host->member, name, length + 1);
    memcpy(host->host, equals + 1, strlen(equals + 1) + 1); /* check_name has bounded both */
    options->host_count++;
    return BATON_OK;
}

static int take_hosts(struct given *given, struct baton_error *reterr)
{
    char *rest = given->hosts;
    const char *word;
    int r = BATON_OK;

    while (r == BATON_OK && (word = strsep(&rest, ", \t"))) {
        r = *word ? take_host(&given->options, word, reterr) : BATON_OK;
    }
    return r;
}

static int check_fence(const struct raft_options *options, struct baton_error *reterr)
{
    if (options->fence_after.ns != 0 && options->fence_after.ns < SPAN_MS(FENCE_AFTER_MS_MIN).ns) {
        return error_set(reterr, BATON_EINVAL, "fence-after: %g ms is less than %d ms",
                         (double)options->fence_after.ns / 1e6, FENCE_AFTER_MS_MIN);
    }
    if (options->fence_timeout.ns < SPAN_S(1).ns ||
        options->fence_timeout.ns > SPAN_S(FENCE_TIMEOUT_S_MAX).ns) {
        return error_set(reterr, BATON_EINVAL, "fence-timeout: %g s is not 1 s to %d s",
                         (double)options->fence_timeout.ns / 1e9, FENCE_TIMEOUT_S_MAX);
    }
    if (options->fence[0] && options->fence_after.ns == 0) {
        return error_set(reterr, BATON_EINVAL,
                         "fence: set fence-after as well, the silence after which a host is "
                         "fenced");
    }
    if (options->fence[0] && (options->fence[0] != '/' || access(options->fence, X_OK) != 0)) {
        return error_set(reterr, BATON_EINVAL,
                         "fence \"%s\": must be the whole path of a program that this user may run",
                         options->fence);
    }
    return BATON_OK;
}

void raft_options_host(const struct raft_options *options, const struct raft_member *member,
                       char ret[RAFT_ADDRESS_MAX])
{
    int port;

    for (size_t i = 0; i < options->host_count; i++) {
        if (strcmp(options->hosts[i].member, member->name) == 0) {
            memcpy(ret, options->hosts[i].host, RAFT_ADDRESS_MAX);
            return;
        }
    }
    if (raft_options_parse_address(member->address, ret, RAFT_ADDRESS_MAX, &port, NULL) !=
        BATON_OK) {
        memcpy(ret, member->name, sizeof(member->name));
    }
}

/* ---- All together ---------------------------------------------------------------------------- */

static int check_settings(struct raft_settings *settings, struct baton_error *reterr)
{
    int r;

    if (settings->lease.ns == 0) {
        settings->lease = settings->heartbeat_timeout;
    }
    r = raft_settings_check(settings, reterr);
    return r == BATON_OK ? raft_settings_check_spread(settings, reterr) : r;
}

/* Parses the part of raft://HOST:PORT/?… between the slashes and the query. */
static int take_address(struct raft_options *options, const char *url, struct baton_error *reterr)
{
    char address[RAFT_ADDRESS_MAX + 16];
    bool has_slashes = strncmp(url, "raft://", 7) == 0;
    const char *start = url + (has_slashes ? 7 : 0);
    size_t length = strcspn(start, "/?");
    const char *rest = start + length + (start[length] == '/');

    if (!has_slashes || (*rest && *rest != '?')) {
        return error_set(reterr, BATON_EINVAL, "URL: must be raft://HOST:PORT?KEY=VALUE&…");
    }
    if (length == 0) {
        (void)snprintf(options->host, sizeof(options->host), "127.0.0.1");
        return BATON_OK;
    }
    if (length >= sizeof(address)) {
        return error_set(reterr, BATON_ETOOBIG, "URL: its address is too long");
    }
    memcpy(address, start, length);
    address[length] = '\0';
    return parse_given_address(address, options->host, sizeof(options->host), &options->port,
                               reterr);
}

static bool is_protected(const struct raft_options *options)
{
    return options->is_insecure || options->cluster_key[0] || options->tls_certificate[0];
}

int raft_options_check_peer(const struct raft_options *options, const struct raft_member *peer,
                            struct baton_error *reterr)
{
    char host[RAFT_ADDRESS_MAX];
    int port;

    if (is_protected(options) ||
        (raft_options_parse_address(peer->address, host, sizeof(host), &port, NULL) == BATON_OK &&
         host_is_loopback(host))) {
        return BATON_OK;
    }
    return error_set(
        reterr, BATON_EAUTH,
        "peer %s@%s: without protection anybody on the network could vote in its name; " WAY_OUT,
        peer->name, peer->address);
}

bool raft_options_listen_address(const struct raft_options *options, struct sockaddr_storage *ret)
{
    const char *host = strcmp(options->host, "localhost") == 0 ? "127.0.0.1" : options->host;

    return uv_ip4_addr(host, options->port, (struct sockaddr_in *)ret) == 0 ||
           uv_ip6_addr(host, options->port, (struct sockaddr_in6 *)ret) == 0;
}

/* Before the data directory records it as this node's address. */
static int check_listener(const struct raft_options *options, struct baton_error *reterr)
{
    struct sockaddr_storage address;

    return raft_options_listen_address(options, &address)
               ? BATON_OK
               : error_set(reterr, BATON_EINVAL,
                           "listening on \"%s\": give a numeric address of this machine (0.0.0.0 "
                           "for all)",
                           options->host);
}

static int check_exposure(const struct raft_options *options, struct baton_error *reterr)
{
    int r = BATON_OK;

    if (!is_protected(options) && !host_is_loopback(options->host)) {
        return error_set(reterr, BATON_EAUTH,
                         "listening on %s without protection would let anybody vote; " WAY_OUT,
                         options->host);
    }
    for (size_t i = 0; r == BATON_OK && i < options->members.count; i++) {
        r = raft_options_check_peer(options, &options->members.members[i], reterr);
    }
    return r;
}

/* Finds this node among the peers, or adds it. */
static int add_self(struct given *given, struct baton_error *reterr)
{
    struct raft_options *options = &given->options;
    struct raft_member self = given->self;
    bool has_weight = self.weight != NO_WEIGHT;
    bool has_priority = self.priority != NO_PRIORITY;

    self.id = raft_id_of(options->node);
    if (raft_configuration_find(&options->members, self.id)) {
        return given->has_kind || has_weight || has_priority
                   ? error_set(reterr, BATON_EINVAL,
                               "kind, weight and priority: \"%s\" is among the peers; set them "
                               "there: NAME=HOST:PORT[*WEIGHT][^PRIORITY][/KIND]",
                               options->node)
                   : BATON_OK;
    }
    if (options->is_joining) {
        return given->has_kind || has_weight || has_priority
                   ? error_set(reterr, BATON_EINVAL,
                               "join: kind, weight and priority are set where this node is added: "
                               "baton join NAME=HOST:PORT[*WEIGHT][^PRIORITY][/KIND]")
                   : BATON_OK;
    }
    self.priority = has_priority ? self.priority : 0;
    self.weight = self.kind == RAFT_LEARNER ? 0 : has_weight ? self.weight : 1;
    (void)snprintf(self.name, sizeof(self.name), "%s", options->node);
    (void)snprintf(self.address, sizeof(self.address),
                   strchr(options->host, ':') ? "[%.100s]:%d" : "%.100s:%d", options->host,
                   options->port);
    if (add_peer(&options->members, &self) != BATON_OK) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the peers");
    }
    return BATON_OK;
}

/* Refuses an address that others cannot dial: the first leader writes its list of members into the
 * log, and the others dial what they find there. */
static int check_own_address(const struct raft_options *options, struct baton_error *reterr)
{
    const struct raft_member *self =
        raft_configuration_find(&options->members, raft_id_of(options->node));
    char host[RAFT_ADDRESS_MAX];
    int port;

    if (self &&
        raft_options_parse_address(self->address, host, sizeof(host), &port, NULL) == BATON_OK &&
        (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0)) {
        return error_set(reterr, BATON_EINVAL,
                         "listening on %s: the other members cannot dial that; say where they "
                         "reach this node, as one of its own peers: %s=HOST:%d",
                         self->address, options->node, port);
    }
    return BATON_OK;
}

static int check_identity(struct raft_options *options, const char *node,
                          struct baton_error *reterr)
{
    int r = check_name("node", node ? node : options->node, reterr);

    if (r == BATON_OK && node) {
        memcpy(options->node, node, strlen(node) + 1); /* check_name has bounded it */
    }
    if (r == BATON_OK && options->group[0] && options->cluster[0] &&
        strcmp(options->group, options->cluster) != 0) {
        r = error_set(reterr, BATON_EINVAL,
                      "group \"%s\": the cluster is called \"%s\"; leave `cluster` out",
                      options->group, options->cluster);
    }
    if (r == BATON_OK && options->group[0]) {
        memcpy(options->cluster, options->group, sizeof(options->cluster));
    }
    if (r == BATON_OK && options->cluster[0]) {
        r = check_name("cluster", options->cluster, reterr);
    }
    if (r == BATON_OK && !options->data[0]) {
        r = error_set(reterr, BATON_EINVAL,
                      "data: a node must remember its vote; name a directory of its own "
                      "(data=/var/lib/baton/%s)",
                      options->node);
    }
    return r;
}

static int take_group(struct given *given, struct baton_error *reterr)
{
    struct raft_options *options = &given->options;
    int r = take_peers(options, given->peers, reterr);

    if (r == BATON_OK) {
        r = add_self(given, reterr);
    }
    if (options->is_joining) { /* the group's log names the members */
        raft_configuration_fini(&options->members);
    } else if (r == BATON_OK) {
        r = raft_configuration_normalise(&options->members, reterr);
    }
    if (r == BATON_OK) {
        r = check_listener(options, reterr);
    }
    if (r == BATON_OK) {
        r = check_exposure(options, reterr);
    }
    return r == BATON_OK ? check_own_address(options, reterr) : r;
}

static int take_all(struct given *given, const struct provider_config *config,
                    struct baton_error *reterr)
{
    int r = set_defaults(given, reterr);

    if (r == BATON_OK) {
        r = provider_settings_take(given, raft_provider_settings, config, reterr);
    }
    if (r == BATON_OK) {
        r = take_address(&given->options, config->url, reterr);
    }
    if (r == BATON_OK) {
        r = check_identity(&given->options, config->node, reterr);
    }
    if (r == BATON_OK) {
        r = check_settings(&given->options.settings, reterr);
    }
    if (r == BATON_OK) {
        r = guardian_check_hang(given->options.hang, given->options.settings.lease,
                                given->options.wants_guardian, reterr);
    }
    if (r == BATON_OK) {
        r = take_hosts(given, reterr);
    }
    if (r == BATON_OK) {
        r = check_fence(&given->options, reterr);
    }
    return r == BATON_OK ? take_group(given, reterr) : r;
}

int raft_options_parse(struct raft_options *ret, const struct provider_config *config,
                       struct baton_error *reterr)
{
    struct given *given = calloc(1, sizeof(*given));
    int r = given ? take_all(given, config, reterr)
                  : error_set(reterr, BATON_ENOMEM, "out of memory for the options");

    if (r == BATON_OK) {
        *ret = given->options;
    } else if (given) {
        raft_options_fini(&given->options);
    }
    free(given);
    return r;
}

void raft_options_fini(struct raft_options *options)
{
    raft_configuration_fini(&options->members);
}
