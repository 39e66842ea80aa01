#include "provider/raft/options.h"

#include "base/host.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PEERS_TEXT_MAX = 64 * 1024 };

raft_id raft_id_of(const char *name)
{
    uint8_t digest[32];
    unsigned length = sizeof(digest);
    raft_id id = 0;

    (void)EVP_Digest(name, strlen(name), digest, &length, EVP_sha256(), NULL);
    for (int i = 7; i >= 0; i--) {
        id = id << 8 | digest[i];
    }
    return id != RAFT_NOBODY ? id : 1;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static int parse_number(const char *what, const char *text, long long min, long long max,
                        long long *ret, struct baton_error *reterr)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < min || value > max) {
        return error_set(reterr, BATON_EINVAL, "%s \"%s\": must be a number from %lld to %lld",
                         what, text, min, max);
    }
    *ret = value;
    return BATON_OK;
}

/* "250ms", "1.5s", "2m", "75" (milliseconds). */
static int parse_span(const char *what, const char *text, span *ret, struct baton_error *reterr)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"", 1e6}, {"ms", 1e6}, {"us", 1e3}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
    char *end;
    double value = strtod(text, &end);

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (end != text && strcmp(end, units[i].unit) == 0 && value >= 0 &&
            value * units[i].ns < 1e15) {
            ret->ns = (int64_t)(value * units[i].ns);
            return BATON_OK;
        }
    }
    return error_set(reterr, BATON_EINVAL,
                     "%s \"%s\": must be a time such as 75ms, 1.5s or 2m (no unit: ms)", what,
                     text);
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
    long long port = 0;

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

/* Cuts off what follows the last of `marks` and returns it; NULL if there is none. */
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
    long long number = 0;
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
        return error_set(
            reterr, BATON_EINVAL,
            "peer \"%s\": must be NAME@HOST:PORT[*WEIGHT][^PRIORITY][/KIND] (= is as good as @)",
            text);
    }
    r = check_name("peer", copy, reterr);
    if (r == BATON_OK) {
        r = raft_options_parse_address(address, host, sizeof(host), &port, reterr);
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

/* Separated by commas, white space or lines; from # to the end of a line is a comment. */
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

static int take_peers(struct raft_options *options, const struct provider_config *config,
                      struct baton_error *reterr)
{
    char *text = calloc(1, PEERS_TEXT_MAX);
    const char *given;
    int r = BATON_OK;

    if (!text) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the peers");
    }
    given = provider_option(config, "peers", text, PEERS_TEXT_MAX);
    if (given && given[0] == '@') {
        char path[OPTIONS_PATH_MAX];
        (void)snprintf(path, sizeof(path), "%s", given + 1);
        r = read_peers_file(text, PEERS_TEXT_MAX, path, reterr);
    } else if (given && given != text) {
        (void)snprintf(text, PEERS_TEXT_MAX, "%s", given);
    }
    if (r == BATON_OK && given) {
        r = parse_peers(&options->members, text, reterr);
    }
    free(text);
    return r;
}

/* ---- All together ---------------------------------------------------------------------------- */

static int take_text(const struct provider_config *config, const char *key, char *ret, size_t size,
                     struct baton_error *reterr)
{
    char space[OPTIONS_URL_MAX];
    const char *given = provider_option(config, key, space, sizeof(space));

    if (given && (size_t)snprintf(ret, size, "%s", given) >= size) {
        return error_set(reterr, BATON_ETOOBIG, "%s \"%.40s…\": longer than %zu bytes", key, given,
                         size - 1);
    }
    return BATON_OK;
}

static int take_span(const struct provider_config *config, const char *key, span *ret,
                     struct baton_error *reterr)
{
    char space[64];
    const char *given = provider_option(config, key, space, sizeof(space));
    return given ? parse_span(key, given, ret, reterr) : BATON_OK;
}

static int take_u32(const struct provider_config *config, const char *key, uint32_t max,
                    uint32_t *ret, struct baton_error *reterr)
{
    char space[64];
    const char *given = provider_option(config, key, space, sizeof(space));
    long long number = 0;
    int r = BATON_OK;

    if (given && (r = parse_number(key, given, 0, max, &number, reterr)) == BATON_OK) {
        *ret = (uint32_t)number;
    }
    return r;
}

static int take_bool(const struct provider_config *config, const char *key, bool *ret,
                     struct baton_error *reterr)
{
    return provider_option_flag(config, key, ret, reterr) ? BATON_OK : BATON_EINVAL;
}

static int take_settings(struct raft_options *options, const struct provider_config *config,
                         struct baton_error *reterr)
{
    struct raft_settings *settings = &options->settings;
    char preset[32] = "default";
    char election[64] = "";
    char *max;
    bool has_lease;
    span given = {0};
    int r = take_text(config, "preset", preset, sizeof(preset), reterr);

    if (r == BATON_OK) {
        r = raft_settings_preset(settings, preset, reterr);
    }
    if (r == BATON_OK) {
        r = take_span(config, "heartbeat-interval", &settings->heartbeat_interval, reterr);
    }
    if (r == BATON_OK) {
        r = take_span(config, "heartbeat-timeout", &settings->heartbeat_timeout, reterr);
    }
    settings->lease = settings->heartbeat_timeout;
    has_lease = r == BATON_OK && (r = take_span(config, "lease", &given, reterr)) == BATON_OK &&
                given.ns > 0;
    if (has_lease) {
        settings->lease = given;
    }
    if (r == BATON_OK) {
        r = take_text(config, "election-timeout", election, sizeof(election), reterr);
    }
    if (r == BATON_OK && election[0]) {
        max = cut(election, "-");
        r = parse_span("election-timeout", election, &settings->election_timeout_min, reterr);
        if (r == BATON_OK) {
            r = parse_span("election-timeout", max ? max : election,
                           &settings->election_timeout_max, reterr);
        }
    }
    if (r == BATON_OK) {
        r = take_u32(config, "clock-drift-ppm", 999999, &settings->clock_drift_ppm, reterr);
    }
    if (r == BATON_OK) {
        r = take_span(config, "preferred-stable", &settings->preferred_stable, reterr);
    }
    if (r == BATON_OK) {
        r = take_u32(config, "elections-per-hour-max", 1000000, &settings->elections_per_hour_max,
                     reterr);
    }
    if (r == BATON_OK) {
        r = raft_settings_check(settings, reterr);
    }
    return r == BATON_OK ? raft_settings_check_spread(settings, reterr) : r;
}

static int take_proofs(struct raft_options *options, const struct provider_config *config,
                       struct baton_error *reterr)
{
    char proofs[32] = "all";
    int r = take_text(config, "proofs", proofs, sizeof(proofs), reterr);

    options->trusts_loopback = options->believes_pidfd = true;
    options->wants_guardian = true;
    if (r != BATON_OK) {
        return r;
    }
    if (strcmp(proofs, "guardian") == 0) {
        options->is_guardian_only = true;
    } else if (strcmp(proofs, "none") == 0) {
        options->trusts_loopback = options->believes_pidfd = options->wants_guardian = false;
        options->is_guardian_only = true;
    } else if (strcmp(proofs, "all") != 0) {
        return error_set(reterr, BATON_EINVAL, "proofs \"%s\": must be all, guardian or none",
                         proofs);
    }
    if ((r = take_bool(config, "trusted", &options->trusts_loopback, reterr)) == BATON_OK &&
        (r = take_bool(config, "pidfd", &options->believes_pidfd, reterr)) == BATON_OK) {
        r = take_bool(config, "guardian", &options->wants_guardian, reterr);
    }
    return r == BATON_OK ? take_bool(config, "kill-outliving", &options->kills_outliving, reterr)
                         : r;
}

/* raft://HOST:PORT/?… : the part between the slashes and the query. */
static int take_address(struct raft_options *options, const char *url, struct baton_error *reterr)
{
    char address[RAFT_ADDRESS_MAX + 16];
    const char *start = strstr(url, "://");
    size_t length;

    start = start ? start + 3 : url + strlen(url);
    length = strcspn(start, "/?#");
    if (length == 0) {
        (void)snprintf(options->host, sizeof(options->host), "127.0.0.1");
        return BATON_OK;
    }
    if (length >= sizeof(address)) {
        return error_set(reterr, BATON_ETOOBIG, "URL: its address is too long");
    }
    memcpy(address, start, length);
    address[length] = '\0';
    return raft_options_parse_address(address, options->host, sizeof(options->host), &options->port,
                                      reterr);
}

static int check_exposure(const struct raft_options *options, struct baton_error *reterr)
{
    if (options->is_insecure || host_is_loopback(options->host) || options->cluster_key[0] ||
        options->tls_certificate[0]) {
        return BATON_OK;
    }
    return error_set(reterr, BATON_EAUTH,
                     "listening on %s without protection would let anybody vote; give tls-cert, "
                     "tls-key and tls-ca, or a key-file, or insecure=on if the network itself "
                     "is trusted",
                     options->host);
}

/* This node's own line among the peers; made up if it is not there. */
static int add_self(struct raft_options *options, const struct provider_config *config,
                    struct baton_error *reterr)
{
    const struct raft_member *known =
        raft_configuration_find(&options->members, raft_id_of(options->node));
    struct raft_member self = {.id = raft_id_of(options->node), .weight = 1};
    uint32_t weight = 1;
    char priority[16] = "0";
    char kind[16] = "voter";
    long long number = 0;
    int r;

    if (known || options->is_joining) {
        return BATON_OK;
    }
    r = take_u32(config, "weight", 1000000, &weight, reterr);
    if (r == BATON_OK) {
        r = take_text(config, "priority", priority, sizeof(priority), reterr);
    }
    if (r == BATON_OK) {
        r = parse_number("priority", priority, -1000000, 1000000, &number, reterr);
    }
    if (r == BATON_OK) {
        r = take_text(config, "kind", kind, sizeof(kind), reterr);
    }
    if (r == BATON_OK) {
        r = parse_kind(kind, &self.kind, reterr);
    }
    if (r != BATON_OK) {
        return r;
    }
    self.weight = self.kind == RAFT_LEARNER ? 0 : weight;
    self.priority = (int32_t)number;
    (void)snprintf(self.name, sizeof(self.name), "%s", options->node);
    (void)snprintf(self.address, sizeof(self.address),
                   strchr(options->host, ':') ? "[%.100s]:%d" : "%.100s:%d", options->host,
                   options->port);
    if (add_peer(&options->members, &self) != BATON_OK) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the peers");
    }
    return BATON_OK;
}

static int take_identity(struct raft_options *options, const struct provider_config *config,
                         struct baton_error *reterr)
{
    int r;

    if (gethostname(options->node, sizeof(options->node) - 1) != 0) {
        (void)snprintf(options->node, sizeof(options->node), "node");
    }
    r = take_text(config, "node", options->node, sizeof(options->node), reterr);
    if (r == BATON_OK && config->node) {
        (void)snprintf(options->node, sizeof(options->node), "%s", config->node);
    }
    if (r == BATON_OK) {
        r = check_name("node", options->node, reterr);
    }
    if (r == BATON_OK) {
        r = take_text(config, "cluster", options->cluster, sizeof(options->cluster), reterr);
    }
    if (r == BATON_OK && options->cluster[0]) {
        r = check_name("cluster", options->cluster, reterr);
    }
    return r;
}

static int take_files(struct raft_options *options, const struct provider_config *config,
                      struct baton_error *reterr)
{
    const struct {
        const char *key;
        char *ret;
    } files[] = {
        {"data", options->data},
        {"tls-cert", options->tls_certificate},
        {"tls-key", options->tls_key},
        {"tls-ca", options->tls_ca},
        {"key-file", options->cluster_key},
    };
    int r = BATON_OK;

    for (size_t i = 0; r == BATON_OK && i < sizeof(files) / sizeof(files[0]); i++) {
        r = take_text(config, files[i].key, files[i].ret, OPTIONS_PATH_MAX, reterr);
    }
    if (r == BATON_OK && !options->data[0]) {
        r = error_set(reterr, BATON_EINVAL,
                      "data: a node must remember its vote; name a directory of its own "
                      "(data=/var/lib/baton/%s)",
                      options->node);
    }
    return r;
}

int raft_options_parse(struct raft_options *ret, const struct provider_config *config,
                       struct baton_error *reterr)
{
    struct raft_options options = {.checkpoint = SPAN_S(60)};
    int r = take_identity(&options, config, reterr);

    if (r == BATON_OK) {
        r = take_address(&options, config->url, reterr);
    }
    if (r == BATON_OK) {
        r = take_files(&options, config, reterr);
    }
    if (r == BATON_OK) {
        r = take_settings(&options, config, reterr);
    }
    if (r == BATON_OK) {
        r = take_span(config, "checkpoint", &options.checkpoint, reterr);
    }
    if (r == BATON_OK) {
        r = take_bool(config, "insecure", &options.is_insecure, reterr);
    }
    if (r == BATON_OK) {
        r = take_bool(config, "join", &options.is_joining, reterr);
    }
    if (r == BATON_OK) {
        r = take_proofs(&options, config, reterr);
    }
    if (r == BATON_OK) {
        r = take_peers(&options, config, reterr);
    }
    if (r == BATON_OK) {
        r = add_self(&options, config, reterr);
    }
    if (r == BATON_OK && !options.is_joining) {
        r = raft_configuration_normalise(&options.members, reterr);
    }
    if (r == BATON_OK) {
        r = check_exposure(&options, reterr);
    }
    if (r != BATON_OK) {
        raft_options_fini(&options);
        return r;
    }
    *ret = options;
    return BATON_OK;
}

void raft_options_fini(struct raft_options *options)
{
    raft_configuration_fini(&options->members);
}
