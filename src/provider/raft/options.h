/* The options of a node: from the URL, settings and a peers file. */
#ifndef PROVIDER_RAFT_OPTIONS_H
#define PROVIDER_RAFT_OPTIONS_H

#include "provider/setting.h"
#include "raft/raft.h"

#include <sys/socket.h>

enum { OPTIONS_PATH_MAX = 1024, OPTIONS_HOSTS_MAX = 128 };

/* The host that a member runs on, as the fence command knows it. */
struct raft_host {
    char member[RAFT_NAME_MAX];
    char host[RAFT_ADDRESS_MAX];
};

struct raft_options {
    char node[RAFT_NAME_MAX];
    char cluster[RAFT_NAME_MAX]; /* "" until the first campaign names it */
    char group[RAFT_NAME_MAX];   /* the cluster's name: it has named elections; "": it is one */
    char host[RAFT_ADDRESS_MAX]; /* the listener's address */
    int port;                    /* 0: the kernel chooses */
    char data[OPTIONS_PATH_MAX];
    struct raft_settings settings;
    struct raft_configuration members; /* the first configuration, this node included; owned */
    span checkpoint;
    char tls_certificate[OPTIONS_PATH_MAX];
    char tls_key[OPTIONS_PATH_MAX];
    char tls_ca[OPTIONS_PATH_MAX];
    char cluster_key[OPTIONS_PATH_MAX];
    bool is_insecure;      /* may listen beyond loopback without TLS or a key */
    bool is_joining;       /* starts without members; is added by `baton join` */
    bool trusts_loopback;  /* loopback has no forwarder: a refused reconnect is proof (e) */
    bool believes_pidfd;   /* accepts a pidfd on the same host as proof (b) */
    bool is_guardian_only; /* only its guardian's certificate proves its death */
    bool wants_guardian;
    bool kills_outliving;         /* the guardian kills a process that outlives its lease */
    span hang;                    /* and a leader whose loop is silent for so long; 0: not */
    char fence[OPTIONS_PATH_MAX]; /* the command that switches a silent host off; "" */
    span fence_after;             /* so long is a host silent then; 0: it is never fenced */
    span fence_timeout;
    struct raft_host hosts[OPTIONS_HOSTS_MAX]; /* of members whose address does not name it */
    size_t host_count;
};

/* The table of all keys, for provider_settings_take(). */
extern const struct provider_setting raft_provider_settings[];

/* Parses raft://HOST:PORT?key=value&…; docs/api.md lists the keys. Errors name the value.
 * BATON_EINVAL, BATON_EUNSAFE, BATON_ENOMEM; BATON_EAUTH: it would listen or connect beyond
 * loopback without protection. */
int raft_options_parse(struct raft_options *ret, const struct provider_config *config,
                       struct baton_error *reterr);
void raft_options_fini(struct raft_options *options);

/* BATON_EAUTH: it is beyond loopback, and nothing protects its messages. */
int raft_options_check_peer(const struct raft_options *options, const struct raft_member *peer,
                            struct baton_error *reterr);

/* Where the node listens; "localhost" is 127.0.0.1. False: a name, which may have many addresses.
 */
bool raft_options_listen_address(const struct raft_options *options, struct sockaddr_storage *ret);
/* Parses one peer: NAME@HOST:PORT[*WEIGHT][^PRIORITY][/voter|/witness|/learner]. */
int raft_options_parse_peer(struct raft_member *ret, const char *text, struct baton_error *reterr);
/* The host of a member: the one that is configured, else that of its address. */
void raft_options_host(const struct raft_options *options, const struct raft_member *member,
                       char ret[RAFT_ADDRESS_MAX]);
/* Splits "host:port" or "[v6]:port". */
int raft_options_parse_address(const char *text, char *ret_host, size_t host_bytes, int *ret_port,
                               struct baton_error *reterr);

/* A node's id: the first 8 bytes of SHA-256 of its name, never 0. */
raft_id raft_id_of(const char *name);

#endif
