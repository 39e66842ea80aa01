#include "detector/camera/confine.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* These are younger than the headers of Debian 12. */
enum {
    RULE_NET_PORT = 2,
    ACCESS_NET_BIND_TCP = 1 << 0,
    ACCESS_NET_CONNECT_TCP = 1 << 1,
    SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0,
    SCOPE_SIGNAL = 1 << 1,
    ABI_FILES = 1,
    ABI_REFER = 2,
    ABI_TRUNCATE = 3,
    ABI_NET = 4,
    ABI_SCOPE = 6,
};

enum {
    FS_RIGHTS_1 = (1 << 13) - 1, /* execute … make_sym */
    FS_REFER = 1 << 13,
    FS_TRUNCATE = 1 << 14,
    DNS_PORT = 53, /* a reply that is too long for a datagram is requested again over TCP */
};

struct ruleset {
    uint64_t files, net, scopes;
};

struct net_port {
    uint64_t access, port;
};

/* Lookup of names, TLS and drivers read these. The rest of /etc may hold a token or a key that the
 * worker's user can read. */
static const char *const readable[] = {
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/ld.so.cache",
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/crypto-policies",
    "/etc/gnutls",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share",
    "/usr/local/share",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/dev/urandom",
    "/dev/null",
};
static const char *const variables[] = {"SSL_CERT_FILE", "SSL_CERT_DIR"};
static const char *const devices[] = {"/dev/dri",     "/sys",           "/proc",
                                      "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"};

static void allow_path(int ruleset, const char *path, uint64_t rights)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = rights};
    struct stat status;
    int fd = open(path, O_PATH | O_CLOEXEC);

    if (fd < 0) {
        return; /* this system does not have it */
    }
    rule.parent_fd = fd;
    if (fstat(fd, &status) == 0) {
        if (!S_ISDIR(status.st_mode)) {
            rule.allowed_access &= LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
        }
        (void)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    }
    (void)close(fd);
}

static void allow_port(int ruleset, uint16_t port)
{
    struct net_port rule = {.access = ACCESS_NET_CONNECT_TCP, .port = port};

    (void)syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &rule, 0);
}

static void allow_files(int ruleset, const struct confinement *confinement)
{
    const uint64_t reads = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;

    for (size_t i = 0; i < sizeof(readable) / sizeof(readable[0]); i++) {
        allow_path(ruleset, readable[i], reads);
    }
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *path = getenv(variables[i]);
        if (path != NULL) {
            allow_path(ruleset, path, reads);
        }
    }
    if (confinement->readable != NULL) {
        allow_path(ruleset, confinement->readable, reads);
    }
    for (size_t i = 0; confinement->uses_hardware && i < sizeof(devices) / sizeof(devices[0]);
         i++) {
        allow_path(ruleset, devices[i], reads | LANDLOCK_ACCESS_FS_WRITE_FILE);
    }
}

void landlock_restrict(const struct confinement *confinement)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    const struct ruleset rules = {
        .files = FS_RIGHTS_1 | (abi >= ABI_REFER ? FS_REFER : 0) |
                 (abi >= ABI_TRUNCATE ? FS_TRUNCATE : 0),
        .net = abi >= ABI_NET ? ACCESS_NET_BIND_TCP | ACCESS_NET_CONNECT_TCP : 0,
        .scopes = abi >= ABI_SCOPE ? SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL : 0};
    int ruleset;

    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* else only root may */
    if (abi < ABI_FILES) {
        return;
    }
    /* A kernel that knows less of it takes it if the rest is 0. */
    ruleset = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
    if (ruleset < 0) {
        return;
    }
    allow_files(ruleset, confinement);
    if (abi >= ABI_NET && confinement->port != 0) {
        allow_port(ruleset, confinement->port);
        allow_port(ruleset, DNS_PORT);
    }
    (void)syscall(SYS_landlock_restrict_self, ruleset, 0);
    (void)close(ruleset);
}
